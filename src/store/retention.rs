//! Retention: compacts journals, drops old events and expires sessions.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::journals::StoredEvent;
use crate::domain::audit::AuditEntry;
use crate::domain::id::SessionId;

/// A journal's size and age, without its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFacts {
    /// The session.
    pub session: SessionId,
    /// Offset of the last event.
    pub head: u64,
    /// Compacted up to this offset.
    pub compacted: u64,
    /// Time of the oldest stored event.
    pub oldest: Option<Timestamp>,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// When the session ended.
    pub ended_at: Option<Timestamp>,
    /// A branch whose search texts are not all copied yet.
    pub lacks_texts: bool,
    /// Ended, but still has search texts.
    pub has_old_texts: bool,
}

/// Compacting, dropping and expiring.
#[async_trait]
pub trait Retention: Send + Sync {
    /// All journals by session id, ended ones included, after a given one.
    async fn journals(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<JournalFacts>, StoreError>;

    /// Replaces the events after `after` up to `upto`, which counts as compacted then; with `None`
    /// they stay. Does nothing if another task compacted the journal meanwhile.
    async fn compact_journal(
        &self,
        session: SessionId,
        after: u64,
        upto: u64,
        events: Option<&[StoredEvent]>,
    ) -> Result<(), StoreError>;

    /// Offset of the last event beyond the newest `keep_bytes`.
    async fn last_beyond(
        &self,
        session: SessionId,
        keep_bytes: u64,
    ) -> Result<Option<u64>, StoreError>;

    /// Offset of the last event before a time.
    async fn last_before(
        &self,
        session: SessionId,
        moment: Timestamp,
    ) -> Result<Option<u64>, StoreError>;

    /// Drops events up to an offset, as far as a snapshot covers them; returns how many.
    async fn drop_events(&self, session: SessionId, upto: u64) -> Result<u64, StoreError>;

    /// Ends a session, unless it changed since a time; false if it did.
    async fn expire_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Deletes a session with everything in it, unless it changed since a time; false if it did.
    async fn remove_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;
}
