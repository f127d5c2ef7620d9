//! Session context: code, specification and messages, sent with each request to a stateless agent.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::request::Request;
use super::response::Response;
use crate::domain::event::Author;
use crate::runtime::dialect::PastMessage;
use crate::runtime::event_truncation::MAX_THREAD_BYTES;

/// Fences generated code in a message. `interface` tells it from quoted code; four ticks fence code that
/// contains three.
pub(super) const CODE_FENCE_START: &str = "````jsx interface\n";
pub(super) const CODE_FENCE_END: &str = "\n````";

/// Marks incomplete code, so that it is not taken as the current code.
pub(super) const UNFINISHED: &str = "*Unfinished.*";

const MAX_MESSAGES: usize = 20;

#[derive(Debug, Default)]
pub(super) struct SessionContext {
    code: Option<String>,
    spec: Option<Value>,
    /// Role and text, oldest first, without code.
    messages: VecDeque<(&'static str, String)>,
}

impl SessionContext {
    /// Restores the messages and, since it is in them, the code; and the specification from the thread.
    pub(super) fn restore(history: &[PastMessage], thread: Option<&str>) -> Self {
        let kept = thread.and_then(|thread| serde_json::from_str::<Value>(thread).ok());
        let spec = kept.and_then(|mut kept| kept.get_mut("spec").map(Value::take));
        let mut context = Self {
            spec,
            ..Self::default()
        };
        for utterance in history {
            match utterance.author {
                Author::User => context.push_message("user", utterance.text.clone()),
                Author::Assistant => {
                    let (message, code) = split_code(&utterance.text);
                    context.code = code.or(context.code);
                    context.push_message("assistant", message);
                }
                Author::System => {}
            }
        }
        context
    }

    pub(super) fn has_code(&self) -> bool {
        self.code.is_some()
    }

    pub(super) fn set_spec(&mut self, spec: Value) {
        self.spec = Some(spec);
    }

    /// Records a request and its response. Returns the specification if it is another one now.
    pub(super) fn record(
        &mut self,
        prompt: &str,
        request: Request,
        response: &Response,
    ) -> Option<Value> {
        let new_spec = match request {
            Request::Generate { spec } => Some(spec),
            Request::Customize | Request::Chat => None,
        };
        if let Some(spec) = &new_spec {
            self.set_spec(spec.clone());
        }
        if let Some(code) = &response.code {
            self.code = Some(code.clone());
        }
        self.push_message("user", prompt.to_owned());
        self.push_message("assistant", response.message.clone());
        new_spec
    }

    fn push_message(&mut self, role: &'static str, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.messages.push_back((role, text));
        if self.messages.len() > MAX_MESSAGES {
            self.messages.pop_front();
        }
    }

    pub(super) fn customize(&self, prompt: &str) -> Value {
        let message =
            |(role, content): &(&str, String)| json!({ "role": role, "content": content });
        let mut params = json!({
            "currentCode": self.code.as_deref().unwrap_or_default(),
            "prompt": prompt,
            "history": self.messages.iter().map(message).collect::<Vec<_>>(),
        });
        if let Some(spec) = &self.spec {
            params["spec"] = spec.clone();
        }
        params
    }

    pub(super) fn chat(&self, session: &str, message: &str) -> Value {
        json!({
            "message": message,
            "context": {
                "tabId": session,
                "hasActiveSpec": self.spec.is_some(),
                "hasActiveInterface": self.has_code(),
            },
        })
    }
}

/// A specification as the thread of its conversation; none if it is too large to be kept.
pub(super) fn thread(spec: &Value) -> Option<String> {
    let thread = json!({ "spec": spec }).to_string();
    (thread.len() <= MAX_THREAD_BYTES).then_some(thread)
}

fn split_code(text: &str) -> (String, Option<String>) {
    let parts = text
        .split_once(CODE_FENCE_START)
        .and_then(|(before, rest)| {
            let (code, after) = rest.rsplit_once(CODE_FENCE_END)?;
            Some((before, code, after))
        });
    match parts {
        Some((before, code, after)) => {
            let message = [before.trim(), after.trim()].join("\n\n");
            let is_whole = after.trim() != UNFINISHED;
            (message.trim().to_owned(), is_whole.then(|| code.to_owned()))
        }
        None => (text.to_owned(), None),
    }
}
