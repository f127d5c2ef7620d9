//! Auth changes: the feed of revocations that every running gateway follows.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::id::{LoginId, UserId};

/// What a change affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// This login has ended.
    Login(LoginId),
    /// Tokens of this user below this generation are revoked.
    User(UserId, i64),
    /// The signing keys changed.
    Keys,
}

/// One change of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthChange {
    /// Position in commit order.
    pub revision: i64,
    /// What it affects.
    pub subject: Subject,
    /// When the last affected token has expired by itself.
    pub until: Timestamp,
}

/// Following the feed.
#[async_trait]
pub trait AuthChanges: Send + Sync {
    /// The changes after a revision, oldest first, at most a thousand.
    async fn changes_after(&self, revision: i64) -> Result<Vec<AuthChange>, StoreError>;
}
