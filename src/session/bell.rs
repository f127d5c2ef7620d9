//! A bell that can be heard also by those who were not listening when it rang.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// How often it rang, and who waits for the next time.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rings: AtomicU64,
    rang: Notify,
}

impl Bell {
    pub(super) fn rings(&self) -> u64 {
        self.rings.load(Ordering::Acquire)
    }

    pub(super) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        self.rang.notify_waiters();
    }

    /// Returns once it rang more often than that. Cancel-safe.
    pub(super) async fn beyond(&self, heard: u64) {
        loop {
            // Made before the look: a ring after this line is heard.
            let rang = self.rang.notified();
            if self.rings() > heard {
                return;
            }
            rang.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_ring_is_heard_also_by_who_comes_late() {
        let bell = Bell::default();
        let mut waiting = Box::pin(bell.beyond(0));
        let early = tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await;
        assert!(early.is_err());
        bell.ring();
        waiting.await;
        bell.beyond(0).await;
        assert_eq!(bell.rings(), 1);
    }
}
