//! How fast an agent may talk: as fast as anybody reads for a while, and then at a steady pace, so that
//! one that floods takes neither the disk nor the others' time.

use std::time::Duration;

use tokio::time::Instant;

/// Bytes at once.
const BURST: f64 = 16.0 * 1024.0 * 1024.0;
/// Bytes per second after that.
const STEADY: f64 = 2.0 * 1024.0 * 1024.0;

/// The pace of one agent.
#[derive(Debug)]
pub(super) struct Pace {
    left: f64,
    since: Instant,
}

impl Pace {
    /// Rested.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            since: now,
        }
    }

    /// So much was said.
    pub(super) fn spend(&mut self, bytes: usize, now: Instant) {
        let rested = (now - self.since).as_secs_f64() * STEADY;
        self.left = (self.left + rested).min(BURST);
        self.since = now;
        // More than there are bytes in any buffer is not lost by this.
        self.left -= u32::try_from(bytes).map_or(BURST, f64::from);
    }

    /// When it may go on, if not now.
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        if self.left >= 0.0 {
            return None;
        }
        let until = self.since + Duration::from_secs_f64(-self.left / STEADY);
        (until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_a_flood_is_slowed_down() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mebibyte = 1024 * 1024;
        for _ in 0..16 {
            pace.spend(mebibyte, start);
            assert_eq!(pace.waits_until(start), None);
        }
        pace.spend(4 * mebibyte, start);
        let until = pace.waits_until(start).unwrap();
        assert_eq!(until - start, Duration::from_secs(2));
        assert_eq!(pace.waits_until(until), None);
        pace.spend(mebibyte, until);
        assert!(pace.waits_until(until).is_some());
    }
}
