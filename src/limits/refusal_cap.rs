//! Refusal cap: how many refusals a connection gets before it is closed.
//!
//! Each refusal says when to try again and costs the gateway a frame. A client that miscounts is
//! refused now and then; one that ignores refusals is refused without end. Coarse on purpose: two
//! numbers per connection, in windows that do not slide. Touches nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::MINUTE;

const MAX_REFUSALS_PER_MINUTE: u32 = 1_000;

/// The refusals of one connection.
#[derive(Debug, Default)]
pub(crate) struct RefusalCap(Mutex<Refusals>);

#[derive(Debug, Default)]
struct Refusals {
    since: Duration,
    count: u32,
}

impl RefusalCap {
    /// Counts a refusal; `now` is monotonic.
    pub(crate) fn refused(&self, now: Duration) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.count >= MAX_REFUSALS_PER_MINUTE {
            return;
        }
        if refusals.count == 0 || now.saturating_sub(refusals.since) >= MINUTE {
            *refusals = Refusals {
                since: now,
                count: 0,
            };
        }
        refusals.count += 1;
    }

    /// True once the limit was hit; never resets.
    pub(crate) fn is_over(&self) -> bool {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.count >= MAX_REFUSALS_PER_MINUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thousandth_refusal_within_a_minute_is_the_last() {
        let limit = RefusalCap::default();
        let start = Duration::from_secs(7);
        for number in 0..1_000 {
            assert!(!limit.is_over());
            limit.refused(start + number * Duration::from_millis(59));
        }
        assert!(limit.is_over());
        limit.refused(start + 2 * MINUTE);
        assert!(limit.is_over(), "for good");
    }

    #[test]
    fn a_client_that_miscounts_is_never_closed() {
        let limit = RefusalCap::default();
        for number in 0..100_000 {
            limit.refused(number * Duration::from_millis(61));
        }
        assert!(!limit.is_over());
    }
}
