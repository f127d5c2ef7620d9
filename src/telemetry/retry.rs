//! Retry: whether and when an export is tried again. Pure.

use std::time::Duration;

use hyper::StatusCode;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// Exponential backoff with jitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    /// Delay after the first attempt; doubles after each further one.
    pub(super) first: Duration,
    pub(super) longest: Duration,
    /// Attempts in all.
    pub(super) attempts: u32,
}

impl Backoff {
    /// Outlasts the restart of a collector: half a minute to a minute, depending on jitter.
    pub(super) const DEFAULT: Self = Self {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(30),
        attempts: 7,
    };
    const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

    /// Delay after so many failures; `None` after the last attempt. Jitter takes away up to a half, so that
    /// many gateways do not retry at once; a `Retry-After` is waited in full.
    pub(super) fn wait(
        &self,
        failures: u32,
        asked: Option<Duration>,
        jitter: u8,
    ) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        let wait = full / 2 + full / 2 * u32::from(jitter) / u32::from(u8::MAX);
        Some(wait.max(asked.unwrap_or_default().min(Self::MAX_RETRY_AFTER)))
    }
}

/// Does OTLP ask for a retry after this status?
pub(super) fn is_retriable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// The header `Retry-After`: seconds, or a date.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_end() {
        let whole = |failures| Backoff::DEFAULT.wait(failures, None, u8::MAX);
        let waits: Vec<u64> = (1..).map_while(whole).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30]);
        let least = Backoff::DEFAULT.wait(3, None, 0).unwrap();
        assert_eq!(least, Duration::from_secs(2));
    }

    #[test]
    fn retry_after_is_honoured_up_to_a_maximum() {
        let asked = |seconds| {
            let asked = Some(Duration::from_secs(seconds));
            Backoff::DEFAULT.wait(1, asked, 0).unwrap().as_secs()
        };
        assert_eq!(asked(20), 20);
        assert_eq!(asked(1_000_000), 300);
        let none = Backoff::DEFAULT.wait(1, Some(Duration::ZERO), 0).unwrap();
        assert_eq!(none, Duration::from_millis(500));
        let asked = Some(Duration::from_secs(20));
        assert_eq!(Backoff::DEFAULT.wait(7, asked, 0), None);
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now: Timestamp = "2026-11-17T07:28:00Z".parse().unwrap();
        let read = |text| retry_after(text, now).map(|wait| wait.as_secs());
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Tue, 17 Nov 2026 07:29:30 GMT"), Some(90));
        assert_eq!(read("Tue, 17 Nov 2026 07:20:00 GMT"), Some(0));
        assert_eq!(read("soon"), None);
        assert_eq!(read("-1"), None);
    }

    #[test]
    fn only_retriable_statuses_are_retried() {
        let again = (100..600).filter_map(|code| StatusCode::from_u16(code).ok());
        let again: Vec<u16> = again
            .filter(|status| is_retriable(*status))
            .map(|status| status.as_u16())
            .collect();
        assert_eq!(again, [429, 502, 503, 504]);
    }
}
