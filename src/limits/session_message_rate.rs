//! Session message rate: messages to one session, over all its sockets and across reconnects.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::per_minute_budgets::{Budget, LimitExceeded};
use super::sliding_window::SlidingWindow;
use crate::clock::Clock;
use crate::domain::id::{SessionId, UserId};

/// Whose budget a message is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BudgetKey {
    /// The owner and the editors of a session share its budget.
    Session(SessionId),
    /// A viewer has a budget of their own and cannot use up the shared one.
    Viewer(SessionId, UserId),
}

impl From<SessionId> for BudgetKey {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

/// Two exact windows that are asked together: a state request counts in both or in neither.
#[derive(Debug)]
pub(crate) struct SessionBudgets {
    messages: SlidingWindow<BudgetKey>,
    states: SlidingWindow<BudgetKey>,
    frame_refusals: FrameRefusals,
    /// Makes checking one window and spending from the other one step.
    both: Mutex<()>,
}

#[derive(Debug, Default)]
struct FrameRefusals {
    heartbeats: AtomicU64,
    message_bytes: AtomicU64,
    prompt_chars: AtomicU64,
}

/// A limit that is checked frame by frame, without a window that all sessions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameLimit {
    /// Heartbeats of one connection.
    Heartbeats,
    MessageBytes,
    PromptChars,
}

impl SessionBudgets {
    pub(crate) fn new(
        messages_per_minute: NonZeroU32,
        states_per_minute: NonZeroU32,
        sessions: NonZeroU32,
        clock: &Clock,
    ) -> Self {
        let window = |limit| SlidingWindow::new(limit, super::MINUTE, sessions, clock.clone());
        Self {
            messages: window(messages_per_minute),
            states: window(states_per_minute),
            frame_refusals: FrameRefusals::default(),
            both: Mutex::new(()),
        }
    }

    pub(crate) fn admit_message(&self, key: impl Into<BudgetKey>) -> Result<(), LimitExceeded> {
        let _both = self.both.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = self.messages.admit(&key.into()).map(drop);
        admitted.map_err(|refusal| Budget::Messages.exceeded(refusal))
    }

    /// Counts a request for the state, which is a message too.
    pub(crate) fn admit_state_request(
        &self,
        key: impl Into<BudgetKey>,
    ) -> Result<(), LimitExceeded> {
        let key = key.into();
        let _both = self.both.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = |refusal| Budget::Messages.exceeded(refusal);
        let states = |refusal| Budget::StateRequests.exceeded(refusal);
        self.messages.check(&key).map_err(messages)?;
        self.states.admit(&key).map_err(states)?;
        self.messages.admit(&key).map(drop).map_err(messages)
    }

    pub(crate) fn messages(&self) -> &SlidingWindow<BudgetKey> {
        &self.messages
    }

    /// The window of state requests, for its limit and its refusals.
    pub(crate) fn states(&self) -> &SlidingWindow<BudgetKey> {
        &self.states
    }

    /// Counts a refusal by a limit that has no window here.
    pub(crate) fn count_refusal(&self, limit: FrameLimit) {
        self.counter(limit).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refusals(&self, limit: FrameLimit) -> u64 {
        self.counter(limit).load(Ordering::Relaxed)
    }

    fn counter(&self, limit: FrameLimit) -> &AtomicU64 {
        match limit {
            FrameLimit::Heartbeats => &self.frame_refusals.heartbeats,
            FrameLimit::MessageBytes => &self.frame_refusals.message_bytes,
            FrameLimit::PromptChars => &self.frame_refusals.prompt_chars,
        }
    }

    /// Gives back the memory of quiet sessions.
    pub(crate) fn sweep(&self) {
        self.messages.sweep();
        self.states.sweep();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    fn budgets() -> (SessionBudgets, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let number = |number| NonZeroU32::new(number).unwrap();
        let budgets = SessionBudgets::new(number(5), number(2), number(100), &clock);
        (budgets, clock)
    }

    #[test]
    fn a_state_request_counts_in_both_budgets() {
        let (budgets, clock) = budgets();
        let session = SessionId::new();
        assert!(budgets.admit_state_request(session).is_ok());
        assert!(budgets.admit_state_request(session).is_ok());
        let refused = budgets.admit_state_request(session).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::StateRequests, 2)
        );
        for _ in 0..3 {
            assert!(
                budgets.admit_message(session).is_ok(),
                "a refused one used up nothing"
            );
        }
        let refused = budgets.admit_message(session).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::Messages, 5)
        );
        clock.advance(Duration::from_mins(1));
        assert!(budgets.admit_message(session).is_ok());
    }

    #[test]
    fn a_state_request_above_the_message_budget_uses_up_nothing() {
        let (budgets, clock) = budgets();
        let session = SessionId::new();
        for _ in 0..5 {
            budgets.admit_message(session).unwrap();
        }
        let refused = budgets.admit_state_request(session).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::Messages, 5)
        );
        clock.advance(Duration::from_mins(1));
        assert!(budgets.admit_state_request(session).is_ok());
        assert!(budgets.admit_state_request(session).is_ok());
    }
}
