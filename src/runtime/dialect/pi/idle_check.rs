//! Whether pi is idle: it is asked after each end of its loop, and the run is over if it is.

use std::time::Duration;

use serde_json::Value;

use super::super::{Act, Out};
use super::{Asked, LOOK, LOOK_AGAIN, Pi};
use crate::domain::code::Code;
use crate::domain::event::Level;
use crate::domain::id::RunId;

/// So often it is asked again if it does not say it.
const LOOKS: u8 = 3;

impl Pi {
    /// Asks pi what it is doing.
    pub(super) fn look(&mut self, out: &mut Out) {
        if let Some(run) = self.run.as_ref().map(|run| run.id) {
            out.no_timer(LOOK);
            self.ask(Asked::Look { run }, "get_state", Value::Null, out);
        }
    }

    /// What pi is doing was told: if that is nothing, the run is over.
    pub(super) fn looked(&mut self, run: RunId, state: &Value, out: &mut Out) {
        let Some(run) = self.ours(run) else {
            return;
        };
        run.unclear = 0;
        // An extension that waits for a human goes on after the answer.
        if run.is_busy() || self.dialogs.is_any_open() {
            return;
        }
        if state["isStreaming"] == true || state["isCompacting"] == true {
            return out.timer(LOOK, LOOK_AGAIN);
        }
        if state["pendingMessageCount"].as_u64() > Some(0) {
            let agent = &self.setup.agent;
            out.notice(
                Level::Info,
                format!("`{agent}` was done before it heard all; it hears the rest next time."),
            );
        }
        self.end(out);
    }

    /// pi did not say what it is doing: it is asked again, now or in a moment, but not for ever.
    pub(super) fn look_again(&mut self, run: RunId, after: Option<Duration>, out: &mut Out) {
        let Some(run) = self.ours(run).filter(|run| !run.is_busy()) else {
            return;
        };
        run.unclear += 1;
        if run.unclear <= LOOKS {
            return match after {
                Some(after) => out.timer(LOOK, after),
                None => self.look(out),
            };
        }
        if run.cancelled {
            self.end(out);
            return out.act(Act::Finish);
        }
        self.run = None;
        out.no_timer(LOOK);
        let agent = &self.setup.agent;
        let message = format!("The agent `{agent}` does not say whether it is done.");
        out.fail(Code::ConnectionLost, message);
    }
}
