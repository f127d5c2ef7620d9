//! Recovery: goes on with a run whose sockets were lost, and finds out what was missed. Pure.
//!
//! The core is asked for its state first, then for the conversation that it has recorded. Until both
//! are known, events are held and no other command is sent.

use serde_json::{Value, json};

use super::command_queue::{Command, CommandError, Purpose};
use super::run_events::Gap;
use super::{Actions, ErrorCode, FromAgent, Level, Nous, PING_TIMER, RunId, RunOutcome, mode_word};
use crate::domain::queue::QueueMode;

impl Nous {
    /// Asks a core that was silent for a while whether it is there.
    pub(super) fn check_alive(&mut self, out: &mut Actions) {
        if self.run.is_none() {
            return;
        }
        out.set_timer(PING_TIMER, self.ping_interval);
        // Any command in flight has a deadline of its own.
        if !std::mem::take(&mut self.was_heard) && self.queue.is_idle() {
            self.queue.send(Purpose::Ping, "ping", json!({}), out);
        }
    }

    pub(super) fn begin_recovery(&mut self, out: &mut Actions) {
        if let Some(lost) = self.queue.hold(out) {
            self.resolve_lost(lost, out);
        }
        if let Some(run) = &mut self.run {
            (run.is_catching_up, run.gap) = (true, Gap::Open);
        }
        self.queue
            .send_urgent(Purpose::Recovery, "get_state", json!({}), out);
    }

    /// A command may have reached the core, and its answer is lost.
    fn resolve_lost(&mut self, lost: Command, out: &mut Actions) {
        match lost.purpose {
            Purpose::Abort(_) | Purpose::Setting => self.queue.put_back(lost),
            Purpose::FollowUp(queued) => self.follow_ups.doubtful = Some(queued),
            Purpose::Steer => self.steer_failed("its line broke meanwhile", out),
            Purpose::AgentRequest(id) => {
                let agent = &self.setup.agent;
                let message = format!("The line to the agent `{agent}` broke before it answered.");
                out.decline(id, ErrorCode::ConnectionLost, message);
            }
            // The state tells whether there is a run; the rest is asked again.
            _ => {}
        }
    }

    /// What the core says about its queue modes.
    pub(super) fn read_modes(&mut self, state: &Value) {
        let mode = |name: &str| match state[name].as_str()? {
            word if word == mode_word(QueueMode::One) => Some(QueueMode::One),
            word if word == mode_word(QueueMode::All) => Some(QueueMode::All),
            _ => None,
        };
        let reported = &mut self.reported_modes;
        reported.steering = mode("steering_mode").unwrap_or(reported.steering);
        reported.follow_up = mode("follow_up_mode").unwrap_or(reported.follow_up);
    }

    /// Sets the modes in which the core is not as the session has them.
    pub(super) fn reconcile_modes(&mut self, out: &mut Actions) {
        let reported = std::mem::replace(&mut self.reported_modes, self.modes);
        if reported.steering != self.modes.steering {
            self.send_steering_mode(out);
        }
        if reported.follow_up != self.modes.follow_up {
            self.send_follow_up_mode(out);
        }
    }

    /// The state of the core after its sockets were lost.
    pub(super) fn recover(&mut self, answer: Result<Value, CommandError>, out: &mut Actions) {
        let state = match answer {
            Ok(state) => state,
            Err(error) => return self.fail_handshake(&error, out),
        };
        self.read_modes(&state);
        let session = state["session_id"].as_str().unwrap_or_default();
        let is_ours = self.thread.as_deref() == Some(session);
        let native_id = state["run_id"].as_str().filter(|id| !id.is_empty());
        let native_id = native_id.filter(|_| state["run_state"] != "idle");
        if native_id.is_some() && !is_ours {
            self.run = None;
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` was taken to another conversation.");
            return out.fail(ErrorCode::TaskFailed, message);
        }
        self.reconcile_modes(out);
        let Some(run) = &mut self.run else {
            return self.recover_session(is_ours, out);
        };
        if run.native_id.is_none() && self.queue.has_prompt(run.id) {
            // It was not sent yet.
            (run.is_catching_up, run.gap) = (false, Gap::None);
            return self.recover_session(is_ours, out);
        }
        if run.native_id.is_none() && native_id.is_some() {
            // The answer to its prompt is lost, and no one else has prompted this core.
            run.native_id = native_id.map(str::to_owned);
            out.emit(FromAgent::RunAccepted { run: run.id });
        }
        let is_over = native_id.is_none() || run.native_id.as_deref() != native_id;
        if !is_over {
            self.follow_ups.recover(run.id, &state, out);
        }
        self.ask_for_missed(is_over, out);
    }

    /// Takes a core that was restarted back to the conversation.
    fn recover_session(&mut self, is_ours: bool, out: &mut Actions) {
        if is_ours {
            return self.queue.release(out);
        }
        let payload = json!({ "session_id": self.thread });
        self.queue
            .send_urgent(Purpose::Session, "switch_session", payload, out);
    }

    /// Asks for what the core has recorded of the current run.
    pub(super) fn ask_for_missed(&mut self, is_over: bool, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        current.is_catching_up = true;
        let run = current.id;
        let purpose = Purpose::Missed { run, is_over };
        let payload = json!({ "session_id": self.thread });
        self.queue
            .send_urgent(purpose, "get_messages", payload, out);
    }

    /// Tells what was missed, then goes on with the run or ends it.
    pub(super) fn catch_up(
        &mut self,
        id: RunId,
        is_over: bool,
        answer: Result<Value, CommandError>,
        out: &mut Actions,
    ) {
        let Some(run) = self.run.as_mut().filter(|run| run.id == id) else {
            return self.queue.release(out);
        };
        run.is_catching_up = false;
        let held = std::mem::take(&mut run.held);
        let is_cancelled = run.cancelling;
        let has_answer = match answer {
            Ok(found) => run.catch_up(&found["messages"], out),
            Err(error) => {
                let text = format!("What was said meanwhile is lost: {}", error.text);
                out.emit_notice(Level::Warn, text);
                run.gap = Gap::None;
                false
            }
        };
        for event in held {
            self.handle_event(event, out);
        }
        if is_over && let Some(run) = &self.run {
            if has_answer {
                self.follow_ups.take_rest(run, out);
            }
            self.end_run(self.missed_outcome(is_cancelled, has_answer), out);
            self.queue
                .send_urgent(Purpose::Recovery, "get_state", json!({}), out);
            return;
        }
        self.queue.release(out);
    }

    /// How a run ended whose end was not heard.
    fn missed_outcome(&self, is_cancelled: bool, has_answer: bool) -> RunOutcome {
        if is_cancelled {
            return RunOutcome::Cancelled;
        }
        if has_answer {
            return RunOutcome::Completed;
        }
        let agent = &self.setup.agent;
        RunOutcome::Failed {
            code: ErrorCode::ConnectionLost,
            message: format!(
                "The line to the agent `{agent}` broke, and the run is over without an answer; ask again."
            ),
        }
    }
}
