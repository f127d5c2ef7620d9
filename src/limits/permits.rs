//! Permits: cap how many hold something at the same time, for each key and in all.
//!
//! Used for connections, agents, uploads, branches, searches and reads of journals. Who waits is served
//! in the order of arrival, and holds nothing of the total while it waits for its own key. Not for the
//! password hasher: its callers have no key and wait without a deadline, which is a plain semaphore.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The caps and what is taken of them; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Permits<K: Eq + Hash>(Arc<PermitState<K>>);

#[derive(Debug)]
struct PermitState<K> {
    max_total: usize,
    max_per_key: usize,
    total: Arc<Semaphore>,
    /// Keys are remembered only while they hold something or wait.
    by_key: Mutex<HashMap<K, Arc<Semaphore>>>,
}

/// Held until dropped.
#[derive(Debug)]
#[must_use = "dropping the permit releases it"]
pub(crate) struct Permit<K: Eq + Hash> {
    _total: OwnedSemaphorePermit,
    _own: Option<OfKey<K>>,
}

/// A key's semaphore, remembered until the last one is dropped.
#[derive(Debug)]
struct OfKey<K: Eq + Hash> {
    shared: Arc<PermitState<K>>,
    key: K,
    /// `None` while it is waited for, and once it was given back.
    permit: Option<OwnedSemaphorePermit>,
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
        let max_total = total.min(Semaphore::MAX_PERMITS);
        Self(Arc::new(PermitState {
            max_total,
            max_per_key: per_key.min(Semaphore::MAX_PERMITS),
            total: Arc::new(Semaphore::new(max_total)),
            by_key: Mutex::default(),
        }))
    }

    /// A permit now or not at all. Without a key only the total applies.
    pub(crate) fn try_acquire(&self, key: impl Into<Option<K>>) -> Result<Permit<K>, CapReached> {
        let shared = &self.0;
        let total = Arc::clone(&shared.total).try_acquire_owned();
        let total = total.map_err(|_| CapReached::Total(shared.max_total))?;
        let own = match key.into() {
            None => None,
            Some(key) => {
                let (semaphore, mut own) = self.of_key(key);
                let permit = semaphore.try_acquire_owned();
                own.permit = Some(permit.map_err(|_| CapReached::Key(shared.max_per_key))?);
                Some(own)
            }
        };
        Ok(Permit {
            _total: total,
            _own: own,
        })
    }

    /// Waits for a permit until the timeout; then says which cap was in the way.
    pub(crate) async fn acquire_within(
        &self,
        key: K,
        timeout: Duration,
    ) -> Result<Permit<K>, CapReached> {
        let shared = &self.0;
        let (semaphore, mut own) = self.of_key(key);
        let mut refused = CapReached::Key(shared.max_per_key);
        let acquiring = async {
            own.permit = semaphore.acquire_owned().await.ok();
            refused = CapReached::Total(shared.max_total);
            Arc::clone(&shared.total).acquire_owned().await
        };
        match tokio::time::timeout(timeout, acquiring).await {
            Ok(Ok(total)) => Ok(Permit {
                _total: total,
                _own: Some(own),
            }),
            Ok(Err(_)) | Err(_) => Err(refused),
        }
    }

    /// How many are held, and how many there are.
    pub(crate) fn usage(&self) -> (usize, usize) {
        let PermitState {
            max_total, total, ..
        } = &*self.0;
        (max_total - total.available_permits(), *max_total)
    }

    fn of_key(&self, key: K) -> (Arc<Semaphore>, OfKey<K>) {
        let shared = Arc::clone(&self.0);
        let mut by_key = shared.lock();
        let new = || Arc::new(Semaphore::new(shared.max_per_key));
        let semaphore = Arc::clone(by_key.entry(key.clone()).or_insert_with(new));
        drop(by_key);
        let permit = None;
        (
            semaphore,
            OfKey {
                shared,
                key,
                permit,
            },
        )
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> usize {
        self.0.lock().len()
    }
}

impl<K> PermitState<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Arc<Semaphore>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash> Drop for OfKey<K> {
    fn drop(&mut self) {
        let mut by_key = self.shared.lock();
        drop(self.permit.take());
        // A holder's or waiter's permit refers to the semaphore, too.
        if by_key
            .get(&self.key)
            .is_some_and(|semaphore| Arc::strong_count(semaphore) == 1)
        {
            by_key.remove(&self.key);
        }
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

    #[tokio::test(start_paused = true)]
    async fn a_key_with_many_waiters_leaves_the_rest_of_the_total_to_others() {
        let permits = Permits::new(3, 2);
        let held = [(); 2].map(|()| permits.try_acquire("mia").unwrap());
        let waiting = (0..50).map(|_| permits.acquire_within("mia", TIMEOUT));
        let ((), refused) = tokio::join!(
            async {
                tokio::task::yield_now().await;
                drop(permits.acquire_within("ben", TIMEOUT).await.unwrap());
            },
            futures_util::future::join_all(waiting),
        );
        assert!(refused.iter().all(Result::is_err));
        drop((held, refused));
        assert_eq!((permits.usage(), permits.keys()), ((0, 3), 0));
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
