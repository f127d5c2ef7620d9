//! Commit log: events that are committed but not yet in their journals.
//!
//! A commit has a few events for each of many sessions. Inserted into their journals at once, each
//! session would cost a page write. So a commit writes all of them as one row of `journal_log`, and
//! many commits are flushed into the journals together. Until then the events are read from memory.
//! After a crash the rows are still there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Sqlite, Transaction};

use super::sql;
use crate::domain::id::SessionId;
use crate::store::journals::{Append, StoredEvent};

/// With this many pending, the next commit flushes them.
const MAX_PENDING_EVENTS: usize = 16_384;
const MAX_PENDING_BYTES: usize = 8 * 1024 * 1024;
/// A commit this large and dense goes into the journals directly.
const DIRECT_EVENTS: usize = 256;
const DIRECT_EVENTS_PER_JOURNAL: usize = 8;

/// The pending events. One transaction at a time writes; readers only lock the map.
#[derive(Clone, Default)]
pub(super) struct CommitLog {
    writer: Arc<tokio::sync::Mutex<()>>,
    pending: Arc<Mutex<Pending>>,
}

#[derive(Default)]
struct Pending {
    journals: HashMap<SessionId, Vec<StoredEvent>>,
    events: usize,
    bytes: usize,
}

impl CommitLog {
    /// Starts a transaction when no other one runs.
    pub(super) async fn begin(&self) -> JournalTx {
        JournalTx {
            _exclusive: Arc::clone(&self.writer).lock_owned().await,
            log: self.clone(),
            added: Vec::new(),
            flushed: false,
            is_direct: false,
        }
    }

    /// Pending events of a journal after an offset, up to the event that crosses `most_bytes`.
    pub(super) fn after(
        &self,
        session: SessionId,
        offset: u64,
        most: usize,
        most_bytes: usize,
    ) -> Vec<StoredEvent> {
        let pending = self.lock();
        let events = pending
            .journals
            .get(&session)
            .map_or(&[][..], Vec::as_slice);
        let first = events.partition_point(|event| event.offset <= offset);
        let mut bytes = 0;
        let fitting = events[first..].iter().take_while(|event| {
            let fits = bytes < most_bytes;
            bytes += event.body.len();
            fits
        });
        fitting.take(most).cloned().collect()
    }

    /// The offsets of a journal's pending events before an offset, in order.
    pub(super) fn offsets_before(&self, session: SessionId, offset: u64) -> Vec<u64> {
        let pending = self.lock();
        let events = pending
            .journals
            .get(&session)
            .map_or(&[][..], Vec::as_slice);
        let before = events.iter().map(|event| event.offset);
        before.take_while(|found| *found < offset).collect()
    }

    pub(super) fn head(&self, session: SessionId) -> Option<u64> {
        let pending = self.lock();
        let last = pending.journals.get(&session)?.last()?;
        Some(last.offset)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction that changes journals. Its events are visible once committed.
pub(super) struct JournalTx {
    _exclusive: tokio::sync::OwnedMutexGuard<()>,
    log: CommitLog,
    added: Vec<StoredEvent>,
    flushed: bool,
    is_direct: bool,
}

impl JournalTx {
    /// Flushes if the log is full, or if the batch goes into the journals directly.
    pub(super) async fn prepare(
        &mut self,
        connection: &mut SqliteConnection,
        batch: &[Append],
    ) -> sqlx::Result<()> {
        let events: usize = batch.iter().map(|append| append.events.len()).sum();
        self.is_direct =
            events >= DIRECT_EVENTS && events / batch.len() >= DIRECT_EVENTS_PER_JOURNAL;
        let is_full = {
            let pending = self.log.lock();
            pending.events >= MAX_PENDING_EVENTS || pending.bytes >= MAX_PENDING_BYTES
        };
        if self.is_direct || is_full {
            self.flush(connection).await?;
        }
        Ok(())
    }

    /// Moves all pending events into their journals.
    pub(super) async fn flush(&mut self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        flush(connection).await?;
        self.flushed = true;
        Ok(())
    }

    pub(super) async fn write(
        &mut self,
        connection: &mut SqliteConnection,
        added: &[&Append],
    ) -> sqlx::Result<()> {
        let events: Vec<StoredEvent> = added.iter().flat_map(|append| append.numbered()).collect();
        if events.is_empty() {
            return Ok(());
        }
        if self.is_direct {
            return sql::insert_events(connection, &events).await;
        }
        sqlx::query("insert into journal_log (body) values (?)")
            .bind(encode(&events))
            .execute(connection)
            .await?;
        self.added.extend(events);
        Ok(())
    }

    /// Last offset of a journal, if known without the database.
    pub(super) fn head(&self, session: SessionId) -> Option<u64> {
        let added = self
            .added
            .iter()
            .rev()
            .find(|event| event.session == session);
        match added {
            Some(event) => Some(event.offset),
            None if self.flushed => None,
            None => self.log.head(session),
        }
    }

    /// Commits and publishes the added events.
    pub(super) async fn commit(self, tx: Transaction<'static, Sqlite>) -> sqlx::Result<()> {
        tx.commit().await?;
        let mut pending = self.log.lock();
        if self.flushed {
            *pending = Pending::default();
        }
        for event in self.added {
            pending.events += 1;
            pending.bytes += event.body.len();
            pending
                .journals
                .entry(event.session)
                .or_default()
                .push(event);
        }
        Ok(())
    }
}

/// Moves the events of every row into their journals and deletes the rows, also those of a crashed
/// process. Reads the table, not memory, so that no unread row is deleted.
pub(super) async fn flush(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    let rows: Vec<Vec<u8>> = sqlx::query_scalar("select body from journal_log order by id")
        .fetch_all(&mut *connection)
        .await?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut events = Vec::new();
    for row in &rows {
        let found = decode(row).ok_or_else(|| {
            let message = "a row of journal_log is damaged";
            sqlx::Error::Decode(message.into())
        })?;
        events.extend(found);
    }
    // Sorted by journal, so that each page is touched once.
    events.sort_by_key(|event| (event.session, event.offset));
    sql::insert_events(connection, &events).await?;
    sqlx::query("delete from journal_log")
        .execute(connection)
        .await?;
    Ok(())
}

/// Session, offset, time and body of each event, concatenated.
fn encode(events: &[StoredEvent]) -> Vec<u8> {
    let size = |event: &StoredEvent| 56 + event.body.len();
    let mut row = Vec::with_capacity(events.iter().map(size).sum());
    for event in events {
        let session = event.session.to_string();
        row.push(u8::try_from(session.len()).expect("an id is short"));
        row.extend_from_slice(session.as_bytes());
        row.extend_from_slice(&event.offset.to_le_bytes());
        row.extend_from_slice(&event.at.as_millisecond().to_le_bytes());
        let length = u32::try_from(event.body.len()).expect("an event is below 4 GiB");
        row.extend_from_slice(&length.to_le_bytes());
        row.extend_from_slice(&event.body);
    }
    row
}

fn decode(mut row: &[u8]) -> Option<Vec<StoredEvent>> {
    fn take<'a>(row: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = row.split_at_checked(count)?;
        *row = rest;
        Some(taken)
    }
    let mut events = Vec::new();
    while let Some((length, rest)) = row.split_first() {
        row = rest;
        let session = std::str::from_utf8(take(&mut row, usize::from(*length))?).ok()?;
        let offset = u64::from_le_bytes(take(&mut row, 8)?.try_into().ok()?);
        let at = i64::from_le_bytes(take(&mut row, 8)?.try_into().ok()?);
        let length = u32::from_le_bytes(take(&mut row, 4)?.try_into().ok()?);
        let body = take(&mut row, usize::try_from(length).ok()?)?.to_vec();
        let at = Timestamp::from_millisecond(at).ok()?;
        events.push(StoredEvent {
            session: session.parse().ok()?,
            offset,
            at,
            body,
        });
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<StoredEvent> {
        let event = |offset| StoredEvent {
            session: SessionId::new(),
            offset,
            at: Timestamp::from_millisecond(1_800_000_000_123).unwrap(),
            body: vec![7; usize::try_from(offset).unwrap()],
        };
        vec![event(1), event(0), event(300)]
    }

    #[test]
    fn a_row_reads_back_as_the_events_it_was_made_of() {
        let events = events();
        assert_eq!(decode(&encode(&events)), Some(events));
        assert_eq!(decode(&[]), Some(Vec::new()));
    }

    #[test]
    fn a_damaged_row_is_noticed() {
        let row = encode(&events());
        for length in 1..row.len() {
            let cut = decode(&row[..length]);
            assert!(cut.is_none_or(|events| events.len() < 3), "{length}");
        }
        assert_eq!(decode(&[200, 1, 2]), None);
    }
}
