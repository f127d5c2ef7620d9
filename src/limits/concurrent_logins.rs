//! Concurrent logins: bounds how many passwords are tried on one account at the same time.
//!
//! The delay after failures slows each attempt down; without a bound, many at once would all wait the same
//! delay and then be checked. Accounts that do not exist are bounded alike. Touches nothing else.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Attempts on one account, or from one of its devices, that are under way at a time.
const MAX_AT_ONCE: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct ConcurrentLogins {
    hasher: RandomState,
    /// Those with an attempt under way or waiting, by a keyed hash of their name.
    accounts: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

/// Held while an attempt is under way.
#[derive(Debug)]
pub(crate) struct AttemptPermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConcurrentLogins {
    /// A permit for an attempt; none if as many as may be are under way.
    pub(crate) fn try_begin(&self, account: &str) -> Option<AttemptPermit> {
        let permit = self.account(account).try_acquire_owned().ok()?;
        Some(AttemptPermit {
            _permit: Some(permit),
        })
    }

    /// Waits for a permit, first come, first served.
    pub(crate) async fn begin(&self, account: &str) -> AttemptPermit {
        // Fails only on a closed semaphore, and none is ever closed.
        let permit = self.account(account).acquire_owned().await.ok();
        AttemptPermit { _permit: permit }
    }

    fn account(&self, account: &str) -> Arc<Semaphore> {
        let key = self.hasher.hash_one(account);
        let accounts = self.accounts.lock();
        let mut accounts = accounts.unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|_, known| known.strong_count() > 0);
        let known = accounts.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let made = Arc::new(Semaphore::new(MAX_AT_ONCE));
            accounts.insert(key, Arc::downgrade(&made));
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn two_attempts_on_an_account_are_under_way_at_most() {
        let attempts = ConcurrentLogins::default();
        let held = [(); 2].map(|()| attempts.try_begin("mia").unwrap());
        assert!(attempts.try_begin("mia").is_none());
        assert!(attempts.try_begin("ben").is_some());
        let mut waiting = Box::pin(attempts.begin("mia"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(held);
        waiting.await;
    }

    #[test]
    fn accounts_without_an_attempt_are_forgotten() {
        let attempts = ConcurrentLogins::default();
        for name in 0..100 {
            attempts.try_begin(&name.to_string()).unwrap();
        }
        assert!(attempts.accounts.lock().unwrap().len() <= 1);
    }
}
