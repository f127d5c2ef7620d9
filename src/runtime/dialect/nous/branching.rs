//! Branching: a conversation that goes on from a message of another one. Pure.
//!
//! The core branches whole conversations. If the session was cut earlier, the message at which it was
//! cut becomes the leaf from which the branch goes on.

use serde_json::{Value, json};

use super::super::super::messages::FromAgent;
use super::super::Author;
use super::command_queue::{CommandError, Purpose};
use super::{Actions, ErrorCode, Level, Nous, text_of};

/// How many of the last prompts tell one place of a conversation from another.
const COMPARED_PROMPTS: usize = 4;

impl Nous {
    pub(super) fn branched(&mut self, answer: Result<Value, CommandError>, out: &mut Actions) {
        let session = match answer {
            Ok(session) => session,
            Err(error) if matches!(error.code, ErrorCode::NotFound | ErrorCode::Unsupported) => {
                let payload = json!({});
                return self
                    .queue
                    .send(Purpose::Session, "new_session", payload, out);
            }
            Err(error) => return self.fail_handshake(&error, out),
        };
        let Some(thread) = session["session_id"].as_str() else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` began a conversation without a name.");
            return out.fail(ErrorCode::TaskFailed, message);
        };
        self.thread = Some(thread.to_owned());
        let payload = json!({ "session_id": thread });
        self.queue
            .send(Purpose::BranchPath, "get_messages", payload, out);
    }

    /// Finds the place at which the session was cut.
    pub(super) fn cut_branch(&mut self, answer: Result<Value, CommandError>, out: &mut Actions) {
        let messages = answer.map(|found| found["messages"].clone());
        let entries = messages.ok().and_then(|found| found.as_array().cloned());
        let entries = entries.unwrap_or_default();
        match self.cut_in(&entries) {
            Some(last) if last + 1 == entries.len() => self.branch_ready(false, out),
            Some(last) => {
                let leaf = text_of(&entries[last]["id"]);
                let payload = json!({ "session_id": self.thread, "leaf_id": leaf });
                self.queue
                    .send(Purpose::Leaf(leaf), "set_leaf", payload, out);
            }
            None => self.branch_ready(true, out),
        }
    }

    /// The index of the message at which the session was cut.
    fn cut_in(&self, entries: &[Value]) -> Option<usize> {
        let last = self.setup.history.last()?;
        let role = role_of(last.author);
        let is_last = |index: &usize| {
            let entry = &entries[*index];
            let text = text_of(&entry["text"]);
            entry["role"] == role
                && text.trim_end().ends_with(last.text.trim_end())
                && self.prompts_match(&entries[..=*index])
        };
        (0..entries.len()).rev().find(is_last)
    }

    /// Whether the session's last prompts are the last ones here.
    fn prompts_match(&self, entries: &[Value]) -> bool {
        let said = self.setup.history.iter().rev();
        let said = said.filter(|message| message.author == Author::User);
        let recorded = entries.iter().rev();
        let mut recorded = recorded.filter(|entry| entry["role"] == "user");
        said.take(COMPARED_PROMPTS).all(|message| {
            let entry = recorded.next();
            entry.is_some_and(|entry| text_of(&entry["text"]).trim() == message.text.trim())
        })
    }

    pub(super) fn leaf_set(&mut self, leaf: String, is_set: bool, out: &mut Actions) {
        if !is_set {
            return self.branch_ready(true, out);
        }
        let payload = json!({ "session_id": self.thread, "leaf_id": leaf });
        self.queue
            .send(Purpose::LeafPath(leaf), "get_messages", payload, out);
    }

    pub(super) fn check_leaf(
        &mut self,
        leaf: &str,
        answer: Result<Value, CommandError>,
        out: &mut Actions,
    ) {
        let found = answer.ok();
        let path = found
            .as_ref()
            .and_then(|found| found["messages"].as_array());
        let last = path.and_then(|path| path.last());
        self.branch_ready(last.is_none_or(|last| last["id"] != leaf), out);
    }

    fn branch_ready(&mut self, remembers_more: bool, out: &mut Actions) {
        if let Some(thread) = self.thread.clone() {
            out.emit(FromAgent::Thread(thread));
        }
        out.ready(Vec::new());
        if remembers_more {
            let agent = &self.setup.agent;
            let text = format!(
                "The agent `{agent}` may remember more of the conversation than this branch shows."
            );
            out.emit_notice(Level::Warn, text);
        }
    }
}

fn role_of(author: Author) -> &'static str {
    if author == Author::User {
        "user"
    } else {
        "assistant"
    }
}
