//! What comes of a request: a result that becomes a message, or a failure.

use serde_json::Value;

use super::memory::{CODE_BEGINS, CODE_ENDS};
use super::request::Request;
use crate::domain::code::Code;
use crate::runtime::dialect::text_of;
use crate::runtime::jsonrpc::Fault;

/// A result.
#[derive(Debug)]
pub(super) struct Reply {
    /// The code that was made, if any was.
    pub(super) code: Option<String>,
    /// What the agent says about it, or at all.
    pub(super) words: String,
    components: Option<u64>,
    assumptions: Vec<String>,
    suggestions: Vec<String>,
}

impl Reply {
    /// Reads a result of any method.
    pub(super) fn read(result: &Value) -> Self {
        let full = |field: &str| Some(text_of(&result[field])).filter(|text| !text.is_empty());
        let list = |field: &str| {
            let entries = result[field].as_array().into_iter().flatten();
            entries.map(text_of).collect()
        };
        let words: Vec<String> = ["description", "message"]
            .into_iter()
            .filter_map(full)
            .collect();
        Self {
            code: full("code"),
            words: words.join("\n\n"),
            components: result["componentCount"].as_u64(),
            assumptions: list("assumptions"),
            suggestions: list("suggestions"),
        }
    }

    /// Is what was streamed what the agent says now? If not, this counts and that does not.
    pub(super) fn confirms(&self, request: &Request, streamed: &str) -> bool {
        if streamed.is_empty() {
            false
        } else if request.is_code() {
            self.code.as_deref() == Some(streamed)
        } else {
            self.words.is_empty() || self.words == streamed
        }
    }

    /// All of it as a text.
    pub(super) fn text(&self) -> String {
        let mut parts = vec![self.words.clone()];
        parts.extend(self.remarks());
        if let Some(code) = &self.code {
            parts.push(format!("{CODE_BEGINS}{code}{CODE_ENDS}"));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    /// The same without what was streamed, to be said behind it.
    pub(super) fn text_beside_stream(&self, request: &Request) -> String {
        let mut parts = Vec::new();
        if request.is_code() {
            parts.push(self.words.clone());
        }
        parts.extend(self.remarks());
        parts.retain(|part| !part.is_empty());
        if !parts.is_empty() {
            parts.insert(0, String::new());
        }
        parts.join("\n\n")
    }

    fn remarks(&self) -> Vec<String> {
        let list = |title: &str, entries: &[String]| {
            let lines = entries.join("\n- ");
            (!entries.is_empty()).then(|| format!("{title}:\n\n- {lines}"))
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

/// Could the same request succeed a moment later? Not if something is wrong with the request itself,
/// and not if there were too many already.
pub(super) fn is_worth_another_try(fault: &Fault) -> bool {
    matches!(fault.code, -32603 | -32000 | -32001)
}

/// What a person reads of a failure.
pub(super) fn failure(agent: &str, fault: &Fault) -> (Code, String) {
    let (code, what) = match fault.code {
        -32003 => {
            let message = format!(
                "This is too large for the agent `{agent}`: it does not fit into its context. \
                 Send less, or begin a new session."
            );
            return (Code::ValidationError, message);
        }
        -32000 => (Code::TaskFailed, "could not generate the code"),
        -32001 => (Code::TaskFailed, "could not apply the change"),
        -32002 => (Code::ValidationError, "cannot use the specification"),
        -32004 => (Code::RateLimited, "gets too many requests"),
        -32601 => (Code::Unsupported, "does not know this request"),
        -32700 | -32600 | -32602 => (Code::TaskFailed, "did not understand the request"),
        _ => (Code::TaskFailed, "failed"),
    };
    let message = match fault.message.trim().trim_end_matches('.') {
        "" => format!("The agent `{agent}` {what}."),
        why => format!("The agent `{agent}` {what}: {why}."),
    };
    (code, message)
}
