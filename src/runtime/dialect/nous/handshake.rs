//! Handshake: finds the core idle and takes it to the session's conversation. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::super::messages::FromAgent;
use super::command_queue::{CommandError, Purpose};
use super::{Actions, ErrorCode, IDLE_CHECK_TIMER, Nous};

/// A stale run ends soon after its abort.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
const MAX_IDLE_CHECKS: u8 = 20;

impl Nous {
    /// The core must be idle and in our conversation.
    pub(super) fn handle_state(&mut self, answer: Result<Value, CommandError>, out: &mut Actions) {
        let state = match answer {
            Ok(state) => state,
            Err(error) => return self.fail_handshake(&error, out),
        };
        self.read_modes(&state);
        if state["run_state"] == "running" {
            // A run from an earlier connection: a session must not be switched under it.
            return self.wait_until_idle(out);
        }
        let (command, purpose, payload) = match (&self.thread, self.setup.branch_of.take()) {
            (Some(thread), _) => {
                let payload = json!({ "session_id": thread });
                ("switch_session", Purpose::Session, payload)
            }
            (None, Some(original)) => {
                let payload = json!({ "session_id": original });
                ("branch_session", Purpose::Branch, payload)
            }
            (None, None) => ("new_session", Purpose::Session, json!({})),
        };
        self.queue.send(purpose, command, payload, out);
    }

    fn wait_until_idle(&mut self, out: &mut Actions) {
        let checks = self.busy_checks;
        self.busy_checks += 1;
        if checks == 0 {
            self.queue
                .send(Purpose::AbortStale, "abort", json!({}), out);
        } else if checks <= MAX_IDLE_CHECKS {
            out.set_timer(IDLE_CHECK_TIMER, IDLE_CHECK_INTERVAL);
        } else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` is still busy with a run from before.");
            out.fail(ErrorCode::Busy, message);
        }
    }

    pub(super) fn session_opened(
        &mut self,
        answer: Result<Value, CommandError>,
        out: &mut Actions,
    ) {
        let is_new = self.thread.is_none();
        let session = match answer {
            Ok(session) => session,
            // A conversation that exists is not given up: another try may open it.
            Err(error) if is_new || error.code != ErrorCode::NotFound => {
                return self.fail_handshake(&error, out);
            }
            Err(_) => {
                self.thread = None;
                return self
                    .queue
                    .send_urgent(Purpose::Session, "new_session", json!({}), out);
            }
        };
        if is_new {
            let Some(thread) = session["session_id"].as_str().map(str::to_owned) else {
                let agent = &self.setup.agent;
                let message = format!("The agent `{agent}` began a conversation without a name.");
                return out.fail(ErrorCode::TaskFailed, message);
            };
            self.thread = Some(thread.clone());
            out.emit(FromAgent::Thread(thread));
        }
        out.ready(Vec::new());
        self.queue.release(out);
        if is_new && (self.setup.thread.is_some() || !self.setup.history.is_empty()) {
            out.notice_fresh_start(&self.setup.agent);
        }
    }

    pub(super) fn fail_handshake(&self, error: &CommandError, out: &mut Actions) {
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` refused to begin: {}", error.text);
        out.fail(error.code, message);
    }
}
