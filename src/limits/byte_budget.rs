//! Byte budget: bounds the bytes that many hold together.
//!
//! Used for agent events that are not committed yet, where a channel alone counts messages and one
//! message can be large, and for unfinished messages of all sockets.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{Semaphore, SemaphorePermit};

/// A number of bytes; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget {
    total: usize,
    free: Arc<Semaphore>,
}

/// Bytes that go back when this is dropped, unless they are kept.
#[must_use = "dropping it gives the bytes back"]
pub(crate) struct Taken<'a>(Option<SemaphorePermit<'a>>);

impl ByteBudget {
    pub(crate) fn new(total: usize) -> Self {
        Self {
            total,
            free: Arc::new(Semaphore::new(total)),
        }
    }

    /// Waits until so many are free. More than there are at all wait for all of them, or they would
    /// wait for ever. Cancel-safe: nothing is taken before [`Taken::keep`].
    pub(crate) async fn take(&self, bytes: usize) -> Taken<'_> {
        // Never closed.
        Taken(self.free.acquire_many(self.capped(bytes)).await.ok())
    }

    /// The same without waiting; none if so many are not free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Taken<'_>> {
        let permit = self.free.try_acquire_many(u32::try_from(bytes).ok()?);
        permit.ok().map(|permit| Taken(Some(permit)))
    }

    /// How many bytes were taken for messages of these sizes.
    pub(crate) fn taken_by(&self, sizes: impl IntoIterator<Item = usize>) -> usize {
        let taken = |bytes| self.capped(bytes) as usize;
        sizes.into_iter().map(taken).sum()
    }

    /// Gives back what was taken and kept.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.free.add_permits(bytes);
    }

    fn capped(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.min(self.total)).unwrap_or(u32::MAX)
    }
}

impl Taken<'_> {
    /// Keeps the bytes until they are given back by number.
    pub(crate) fn keep(self) {
        if let Some(permit) = self.0 {
            permit.forget();
        }
    }
}

/// A budget for each key within one for all; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct KeyedByteBudgets<K: Eq + Hash> {
    total: ByteBudget,
    per_key: usize,
    by_key: Arc<Mutex<HashMap<K, Weak<Semaphore>>>>,
}

/// A key's part of a budget for all. Kept while somebody has it.
#[derive(Clone, Debug)]
pub(crate) struct SharedByteBudget {
    total: ByteBudget,
    own: ByteBudget,
}

impl<K: Eq + Hash> KeyedByteBudgets<K> {
    pub(crate) fn new(total: usize, per_key: usize) -> Self {
        Self {
            total: ByteBudget::new(total),
            per_key,
            by_key: Arc::default(),
        }
    }

    pub(crate) fn of(&self, key: K) -> SharedByteBudget {
        let mut by_key = self.by_key.lock().unwrap_or_else(PoisonError::into_inner);
        let known = by_key.get(&key).and_then(Weak::upgrade);
        let free = known.unwrap_or_else(|| {
            by_key.retain(|_, budget| budget.strong_count() > 0);
            let free = Arc::new(Semaphore::new(self.per_key));
            by_key.insert(key, Arc::downgrade(&free));
            free
        });
        SharedByteBudget {
            total: self.total.clone(),
            own: ByteBudget {
                total: self.per_key,
                free,
            },
        }
    }
}

impl SharedByteBudget {
    /// Takes bytes until they are given back by number; false if the key's part or the whole is used up.
    pub(crate) fn try_take(&self, bytes: usize) -> bool {
        let Some(own) = self.own.try_take(bytes) else {
            return false;
        };
        let Some(total) = self.total.try_take(bytes) else {
            return false;
        };
        own.keep();
        total.keep();
        true
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.own.give_back(bytes);
        self.total.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_given_back_can_be_taken_again() {
        let budget = ByteBudget::new(10);
        let other = budget.clone();
        budget.try_take(10).unwrap().keep();
        assert!(other.try_take(1).is_none());
        other.give_back(10);
        drop(budget.try_take(10).unwrap());
        assert!(other.try_take(10).is_some(), "not kept, so given back");
        assert!(other.try_take(11).is_none());
        assert!(ByteBudget::new(0).try_take(1).is_none());
    }

    #[test]
    fn a_key_has_its_part_and_leaves_the_rest_to_others() {
        let budgets = KeyedByteBudgets::new(10, 6);
        let (mia, also_mia, ben) = (budgets.of("mia"), budgets.of("mia"), budgets.of("ben"));
        assert!(mia.try_take(4) && also_mia.try_take(2));
        assert!(!mia.try_take(1), "her part is used up");
        assert!(ben.try_take(4));
        assert!(!ben.try_take(1), "the whole is used up");
        mia.give_back(4);
        assert!(ben.try_take(2), "what was refused took nothing");
        drop((mia, also_mia));
        assert!(budgets.of("mia").try_take(2), "forgotten with the last one");
    }

    #[tokio::test]
    async fn a_message_larger_than_the_budget_takes_all_of_it() {
        let budget = ByteBudget::new(10);
        budget.take(25).await.keep();
        assert!(budget.try_take(1).is_none());
        let taken = budget.taken_by([25]);
        assert_eq!((taken, budget.taken_by([4, 25, 3])), (10, 17));
        budget.give_back(taken);
        assert!(budget.try_take(10).is_some());
    }
}
