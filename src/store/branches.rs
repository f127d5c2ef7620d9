//! Branches: sessions that start as a copy of another session's past.

use async_trait::async_trait;

use super::error::StoreError;
use super::journals::{CommandRecord, NewEvent, SessionSummary};
use super::sessions::NewSession;
use crate::domain::id::SessionId;

/// A branch to be stored.
#[derive(Clone, Debug)]
pub struct NewBranch {
    /// The new session.
    pub session: NewSession,
    /// The session it branches from.
    pub from: SessionId,
    /// Offset of the last shared event.
    pub upto: u64,
    /// Events of its own after that.
    pub closing: Vec<NewEvent>,
    /// Summary for lists.
    pub summary: SessionSummary,
    /// State after all of these events, serialised.
    pub snapshot: Vec<u8>,
    /// The command that asked for it, recorded in the source session.
    pub command: Option<CommandRecord>,
}

impl NewBranch {
    /// Offset of its last event.
    pub fn head(&self) -> u64 {
        self.upto + self.closing.len() as u64
    }
}

/// Why there is no branch. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum BranchError {
    /// There is no such session, or it has ended.
    #[error("there is no such session")]
    NotFound,
    /// The events at the cut were compacted meanwhile: read again and retry.
    #[error("the journal was tidied up meanwhile")]
    Changed,
    /// A command with the same key took effect meanwhile.
    #[error("that command has taken effect before")]
    Repeated,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Making branches.
#[async_trait]
pub trait Branches: Send + Sync {
    /// Bytes of a journal up to an offset.
    async fn journal_bytes(&self, session: SessionId, upto: u64) -> Result<u64, StoreError>;

    /// Stores a branch in one transaction, without its search texts.
    async fn branch(&self, new: &NewBranch) -> Result<(), BranchError>;

    /// Copies the next batch of search texts into a branch; false when done.
    async fn copy_texts(&self, branch: SessionId) -> Result<bool, StoreError>;
}
