//! What may be done so many times a minute, and what that is called.

use super::quota::Refusal;

/// Something that is counted.
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
    /// Its name towards clients and operators, the same wherever a limit is named.
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

/// Which budget has nothing left, and when it has again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overdrawn {
    pub(crate) budget: Budget,
    pub(crate) refusal: Refusal,
}

impl Budget {
    /// A refusal by this one.
    pub(crate) fn overdrawn(self, refusal: Refusal) -> Overdrawn {
        let budget = self;
        Overdrawn { budget, refusal }
    }
}
