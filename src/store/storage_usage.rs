//! Storage usage: how much of the storage one user takes.

use async_trait::async_trait;

use super::error::StoreError;
use crate::domain::id::{SessionId, UserId};

/// How much a user stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserUsage {
    /// Sessions that have not ended.
    pub sessions: u64,
    /// Journals, also those of ended sessions that are still stored. Lags while an answer streams.
    pub journal_bytes: u64,
    /// Uploaded files.
    pub attachment_bytes: u64,
}

/// Measuring what users store.
#[async_trait]
pub trait Usage: Send + Sync {
    /// What a user stores.
    async fn usage(&self, user: UserId) -> Result<UserUsage, StoreError>;

    /// Measures a journal whose recorded size may be too small, because a gateway ended in the middle
    /// of a run.
    async fn measure_journal(&self, session: SessionId) -> Result<(), StoreError>;
}
