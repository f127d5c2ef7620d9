//! Whether and when something is tried again. Arithmetic only: whoever waits is the caller.

use std::time::Duration;

use hyper::StatusCode;
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

/// How often, and how far apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    /// After the first attempt; twice as long after each one more.
    pub(super) first: Duration,
    pub(super) longest: Duration,
    /// The first one is among them.
    pub(super) attempts: u32,
}

impl Backoff {
    /// Outlives the restart of a collector: half a minute to a minute, by chance.
    pub(super) const USUAL: Self = Self {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(30),
        attempts: 7,
    };
    /// What a collector can ask for at most.
    const LONGEST_ASKED: Duration = Duration::from_mins(5);

    /// How long to wait after so many failures; nothing if that was the last attempt. Chance takes
    /// away up to a half, so that many gateways do not come back at once. What the other side asked
    /// for is waited in full.
    pub(super) fn wait(
        &self,
        failures: u32,
        asked: Option<Duration>,
        chance: u8,
    ) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        let wait = full / 2 + full / 2 * u32::from(chance) / u32::from(u8::MAX);
        Some(wait.max(asked.unwrap_or_default().min(Self::LONGEST_ASKED)))
    }
}

/// Does the protocol ask to send the same again after this answer?
pub(super) fn is_for_now(status: StatusCode) -> bool {
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
    fn waits_double_up_to_the_longest_and_end() {
        let whole = |failures| Backoff::USUAL.wait(failures, None, u8::MAX);
        let waits: Vec<u64> = (1..).map_while(whole).map(|wait| wait.as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30]);
        let least = Backoff::USUAL.wait(3, None, 0).unwrap();
        assert_eq!(least, Duration::from_secs(2));
    }

    #[test]
    fn what_was_asked_for_is_waited_but_not_for_ever() {
        let asked = |seconds| {
            let asked = Some(Duration::from_secs(seconds));
            Backoff::USUAL.wait(1, asked, 0).unwrap().as_secs()
        };
        assert_eq!(asked(20), 20);
        assert_eq!(asked(1_000_000), 300);
        let none = Backoff::USUAL.wait(1, Some(Duration::ZERO), 0).unwrap();
        assert_eq!(none, Duration::from_millis(500));
        let asked = Some(Duration::from_secs(20));
        assert_eq!(Backoff::USUAL.wait(7, asked, 0), None);
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
    fn only_what_may_pass_is_tried_again() {
        let again = (100..600).filter_map(|code| StatusCode::from_u16(code).ok());
        let again: Vec<u16> = again
            .filter(|status| is_for_now(*status))
            .map(|status| status.as_u16())
            .collect();
        assert_eq!(again, [429, 502, 503, 504]);
    }
}
