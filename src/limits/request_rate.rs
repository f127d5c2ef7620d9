//! Request rate: a coarse limit per key, a steady rate with a burst.
//!
//! One atomic number per key, so it is cheap enough for every request. At most `max_keys` keys have
//! their own budget; while that many are active, all further ones share a single one. They may slow each
//! other down then, but not the known ones, and memory stays bounded. Touches `clock` only.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::RateLimiter;
use governor::middleware::StateInformationMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::state::{InMemoryState, NotKeyed, StateStore};

use super::MINUTE;
use super::rate_limit_headers::{Quota, Refusal};
use crate::clock::Clock;

/// The least time between two sweeps that a full map triggers.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The burst is cut to what grows back within this time.
const MAX_REFILL: Duration = Duration::from_hours(365 * 24);

/// Admits each key at `per_minute` in the long run, and up to `burst` at once.
#[derive(Debug)]
pub(crate) struct RequestRate<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, States<K>, Monotonic, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    interval: Duration,
    clock: Clock,
    refused: AtomicU64,
    full: Arc<AtomicBool>,
    next_sweep: Mutex<Duration>,
}

impl<K: Hash + Eq + Clone> RequestRate<K> {
    /// An unused limit that tells at most `max_keys` keys apart.
    pub(crate) fn new(
        per_minute: NonZeroU32,
        burst: NonZeroU32,
        max_keys: NonZeroU32,
        clock: Clock,
    ) -> Self {
        let rate = governor::Quota::per_minute(per_minute);
        let interval = rate.replenish_interval();
        let full = Arc::new(AtomicBool::new(false));
        let states = States {
            keys: DashMapStateStore::default(),
            overflow: InMemoryState::default(),
            max_keys: max_keys.get() as usize,
            full: Arc::clone(&full),
        };
        let quota = rate.allow_burst(burst.min(largest_burst(interval)));
        Self {
            limiter: RateLimiter::new(quota, states, Monotonic(clock.clone())),
            per_minute,
            interval,
            clock,
            refused: AtomicU64::new(0),
            full,
            next_sweep: Mutex::new(Duration::ZERO),
        }
    }

    /// Counts one request of a key, or refuses it and says when the next one passes.
    pub(crate) fn admit(&self, key: &K) -> Result<Quota, Refusal> {
        let outcome = self.limiter.check_key(key);
        self.sweep_if_full();
        match outcome {
            Ok(state) => Ok(Quota {
                limit: self.per_minute.get(),
                remaining: state.remaining_burst_capacity(),
                reset_after: self.interval,
                period: MINUTE,
            }),
            Err(not_until) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(Refusal {
                    limit: self.per_minute.get(),
                    period: MINUTE,
                    retry_after: not_until.wait_time_from(self.clock.monotonic()),
                })
            }
        }
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Drops the keys whose budget is whole again, and gives their memory back.
    pub(crate) fn sweep(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }

    /// The number of keys with a budget of their own.
    pub(crate) fn len(&self) -> usize {
        self.limiter.len()
    }

    fn sweep_if_full(&self) {
        if self.full.load(Ordering::Relaxed) && self.sweep_is_due() {
            self.full.store(false, Ordering::Relaxed);
            self.limiter.retain_recent();
        }
    }

    fn sweep_is_due(&self) -> bool {
        let now = self.clock.monotonic();
        let mut next = self
            .next_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let due = *next <= now;
        if due {
            *next = now + SWEEP_INTERVAL;
        }
        due
    }
}

/// The limiter multiplies burst and interval in 64 bits; this keeps the product in range.
fn largest_burst(interval: Duration) -> NonZeroU32 {
    let bursts = MAX_REFILL.as_nanos() / interval.as_nanos().max(1);
    u32::try_from(bursts)
        .ok()
        .and_then(NonZeroU32::new)
        .unwrap_or(NonZeroU32::MAX)
}

#[derive(Debug)]
struct Monotonic(Clock);

impl governor::clock::Clock for Monotonic {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.monotonic()
    }
}

/// One state per key up to `max_keys`, and one for all other keys.
///
/// Racing newcomers can exceed `max_keys` by one each, that is by the number of threads.
#[derive(Debug)]
struct States<K: Hash + Eq> {
    keys: DashMapStateStore<K>,
    overflow: InMemoryState,
    max_keys: usize,
    full: Arc<AtomicBool>,
}

impl<K: Hash + Eq + Clone> StateStore for States<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        if let Some(state) = self.keys.get(key) {
            return state.measure_and_replace(&NotKeyed::NonKey, measure);
        }
        if self.keys.len() < self.max_keys {
            return self.keys.measure_and_replace(key, measure);
        }
        self.full.store(true, Ordering::Relaxed);
        self.overflow
            .measure_and_replace(&NotKeyed::NonKey, measure)
    }
}

impl<K: Hash + Eq + Clone> ShrinkableKeyedStateStore<K> for States<K> {
    fn retain_recent(&self, drop_below: Nanos) {
        self.keys.retain_recent(drop_below);
    }

    fn shrink_to_fit(&self) {
        self.keys.shrink_to_fit();
    }

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// One per second, `burst` at once.
    fn rate(burst: u32, max_keys: u32) -> (RequestRate<u32>, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let [per_minute, burst, max_keys] =
            [60, burst, max_keys].map(|number| NonZeroU32::new(number).unwrap());
        let rate = RequestRate::new(per_minute, burst, max_keys, clock.clone());
        (rate, clock)
    }

    #[test]
    fn a_burst_passes_and_then_one_per_interval() {
        let (rate, clock) = rate(3, 10);
        for remaining in [2, 1, 0] {
            let quota = rate.admit(&1).unwrap();
            assert_eq!((quota.limit, quota.remaining), (60, remaining));
        }
        assert_eq!(rate.admit(&1).unwrap_err().retry_after, SECOND);
        assert!(rate.admit(&2).is_ok(), "another key is unaffected");
        clock.advance(SECOND);
        assert!(rate.admit(&1).is_ok());
        assert!(rate.admit(&1).is_err());
    }

    #[test]
    fn new_keys_share_one_budget_while_the_map_is_full() {
        let (rate, _clock) = rate(2, 3);
        for known in 0..3 {
            rate.admit(&known).unwrap();
        }
        assert!(rate.admit(&100).is_ok());
        assert!(rate.admit(&101).is_ok());
        assert!(rate.admit(&102).is_err());
        assert_eq!(rate.len(), 3);
        assert!(rate.admit(&0).is_ok(), "a known key keeps its own budget");
    }

    #[test]
    fn a_full_map_sweeps_itself_once_a_second() {
        let (rate, clock) = rate(2, 3);
        for known in 0..3 {
            rate.admit(&known).unwrap();
        }
        rate.admit(&100).unwrap();
        assert_eq!(rate.len(), 3, "all three are still in use");
        clock.advance(2 * SECOND);
        rate.admit(&100).unwrap();
        assert_eq!(rate.len(), 0, "none is in use any more");
        rate.admit(&100).unwrap();
        assert_eq!(rate.len(), 1);
    }

    #[test]
    fn a_sweep_drops_keys_whose_budget_is_whole_again() {
        let (rate, clock) = rate(2, 10);
        rate.admit(&1).unwrap();
        clock.advance(2 * SECOND);
        rate.admit(&2).unwrap();
        rate.sweep();
        assert_eq!(rate.len(), 1);
    }

    #[test]
    fn a_huge_burst_does_not_overflow() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let rate = RequestRate::new(NonZeroU32::MIN, NonZeroU32::MAX, NonZeroU32::MIN, clock);
        assert!(rate.admit(&1).is_ok());
    }
}
