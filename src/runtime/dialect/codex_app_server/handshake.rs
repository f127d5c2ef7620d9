//! The beginning: the agent is known, its thread is begun or taken up.

use serde_json::{Value, json};

use super::super::Out;
use super::{Asked, Codex};
use crate::domain::code::Code;
use crate::domain::command::Mode;

impl Codex {
    /// What a thread is begun or taken up with.
    pub(super) fn thread_params(&self) -> Value {
        let mut params = json!({ "cwd": self.setup.directory });
        for (option, name) in [
            ("model", "model"),
            ("sandbox", "sandbox"),
            ("approval_policy", "approvalPolicy"),
        ] {
            if let Some(value) = self.setup.option(option) {
                params[name] = value.into();
            }
        }
        params
    }

    /// The agent has introduced itself: now the conversation is begun, or taken up.
    pub(super) fn introduced(&mut self, out: &mut Out) {
        out.write(json!({ "method": "initialized" }));
        self.ask(Asked::Account, "account/read", json!({}), out);
        let mut params = self.thread_params();
        match self.setup.thread.clone() {
            Some(thread) => {
                params["threadId"] = thread.as_str().into();
                self.thread = Some(thread);
                // What was said before is in the journal already.
                params["excludeTurns"] = true.into();
                self.ask(Asked::Resume, "thread/resume", params, out);
            }
            None => self.start(params, out),
        }
    }

    /// Begins a thread.
    pub(super) fn start(&mut self, params: Value, out: &mut Out) {
        let forgets = self.setup.thread.is_some() || !self.setup.history.is_empty();
        if forgets {
            out.starts_fresh(&self.setup.agent);
        }
        self.ask(Asked::Start, "thread/start", params, out);
    }

    /// The thread is there.
    pub(super) fn has_thread(&mut self, answer: &Value, out: &mut Out) {
        let Some(thread) = answer["thread"]["id"].as_str() else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` has begun a thread without a name.");
            return out.fail(Code::TaskFailed, message);
        };
        let resumed = self.setup.thread.as_deref() == Some(thread);
        self.thread = Some(thread.to_owned());
        self.told_thread = resumed;
        if let Some(model) = answer["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        if let Some(provider) = answer["modelProvider"].as_str() {
            provider.clone_into(&mut self.provider);
        }
        if !resumed {
            self.mode = Some(Mode::Act);
            self.meter.begin();
        }
        out.ready(Vec::new());
    }
}
