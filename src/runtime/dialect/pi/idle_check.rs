//! Idle check: asks pi for its state after each end of its loop; the run is over once it is idle.

use std::time::Duration;

use serde_json::Value;

use super::super::{Action, Actions};
use super::{IDLE_CHECK_RETRY, IDLE_CHECK_TIMER, PendingCommand, Pi};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;

const MAX_FAILED_IDLE_CHECKS: u8 = 3;

impl Pi {
    pub(super) fn check_idle(&mut self, out: &mut Actions) {
        if let Some(run) = self.run.as_ref().map(|run| run.id) {
            out.clear_timer(IDLE_CHECK_TIMER);
            self.send_command(PendingCommand::CheckIdle { run }, Value::Null, out);
        }
    }

    pub(super) fn handle_idle_state(&mut self, run: RunId, state: &Value, out: &mut Actions) {
        let Some(run) = self.current_run(run) else {
            return;
        };
        run.failed_idle_checks = 0;
        // An extension that waits for the user goes on after the answer.
        if run.is_busy() || self.dialogs.has_pending() {
            return;
        }
        if state["isStreaming"] == true || state["isCompacting"] == true {
            return out.set_timer(IDLE_CHECK_TIMER, IDLE_CHECK_RETRY);
        }
        if state["pendingMessageCount"].as_u64() > Some(0) {
            let agent = &self.setup.agent;
            out.emit_notice(
                Level::Info,
                format!("`{agent}` was done before it heard all; it hears the rest next time."),
            );
        }
        self.end_run(out);
    }

    /// The check failed: it is repeated, at once or after a delay, up to a limit.
    pub(super) fn retry_idle_check(
        &mut self,
        run: RunId,
        after: Option<Duration>,
        out: &mut Actions,
    ) {
        let Some(run) = self.current_run(run).filter(|run| !run.is_busy()) else {
            return;
        };
        run.failed_idle_checks += 1;
        if run.failed_idle_checks <= MAX_FAILED_IDLE_CHECKS {
            return match after {
                Some(after) => out.set_timer(IDLE_CHECK_TIMER, after),
                None => self.check_idle(out),
            };
        }
        if run.cancelled {
            self.end_run(out);
            return out.push(Action::Finish);
        }
        self.run = None;
        out.clear_timer(IDLE_CHECK_TIMER);
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` does not say whether it is done.");
        out.fail(ErrorCode::ConnectionLost, message);
    }
}
