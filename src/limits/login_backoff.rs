//! Login backoff: a delay that grows with the failed logins of an account.
//!
//! It slows down guessing at one account from many addresses without ever locking its owner out.
//! Accounts that do not exist are delayed alike, so the delay reveals nothing. Only a keyed hash of
//! the name is kept: long names cost nothing, and chosen ones cannot be made to collide. The caller
//! waits. Touches `clock` only.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::expiring_lru::ExpiringLru;
use crate::clock::Clock;

const FREE_FAILURES: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(4);
const LIFETIME: Duration = Duration::from_mins(15);
const SWEEP_STEP: usize = 1024;

/// How long the next login attempt of each account has to wait.
#[derive(Debug)]
pub(crate) struct LoginBackoff {
    hasher: RandomState,
    failures: Mutex<ExpiringLru<u64, u32>>,
    clock: Clock,
}

impl LoginBackoff {
    /// Remembers the failures of at most `max_keys` accounts; beyond that, forgets the oldest.
    pub(crate) fn new(max_keys: NonZeroU32, clock: Clock) -> Self {
        Self {
            hasher: RandomState::new(),
            failures: Mutex::new(ExpiringLru::new(max_keys, LIFETIME)),
            clock,
        }
    }

    /// The time to wait before the next attempt on this account is looked at.
    pub(crate) fn delay_for(&self, account: &str) -> Duration {
        let now = self.clock.monotonic();
        let key = self.key(account);
        let failures = self.lock().get_mut(&key, now).map_or(0, |count| *count);
        delay_after(failures)
    }

    /// Counts a failed attempt, of an existing account or not.
    pub(crate) fn failed(&self, account: &str) {
        let key = self.key(account);
        let mut failures = self.lock();
        let count = failures.touch(&key, self.clock.monotonic());
        *count = count.saturating_add(1);
    }

    /// Forgets the failures of an account after a successful login.
    pub(crate) fn succeeded(&self, account: &str) {
        let key = self.key(account);
        self.lock().remove(&key);
    }

    /// Drops the accounts without a failure within the lifetime.
    pub(crate) fn sweep(&self) {
        while self.lock().sweep(self.clock.monotonic(), SWEEP_STEP) == SWEEP_STEP {}
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn key(&self, account: &str) -> u64 {
        self.hasher.hash_one(account)
    }

    fn lock(&self) -> MutexGuard<'_, ExpiringLru<u64, u32>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn delay_after(failures: u32) -> Duration {
    match failures.checked_sub(FREE_FAILURES) {
        None => Duration::ZERO,
        Some(doublings) => 2_u32
            .checked_pow(doublings)
            .and_then(|factor| FIRST_DELAY.checked_mul(factor))
            .map_or(MAX_DELAY, |delay| delay.min(MAX_DELAY)),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn delays(max_keys: u32) -> (LoginBackoff, Clock) {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let max_keys = NonZeroU32::new(max_keys).unwrap();
        (LoginBackoff::new(max_keys, clock.clone()), clock)
    }

    #[test]
    fn the_delay_doubles_from_the_third_failure_up_to_four_seconds() {
        let (delays, _clock) = delays(10);
        let mut seen = Vec::new();
        for _ in 0..9 {
            seen.push(delays.delay_for("alice").as_millis());
            delays.failed("alice");
        }
        assert_eq!(seen, [0, 0, 0, 250, 500, 1000, 2000, 4000, 4000]);
        assert_eq!(delays.delay_for("bob"), Duration::ZERO);
        assert_eq!(delay_after(u32::MAX), MAX_DELAY);
    }

    #[test]
    fn a_successful_login_clears_the_delay() {
        let (delays, _clock) = delays(10);
        for _ in 0..5 {
            delays.failed("alice");
        }
        delays.succeeded("alice");
        assert_eq!(delays.delay_for("alice"), Duration::ZERO);
        assert_eq!(delays.len(), 0);
    }

    #[test]
    fn failures_are_forgotten_a_quarter_of_an_hour_after_the_last_one() {
        let (delays, clock) = delays(10);
        delays.failed("alice");
        clock.advance(Duration::from_mins(14));
        delays.failed("alice");
        clock.advance(Duration::from_mins(14));
        delays.failed("alice");
        assert_eq!(delays.delay_for("alice"), FIRST_DELAY);
        clock.advance(LIFETIME);
        assert_eq!(delays.delay_for("alice"), Duration::ZERO);
        delays.failed("alice");
        assert_eq!(delays.delay_for("alice"), Duration::ZERO);
    }

    #[test]
    fn a_flood_of_invented_names_takes_bounded_memory() {
        let (delays, clock) = delays(10);
        for number in 0..1000 {
            delays.failed(&format!("account {number}"));
        }
        assert_eq!(delays.len(), 10);
        clock.advance(LIFETIME);
        delays.sweep();
        assert_eq!(delays.len(), 0);
    }
}
