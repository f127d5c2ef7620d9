//! Permits: cap how many hold something at the same time, for each key and in all.
//!
//! Used for connections, agents, uploads, branches and searches. Not for the password hasher: its
//! callers have no key and wait in order without a deadline, which is a plain semaphore.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

/// The caps and what is taken of them; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Permits<K: Eq + Hash>(Arc<PermitState<K>>);

#[derive(Debug)]
struct PermitState<K> {
    total: usize,
    per_key: usize,
    held: Mutex<Held<K>>,
    released: Notify,
}

/// Keys are remembered only while they hold something, so the total bounds the memory, too.
#[derive(Debug)]
struct Held<K> {
    total: usize,
    by_key: HashMap<K, usize>,
}

/// Held until dropped.
#[derive(Debug)]
#[must_use = "dropping the permit releases it"]
pub(crate) struct Permit<K: Eq + Hash> {
    shared: Arc<PermitState<K>>,
    key: Option<K>,
}

/// The cap that refused a permit, and how many it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CapReached {
    #[error("the cap of {0} in all is reached")]
    Total(usize),
    #[error("the cap of {0} for one of them is reached")]
    Key(usize),
}

impl<K: Eq + Hash + Clone> Permits<K> {
    pub(crate) fn new(total: usize, per_key: usize) -> Self {
        Self(Arc::new(PermitState {
            total,
            per_key,
            held: Mutex::new(Held {
                total: 0,
                by_key: HashMap::new(),
            }),
            released: Notify::new(),
        }))
    }

    /// A permit now or not at all. Without a key only the total applies.
    pub(crate) fn try_acquire(&self, key: impl Into<Option<K>>) -> Result<Permit<K>, CapReached> {
        let (shared, key) = (&self.0, key.into());
        let mut held = shared.lock();
        if held.total >= shared.total {
            return Err(CapReached::Total(shared.total));
        }
        if let Some(key) = &key {
            let own = held.by_key.get(key).copied().unwrap_or(0);
            if own >= shared.per_key {
                return Err(CapReached::Key(shared.per_key));
            }
            held.by_key.insert(key.clone(), own + 1);
        }
        held.total += 1;
        let shared = Arc::clone(shared);
        Ok(Permit { shared, key })
    }

    /// Waits for a permit until the timeout; then says which cap was in the way. Not fair: a
    /// newcomer can overtake, so the timeout bounds what starvation costs.
    pub(crate) async fn acquire_within(
        &self,
        key: K,
        timeout: Duration,
    ) -> Result<Permit<K>, CapReached> {
        let acquiring = async {
            loop {
                // Made before the attempt, so that a release in between is not missed.
                let released = self.0.released.notified();
                if let Ok(permit) = self.try_acquire(key.clone()) {
                    return permit;
                }
                released.await;
            }
        };
        match tokio::time::timeout(timeout, acquiring).await {
            Ok(permit) => Ok(permit),
            Err(_) => self.try_acquire(key),
        }
    }

    /// How many are held, and how many there are.
    pub(crate) fn usage(&self) -> (usize, usize) {
        (self.0.lock().total, self.0.total)
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> usize {
        self.0.lock().by_key.len()
    }
}

impl<K> PermitState<K> {
    fn lock(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut held = self.shared.lock();
        held.total -= 1;
        if let Some(key) = &self.key
            && let Some(own) = held.by_key.get_mut(key)
        {
            *own -= 1;
            if *own == 0 {
                held.by_key.remove(key);
            }
        }
        drop(held);
        self.shared.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(500);

    #[test]
    fn a_refusal_names_the_cap_that_was_reached() {
        let permits = Permits::new(3, 2);
        let first = permits.try_acquire("mia").unwrap();
        let second = permits.try_acquire("mia").unwrap();
        assert_eq!(permits.try_acquire("mia").unwrap_err(), CapReached::Key(2));
        let third = permits.try_acquire("ben").unwrap();
        assert_eq!(
            permits.try_acquire("eve").unwrap_err(),
            CapReached::Total(3)
        );
        drop(first);
        let fourth = permits.try_acquire("mia").unwrap();
        drop((second, third, fourth));
        assert_eq!((permits.usage(), permits.keys()), ((0, 3), 0));
    }

    #[test]
    fn without_a_key_only_the_total_applies() {
        let permits: Permits<&str> = Permits::new(2, 1);
        let _held = [None, None].map(|key| permits.try_acquire(key).unwrap());
        assert_eq!(permits.try_acquire(None).unwrap_err(), CapReached::Total(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_one_permit_and_all_together_have_a_few() {
        let permits = Permits::new(2, 1);
        let acquire = async |user| permits.acquire_within(user, TIMEOUT).await;
        let first = acquire("mia").await.unwrap();
        assert_eq!(acquire("mia").await.unwrap_err(), CapReached::Key(1));
        let second = acquire("ben").await.unwrap();
        assert_eq!(acquire("eve").await.unwrap_err(), CapReached::Total(2));
        drop(first);
        let third = acquire("eve").await.unwrap();
        drop((second, third));
        assert!(acquire("mia").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_user_gets_the_permit_when_it_is_released() {
        let permits = Permits::new(1, 1);
        let first = permits.try_acquire("mia").unwrap();
        let (second, ()) = tokio::join!(permits.acquire_within("mia", TIMEOUT), async {
            tokio::time::sleep(TIMEOUT / 5).await;
            drop(first);
        });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn with_no_time_to_wait_a_free_permit_is_taken_at_once() {
        let permits = Permits::new(1, 1);
        let permit = permits.acquire_within("mia", Duration::ZERO).await;
        assert!(permit.is_ok());
        let refused = permits.acquire_within("ben", Duration::ZERO).await;
        assert_eq!(refused.unwrap_err(), CapReached::Total(1));
    }
}
