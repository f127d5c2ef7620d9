//! Rate limit headers: the two answers of a limiter, quota and refusal, as HTTP headers.
//!
//! The header format is that of the IETF draft "`RateLimit` header fields for HTTP": the policy (`q`
//! admissions per `w` seconds) and the state (`r` left for the next `t` seconds). Touches nothing else.

use std::fmt;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const STATE: HeaderName = HeaderName::from_static("ratelimit");

/// An admission: it has been counted, and this is what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Admissions per period.
    pub limit: u32,
    /// Admissions that would pass right now.
    pub remaining: u32,
    /// The time after which `remaining` has grown, if nothing else is admitted.
    pub reset_after: Duration,
    /// The time that `limit` applies to.
    pub period: Duration,
}

/// A refusal: nothing has been counted, and this is when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} in {period:?}, the next passes in {retry_after:?}")]
pub struct Refusal {
    /// Admissions per period.
    pub limit: u32,
    /// The time that `limit` applies to.
    pub period: Duration,
    /// The time until the next attempt passes.
    pub retry_after: Duration,
}

impl Quota {
    /// `RateLimit-Policy` and `RateLimit` of an admission by the limit called `name`.
    pub fn headers(&self, name: &'static str) -> [(HeaderName, HeaderValue); 2] {
        headers(
            name,
            self.limit,
            self.period,
            self.remaining,
            self.reset_after,
        )
    }
}

impl Refusal {
    /// `RateLimit-Policy` and `RateLimit` of a refusal by the limit called `name`.
    pub fn headers(&self, name: &'static str) -> [(HeaderName, HeaderValue); 2] {
        headers(name, self.limit, self.period, 0, self.retry_after)
    }

    /// The value of `Retry-After`: whole seconds, never too early.
    pub fn retry_after_secs(&self) -> u64 {
        whole_secs(self.retry_after).max(1)
    }
}

fn headers(
    name: &'static str,
    limit: u32,
    period: Duration,
    remaining: u32,
    reset_after: Duration,
) -> [(HeaderName, HeaderValue); 2] {
    let (window, reset) = (whole_secs(period), whole_secs(reset_after));
    [
        (
            POLICY,
            value(format_args!("\"{name}\";q={limit};w={window}")),
        ),
        (
            STATE,
            value(format_args!("\"{name}\";r={remaining};t={reset}")),
        ),
    ]
}

fn value(text: fmt::Arguments<'_>) -> HeaderValue {
    HeaderValue::try_from(text.to_string()).expect("names of limits and numbers are plain ASCII")
}

fn whole_secs(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(headers: [(HeaderName, HeaderValue); 2]) -> [String; 2] {
        headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
    }

    #[test]
    fn an_admission_says_what_is_left() {
        let quota = Quota {
            limit: 5,
            remaining: 4,
            reset_after: Duration::from_mins(1),
            period: Duration::from_mins(1),
        };
        assert_eq!(
            texts(quota.headers("logins")),
            [
                r#"ratelimit-policy: "logins";q=5;w=60"#,
                r#"ratelimit: "logins";r=4;t=60"#
            ]
        );
    }

    #[test]
    fn a_refusal_never_invites_too_early() {
        let refusal = Refusal {
            limit: 5,
            period: Duration::from_mins(1),
            retry_after: Duration::from_millis(12_001),
        };
        assert_eq!(refusal.retry_after_secs(), 13);
        assert_eq!(
            texts(refusal.headers("logins"))[1],
            r#"ratelimit: "logins";r=0;t=13"#
        );
    }
}
