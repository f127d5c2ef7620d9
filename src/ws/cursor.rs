//! A connection's place in the journal, and what it is sent next.
//!
//! The cursor is all that a connection owns of the way out: there is no queue that could grow. What
//! it has not been sent lies in the journal.

use std::sync::Arc;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::domain::event::{Event, Recorded};
use crate::domain::id::SessionId;
use crate::session::{Entry, Found, Journal};
use crate::store::StoreError;
use crate::wire::outbound;

/// Events taken at once, and bytes after which the socket is flushed first.
const TAKE: usize = 512;
const FLUSH_BYTES: usize = 64 * 1024;
/// Behind by more than this, pieces of text are joined.
const LAG: u64 = 64;
/// Behind by more than this, the state is sent in place of what led to it.
const FAR: u64 = 5_000;

/// A place in one session's journal.
pub(super) struct Cursor {
    session: SessionId,
    journal: Journal,
    sent: u64,
    /// Up to here the client was promised every event.
    promised: u64,
    /// Events of other sessions that were stopped here.
    pub(super) violations: u64,
}

/// What comes next.
pub(super) enum Next {
    /// These frames; the cursor has moved.
    Frames(Vec<Utf8Bytes>),
    /// The state as a whole: the events are gone, or too many.
    Snapshot,
}

impl Cursor {
    /// A cursor that has sent everything up to an offset, and owes everything up to another.
    pub(super) fn new(session: SessionId, journal: Journal, sent: u64, promised: u64) -> Self {
        Self {
            session,
            journal,
            sent,
            promised,
            violations: 0,
        }
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The state was sent, which stands for everything up to this offset.
    pub(super) fn jump(&mut self, offset: u64) {
        self.sent = self.sent.max(offset);
    }

    /// The frames between the cursor and the head, no more than one flush is worth.
    pub(super) async fn next(&mut self, head: u64) -> Result<Next, StoreError> {
        let behind = head.saturating_sub(self.sent);
        if behind > FAR && self.sent >= self.promised {
            return Ok(Next::Snapshot);
        }
        match self.journal.after(self.sent, TAKE).await? {
            Found::Gone => Ok(Next::Snapshot),
            Found::Entries(entries) => Ok(Next::Frames(self.frames(&entries, behind > LAG))),
        }
    }

    fn frames(&mut self, entries: &[Arc<Entry>], join: bool) -> Vec<Utf8Bytes> {
        let mut frames = Vec::new();
        let mut bytes = 0;
        let mut rest = entries;
        while let Some((first, others)) = rest.split_first()
            && bytes < FLUSH_BYTES
        {
            let more = if join { joinable(first, others) } else { 0 };
            let (group, left) = rest.split_at(1 + more);
            rest = left;
            self.sent = group.last().map_or(self.sent, |last| last.recorded.offset);
            if let Some(frame) = self.frame(group) {
                bytes += frame.len();
                frames.push(frame);
            }
        }
        frames
    }

    /// The last look before the wire: an event of another session goes nowhere. It cannot come to
    /// this, as the cursor points into one journal; that it did not is what the check shows.
    fn frame(&mut self, group: &[Arc<Entry>]) -> Option<Utf8Bytes> {
        let foreign = group.iter().find(|entry| entry.session != self.session);
        if let Some(entry) = foreign {
            self.violations += 1;
            tracing::error!(
                session.id = %self.session,
                offset = entry.recorded.offset,
                "an event of another session was stopped at a socket"
            );
            return None;
        }
        match group {
            [one] => Some(one.frame(|recorded| outbound::event(self.session, recorded))),
            many => {
                let pieces: Vec<&Recorded> = many.iter().map(|entry| &entry.recorded).collect();
                outbound::merged(self.session, &pieces)
            }
        }
    }
}

/// How many of the following entries continue the text of the first.
fn joinable(first: &Entry, others: &[Arc<Entry>]) -> usize {
    let key = |entry: &Entry| match &entry.recorded.event {
        Event::MessageDelta {
            message, channel, ..
        } => Some((*message, *channel)),
        _ => None,
    };
    let Some(wanted) = key(first) else { return 0 };
    let mut bytes = 0;
    others
        .iter()
        .take_while(|entry| {
            if let Event::MessageDelta { text, .. } = &entry.recorded.event {
                bytes += text.len();
            }
            key(entry) == Some(wanted) && bytes < FLUSH_BYTES
        })
        .count()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::domain::event::Channel;
    use crate::domain::id::{Epoch, MessageId, RunId};

    fn deltas(session: SessionId, offsets: std::ops::RangeInclusive<u64>) -> Vec<Arc<Entry>> {
        let (message, run) = (MessageId::new(), RunId::new());
        offsets
            .map(|offset| {
                let event = Event::MessageDelta {
                    message,
                    run,
                    channel: Channel::Text,
                    text: format!("{offset} "),
                    index: offset - 1,
                };
                let recorded = Recorded {
                    offset,
                    at: Timestamp::UNIX_EPOCH,
                    event,
                };
                Arc::new(Entry::new(session, recorded, 50))
            })
            .collect()
    }

    async fn cursor(session: SessionId, dir: &std::path::Path) -> Cursor {
        let config = crate::store::Config {
            dir: dir.to_owned(),
            database_url: None,
        };
        let store = crate::store::open(&config).await.unwrap();
        let journal = Journal::new(session, Epoch::new(), 0, store);
        Cursor::new(session, journal, 0, 0)
    }

    #[tokio::test]
    async fn an_injected_event_of_another_session_is_stopped_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (mine, other) = (SessionId::new(), SessionId::new());
        let mut cursor = cursor(mine, dir.path()).await;
        let mut entries = deltas(mine, 1..=1);
        entries.extend(deltas(other, 2..=2));
        let frames = cursor.frames(&entries, false);
        assert_eq!((frames.len(), cursor.violations), (1, 1));
        let joined = cursor.frames(&deltas(other, 3..=9), true);
        assert_eq!((joined.len(), cursor.violations), (0, 2));
        assert_eq!(cursor.sent(), 9);
    }

    #[tokio::test]
    async fn a_lagging_reader_gets_its_text_joined() {
        let dir = tempfile::tempdir().unwrap();
        let session = SessionId::new();
        let mut cursor = cursor(session, dir.path()).await;
        let frames = cursor.frames(&deltas(session, 1..=5), true);
        assert_eq!(frames.len(), 1);
        let frame: Value = serde_json::from_str(&frames[0]).unwrap();
        assert_eq!(frame["payload"]["content"], "1 2 3 4 5 ");
        assert_eq!(frame["offset"], 5);
        assert_eq!(cursor.sent(), 5);
    }
}
