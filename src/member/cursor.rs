//! Cursor: a connection's position in the journal, and the frames after it.
//!
//! A connection has no queue of events that could grow: what it has not been sent stays in the journal.

use std::sync::Arc;

use super::outbox::Outgoing;
use crate::domain::event::Event;
use crate::domain::id::{SessionId, UserId};
use crate::domain::shared_text::Text;
use crate::session::{Entry, Journal, JournalRead, ReadError};
use crate::wire::outbound;

/// Events read at once.
const MAX_READ: usize = 512;
/// Once a batch has this much, it is flushed.
const FLUSH_BYTES: usize = 64 * 1024;
/// Behind by more events than this, text deltas are joined.
const JOIN_LAG: u64 = 64;
/// Behind by more events than this, the state is sent instead.
const SNAPSHOT_LAG: u64 = 5_000;

pub(super) struct Cursor {
    journal: Journal,
    user: UserId,
    reader: Reader,
    /// Every event up to here was promised to the client: no snapshot replaces it.
    promised: u64,
}

/// The position, and how entries become frames. Pure.
struct Reader {
    session: SessionId,
    sent: u64,
    /// Events to read next: about as many as fit into a flush. The others are read a second time, as
    /// nothing is kept for a connection.
    read_size: usize,
    /// Events of other sessions that were stopped here.
    violations: u64,
}

pub(super) enum Next {
    /// The cursor has moved behind them.
    Frames(Vec<Outgoing>),
    /// The whole state is to be sent: the events are gone, or too many.
    Snapshot,
}

impl Cursor {
    /// Reads for a user, behind `sent`.
    pub(super) fn new(journal: Journal, user: UserId, sent: u64, promised: u64) -> Self {
        let session = journal.session();
        Self {
            journal,
            user,
            reader: Reader::new(session, sent),
            promised,
        }
    }

    pub(super) fn sent(&self) -> u64 {
        self.reader.sent
    }

    /// The state is sent, which stands for every event up to this offset.
    pub(super) fn jump(&mut self, offset: u64) {
        self.reader.sent = self.reader.sent.max(offset);
    }

    /// Events of other sessions that were stopped since the last call.
    pub(super) fn take_violations(&mut self) -> u64 {
        std::mem::take(&mut self.reader.violations)
    }

    /// The frames between the cursor and the head, about one flush.
    pub(super) async fn next(&mut self, head: u64) -> Result<Next, ReadError> {
        let behind = head.saturating_sub(self.sent());
        if behind > SNAPSHOT_LAG && self.sent() >= self.promised {
            return Ok(Next::Snapshot);
        }
        match self
            .journal
            .after(self.sent(), self.reader.read_size, self.user)
            .await?
        {
            JournalRead::Gone => Ok(Next::Snapshot),
            JournalRead::Entries(entries) => Ok(Next::Frames(
                self.reader.frames(&entries, behind > JOIN_LAG),
            )),
        }
    }
}

impl Reader {
    fn new(session: SessionId, sent: u64) -> Self {
        Self {
            session,
            sent,
            read_size: MAX_READ,
            violations: 0,
        }
    }

    fn frames(&mut self, entries: &[Arc<Entry>], join: bool) -> Vec<Outgoing> {
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
            if let Some(text) = self.frame(group) {
                bytes += text.len();
                let offset = Some(self.sent);
                let committed = group.first().and_then(|first| first.committed());
                frames.push(Outgoing {
                    text,
                    offset,
                    committed,
                });
            }
        }
        // All of them fitted: more might have.
        self.read_size = if rest.is_empty() {
            MAX_READ
        } else {
            (2 * (entries.len() - rest.len())).clamp(1, MAX_READ)
        };
        frames
    }

    /// `None` for a group with an event of another session.
    fn frame(&mut self, group: &[Arc<Entry>]) -> Option<Text> {
        if group.iter().any(|entry| is_foreign(self.session, entry)) {
            self.violations += 1;
            return None;
        }
        let (first, others) = group.split_first()?;
        if others.is_empty() {
            return Some(first.frame(|recorded| outbound::event(self.session, recorded)));
        }
        let mut joined = first.recorded.clone();
        for next in others {
            joined.join(&next.recorded);
        }
        Some(outbound::event(self.session, &joined))
    }
}

/// The last check before the wire: an event of another session is not sent. It cannot happen, as a
/// cursor reads one journal; the counter proves that it does not.
pub(super) fn is_foreign(session: SessionId, entry: &Entry) -> bool {
    let is_foreign = entry.session != session;
    if is_foreign {
        tracing::error!(
            session.id = %session,
            offset = entry.recorded.offset,
            "an event of another session was not sent; this is a bug in the gateway"
        );
    }
    is_foreign
}

/// How many of the following entries continue the text of the first.
fn joinable(first: &Entry, others: &[Arc<Entry>]) -> usize {
    let (mut before, mut bytes) = (&first.recorded, 0);
    others
        .iter()
        .take_while(|entry| {
            let continues = before.is_continued_by(&entry.recorded);
            before = &entry.recorded;
            if let Event::MessageDelta { text, .. } = &before.event {
                bytes += text.len();
            }
            continues && bytes < FLUSH_BYTES
        })
        .count()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::domain::event::{Channel, Recorded};
    use crate::domain::id::{MessageId, RunId};

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
                    joined: 0,
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

    #[test]
    fn an_injected_event_of_another_session_is_stopped_and_counted() {
        let (mine, other) = (SessionId::new(), SessionId::new());
        let mut reader = Reader::new(mine, 0);
        let mut entries = deltas(mine, 1..=1);
        entries.extend(deltas(other, 2..=2));
        let frames = reader.frames(&entries, false);
        assert_eq!((frames.len(), reader.violations), (1, 1));
        let joined = reader.frames(&deltas(other, 3..=9), true);
        assert_eq!((joined.len(), reader.violations), (0, 2));
        assert_eq!(reader.sent, 9);
    }

    #[test]
    fn a_lagging_reader_gets_its_text_joined() {
        let session = SessionId::new();
        let mut reader = Reader::new(session, 0);
        let frames = reader.frames(&deltas(session, 1..=5), true);
        assert_eq!(frames.len(), 1);
        let frame: Value = serde_json::from_str(&frames[0].text).unwrap();
        assert_eq!(frame["payload"]["content"], "1 2 3 4 5 ");
        assert_eq!(frame["offset"], 5);
        assert_eq!(reader.sent, 5);
    }

    #[test]
    fn a_flush_that_is_full_does_not_read_much_more_than_it_sends() {
        let session = SessionId::new();
        let drawn = vec![(true, 0, "x".repeat(20_000)); 600];
        let entries = recorded(session, &drawn);
        let mut reader = Reader::new(session, 0);
        let (mut read, mut reads) = (0, 0);
        while let Some(rest) = entries.get(usize::try_from(reader.sent).unwrap()..)
            && !rest.is_empty()
        {
            let taken = &rest[..rest.len().min(reader.read_size)];
            reader.frames(taken, false);
            (read, reads) = (read + taken.len(), reads + 1);
        }
        assert!(
            read < 2 * entries.len() + MAX_READ,
            "{read} in {reads} reads"
        );
        // All of them fit: the next read is a full one.
        reader.read_size = 8;
        let short = recorded(session, &vec![(true, 0, "x".to_owned()); 8]);
        reader.frames(&short, false);
        assert_eq!(reader.read_size, MAX_READ);
    }

    /// Deltas of a few messages, and other events between them.
    fn any_entries() -> impl Strategy<Value = Vec<(bool, u8, String)>> {
        let text = prop_oneof![9 => "[a-c]{0,3}", 1 => Just("x".repeat(20_000))];
        prop::collection::vec((any::<bool>(), 0..3_u8, text), 1..60)
    }

    fn recorded(session: SessionId, drawn: &[(bool, u8, String)]) -> Vec<Arc<Entry>> {
        let run = RunId::new();
        let messages = [MessageId::new(), MessageId::new(), MessageId::new()];
        let mut index = 0..;
        let event = |(is_delta, number, text): &(bool, u8, String)| {
            if *is_delta {
                Event::MessageDelta {
                    message: messages[usize::from(*number)],
                    run,
                    channel: Channel::Text,
                    text: text.clone(),
                    index: index.next().unwrap(),
                    joined: 0,
                }
            } else {
                let title = text.clone();
                Event::TitleChanged { title }
            }
        };
        let entry = |(offset, event)| {
            let at = Timestamp::UNIX_EPOCH;
            Arc::new(Entry::new(session, Recorded { offset, at, event }, 50))
        };
        (1..).zip(drawn.iter().map(event)).map(entry).collect()
    }

    proptest! {
        /// However events are joined and flushes cut: every offset once, in order, and all text.
        #[test]
        fn nothing_is_left_out_or_sent_twice(drawn in any_entries(), joins in any::<u64>()) {
            let session = SessionId::new();
            let entries = recorded(session, &drawn);
            let mut reader = Reader::new(session, 0);
            let (mut next, mut text, mut flushes) = (1, String::new(), 0);
            while let Some(rest) = entries.get(usize::try_from(reader.sent).unwrap()..)
                && !rest.is_empty()
            {
                let frames = reader.frames(rest, joins >> (flushes % 64) & 1 == 1);
                prop_assert!(!frames.is_empty());
                flushes += 1;
                for frame in frames {
                    let frame: Value = serde_json::from_str(&frame.text).unwrap();
                    let last = frame["offset"].as_u64().unwrap();
                    let first = frame["payload"]["fromOffset"].as_u64().unwrap_or(last);
                    prop_assert_eq!(first, next);
                    next = last + 1;
                    let content = frame["payload"]["content"].as_str();
                    text.push_str(content.or(frame["payload"]["title"].as_str()).unwrap());
                }
            }
            prop_assert_eq!(next, entries.len() as u64 + 1);
            prop_assert_eq!(text, drawn.iter().map(|(_, _, text)| text.as_str()).collect::<String>());
        }
    }
}
