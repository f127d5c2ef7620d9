//! Grants: roles that owners gave other users in their sessions.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::audit::AuditEntry;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};

/// One user's role in one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// The user.
    pub user: UserId,
    /// The user's name.
    pub username: Username,
    /// The role.
    pub role: GrantRole,
    /// The owner who granted it.
    pub granted_by: UserId,
    /// When it was granted.
    pub created_at: Timestamp,
}

/// Why a session was not shared.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// No such session of this owner.
    #[error("there is no such session")]
    NoSuchSession,
    /// No account has that name.
    #[error("there is no user of that name")]
    NoSuchUser,
    /// The account is disabled.
    #[error("that account is disabled")]
    DisabledUser,
    /// The user owns the session.
    #[error("the session belongs to that user")]
    OwnSession,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sharing and unsharing sessions.
#[async_trait]
pub trait Grants: Send + Sync {
    /// All grants of a session by user name, disabled users included (they cannot join until enabled).
    async fn grants(&self, session: SessionId) -> Result<Vec<GrantRow>, StoreError>;

    /// Grants a user a role in a session of that owner, replacing an earlier one.
    async fn share_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        role: GrantRole,
        entry: &AuditEntry,
    ) -> Result<GrantRow, ShareError>;

    /// Revokes a user's grant in a session of that owner; false if there was none.
    async fn unshare_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;
}
