//! Error details: the part of an error for programs, a field or a limit.
//!
//! The same members in every error: `limit` is the name of the limit, `max` what it allows. Touches
//! `limits` and `session`.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::limits::{Budget, LimitExceeded};
use crate::session::QuotaExceeded;

/// The details; members that do not apply are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) actual: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) period_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
}

/// A limit, serialised as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Per minute.
    Rate(Budget),
    MessageBytes,
    /// Characters of a text for the agent.
    PromptChars,
    ContextBytes,
    /// A quota of one user, by its name.
    Quota(&'static str),
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Rate(budget) => budget.name(),
            Self::MessageBytes => "messageBytes",
            Self::PromptChars => "promptChars",
            Self::ContextBytes => "contextBytes",
            Self::Quota(name) => name,
        })
    }
}

impl Details {
    pub(crate) fn field(path: &str) -> Self {
        Self {
            field: Some(path.to_owned()),
            ..Self::default()
        }
    }

    pub(super) fn too_large(self, limit: Limit, max: usize, actual: usize) -> Self {
        Self {
            limit: Some(limit),
            max: Some(max as u64),
            actual: Some(actual as u64),
            ..self
        }
    }

    /// Of a request above its rate.
    pub(crate) fn too_often(exceeded: LimitExceeded) -> Self {
        let LimitExceeded { budget, refusal } = exceeded;
        Self {
            limit: Some(Limit::Rate(budget)),
            max: Some(refusal.limit.into()),
            period_ms: Some(whole_millis(refusal.period)),
            retry_after_ms: Some(whole_millis(refusal.retry_after)),
            ..Self::default()
        }
    }

    /// Of a request for more than its user may store.
    pub(crate) fn over_quota(exceeded: QuotaExceeded) -> Self {
        Self {
            limit: Some(Limit::Quota(exceeded.limit)),
            max: Some(exceeded.max),
            actual: Some(exceeded.actual),
            ..Self::default()
        }
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        self.limit
    }
}

/// Rounded up: a client that waits this long is admitted.
fn whole_millis(duration: Duration) -> u64 {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::limits::Refusal;

    #[test]
    fn every_limit_is_reported_in_the_same_members() {
        let refusal = Refusal {
            limit: 100,
            period: Duration::from_mins(1),
            retry_after: Duration::from_micros(1_500_001),
        };
        let often = Details::too_often(Budget::Messages.exceeded(refusal));
        let expected = json!({
            "limit": "messagesPerMinute", "max": 100, "periodMs": 60_000, "retryAfterMs": 1_501,
        });
        assert_eq!(json!(often), expected);
        let large = Details::field("payload.text").too_large(Limit::PromptChars, 4, 5);
        let expected =
            json!({ "field": "payload.text", "limit": "promptChars", "max": 4, "actual": 5 });
        assert_eq!(json!(large), expected);
    }
}
