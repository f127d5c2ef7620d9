//! Account removal: deletes what a large account owns in batches, so that others can write in between.

use async_trait::async_trait;

use super::error::StoreError;
use super::users::ChangeUserError;
use crate::domain::audit::AuditEntry;
use crate::domain::id::{SessionId, UserId};

/// Removing large accounts and sessions.
#[async_trait]
pub trait AccountRemoval: Send + Sync {
    /// Do the account's sessions hold more than one transaction should delete?
    async fn is_large_account(&self, user: UserId) -> Result<bool, StoreError>;

    /// Disables an account and ends its sessions, so that nobody sees them half deleted.
    async fn disable_and_end_sessions(
        &self,
        user: UserId,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError>;

    /// Deletes one batch from the account's ended sessions; returns how many rows, 0 if none are left.
    async fn remove_account_batch(&self, user: UserId) -> Result<u64, StoreError>;

    /// Deletes one batch of an ended session's search texts; returns how many.
    async fn remove_text_batch(&self, session: SessionId) -> Result<u64, StoreError>;

    /// Deletes one batch of an ended session's events; returns how many.
    async fn remove_event_batch(&self, session: SessionId) -> Result<u64, StoreError>;
}
