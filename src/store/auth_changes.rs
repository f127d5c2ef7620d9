//! What running gateways must learn within a second: the feed behind the revocation registry.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::id::{LoginId, UserId};

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// This login has ended.
    Login(LoginId),
    /// Tokens of this user from before this generation are worthless.
    User(UserId, i64),
    /// The signing keys are others now.
    Keys,
}

/// One change, in the order they were committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its place in the order.
    pub revision: i64,
    /// What it is about.
    pub subject: Subject,
    /// When the last token that it concerns has expired anyway.
    pub until: Timestamp,
}

/// Following the feed.
#[async_trait]
pub trait Changes: Send + Sync {
    /// The changes after a revision, oldest first, at most a thousand.
    async fn changes_after(&self, revision: i64) -> Result<Vec<Change>, StoreError>;
}
