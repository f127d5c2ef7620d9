//! How long somebody is told no before the door is closed.
//!
//! Whoever is refused is told when to try again, which costs the gateway a frame each time. A client
//! that counts wrongly is refused now and then; one that does not listen at all is refused without
//! end. Coarse on purpose: two numbers per connection, in windows that do not slide. Touches nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::MINUTE;

/// So many refusals within a minute are the last ones.
const MOST: u32 = 1_000;

/// What is left of it for one connection.
#[derive(Debug, Default)]
pub(crate) struct Patience(Mutex<Refusals>);

#[derive(Debug, Default)]
struct Refusals {
    /// When the first of them was.
    since: Duration,
    count: u32,
}

impl Patience {
    /// Something was refused, by a clock that does not jump.
    pub(crate) fn refused(&self, now: Duration) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.count >= MOST {
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

    /// Is there none left? Then there never is any again.
    pub(crate) fn is_over(&self) -> bool {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.count >= MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_the_thousandth_refusal_within_a_minute() {
        let patience = Patience::default();
        let start = Duration::from_secs(7);
        for number in 0..1_000 {
            assert!(!patience.is_over());
            patience.refused(start + number * Duration::from_millis(59));
        }
        assert!(patience.is_over());
        patience.refused(start + 2 * MINUTE);
        assert!(patience.is_over(), "for good");
    }

    #[test]
    fn somebody_who_counts_wrongly_is_told_so_for_ever() {
        let patience = Patience::default();
        for number in 0..100_000 {
            patience.refused(number * Duration::from_millis(61));
        }
        assert!(!patience.is_over());
    }
}
