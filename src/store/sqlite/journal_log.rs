//! Events that are committed and not in their journals yet.
//!
//! A commit brings a few events for each of many sessions. Put into their journals at once, each
//! session would cost a page of the file; so a commit writes them one behind the other, as one row
//! of `journal_log`, and they are carried over many commits at a time, when each journal has several.
//! Until then they are read from memory. After a crash the rows are still there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Sqlite, Transaction};

use super::sql;
use crate::domain::id::SessionId;
use crate::store::journals::{Append, StoredEvent};

/// With so many waiting, the next commit carries them over.
const EVENTS: usize = 16_384;
const BYTES: usize = 8 * 1024 * 1024;
/// A commit of so many events, with so many for each journal, goes to its place at once.
const LARGE: usize = 256;
const DENSE: usize = 8;

/// What waits to be carried over. One at a time may write; anybody may look.
#[derive(Clone, Default)]
pub(super) struct Log {
    turn: Arc<tokio::sync::Mutex<()>>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    journals: HashMap<SessionId, Vec<StoredEvent>>,
    events: usize,
    bytes: usize,
}

impl Log {
    /// Waits for the turn to write.
    pub(super) async fn turn(&self) -> Turn {
        Turn {
            _alone: Arc::clone(&self.turn).lock_owned().await,
            log: self.clone(),
            added: Vec::new(),
            carried: false,
            at_once: false,
        }
    }

    /// What waits of one journal after an offset, up to the event that goes beyond so many bytes.
    pub(super) fn after(
        &self,
        session: SessionId,
        offset: u64,
        most: usize,
        most_bytes: usize,
    ) -> Vec<StoredEvent> {
        let waiting = self.lock();
        let events = waiting
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

    /// The last of what waits of one journal before an offset.
    pub(super) fn before(&self, session: SessionId, offset: u64, most: usize) -> Vec<StoredEvent> {
        let waiting = self.lock();
        let events = waiting
            .journals
            .get(&session)
            .map_or(&[][..], Vec::as_slice);
        let end = events.partition_point(|event| event.offset < offset);
        events[end.saturating_sub(most)..end].to_vec()
    }

    /// The last offset that waits of one journal.
    pub(super) fn head(&self, session: SessionId) -> Option<u64> {
        let waiting = self.lock();
        let last = waiting.journals.get(&session)?.last()?;
        Some(last.offset)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn to write, for one transaction. What it adds is seen once it is committed.
pub(super) struct Turn {
    _alone: tokio::sync::OwnedMutexGuard<()>,
    log: Log,
    added: Vec<(SessionId, StoredEvent)>,
    carried: bool,
    at_once: bool,
}

impl Turn {
    /// Makes room for a batch, or lets it go to its place at once if that is no more work.
    pub(super) async fn prepare(
        &mut self,
        connection: &mut SqliteConnection,
        batch: &[Append],
    ) -> sqlx::Result<()> {
        let events: usize = batch.iter().map(|append| append.events.len()).sum();
        self.at_once = events >= LARGE && events / batch.len() >= DENSE;
        let is_full = {
            let waiting = self.log.lock();
            waiting.events >= EVENTS || waiting.bytes >= BYTES
        };
        if self.at_once || is_full {
            self.carry_over(connection).await?;
        }
        Ok(())
    }

    /// Puts everything that waits into its journal.
    pub(super) async fn carry_over(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> sqlx::Result<()> {
        carry_over(connection).await?;
        self.carried = true;
        Ok(())
    }

    /// Adds the events of these appends.
    pub(super) async fn write(
        &mut self,
        connection: &mut SqliteConnection,
        added: &[&Append],
    ) -> sqlx::Result<()> {
        let events: Vec<(SessionId, StoredEvent)> =
            added.iter().flat_map(|append| append.numbered()).collect();
        if events.is_empty() {
            return Ok(());
        }
        if self.at_once {
            return sql::insert_events(connection, &events).await;
        }
        sqlx::query("insert into journal_log (body) values (?)")
            .bind(encode(&events))
            .execute(connection)
            .await?;
        self.added.extend(events);
        Ok(())
    }

    /// The last offset of a journal, as far as it is known without a look at the database.
    pub(super) fn head(&self, session: SessionId) -> Option<u64> {
        let added = self.added.iter().rev().find(|(of, _)| *of == session);
        match added {
            Some((_, event)) => Some(event.offset),
            None if self.carried => None,
            None => self.log.head(session),
        }
    }

    /// Commits, and lets others see what was added.
    pub(super) async fn commit(self, tx: Transaction<'static, Sqlite>) -> sqlx::Result<()> {
        tx.commit().await?;
        let mut waiting = self.log.lock();
        if self.carried {
            *waiting = Waiting::default();
        }
        for (session, event) in self.added {
            waiting.events += 1;
            waiting.bytes += event.body.len();
            waiting.journals.entry(session).or_default().push(event);
        }
        Ok(())
    }
}

/// Puts the events of every row into their journals, and the rows away: also those that a former
/// life left behind. Read from the table and not from memory, so that no row goes that was not read.
pub(super) async fn carry_over(connection: &mut SqliteConnection) -> sqlx::Result<()> {
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
    // One journal after the other, so that each page is touched once.
    events.sort_by_key(|(session, event)| (*session, event.offset));
    sql::insert_events(connection, &events).await?;
    sqlx::query("delete from journal_log")
        .execute(connection)
        .await?;
    Ok(())
}

/// Session, offset, time and body of each event, one behind the other.
fn encode(events: &[(SessionId, StoredEvent)]) -> Vec<u8> {
    let size = |(_, event): &(SessionId, StoredEvent)| 56 + event.body.len();
    let mut row = Vec::with_capacity(events.iter().map(size).sum());
    for (session, event) in events {
        let session = session.to_string();
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

fn decode(mut row: &[u8]) -> Option<Vec<(SessionId, StoredEvent)>> {
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
        let session = session.parse().ok()?;
        let event = StoredEvent {
            session,
            offset,
            at,
            body,
        };
        events.push((session, event));
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<(SessionId, StoredEvent)> {
        let event = |offset| {
            let session = SessionId::new();
            let event = StoredEvent {
                session,
                offset,
                at: Timestamp::from_millisecond(1_800_000_000_123).unwrap(),
                body: vec![7; usize::try_from(offset).unwrap()],
            };
            (session, event)
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
