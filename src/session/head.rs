//! The offset of a journal's last committed event, and the wait for it to grow.
//!
//! A number and a list of who waits: every open session has one, so it is small, and it moves with
//! every commit, so it is quick.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The last offset of one journal.
#[derive(Debug, Default)]
pub(super) struct Head {
    offset: AtomicU64,
    grown: Notify,
}

impl Head {
    pub(super) fn new(offset: u64) -> Self {
        Self {
            offset: AtomicU64::new(offset),
            grown: Notify::new(),
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset.load(Ordering::Acquire)
    }

    /// Moves it, and wakes whoever waits for that.
    pub(super) fn move_to(&self, offset: u64) {
        self.offset.store(offset, Ordering::Release);
        self.grown.notify_waiters();
    }

    /// Returns once it is beyond an offset. Cancel-safe.
    pub(super) async fn beyond(&self, offset: u64) {
        loop {
            // Made before the look: whatever moves it after this line is heard.
            let grown = self.grown.notified();
            if self.offset() > offset {
                return;
            }
            grown.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_woken_by_the_move_and_only_by_it() {
        let head = Head::new(3);
        head.beyond(2).await;
        let mut waiting = Box::pin(head.beyond(3));
        let early = tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await;
        assert!(early.is_err());
        head.move_to(4);
        waiting.await;
        assert_eq!(head.offset(), 4);
    }
}
