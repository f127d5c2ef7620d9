//! Exceeded limits: which per-minute limit was hit, as clients and operators see it.

use std::fmt;

use super::rate_limit_headers::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// Messages to one session.
    Messages,
    /// Messages of one user, over all sessions.
    UserMessages,
    /// Requests for the state of one session, which are messages too.
    StateRequests,
    /// Heartbeats of one connection.
    Heartbeats,
    /// Login attempts of one address.
    Logins,
    /// Password changes of one address.
    PasswordChanges,
    /// Requests of one address.
    Requests,
}

impl Budget {
    /// Its name for clients and operators, the same wherever a limit is named.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "messagesPerMinute",
            Self::UserMessages => "userMessagesPerMinute",
            Self::StateRequests => "stateRequestsPerMinute",
            Self::Heartbeats => "heartbeatsPerMinute",
            Self::Logins => "loginsPerMinute",
            Self::PasswordChanges => "passwordChangesPerMinute",
            Self::Requests => "requestsPerMinute",
        }
    }

    /// What it counts, in sentences and in the `RateLimit` headers.
    pub(crate) fn counted(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::UserMessages => "messages of this account",
            Self::StateRequests => "state requests",
            Self::Heartbeats => "heartbeats",
            Self::Logins => "logins",
            Self::PasswordChanges => "password changes",
            Self::Requests => "requests",
        }
    }
}

/// The budget that has nothing left, and when it has again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded {
    pub(crate) budget: Budget,
    pub(crate) refusal: Refusal,
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counted, limit) = (self.budget.counted(), self.refusal.limit);
        let whose = match self.budget {
            Budget::Messages | Budget::StateRequests => " to this session",
            Budget::Heartbeats => " of this connection",
            Budget::UserMessages => "",
            Budget::Logins | Budget::PasswordChanges | Budget::Requests => " from this address",
        };
        let (period, wait) = (
            self.refusal.period.as_secs(),
            self.refusal.retry_after_secs(),
        );
        write!(
            formatter,
            "Too many {counted}{whose}: {limit} in {period} s are the limit; try again in {wait} s."
        )
    }
}

impl Budget {
    pub(crate) fn exceeded(self, refusal: Refusal) -> LimitExceeded {
        let budget = self;
        LimitExceeded { budget, refusal }
    }
}
