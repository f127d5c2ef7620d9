//! Limit report: every limit with its refusals, and overriding some of them at run time.
//!
//! An override holds on this node until it stops; a lasting one belongs into the configuration.
//! Touches nothing else.

use std::num::NonZeroU32;

use super::{Budget, FrameLimit, Limits};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitStatus {
    pub(crate) name: &'static str,
    /// The most it allows now.
    pub(crate) value: u32,
    pub(crate) configured: u32,
    /// Refusals since the gateway started.
    pub(crate) refused: u64,
    /// Can it be changed while the gateway runs?
    pub(crate) adjustable: bool,
}

/// A limit that can be changed while the gateway runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdjustableLimit {
    /// Messages to one session.
    Messages,
    /// Requests for the state of one session.
    StateRequests,
    /// Login attempts of one address, and apart from them password changes.
    Logins,
}

impl AdjustableLimit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => Budget::Messages.name(),
            Self::StateRequests => Budget::StateRequests.name(),
            Self::Logins => Budget::Logins.name(),
        }
    }
}

impl Limits {
    pub(crate) fn value(&self, limit: AdjustableLimit) -> u32 {
        match limit {
            AdjustableLimit::Messages => self.sessions.messages().limit(),
            AdjustableLimit::StateRequests => self.sessions.states().limit(),
            AdjustableLimit::Logins => self.logins.limit(),
        }
    }

    /// Overrides a limit until the gateway stops.
    pub(crate) fn override_limit(&self, limit: AdjustableLimit, value: NonZeroU32) {
        match limit {
            AdjustableLimit::Messages => self.sessions.messages().set_limit(value),
            AdjustableLimit::StateRequests => self.sessions.states().set_limit(value),
            AdjustableLimit::Logins => {
                self.logins.set_limit(value);
                self.login_networks.set_limit(value);
                self.passwords.set_limit(value);
                self.password_networks.set_limit(value);
            }
        }
    }

    pub(crate) fn report(&self) -> [LimitStatus; 9] {
        let (config, sessions) = (&self.config, &self.sessions);
        let adjustable = |limit: AdjustableLimit, configured: NonZeroU32, refused| LimitStatus {
            name: limit.name(),
            value: self.value(limit),
            configured: configured.get(),
            refused,
            adjustable: true,
        };
        let fixed = |name, configured: NonZeroU32, refused| LimitStatus {
            name,
            value: configured.get(),
            configured: configured.get(),
            refused,
            adjustable: false,
        };
        [
            adjustable(
                AdjustableLimit::Messages,
                config.messages_per_minute,
                sessions.messages().refused(),
            ),
            adjustable(
                AdjustableLimit::StateRequests,
                config.state_requests_per_minute,
                sessions.states().refused(),
            ),
            adjustable(
                AdjustableLimit::Logins,
                config.logins_per_minute,
                self.logins.refused(),
            ),
            LimitStatus {
                value: self.passwords.limit(),
                ..fixed(
                    Budget::PasswordChanges.name(),
                    config.logins_per_minute,
                    self.passwords.refused(),
                )
            },
            fixed(
                Budget::UserMessages.name(),
                config.user_messages_per_minute,
                sessions.users().refused(),
            ),
            fixed(
                Budget::Heartbeats.name(),
                config.heartbeats_per_minute,
                sessions.refusals(FrameLimit::Heartbeats),
            ),
            fixed(
                Budget::Requests.name(),
                config.requests_per_minute,
                self.requests.refused(),
            ),
            fixed(
                "messageBytes",
                config.message_bytes,
                sessions.refusals(FrameLimit::MessageBytes),
            ),
            fixed(
                "promptChars",
                config.prompt_chars,
                sessions.refusals(FrameLimit::PromptChars),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::Clock;
    use crate::domain::id::{SessionId, UserId};

    fn limits() -> Limits {
        let config = serde_json::json!({
            "logins_per_minute": 5, "messages_per_minute": 3, "user_messages_per_minute": 100, "user_sessions": 1, "user_journal_bytes": 1, "min_free_bytes": 0, "state_requests_per_minute": 2,
            "heartbeats_per_minute": 60, "message_bytes": 1_048_576, "prompt_chars": 100_000,
            "requests_per_minute": 12_000, "request_burst": 2_000, "tracked_addresses": 100,
            "attachment_bytes": 1, "session_attachment_bytes": 1, "user_attachment_bytes": 1,
            "exempt_addresses": []
        });
        let config = serde_json::from_value(config).unwrap();
        Limits::new(&config, &Clock::manual(Timestamp::UNIX_EPOCH))
    }

    fn shown(limits: &Limits, name: &str) -> LimitStatus {
        let all = limits.report();
        *all.iter().find(|limit| limit.name == name).unwrap()
    }

    #[test]
    fn a_refusal_is_counted_under_the_limit_that_refused() {
        let (limits, session, mia) = (limits(), SessionId::new(), UserId::new());
        for _ in 0..3 {
            limits.sessions.admit_state_request(session, mia).ok();
        }
        limits.sessions.admit_message(session, mia).unwrap();
        limits.sessions.admit_message(session, mia).unwrap_err();
        limits
            .sessions
            .admit_state_request(session, mia)
            .unwrap_err();
        limits.sessions.count_refusal(FrameLimit::PromptChars);
        assert_eq!(shown(&limits, "messagesPerMinute").refused, 2);
        assert_eq!(shown(&limits, "stateRequestsPerMinute").refused, 1);
        assert_eq!(shown(&limits, "promptChars").refused, 1);
        assert_eq!(shown(&limits, "messageBytes").refused, 0);
    }

    #[test]
    fn an_override_shows_beside_the_configured_value() {
        let limits = limits();
        limits.override_limit(AdjustableLimit::Logins, NonZeroU32::new(9).unwrap());
        for name in ["loginsPerMinute", "passwordChangesPerMinute"] {
            let shown = shown(&limits, name);
            assert_eq!((shown.value, shown.configured), (9, 5), "{name}");
        }
        assert_eq!(shown(&limits, "messagesPerMinute").value, 3);
    }
}
