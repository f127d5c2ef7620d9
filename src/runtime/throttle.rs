//! Throttle: lets an agent send a burst, then a steady rate, so that a flood takes neither the disk
//! nor the time of other sessions.

use std::time::Duration;

use tokio::time::Instant;

/// Of an agent that is a process.
pub(super) const PROCESS_BURST_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
/// Of the demo agent, whose events cost no process: also for measuring what the gateway can do.
pub(super) const DEMO_BURST_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 2.0 * 1024.0 * 1024.0;

/// The throttle of one agent: a token bucket, filled at the start.
#[derive(Debug)]
pub(super) struct Throttle {
    burst: f64,
    /// Negative while the agent has to wait.
    left: f64,
    since: Instant,
}

impl Throttle {
    pub(super) fn new(burst: f64, now: Instant) -> Self {
        Self {
            burst,
            left: burst,
            since: now,
        }
    }

    pub(super) fn spend(&mut self, bytes: usize, now: Instant) {
        let refilled = (now - self.since).as_secs_f64() * BYTES_PER_SECOND;
        self.left = (self.left + refilled).min(self.burst);
        self.since = now;
        // No buffer holds more than fits into 32 bits.
        self.left -= u32::try_from(bytes).map_or(self.burst, f64::from);
    }

    /// When the agent is read again, if not now.
    pub(super) fn waits_until(&self, now: Instant) -> Option<Instant> {
        if self.left >= 0.0 {
            return None;
        }
        let until = self.since + Duration::from_secs_f64(-self.left / BYTES_PER_SECOND);
        (until > now).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_a_flood_is_slowed_down() {
        let start = Instant::now();
        let mut throttle = Throttle::new(PROCESS_BURST_BYTES, start);
        let mebibyte = 1024 * 1024;
        for _ in 0..16 {
            throttle.spend(mebibyte, start);
            assert_eq!(throttle.waits_until(start), None);
        }
        throttle.spend(4 * mebibyte, start);
        let until = throttle.waits_until(start).unwrap();
        assert_eq!(until - start, Duration::from_secs(2));
        assert_eq!(throttle.waits_until(until), None);
        throttle.spend(mebibyte, until);
        assert!(throttle.waits_until(until).is_some());
    }
}
