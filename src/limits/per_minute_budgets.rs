//! Per-minute budgets: what is limited per minute, as clients and operators see it.

use super::rate_limit_headers::Refusal;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// Messages to one session.
    Messages,
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

impl Budget {
    pub(crate) fn exceeded(self, refusal: Refusal) -> LimitExceeded {
        let budget = self;
        LimitExceeded { budget, refusal }
    }
}
