//! Journal: one writer, many cursors; no event is visible before it is committed.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::time::Instant;

use super::history::ReadError;
use super::quotas::JournalUsage;
use super::read_permits::ReadPermits;
use super::search_text::searchable;
use super::tail::{Entry, Tail, Tails};
use super::watermark::Watermark;
use crate::domain::audit::AuditEntry;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::store::{
    Append, CommandRecord, NewEvent, NewSession, SessionSummary, Store, StoreError, StoredEvent,
};

mod group_commit;

pub(crate) use group_commit::{CommitLoop, Committer, RecordError};

/// Events that a cursor reads from the store at once.
const PAGE: u32 = 500;

/// The reading side of a journal. Clones share it.
#[derive(Clone)]
pub(crate) struct Journal(Arc<JournalShared>);

struct JournalShared {
    session: SessionId,
    epoch: Epoch,
    head: Watermark,
    tail: Arc<Tail>,
    store: Arc<dyn Store>,
    read_permits: ReadPermits,
}

pub(crate) enum JournalRead {
    /// The next entries, without a hole.
    Entries(Vec<Arc<Entry>>),
    /// The next events are not stored any more.
    Gone,
}

impl Journal {
    pub(crate) fn new(
        session: SessionId,
        epoch: Epoch,
        head: u64,
        store: Arc<dyn Store>,
        read_permits: ReadPermits,
    ) -> Self {
        Self(Arc::new(JournalShared {
            session,
            epoch,
            head: Watermark::new(head),
            tail: Arc::new(Tail::default()),
            store,
            read_permits,
        }))
    }

    pub(crate) fn session(&self) -> SessionId {
        self.0.session
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    pub(crate) fn head(&self) -> u64 {
        self.0.head.level()
    }

    /// Returns once there is an event after the offset. Cancel-safe.
    pub(crate) async fn wait_beyond(&self, offset: u64) {
        self.0.head.beyond(offset).await;
    }

    /// The readable stored events after an offset, in order; may have holes.
    pub(super) async fn stored_after(
        &self,
        offset: u64,
        most: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let store = &self.0.store;
        let stored = store.events_after(self.0.session, offset, most).await?;
        Ok(stored.iter().filter_map(read).collect())
    }

    /// True if everything after an offset is still there; false also if that cannot be found out.
    pub(crate) async fn has_all_after(&self, offset: u64, reader: UserId) -> bool {
        if self.0.tail.after(offset, 1).is_some() || self.head() <= offset {
            return true;
        }
        let Ok(_permit) = self.0.read_permits.for_request(reader).await else {
            return false;
        };
        let next = self.stored_after(offset, 1).await;
        next.is_ok_and(|next| {
            let first = next.first().map(|entry| entry.recorded.first());
            first == Some(offset + 1)
        })
    }

    /// The entries after an offset, from the tail or else from the store.
    pub(crate) async fn after(
        &self,
        offset: u64,
        most: usize,
        reader: UserId,
    ) -> Result<JournalRead, ReadError> {
        if self.head() <= offset {
            return Ok(JournalRead::Entries(Vec::new()));
        }
        if let Some(entries) = self.0.tail.after(offset, most) {
            return Ok(JournalRead::Entries(entries));
        }
        let _permit = self.0.read_permits.for_connection(reader).await?;
        let limit = PAGE.min(u32::try_from(most).unwrap_or(PAGE));
        let stored = self
            .0
            .store
            .events_after(self.0.session, offset, limit)
            .await?;
        let mut entries = Vec::with_capacity(stored.len());
        let mut expected = offset + 1;
        for event in stored {
            // A joined chunk stands for the offsets of all its parts.
            let Some(entry) = read(&event).filter(|entry| entry.recorded.first() == expected)
            else {
                return Ok(JournalRead::Gone);
            };
            expected = entry.recorded.offset + 1;
            entries.push(Arc::new(entry));
        }
        Ok(if entries.is_empty() {
            JournalRead::Gone
        } else {
            JournalRead::Entries(entries)
        })
    }
}

/// Reads a stored event. An unreadable one counts as not stored.
pub(super) fn read(stored: &StoredEvent) -> Option<Entry> {
    let bytes = stored.body.len();
    let event: Event = serde_json::from_slice(&stored.body)
        .inspect_err(|error| tracing::error!(%error, session.id = %stored.session, offset = stored.offset, "a stored event of this session cannot be read"))
        .ok()?;
    let recorded = Recorded {
        offset: stored.offset,
        at: stored.at,
        event,
    };
    Some(Entry::new(stored.session, recorded, bytes))
}

pub(super) fn stored(session: SessionId, recorded: &Recorded) -> StoredEvent {
    StoredEvent {
        session,
        offset: recorded.offset,
        at: recorded.at,
        body: body(&recorded.event),
    }
}

pub(super) fn body(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).expect("an event is plain JSON")
}

/// The writing side of a journal; owned by the session's router.
pub(crate) struct Writer {
    journal: Journal,
    term: i64,
    /// The row to create with the first append.
    create: Option<NewSession>,
    head: u64,
    /// The answer to the last commit was lost: its events may or may not be stored.
    in_doubt: bool,
    committer: Committer,
    tails: Arc<Tails>,
    /// The bytes of the owner's journals.
    usage: Arc<JournalUsage>,
    /// Bytes that no summary has recorded yet.
    unrecorded: u64,
}

impl Writer {
    pub(crate) fn new(
        journal: Journal,
        term: i64,
        create: Option<NewSession>,
        (committer, tails): (Committer, Arc<Tails>),
        usage: Arc<JournalUsage>,
    ) -> Self {
        let head = journal.head();
        Self {
            journal,
            term,
            create,
            head,
            in_doubt: false,
            committer,
            tails,
            usage,
            unrecorded: 0,
        }
    }

    /// The bytes of all journals of the owner.
    pub(super) fn usage(&self) -> &JournalUsage {
        &self.usage
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.create.is_none()
    }

    /// True if the last commit may or may not have happened.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Commits events, unless that cannot begin before `until`; then every cursor can see them. After
    /// a failure the same events can be recorded again.
    pub(crate) async fn record(
        &mut self,
        events: &[Event],
        at: Timestamp,
        mut summary: Option<SessionSummary>,
        command: Option<CommandRecord>,
        acts: Vec<AuditEntry>,
        until: Option<Instant>,
    ) -> Result<Vec<Arc<Entry>>, RecordError> {
        let bodies: Vec<NewEvent> = events
            .iter()
            .map(|event| NewEvent {
                at,
                body: body(event),
            })
            .collect();
        let sizes: Vec<usize> = bodies.iter().map(|event| event.body.len()).collect();
        let added: u64 = sizes.iter().map(|size| *size as u64).sum();
        let recorded = summary.as_mut().map(|summary| {
            summary.added_bytes = self.unrecorded + added;
            summary.added_bytes
        });
        let tried = self.in_doubt.then(|| bodies.clone());
        let append = Append {
            session: self.journal.session(),
            term: self.term,
            create: self.create.clone(),
            after: self.head,
            events: bodies,
            summary,
            command,
            audit_entries: acts,
            texts: searchable(self.head, events),
        };
        match self.committer.commit(append, until).await {
            Ok(()) => {}
            // The head moved because the in-doubt commit had happened.
            Err(RecordError::Fenced) if self.are_stored(tried.as_deref()).await? => {}
            Err(error) => {
                self.in_doubt |= matches!(error, RecordError::Store(_));
                return Err(error);
            }
        }
        self.in_doubt = false;
        self.create = None;
        self.usage.add(added);
        match recorded {
            Some(bytes) => {
                self.usage.recorded(bytes);
                self.unrecorded = 0;
            }
            None => self.unrecorded += added,
        }
        Ok(self.publish(events, &sizes, at))
    }

    /// True if exactly these events follow our head. They contain ids, so another writer's events
    /// cannot be equal.
    async fn are_stored(&self, tried: Option<&[NewEvent]>) -> Result<bool, RecordError> {
        let Some(tried) = tried.filter(|tried| !tried.is_empty()) else {
            return Ok(false);
        };
        let (store, session) = (&self.journal.0.store, self.journal.session());
        let (mut rest, mut after) = (tried, self.head);
        // Page by page, and one more event to see that nothing follows.
        loop {
            let limit = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let page = store.events_after(session, after, limit.saturating_add(1));
            let page = page.await.map_err(Arc::new)?;
            let Some(last) = page.last() else {
                return Ok(rest.is_empty());
            };
            let same = |(stored, tried): (&StoredEvent, &NewEvent)| stored.body == tried.body;
            if page.len() > rest.len() || !page.iter().zip(rest).all(same) {
                return Ok(false);
            }
            (rest, after) = (&rest[page.len()..], last.offset);
        }
    }

    fn publish(&mut self, events: &[Event], sizes: &[usize], at: Timestamp) -> Vec<Arc<Entry>> {
        let now = std::time::Instant::now();
        let entries: Vec<Arc<Entry>> = (self.head + 1..)
            .zip(events.iter().zip(sizes))
            .map(|(offset, (event, bytes))| {
                let recorded = Recorded {
                    offset,
                    at,
                    event: event.clone(),
                };
                let entry = Entry::new(self.journal.session(), recorded, *bytes);
                Arc::new(entry.committed_at(now))
            })
            .collect();
        self.tails.append(&self.journal.0.tail, &entries);
        self.head += entries.len() as u64;
        self.journal.0.head.rise_to(self.head);
        entries
    }
}
