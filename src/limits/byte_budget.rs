//! Byte budget: bounds the bytes that many hold together.
//!
//! Used for agent events that are not committed yet, where a channel alone counts messages and one
//! message can be large, and for unfinished messages of all sockets.

use std::sync::Arc;

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
