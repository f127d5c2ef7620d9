//! Journals: append-only events per session, leases to write them, snapshots.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::search::SearchText;
use super::sessions::NewSession;
use crate::domain::audit::AuditEntry;
use crate::domain::id::{Epoch, SessionId};
use crate::domain::idempotency::IdempotencyKey;

/// A page of a journal ends with the event that crosses this size: events differ too much in length
/// for a count to bound a page.
pub const PAGE_BYTES: usize = 1024 * 1024;

/// A new event.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// When it happened.
    pub at: Timestamp,
    /// The event, serialised.
    pub body: Vec<u8>,
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The session.
    pub session: SessionId,
    /// Its offset.
    pub offset: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The event, serialised.
    pub body: Vec<u8>,
}

/// What session lists show; stored beside the journal's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// Number of messages.
    pub messages: u64,
    /// The newest prompt, shortened.
    pub last_prompt: Option<String>,
    /// Title given by the agent.
    pub title: Option<String>,
    /// Is a run active?
    pub running: bool,
    /// Open questions.
    pub waiting: u32,
    /// Queued prompts.
    pub queued: u32,
    /// Bytes by which the journal has grown since the summary before.
    pub added_bytes: u64,
}

/// A command that must take effect once, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// The client's key, with the digest of the command: another command under the same key is refused.
    pub idempotency_key: IdempotencyKey,
    /// The reply to the client, serialised.
    pub outcome: Vec<u8>,
}

/// Events to append to one journal.
#[derive(Clone, Debug)]
pub struct Append {
    /// The session.
    pub session: SessionId,
    /// Fencing number of the writer.
    pub term: i64,
    /// The session, if it is not stored yet.
    pub create: Option<NewSession>,
    /// Offset of the last event before these.
    pub after: u64,
    /// The events.
    pub events: Vec<NewEvent>,
    /// The new summary, if it changes.
    pub summary: Option<SessionSummary>,
    /// The command that caused these events.
    pub command: Option<CommandRecord>,
    /// Audit entries to write with the events.
    pub audit_entries: Vec<AuditEntry>,
    /// Search texts to add.
    pub texts: Vec<SearchText>,
}

impl Append {
    pub(super) fn numbered(&self) -> impl Iterator<Item = StoredEvent> {
        number(self.session, self.after, &self.events)
    }
}

pub(super) fn number(
    session: SessionId,
    after: u64,
    events: &[NewEvent],
) -> impl Iterator<Item = StoredEvent> {
    let numbered = (after + 1..).zip(events);
    numbered.map(move |(offset, event)| StoredEvent {
        session,
        offset,
        at: event.at,
        body: event.body.clone(),
    })
}

/// Why an append was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum AppendError {
    /// Another writer has a newer term, or the session has ended.
    #[error("another node writes this journal now")]
    Fenced,
}

/// A claimed journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Fencing number.
    pub term: i64,
    /// Offset of the last event.
    pub head: u64,
    /// Epoch of the offsets.
    pub epoch: Epoch,
}

/// Why a journal was not claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// There is no such session, or it has ended.
    #[error("there is no such session")]
    NotFound,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// State of a session at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Offset of the last event in it.
    pub offset: u64,
    /// The state, serialised.
    pub body: Vec<u8>,
}

/// Writing and reading journals.
#[async_trait]
pub trait Journals: Send + Sync {
    /// Claims a journal; the former writer is fenced.
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError>;

    /// Appends to many journals in one transaction. Each append succeeds or is refused on its own.
    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError>;

    /// Events after an offset, in order: at most `limit`, and at most [`PAGE_BYTES`] except for a
    /// single longer event. Empty only at the end.
    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError>;

    /// The offset after which the last `count` stored events before `before` begin; reads no body.
    async fn offset_before(
        &self,
        session: SessionId,
        before: u64,
        count: u32,
    ) -> Result<u64, StoreError>;

    /// The newest snapshot.
    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError>;

    /// Replaces the snapshot, unless the stored one is newer.
    async fn save_snapshot(
        &self,
        session: SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError>;

    /// The recorded command with that key.
    async fn command(
        &self,
        session: SessionId,
        key: &str,
    ) -> Result<Option<CommandRecord>, StoreError>;
}
