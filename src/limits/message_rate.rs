//! Message rates: messages to one session, over all its sockets and across reconnects, and of one user
//! over all sessions.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::limit_exceeded::{Budget, LimitExceeded};
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

/// Exact windows that are asked together: a message counts in all that concern it or in none.
#[derive(Debug)]
pub(crate) struct SessionBudgets {
    messages: SlidingWindow<BudgetKey>,
    states: SlidingWindow<BudgetKey>,
    users: SlidingWindow<UserId>,
    frame_refusals: FrameRefusals,
    /// Makes checking the windows and spending from them one step.
    all: Mutex<()>,
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
        user_messages_per_minute: NonZeroU32,
        tracked: NonZeroU32,
        clock: &Clock,
    ) -> Self {
        let window = |limit| SlidingWindow::new(limit, super::MINUTE, tracked, clock.clone());
        let (minute, clock) = (super::MINUTE, clock.clone());
        Self {
            messages: window(messages_per_minute),
            states: window(states_per_minute),
            users: SlidingWindow::new(user_messages_per_minute, minute, tracked, clock),
            frame_refusals: FrameRefusals::default(),
            all: Mutex::new(()),
        }
    }

    pub(crate) fn admit_message(
        &self,
        key: impl Into<BudgetKey>,
        sender: UserId,
    ) -> Result<(), LimitExceeded> {
        let key = key.into();
        let _all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let users = |refusal| Budget::UserMessages.exceeded(refusal);
        let messages = |refusal| Budget::Messages.exceeded(refusal);
        self.messages.check(&key).map_err(messages)?;
        self.users.admit(&sender).map_err(users)?;
        self.messages.admit(&key).map(drop).map_err(messages)
    }

    /// Counts a request for the state, which is a message too.
    pub(crate) fn admit_state_request(
        &self,
        key: impl Into<BudgetKey>,
        sender: UserId,
    ) -> Result<(), LimitExceeded> {
        let key = key.into();
        let _all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let users = |refusal| Budget::UserMessages.exceeded(refusal);
        let messages = |refusal| Budget::Messages.exceeded(refusal);
        let states = |refusal| Budget::StateRequests.exceeded(refusal);
        self.messages.check(&key).map_err(messages)?;
        self.states.check(&key).map_err(states)?;
        self.users.admit(&sender).map_err(users)?;
        self.states.admit(&key).map_err(states)?;
        self.messages.admit(&key).map(drop).map_err(messages)
    }

    /// The window of a user's messages, for its limit and its refusals.
    pub(crate) fn users(&self) -> &SlidingWindow<UserId> {
        &self.users
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
        self.users.sweep();
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
        let budgets = SessionBudgets::new(number(5), number(2), number(8), number(100), &clock);
        (budgets, clock)
    }

    #[test]
    fn a_state_request_counts_in_both_budgets() {
        let (budgets, clock) = budgets();
        let (session, mia) = (SessionId::new(), UserId::new());
        assert!(budgets.admit_state_request(session, mia).is_ok());
        assert!(budgets.admit_state_request(session, mia).is_ok());
        let refused = budgets.admit_state_request(session, mia).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::StateRequests, 2)
        );
        for _ in 0..3 {
            assert!(
                budgets.admit_message(session, mia).is_ok(),
                "a refused one used up nothing"
            );
        }
        let refused = budgets.admit_message(session, mia).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::Messages, 5)
        );
        clock.advance(Duration::from_mins(1));
        assert!(budgets.admit_message(session, mia).is_ok());
    }

    #[test]
    fn a_state_request_above_the_message_budget_uses_up_nothing() {
        let (budgets, clock) = budgets();
        let (session, mia) = (SessionId::new(), UserId::new());
        for _ in 0..5 {
            budgets.admit_message(session, mia).unwrap();
        }
        let refused = budgets.admit_state_request(session, mia).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::Messages, 5)
        );
        clock.advance(Duration::from_mins(1));
        assert!(budgets.admit_state_request(session, mia).is_ok());
        assert!(budgets.admit_state_request(session, mia).is_ok());
    }

    #[test]
    fn a_users_messages_are_counted_over_all_sessions() {
        let (budgets, clock) = budgets();
        let (mia, ben) = (UserId::new(), UserId::new());
        let sessions = [(); 3].map(|()| SessionId::new());
        for session in &sessions[..2] {
            for _ in 0..4 {
                budgets.admit_message(*session, mia).unwrap();
            }
        }
        let refused = budgets.admit_message(sessions[2], mia).unwrap_err();
        assert_eq!(
            (refused.budget, refused.refusal.limit),
            (Budget::UserMessages, 8)
        );
        let refused = budgets.admit_state_request(sessions[2], mia).unwrap_err();
        assert_eq!(refused.budget, Budget::UserMessages);
        assert!(budgets.admit_message(sessions[0], ben).is_ok());
        clock.advance(Duration::from_mins(1));
        for _ in 0..2 {
            let admitted = budgets.admit_state_request(sessions[2], mia);
            assert!(admitted.is_ok(), "a refused one used up nothing");
        }
    }
}
