//! The limits in force: what they are, how often each refused, and changing some of them.
//!
//! A change holds on this node until it ends; what shall stay belongs into the configuration. Touches
//! nothing else.

use std::num::NonZeroU32;

use super::{Aside, Budget, Limits};

/// One limit, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InForce {
    /// Its name towards clients and operators.
    pub(crate) name: &'static str,
    /// What is allowed at most.
    pub(crate) value: u32,
    /// What the configuration says.
    pub(crate) configured: u32,
    /// How often it refused something since the gateway started.
    pub(crate) refused: u64,
    /// Can it be changed while the gateway runs?
    pub(crate) adjustable: bool,
}

/// A limit that can be changed while the gateway runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adjustable {
    /// Messages to one session.
    Messages,
    /// Requests for the state of one session.
    StateRequests,
    /// Login attempts of one address, and apart from them password changes.
    Logins,
}

impl Adjustable {
    /// Its name towards clients and operators.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => Budget::Messages.name(),
            Self::StateRequests => Budget::StateRequests.name(),
            Self::Logins => Budget::Logins.name(),
        }
    }
}

impl Limits {
    /// What one of them is now.
    pub(crate) fn value(&self, limit: Adjustable) -> u32 {
        match limit {
            Adjustable::Messages => self.sessions.messages().limit(),
            Adjustable::StateRequests => self.sessions.states().limit(),
            Adjustable::Logins => self.logins.limit(),
        }
    }

    /// Changes one of them until the gateway ends.
    pub(crate) fn change(&self, limit: Adjustable, value: NonZeroU32) {
        match limit {
            Adjustable::Messages => self.sessions.messages().set_limit(value),
            Adjustable::StateRequests => self.sessions.states().set_limit(value),
            Adjustable::Logins => {
                self.logins.set_limit(value);
                self.passwords.set_limit(value);
            }
        }
    }

    /// All of them.
    pub(crate) fn in_force(&self) -> [InForce; 8] {
        let (config, sessions) = (&self.config, &self.sessions);
        let adjustable = |limit: Adjustable, configured: NonZeroU32, refused| InForce {
            name: limit.name(),
            value: self.value(limit),
            configured: configured.get(),
            refused,
            adjustable: true,
        };
        let fixed = |name, configured: NonZeroU32, refused| InForce {
            name,
            value: configured.get(),
            configured: configured.get(),
            refused,
            adjustable: false,
        };
        let aside = |limit| sessions.refusals_aside(limit);
        [
            adjustable(
                Adjustable::Messages,
                config.messages_per_minute,
                sessions.messages().refused(),
            ),
            adjustable(
                Adjustable::StateRequests,
                config.state_requests_per_minute,
                sessions.states().refused(),
            ),
            adjustable(
                Adjustable::Logins,
                config.logins_per_minute,
                self.logins.refused(),
            ),
            InForce {
                value: self.passwords.limit(),
                ..fixed(
                    Budget::PasswordChanges.name(),
                    config.logins_per_minute,
                    self.passwords.refused(),
                )
            },
            fixed(
                Budget::Heartbeats.name(),
                config.heartbeats_per_minute,
                aside(Aside::Heartbeats),
            ),
            fixed(
                Budget::Requests.name(),
                config.requests_per_minute,
                self.requests.refused(),
            ),
            fixed(
                "messageBytes",
                config.message_bytes,
                aside(Aside::MessageBytes),
            ),
            fixed(
                "promptChars",
                config.prompt_chars,
                aside(Aside::PromptChars),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::Clock;
    use crate::domain::id::SessionId;

    fn limits() -> Limits {
        let config = serde_json::json!({
            "logins_per_minute": 5, "messages_per_minute": 3, "state_requests_per_minute": 2,
            "heartbeats_per_minute": 60, "message_bytes": 1_048_576, "prompt_chars": 100_000,
            "requests_per_minute": 12_000, "request_burst": 2_000, "tracked_addresses": 100,
            "attachment_bytes": 1, "session_attachment_bytes": 1, "user_attachment_bytes": 1,
            "exempt_addresses": []
        });
        let config = serde_json::from_value(config).unwrap();
        Limits::new(&config, &Clock::manual(Timestamp::UNIX_EPOCH))
    }

    fn shown(limits: &Limits, name: &str) -> InForce {
        let all = limits.in_force();
        *all.iter().find(|limit| limit.name == name).unwrap()
    }

    #[test]
    fn what_refused_is_counted_under_its_own_name() {
        let (limits, session) = (limits(), SessionId::new());
        for _ in 0..3 {
            limits.sessions.admit_state_request(session).ok();
        }
        limits.sessions.admit_message(session).unwrap();
        limits.sessions.admit_message(session).unwrap_err();
        limits.sessions.admit_state_request(session).unwrap_err();
        limits.sessions.refused_aside(Aside::PromptChars);
        assert_eq!(shown(&limits, "messagesPerMinute").refused, 2);
        assert_eq!(shown(&limits, "stateRequestsPerMinute").refused, 1);
        assert_eq!(shown(&limits, "promptChars").refused, 1);
        assert_eq!(shown(&limits, "messageBytes").refused, 0);
    }

    #[test]
    fn a_change_shows_beside_what_is_configured() {
        let limits = limits();
        limits.change(Adjustable::Logins, NonZeroU32::new(9).unwrap());
        for name in ["loginsPerMinute", "passwordChangesPerMinute"] {
            let shown = shown(&limits, name);
            assert_eq!((shown.value, shown.configured), (9, 5), "{name}");
        }
        assert_eq!(shown(&limits, "messagesPerMinute").value, 3);
    }
}
