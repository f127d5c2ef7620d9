//! What one session may be sent, over all its sockets and across reconnects.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::budget::{Budget, Overdrawn};
use super::window::SlidingWindow;
use crate::clock::Clock;
use crate::domain::id::{SessionId, UserId};

/// Whose budget something is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Payer {
    /// Everybody who works in a session shares its budget.
    Session(SessionId),
    /// Whoever only looks has one of their own: they cannot use up that of the others.
    Viewer(SessionId, UserId),
}

impl From<SessionId> for Payer {
    fn from(session: SessionId) -> Self {
        Self::Session(session)
    }
}

/// Two exact windows that are asked together: a state request counts in both or in neither.
#[derive(Debug)]
pub(crate) struct SessionBudgets {
    messages: SlidingWindow<Payer>,
    states: SlidingWindow<Payer>,
    /// What was refused by the limits that each connection has for itself, and by size.
    beside: Beside,
    /// Between asking the second window and spending from the first nobody else may come.
    turn: Mutex<()>,
}

/// How often limits refused that have no window for all sessions.
#[derive(Debug, Default)]
struct Beside {
    heartbeats: AtomicU64,
    message_bytes: AtomicU64,
    prompt_chars: AtomicU64,
}

/// A limit that has no window for all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aside {
    /// Heartbeats of one connection.
    Heartbeats,
    /// The size of a message.
    MessageBytes,
    /// The length of a prompt.
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
            beside: Beside::default(),
            turn: Mutex::new(()),
        }
    }

    /// Counts a message.
    pub(crate) fn admit_message(&self, payer: impl Into<Payer>) -> Result<(), Overdrawn> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = self.messages.admit(&payer.into()).map(drop);
        admitted.map_err(|refusal| Budget::Messages.overdrawn(refusal))
    }

    /// Counts a request for the state, which is a message too.
    pub(crate) fn admit_state_request(&self, payer: impl Into<Payer>) -> Result<(), Overdrawn> {
        let payer = payer.into();
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = |refusal| Budget::Messages.overdrawn(refusal);
        let states = |refusal| Budget::StateRequests.overdrawn(refusal);
        self.messages.check(&payer).map_err(messages)?;
        self.states.admit(&payer).map_err(states)?;
        self.messages.admit(&payer).map(drop).map_err(messages)
    }

    /// The window of all messages, to be looked at or changed.
    pub(crate) fn messages(&self) -> &SlidingWindow<Payer> {
        &self.messages
    }

    /// The window of state requests, to be looked at or changed.
    pub(crate) fn states(&self) -> &SlidingWindow<Payer> {
        &self.states
    }

    /// Notes that another limit refused something.
    pub(crate) fn refused_aside(&self, limit: Aside) {
        self.aside(limit).fetch_add(1, Ordering::Relaxed);
    }

    /// How often another limit refused something.
    pub(crate) fn refusals_aside(&self, limit: Aside) -> u64 {
        self.aside(limit).load(Ordering::Relaxed)
    }

    fn aside(&self, limit: Aside) -> &AtomicU64 {
        match limit {
            Aside::Heartbeats => &self.beside.heartbeats,
            Aside::MessageBytes => &self.beside.message_bytes,
            Aside::PromptChars => &self.beside.prompt_chars,
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
