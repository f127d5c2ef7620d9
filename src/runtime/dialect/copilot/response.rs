//! Responses: a result as a message, or an error for people.

use serde_json::Value;

use super::request::Request;
use super::session_context::{CODE_FENCE_END, CODE_FENCE_START};
use crate::domain::error_code::ErrorCode;
use crate::runtime::dialect::text_of;
use crate::runtime::jsonrpc::RpcError;

#[derive(Debug)]
pub(super) struct Response {
    pub(super) code: Option<String>,
    pub(super) message: String,
    components: Option<u64>,
    assumptions: Vec<String>,
    suggestions: Vec<String>,
}

impl Response {
    pub(super) fn parse(result: &Value) -> Self {
        let non_empty = |field: &str| Some(text_of(&result[field])).filter(|text| !text.is_empty());
        let list = |field: &str| {
            let items = result[field].as_array().into_iter().flatten();
            items.map(text_of).collect()
        };
        let messages: Vec<String> = ["description", "message"]
            .into_iter()
            .filter_map(non_empty)
            .collect();
        Self {
            code: non_empty("code"),
            message: messages.join("\n\n"),
            components: result["componentCount"].as_u64(),
            assumptions: list("assumptions"),
            suggestions: list("suggestions"),
        }
    }

    /// Whether the stream had the same content. If not, this response replaces it.
    pub(super) fn confirms(&self, request: &Request, streamed: &str) -> bool {
        if streamed.is_empty() {
            false
        } else if request.is_code() {
            self.code.as_deref() == Some(streamed)
        } else {
            self.message.is_empty() || self.message == streamed
        }
    }

    pub(super) fn text(&self) -> String {
        let mut parts = vec![self.message.clone()];
        parts.extend(self.remarks());
        if let Some(code) = &self.code {
            parts.push(format!("{CODE_FENCE_START}{code}{CODE_FENCE_END}"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// What the stream did not have, to append to it.
    pub(super) fn text_after_stream(&self, request: &Request) -> String {
        let mut parts = Vec::new();
        if request.is_code() {
            parts.push(self.message.clone());
        }
        parts.extend(self.remarks());
        parts.retain(|part| !part.is_empty());
        if !parts.is_empty() {
            parts.insert(0, String::new());
        }
        parts.join("\n\n")
    }

    fn remarks(&self) -> Vec<String> {
        let list = |title: &str, items: &[String]| {
            let lines = items.join("\n- ");
            (!items.is_empty()).then(|| format!("{title}:\n\n- {lines}"))
        };
        let count = self.components.map(|count| format!("Components: {count}"));
        let assumptions = list("Assumptions", &self.assumptions);
        let suggestions = list("Suggestions", &self.suggestions);
        [count, assumptions, suggestions]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// Not if the request itself is wrong, and not if the agent has too many.
pub(super) fn is_retryable(error: &RpcError) -> bool {
    matches!(error.code, -32603 | -32000 | -32001)
}

pub(super) fn error_message(agent: &str, error: &RpcError) -> (ErrorCode, String) {
    let (code, what) = match error.code {
        -32003 => {
            let message = format!(
                "This is too large for the agent `{agent}`: it does not fit into its context. \
                 Send less, or begin a new session."
            );
            return (ErrorCode::ValidationError, message);
        }
        -32000 => (ErrorCode::TaskFailed, "could not generate the code"),
        -32001 => (ErrorCode::TaskFailed, "could not apply the change"),
        -32002 => (ErrorCode::ValidationError, "cannot use the specification"),
        -32004 => (ErrorCode::RateLimited, "gets too many requests"),
        -32601 => (ErrorCode::Unsupported, "does not know this request"),
        -32700 | -32600 | -32602 => (ErrorCode::TaskFailed, "did not understand the request"),
        _ => (ErrorCode::TaskFailed, "failed"),
    };
    let message = match error.message.trim().trim_end_matches('.') {
        "" => format!("The agent `{agent}` {what}."),
        why => format!("The agent `{agent}` {what}: {why}."),
    };
    (code, message)
}
