//! Handshake: initialize, then a new or resumed thread.

use serde_json::{Value, json};

use super::super::Actions;
use super::{Codex, PendingRequest};
use crate::domain::command::Mode;
use crate::domain::error_code::ErrorCode;

impl Codex {
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

    pub(super) fn handle_initialized(&mut self, out: &mut Actions) {
        out.write(json!({ "method": "initialized" }));
        self.send_request(PendingRequest::ReadAccount, "account/read", json!({}), out);
        let mut params = self.thread_params();
        match self.setup.thread.clone() {
            Some(thread) => {
                params["threadId"] = thread.as_str().into();
                self.thread = Some(thread);
                // The journal has the history.
                params["excludeTurns"] = true.into();
                self.send_request(PendingRequest::ResumeThread, "thread/resume", params, out);
            }
            None => self.start_thread(params, out),
        }
    }

    pub(super) fn start_thread(&mut self, params: Value, out: &mut Actions) {
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.notice_fresh_start(&self.setup.agent);
        }
        self.send_request(PendingRequest::StartThread, "thread/start", params, out);
    }

    pub(super) fn thread_opened(&mut self, answer: &Value, out: &mut Actions) {
        let Some(thread) = answer["thread"]["id"].as_str() else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` has begun a thread without a name.");
            return out.fail(ErrorCode::TaskFailed, message);
        };
        let resumed = self.setup.thread.as_deref() == Some(thread);
        self.thread = Some(thread.to_owned());
        self.thread_reported = resumed;
        if let Some(model) = answer["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        if let Some(provider) = answer["modelProvider"].as_str() {
            provider.clone_into(&mut self.provider);
        }
        if !resumed {
            self.mode = Some(Mode::Act);
            self.usage.start_from_zero();
        }
        out.ready(Vec::new());
    }
}
