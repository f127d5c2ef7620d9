//! What the agent is reminded of with each request, because it remembers nothing itself.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::reply::Reply;
use super::request::Request;
use crate::domain::event::Author;
use crate::runtime::dialect::Utterance;

/// Code in a message stands between these. The second word of the first line tells it from code
/// that is only talked about, and four ticks hold code that has three.
pub(super) const CODE_BEGINS: &str = "````jsx interface\n";
/// The end of it.
pub(super) const CODE_ENDS: &str = "\n````";

/// Behind code that is not all there: nobody shall go on with it.
pub(super) const UNFINISHED: &str = "*Unfinished.*";

/// How much of what was said is passed on.
const MOST_SAID: usize = 20;

/// What is known in this session.
#[derive(Debug, Default)]
pub(super) struct Memory {
    code: Option<String>,
    spec: Option<Value>,
    /// Who said what, oldest first, without code.
    said: VecDeque<(&'static str, String)>,
}

impl Memory {
    /// What can be known from what was said before: also the code, since it stands in the messages;
    /// but not the specification.
    pub(super) fn of(history: &[Utterance]) -> Self {
        let mut memory = Self::default();
        for utterance in history {
            match utterance.author {
                Author::User => memory.note("user", utterance.text.clone()),
                Author::Assistant => {
                    let (words, code) = split(&utterance.text);
                    memory.code = code.or(memory.code);
                    memory.note("assistant", words);
                }
                Author::System => {}
            }
        }
        memory
    }

    /// Is there an interface that can be changed?
    pub(super) fn has_code(&self) -> bool {
        self.code.is_some()
    }

    /// What the interface is for.
    pub(super) fn know_spec(&mut self, spec: Value) {
        self.spec = Some(spec);
    }

    /// A request has succeeded.
    pub(super) fn learn(&mut self, asked: &str, request: Request, reply: &Reply) {
        if let Request::Generate { spec } = request {
            self.know_spec(spec);
        }
        if let Some(code) = &reply.code {
            self.code = Some(code.clone());
        }
        self.note("user", asked.to_owned());
        self.note("assistant", reply.words.clone());
    }

    fn note(&mut self, role: &'static str, text: String) {
        if text.trim().is_empty() {
            return;
        }
        self.said.push_back((role, text));
        if self.said.len() > MOST_SAID {
            self.said.pop_front();
        }
    }

    /// The parameters of `customize`.
    pub(super) fn customize(&self, prompt: &str) -> Value {
        let said = |(role, content): &(&str, String)| json!({ "role": role, "content": content });
        let mut params = json!({
            "currentCode": self.code.as_deref().unwrap_or_default(),
            "prompt": prompt,
            "history": self.said.iter().map(said).collect::<Vec<_>>(),
        });
        if let Some(spec) = &self.spec {
            params["spec"] = spec.clone();
        }
        params
    }

    /// The parameters of `chat`.
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

/// The words of a message, and the code in it.
fn split(text: &str) -> (String, Option<String>) {
    let parts = text.split_once(CODE_BEGINS).and_then(|(before, rest)| {
        let (code, after) = rest.rsplit_once(CODE_ENDS)?;
        Some((before, code, after))
    });
    match parts {
        Some((before, code, after)) => {
            let words = [before.trim(), after.trim()].join("\n\n");
            let whole = after.trim() != UNFINISHED;
            (words.trim().to_owned(), whole.then(|| code.to_owned()))
        }
        None => (text.to_owned(), None),
    }
}
