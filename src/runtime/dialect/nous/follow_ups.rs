//! Follow-ups: texts that the core takes up within its run, and which of them it has begun with. Pure.
//!
//! Events do not say so; the core's `pending_counts` do, as a turn begins.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::super::super::messages::FromAgent;
use super::command_queue::Purpose;
use super::run_events::Run;
use super::{Actions, Nous, RunId};

#[derive(Debug, Default)]
pub(super) struct FollowUps {
    /// Those that the core has accepted and not begun with, by the runs that they would be otherwise.
    pending: VecDeque<RunId>,
    /// A turn has begun, and the core was not asked yet which of them it is about.
    is_settled: bool,
    /// The core may have it: its answer was lost.
    pub(super) doubtful: Option<RunId>,
}

impl FollowUps {
    pub(super) fn is_unsettled(&self) -> bool {
        !self.pending.is_empty() && !self.is_settled
    }

    /// The core has this many left.
    fn settle(&mut self, run: RunId, left: usize, out: &mut Actions) {
        while self.pending.len() > left {
            if let Some(queued) = self.pending.pop_front() {
                out.emit(FromAgent::FollowUpTaken { run, queued });
            }
        }
    }

    /// A run that is not cancelled ends only when the core has none left.
    pub(super) fn take_rest(&mut self, run: &Run, out: &mut Actions) {
        if !run.cancelling {
            self.settle(run.id, 0, out);
        }
    }

    /// After the sockets were lost.
    pub(super) fn recover(&mut self, run: RunId, state: &Value, out: &mut Actions) {
        let left = left_in(state);
        if let Some(doubtful) = self.doubtful.take()
            && left.is_some_and(|left| left > self.pending.len())
        {
            self.pending.push_back(doubtful);
        }
        self.settle(run, left.unwrap_or(usize::MAX), out);
    }
}

fn left_in(state: &Value) -> Option<usize> {
    let left = state["pending_counts"]["follow_up"].as_u64()?;
    usize::try_from(left).ok()
}

impl Nous {
    /// One that comes too late stays in the session's queue.
    pub(super) fn follow_up(&mut self, run: RunId, queued: RunId, text: &str, out: &mut Actions) {
        let is_current = |current: &Run| current.id == run && !current.cancelling;
        if self.run.as_ref().is_some_and(is_current) {
            let payload = json!({ "text": text });
            self.queue
                .send(Purpose::FollowUp(queued), "follow_up", payload, out);
        }
    }

    pub(super) fn follow_up_answered(&mut self, queued: RunId, is_accepted: bool) {
        if is_accepted && self.run.is_some() {
            self.follow_ups.pending.push_back(queued);
        }
    }

    /// A turn begins: which follow-up is it about? Its events wait for the answer.
    pub(super) fn ask_for_pending(&mut self, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        run.is_catching_up = true;
        let purpose = Purpose::Pending(run.id);
        self.queue.send_urgent(purpose, "get_state", json!({}), out);
    }

    pub(super) fn take_up_follow_ups(
        &mut self,
        id: RunId,
        state: Option<&Value>,
        out: &mut Actions,
    ) {
        let Some(run) = self.run.as_mut().filter(|run| run.id == id) else {
            return;
        };
        run.is_catching_up = false;
        let held = std::mem::take(&mut run.held);
        let is_same = |state: &&Value| state["run_id"].as_str() == run.native_id.as_deref();
        if let Some(left) = state.filter(is_same).and_then(left_in) {
            self.follow_ups.settle(id, left, out);
        }
        // The turn's beginning is among the held events, and is not asked about again.
        self.follow_ups.is_settled = true;
        for event in held {
            self.handle_event(event, out);
            self.follow_ups.is_settled = false;
        }
        self.follow_ups.is_settled = false;
    }
}
