//! Sliding window: an exact limit over any window of time.
//!
//! Fixed windows let twice the limit through around their edge, and counters that interpolate are right
//! only on average; this one keeps the time of every admission that still counts. Memory is `limit`
//! times for each of at most `max_keys` keys. When all are in use, a new key replaces the one whose
//! newest admission is the oldest: that key starts afresh, early, which is the lesser evil beside
//! growing without bound or locking newcomers out. The limit can be changed while it is in use: earlier
//! admissions count on, so the new limit is exact from its first moment. Touches `clock` only.

use std::collections::VecDeque;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::expiring_lru::ExpiringLru;
use super::rate_limit_headers::{Quota, Refusal};
use crate::clock::Clock;

/// Expired keys dropped under one hold of the lock, so that a sweep never stalls admissions.
const SWEEP_STEP: usize = 1024;

type Admissions = VecDeque<Duration>;

/// Admits each key at most `limit` times in any window of `period`.
///
/// An admission at `t` counts until just before `t + period`. A refused attempt does not count.
#[derive(Debug)]
pub struct SlidingWindow<K> {
    /// Changed and used under the lock of `keys`, so that one attempt sees one limit.
    limit: AtomicU32,
    refused: AtomicU64,
    period: Duration,
    clock: Clock,
    keys: Mutex<ExpiringLru<K, Admissions>>,
}

impl<K: Hash + Eq + Clone> SlidingWindow<K> {
    /// An unused window that remembers at most `max_keys` keys.
    pub fn new(limit: NonZeroU32, period: Duration, max_keys: NonZeroU32, clock: Clock) -> Self {
        Self {
            limit: AtomicU32::new(limit.get()),
            refused: AtomicU64::new(0),
            period,
            clock,
            keys: Mutex::new(ExpiringLru::new(max_keys, period)),
        }
    }

    /// Counts one attempt of a key, or refuses it and says when the next one passes.
    pub fn admit(&self, key: &K) -> Result<Quota, Refusal> {
        let mut keys = self.lock();
        // Read under the lock: admissions are stored in the order of their time.
        let now = self.clock.monotonic();
        self.check_locked(&mut keys, key, now)?;
        let admissions = keys.touch(key, now);
        admissions.push_back(now);
        Ok(self.quota(admissions, now))
    }

    /// Would an attempt of a key be admitted now? Counts nothing.
    pub(crate) fn check(&self, key: &K) -> Result<(), Refusal> {
        self.check_locked(&mut self.lock(), key, self.clock.monotonic())
    }

    fn check_locked(
        &self,
        keys: &mut ExpiringLru<K, Admissions>,
        key: &K,
        now: Duration,
    ) -> Result<(), Refusal> {
        let Some(admissions) = keys.get_mut(key, now) else {
            return Ok(());
        };
        self.drop_expired(admissions, now);
        let limit = self.limit();
        // After the limit was lowered, more than one may have to expire first.
        let Some(too_many) = admissions.len().checked_sub(limit as usize) else {
            return Ok(());
        };
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Refusal {
            limit,
            period: self.period,
            retry_after: self.until_expired(admissions, too_many, now),
        })
    }

    /// How many attempts of a key count now.
    pub(crate) fn used(&self, key: &K) -> u32 {
        let now = self.clock.monotonic();
        let mut keys = self.lock();
        let Some(admissions) = keys.get_mut(key, now) else {
            return 0;
        };
        self.drop_expired(admissions, now);
        u32::try_from(admissions.len()).unwrap_or(u32::MAX)
    }

    /// Changes how many pass in a window.
    pub fn set_limit(&self, limit: NonZeroU32) {
        let _keys = self.lock();
        self.limit.store(limit.get(), Ordering::Relaxed);
    }

    /// How many pass in a window.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Attempts refused so far.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Drops the keys that have no admission left that counts.
    pub fn sweep(&self) {
        while self.lock().sweep(self.clock.monotonic(), SWEEP_STEP) == SWEEP_STEP {}
    }

    /// The number of keys remembered.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no key is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, ExpiringLru<K, Admissions>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drop_expired(&self, admissions: &mut Admissions, now: Duration) {
        while admissions
            .front()
            .is_some_and(|&at| at + self.period <= now)
        {
            admissions.pop_front();
        }
    }

    /// Until the admission at that index, counted from the oldest, has expired.
    fn until_expired(&self, admissions: &Admissions, index: usize, now: Duration) -> Duration {
        admissions
            .get(index)
            .map_or(Duration::ZERO, |&at| (at + self.period).saturating_sub(now))
    }

    fn quota(&self, admissions: &Admissions, now: Duration) -> Quota {
        let used = u32::try_from(admissions.len()).unwrap_or(u32::MAX);
        let limit = self.limit();
        Quota {
            limit,
            remaining: limit.saturating_sub(used),
            reset_after: self.until_expired(admissions, 0, now),
            period: self.period,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::limits::MINUTE;

    const NANOSECOND: Duration = Duration::from_nanos(1);

    fn window<K: Hash + Eq + Clone>(limit: u32, max_keys: u32) -> (SlidingWindow<K>, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (limit, max_keys) = (NonZeroU32::new(limit), NonZeroU32::new(max_keys));
        let window = SlidingWindow::new(limit.unwrap(), MINUTE, max_keys.unwrap(), clock.clone());
        (window, clock)
    }

    #[test]
    fn the_fifth_passes_and_the_sixth_waits_exactly_until_the_first_is_a_minute_old() {
        let (window, clock) = window(5, 10);
        for remaining in (0..5).rev() {
            let quota = window.admit(&"alice").unwrap();
            assert_eq!(quota.remaining, remaining);
            assert_eq!(quota.reset_after, MINUTE);
        }
        assert_eq!(window.admit(&"alice").unwrap_err().retry_after, MINUTE);
        assert!(window.admit(&"bob").is_ok(), "another key is unaffected");

        clock.advance(MINUTE.checked_sub(NANOSECOND).unwrap());
        assert_eq!(window.admit(&"alice").unwrap_err().retry_after, NANOSECOND);
        clock.advance(NANOSECOND);
        assert_eq!(window.admit(&"alice").unwrap().remaining, 4);
    }

    #[test]
    fn a_burst_across_the_minute_gets_no_second_budget() {
        let (window, clock) = window(5, 10);
        clock.advance(Duration::from_secs(59));
        for _ in 0..5 {
            window.admit(&"alice").unwrap();
        }
        clock.advance(Duration::from_secs(2));
        let refusal = window.admit(&"alice").unwrap_err();
        assert_eq!(refusal.retry_after, Duration::from_secs(58));
    }

    #[test]
    fn budget_comes_back_one_by_one_as_it_was_spent() {
        let (window, clock) = window(2, 10);
        window.admit(&"alice").unwrap();
        clock.advance(Duration::from_secs(30));
        assert_eq!(
            window.admit(&"alice").unwrap().reset_after,
            Duration::from_secs(30)
        );
        clock.advance(Duration::from_secs(30));
        assert!(window.admit(&"alice").is_ok());
        assert_eq!(
            window.admit(&"alice").unwrap_err().retry_after,
            Duration::from_secs(30)
        );
    }

    #[test]
    fn a_full_window_replaces_the_key_that_was_quiet_longest() {
        let (window, clock) = window(1, 2);
        window.admit(&"quiet").unwrap();
        clock.advance(NANOSECOND);
        window.admit(&"recent").unwrap();
        assert!(window.admit(&"newcomer").is_ok());
        assert_eq!(window.len(), 2);
        assert!(window.admit(&"recent").is_err());
        assert!(window.admit(&"quiet").is_ok());
    }

    #[test]
    fn refused_attempts_do_not_keep_a_key_alive() {
        let (window, clock) = window(1, 10);
        window.admit(&"alice").unwrap();
        clock.advance(Duration::from_secs(30));
        window.admit(&"alice").unwrap_err();
        clock.advance(Duration::from_secs(30));
        window.sweep();
        assert!(window.is_empty());
    }

    #[test]
    fn racing_threads_share_one_budget() {
        let (window, _clock) = window(100, 10);
        let admitted: usize = std::thread::scope(|scope| {
            let attempts = || (0..50).filter(|_| window.admit(&"alice").is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(attempts)).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(admitted, 100);
    }

    #[test]
    fn a_lower_limit_counts_what_was_admitted_before_it() {
        let (window, clock) = window(5, 10);
        for _ in 0..5 {
            window.admit(&"alice").unwrap();
            clock.advance(Duration::from_secs(1));
        }
        window.set_limit(NonZeroU32::new(2).unwrap());
        let refusal = window.admit(&"alice").unwrap_err();
        assert_eq!((refusal.limit, window.refused()), (2, 1));
        // Four of the five must be gone: the fourth was admitted 2 s ago.
        assert_eq!(refusal.retry_after, Duration::from_secs(58));
        clock.advance(Duration::from_secs(58));
        assert_eq!(window.admit(&"alice").unwrap().remaining, 0);
        window.set_limit(NonZeroU32::new(3).unwrap());
        assert_eq!(window.admit(&"alice").unwrap().remaining, 0);
        assert!(window.admit(&"alice").is_err());
    }

    /// The definition of the limit, as plainly as possible.
    fn passes(admitted: &[(u8, Duration)], key: u8, now: Duration, limit: u32) -> bool {
        let counting = |&&(other, at): &&(u8, Duration)| other == key && at + MINUTE > now;
        admitted.iter().filter(counting).count() < limit as usize
    }

    proptest! {
        #[test]
        fn it_admits_exactly_what_the_plain_definition_does(
            limit in 1_u32..6,
            attempts in prop::collection::vec((0_u8..3, 0_u64..30, any::<bool>()), 1..200),
        ) {
            let (window, clock) = window(limit, 3);
            let mut admitted = Vec::new();
            for (key, secs, sweeps) in attempts {
                clock.advance(Duration::from_secs(secs));
                if sweeps {
                    window.sweep();
                }
                let now = clock.monotonic();
                let expected = passes(&admitted, key, now, limit);
                let outcome = window.admit(&key);
                prop_assert_eq!(outcome.is_ok(), expected);
                if let Err(refusal) = outcome {
                    let next = now + refusal.retry_after;
                    let just_before = next.checked_sub(NANOSECOND).unwrap();
                    prop_assert!(!passes(&admitted, key, just_before, limit));
                    prop_assert!(passes(&admitted, key, next, limit));
                } else {
                    admitted.push((key, now));
                }
            }
        }

        #[test]
        fn a_changed_limit_is_as_exact_as_one_from_the_beginning(
            first in 1_u32..6,
            attempts in prop::collection::vec(
                (0_u8..3, 0_u64..30, prop::option::weighted(0.1, 1_u32..6)), 1..200,
            ),
        ) {
            let (window, clock) = window(first, 3);
            let (mut limit, mut admitted, mut refused) = (first, Vec::new(), 0);
            for (key, secs, change) in attempts {
                clock.advance(Duration::from_secs(secs));
                if let Some(changed) = change {
                    limit = changed;
                    window.set_limit(NonZeroU32::new(changed).unwrap());
                }
                let now = clock.monotonic();
                let expected = passes(&admitted, key, now, limit);
                let outcome = window.admit(&key);
                prop_assert_eq!(outcome.is_ok(), expected);
                match outcome {
                    Ok(quota) => {
                        admitted.push((key, now));
                        prop_assert_eq!(quota.remaining > 0, passes(&admitted, key, now, limit));
                    }
                    Err(refusal) => {
                        refused += 1;
                        let next = now + refusal.retry_after;
                        let just_before = next.checked_sub(NANOSECOND).unwrap();
                        prop_assert!(!passes(&admitted, key, just_before, limit));
                        prop_assert!(passes(&admitted, key, next, limit));
                    }
                }
            }
            prop_assert_eq!(window.refused(), refused);
        }
    }
}
