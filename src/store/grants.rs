//! Who else may come into a session, as stored.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::act::Act;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};

/// What one user was granted in one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    /// To whom.
    pub user: UserId,
    /// Their name.
    pub username: Username,
    /// What.
    pub role: GrantRole,
    /// By whom.
    pub granted_by: UserId,
    /// Since when.
    pub created_at: Timestamp,
}

/// Why nothing was granted.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// There is none such, or it is not the owner's who wants to share it.
    #[error("there is no such session")]
    NoSuchSession,
    /// Nobody has that name.
    #[error("there is no user of that name")]
    NoSuchUser,
    /// They may not even log in.
    #[error("that account is disabled")]
    DisabledUser,
    /// It is theirs already.
    #[error("the session belongs to that user")]
    OwnSession,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Sharing sessions, and taking that back.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Everybody who was granted something in a session, by name. Also those who are disabled: they
    /// cannot come until they are enabled again.
    async fn grants(&self, session: SessionId) -> Result<Vec<GrantRow>, StoreError>;

    /// Grants somebody a role in a session of that owner, in place of the one they had.
    async fn share_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        role: GrantRole,
        act: &Act,
    ) -> Result<GrantRow, ShareError>;

    /// Takes back what somebody was granted in a session of that owner; false if there was nothing.
    async fn unshare_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        act: &Act,
    ) -> Result<bool, StoreError>;
}
