//! Journals, as stored: events in their order, and who may add to them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::search::SearchText;
use super::sessions::NewSession;
use crate::domain::act::Act;
use crate::domain::id::{Epoch, SessionId};

/// What is read of a journal at once ends with the event that goes beyond this: events are of very
/// different length, and a count alone bounds nothing.
pub const PAGE_BYTES: usize = 1024 * 1024;

/// An event to be stored.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The event, serialised.
    pub body: Vec<u8>,
}

/// An event, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// Whose journal it was found in.
    pub session: SessionId,
    /// Its place.
    pub offset: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The event, serialised.
    pub body: Vec<u8>,
}

/// What lists of sessions show; kept with the journal's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many utterances.
    pub messages: u64,
    /// The newest one of a human, shortened.
    pub last_prompt: Option<String>,
    /// A title that the agent gave.
    pub title: Option<String>,
    /// Is a run under way?
    pub running: bool,
    /// How many questions wait for an answer.
    pub waiting: u32,
    /// How many prompts wait for their turn.
    pub queued: u32,
}

/// The outcome of a command that shall take effect once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The key that the client chose.
    pub key: String,
    /// Of the command: another one under the same key is refused.
    pub digest: [u8; 32],
    /// What the client was told.
    pub outcome: Vec<u8>,
}

/// Events to be added to one journal.
#[derive(Clone, Debug)]
pub struct Append {
    /// Whose journal.
    pub session: SessionId,
    /// The fencing number of whoever adds.
    pub term: i64,
    /// The session itself, if it is not stored yet.
    pub create: Option<NewSession>,
    /// The offset of the last event before.
    pub after: u64,
    /// The events.
    pub events: Vec<NewEvent>,
    /// What lists show from now on, if that changes.
    pub summary: Option<Summary>,
    /// The command that these are the first effect of.
    pub command: Option<CommandRecord>,
    /// What the audit log says about it.
    pub acts: Vec<Act>,
    /// What the session shall be found by from now on, besides what it had.
    pub texts: Vec<SearchText>,
}

impl Append {
    /// The events, each at its place.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (SessionId, StoredEvent)> {
        let numbered = (self.after + 1..).zip(&self.events);
        numbered.map(|(offset, event)| {
            let event = StoredEvent {
                session: self.session,
                offset,
                at: event.at,
                body: event.body.clone(),
            };
            (self.session, event)
        })
    }
}

/// Why events were not added.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum AppendError {
    /// Somebody else writes this journal now, or the session has ended.
    #[error("another node writes this journal now")]
    Fenced,
}

/// The right to write a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The fencing number.
    pub term: i64,
    /// The offset of the last event.
    pub head: u64,
    /// The counting of the offsets.
    pub epoch: Epoch,
}

/// Why a journal cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// There is no such session, or it has ended.
    #[error("there is no such session")]
    NotFound,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A state that stands for all events up to an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Up to where.
    pub offset: u64,
    /// The state, serialised.
    pub body: Vec<u8>,
}

/// Writing and reading journals.
#[async_trait]
pub trait Journals: Send + Sync {
    /// Takes the right to write a journal from whoever had it.
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError>;

    /// Adds to many journals in one transaction; each by itself is added whole or not at all.
    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError>;

    /// The events after an offset, in order: at most so many, and no more than [`PAGE_BYTES`] hold
    /// (but one, however long it is). Nothing comes only if there is nothing.
    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// The last events before an offset, in order; bounded as above.
    async fn events_before(
        &self,
        session: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// The newest snapshot.
    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError>;

    /// Stores a snapshot in place of the one before.
    async fn save_snapshot(
        &self,
        session: SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError>;

    /// What a command under that key came to.
    async fn command(
        &self,
        session: SessionId,
        key: &str,
    ) -> Result<Option<CommandRecord>, StoreError>;
}
