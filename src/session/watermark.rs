//! Watermark: a number that only grows, and tasks that wait for it to grow. Used for a journal's head
//! and for versions.
//!
//! Every live session has some, so it is small; it moves with every commit, so it is cheap. A task
//! that was not waiting when it moved still sees the move.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Watermark {
    level: AtomicU64,
    risen: Notify,
}

impl Watermark {
    pub(super) fn new(level: u64) -> Self {
        Self {
            level: AtomicU64::new(level),
            risen: Notify::new(),
        }
    }

    pub(super) fn level(&self) -> u64 {
        self.level.load(Ordering::Acquire)
    }

    /// Raises it to `level` and wakes all waiting tasks.
    pub(super) fn rise_to(&self, level: u64) {
        self.level.fetch_max(level, Ordering::AcqRel);
        self.risen.notify_waiters();
    }

    pub(super) fn rise(&self) {
        self.level.fetch_add(1, Ordering::AcqRel);
        self.risen.notify_waiters();
    }

    /// Returns once it is beyond a level. Cancel-safe.
    pub(super) async fn beyond(&self, level: u64) {
        loop {
            // Before the check: a move after this line wakes it.
            let risen = self.risen.notified();
            if self.level() > level {
                return;
            }
            risen.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiting_task_is_woken_by_a_move_and_only_by_it() {
        let mark = Watermark::new(3);
        mark.beyond(2).await;
        let mut waiting = Box::pin(mark.beyond(3));
        let early = tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await;
        assert!(early.is_err());
        mark.rise_to(5);
        waiting.await;
        assert_eq!(mark.level(), 5);
    }

    #[tokio::test]
    async fn a_move_is_seen_also_by_a_late_task() {
        let mark = Watermark::default();
        let mut waiting = Box::pin(mark.beyond(0));
        let early = tokio::time::timeout(std::time::Duration::ZERO, &mut waiting).await;
        assert!(early.is_err());
        mark.rise();
        waiting.await;
        mark.beyond(0).await;
        assert_eq!(mark.level(), 1);
    }

    #[test]
    fn a_watermark_never_falls() {
        let mark = Watermark::new(3);
        mark.rise_to(2);
        assert_eq!(mark.level(), 3);
    }
}
