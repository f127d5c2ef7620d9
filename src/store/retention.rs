//! What becomes of old events and old sessions.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::journals::StoredEvent;
use crate::domain::act::Act;
use crate::domain::id::SessionId;

/// What is known about a journal without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFacts {
    /// Whose journal.
    pub session: SessionId,
    /// The offset of the last event.
    pub head: u64,
    /// Up to where its pieces were joined.
    pub compacted: u64,
    /// When the oldest event that is kept happened.
    pub oldest: Option<Timestamp>,
    /// When something last happened in the session.
    pub updated_at: Timestamp,
    /// When the session was ended.
    pub ended_at: Option<Timestamp>,
    /// It is a branch that is not found by all of its past yet.
    pub lacks_texts: bool,
    /// It has ended, and still has texts that it was found by.
    pub has_old_texts: bool,
}

/// Making room.
#[async_trait]
pub trait Retention: Send + Sync {
    /// All journals in the order of their sessions' ids, ended ones included, after one of them.
    async fn journals(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<JournalFacts>, StoreError>;

    /// Puts events in the place of all those after `after` up to `upto`, which counts as compacted
    /// from then on; without any, they stay as they are. Does nothing if it was compacted by somebody else meanwhile.
    async fn compact_journal(
        &self,
        session: SessionId,
        after: u64,
        upto: u64,
        events: Option<&[StoredEvent]>,
    ) -> Result<(), StoreError>;

    /// The last event that does not fit any more, if only so many bytes are kept from the newest on.
    async fn last_beyond(
        &self,
        session: SessionId,
        keep_bytes: u64,
    ) -> Result<Option<u64>, StoreError>;

    /// The last event before a moment.
    async fn last_before(
        &self,
        session: SessionId,
        moment: Timestamp,
    ) -> Result<Option<u64>, StoreError>;

    /// Drops events up to an offset, as far as a snapshot stands for them; says how many.
    async fn drop_events(&self, session: SessionId, upto: u64) -> Result<u64, StoreError>;

    /// Ends a session, unless something happened in it since a moment; false if so.
    async fn expire_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Removes a session with everything in it, unless something happened in it since a moment;
    /// false if so.
    async fn remove_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        act: &Act,
    ) -> Result<bool, StoreError>;
}
