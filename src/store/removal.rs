//! Removing what an account owns, a little at a time: everybody else writes in between.

use async_trait::async_trait;

use super::error::StoreError;
use super::users::ChangeUserError;
use crate::domain::act::Act;
use crate::domain::id::{SessionId, UserId};

/// Removing much.
#[async_trait]
pub trait Removal: Send + Sync {
    /// Is there more in this account's sessions than should go in one transaction?
    async fn owns_much(&self, user: UserId) -> Result<bool, StoreError>;

    /// Disables an account, and ends its sessions: what is in them can be removed then without
    /// anybody seeing half of it.
    async fn close_account(&self, user: UserId, act: &Act) -> Result<(), ChangeUserError>;

    /// Removes a part of what is in the ended sessions of an account; says how much, nothing if there
    /// is no more.
    async fn empty_account(&self, user: UserId) -> Result<u64, StoreError>;

    /// Removes some of the texts that an ended session was found by; says how many.
    async fn forget_texts(&self, session: SessionId) -> Result<u64, StoreError>;

    /// Removes some of the events of an ended session; says how many.
    async fn clear_journal(&self, session: SessionId) -> Result<u64, StoreError>;
}
