//! A session that begins as a copy of another one's past.

use async_trait::async_trait;

use super::error::StoreError;
use super::journals::{CommandRecord, NewEvent, Summary};
use super::sessions::NewSession;
use crate::domain::id::SessionId;

/// A branch to be stored.
#[derive(Clone, Debug)]
pub struct NewBranch {
    /// The new session.
    pub session: NewSession,
    /// The session whose past it has.
    pub from: SessionId,
    /// The offset of the last event that both have.
    pub upto: u64,
    /// Its own events after that one.
    pub closing: Vec<NewEvent>,
    /// What lists show.
    pub summary: Summary,
    /// The state after all of these events, serialised.
    pub snapshot: Vec<u8>,
    /// The command that asked for it, kept with the session that it was said in.
    pub command: Option<CommandRecord>,
}

impl NewBranch {
    /// The offset of its last event.
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
    /// The events around the cut were joined since somebody looked: worth another look.
    #[error("the journal was tidied up meanwhile")]
    Changed,
    /// A command under that key has taken effect meanwhile.
    #[error("that command has taken effect before")]
    Repeated,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Making branches.
#[async_trait]
pub trait Branches: Send + Sync {
    /// How much there is to copy of a journal up to an offset.
    async fn journal_bytes(&self, session: SessionId, upto: u64) -> Result<u64, StoreError>;

    /// Stores a branch with everything in it, in one transaction; but for what it is found by.
    async fn branch(&self, new: &NewBranch) -> Result<(), BranchError>;

    /// Lets a branch be found by some more of its past; false if there is no more of it.
    async fn copy_texts(&self, branch: SessionId) -> Result<bool, StoreError>;
}
