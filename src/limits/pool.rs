//! Bytes that many hold together, of which there are only so many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes, shared by whoever has a clone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    most: u64,
    taken: Arc<AtomicU64>,
}

impl Pool {
    pub(crate) fn new(most: u64) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes some, even beyond the end; false if it came to that. To be given back in either case.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.most
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let pool = Pool::new(10);
        let other = pool.clone();
        assert!(pool.take(10));
        assert!(!other.take(1));
        other.give_back(1);
        pool.give_back(10);
        assert!(other.take(10));
    }
}
