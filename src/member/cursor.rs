//! A connection's place in the journal, and what it is sent next.
//!
//! The cursor is all that a connection owns of the way out: there is no queue that could grow. What
//! it has not been sent lies in the journal.

use std::sync::Arc;
use std::time::Instant;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::domain::event::Event;
use crate::domain::id::SessionId;
use crate::session::{Entry, Found, Journal};
use crate::store::StoreError;
use crate::wire::outbound;

/// Events taken at once at most, and bytes after which the socket is flushed first.
const TAKE: usize = 512;
const FLUSH_BYTES: usize = 64 * 1024;
/// Behind by more than this, pieces of text are joined.
const LAG: u64 = 64;
/// Behind by more than this, the state is sent in place of what led to it.
const FAR: u64 = 5_000;

/// A place in one session's journal.
pub(crate) struct Cursor {
    journal: Journal,
    place: Place,
    /// Up to here the client was promised every event.
    promised: u64,
}

/// The place itself, and what becomes of the entries behind it. Pure.
struct Place {
    session: SessionId,
    sent: u64,
    /// How many events to take next: about as many as a flush has room for. What is taken beyond that
    /// is read a second time, as nothing is kept for a connection.
    take: usize,
    /// Events of other sessions that were stopped here.
    violations: u64,
}

/// A frame to a client, and up to where it brings its reader; nowhere if it is about no event.
pub(crate) struct Outgoing {
    pub(crate) text: Utf8Bytes,
    pub(crate) offset: Option<u64>,
    /// When that became known, if it was just now.
    pub(crate) committed: Option<Instant>,
}

impl From<Utf8Bytes> for Outgoing {
    fn from(text: Utf8Bytes) -> Self {
        Self {
            text,
            offset: None,
            committed: None,
        }
    }
}

/// What comes next.
pub(super) enum Next {
    /// These frames; the cursor has moved.
    Frames(Vec<Outgoing>),
    /// The state as a whole: the events are gone, or too many.
    Snapshot,
}

impl Cursor {
    /// A cursor that has sent everything up to an offset, and owes everything up to another.
    pub(super) fn new(session: SessionId, journal: Journal, sent: u64, promised: u64) -> Self {
        Self {
            journal,
            place: Place::new(session, sent),
            promised,
        }
    }

    pub(crate) fn sent(&self) -> u64 {
        self.place.sent
    }

    /// The state was sent, which stands for everything up to this offset.
    pub(super) fn jump(&mut self, offset: u64) {
        self.place.sent = self.place.sent.max(offset);
    }

    /// How many events of other sessions were stopped here since the last time somebody asked.
    pub(super) fn take_violations(&mut self) -> u64 {
        std::mem::take(&mut self.place.violations)
    }

    /// The frames between the cursor and the head, no more than one flush is worth.
    pub(super) async fn next(&mut self, head: u64) -> Result<Next, StoreError> {
        let behind = head.saturating_sub(self.sent());
        if behind > FAR && self.sent() >= self.promised {
            return Ok(Next::Snapshot);
        }
        match self.journal.after(self.sent(), self.place.take).await? {
            Found::Gone => Ok(Next::Snapshot),
            Found::Entries(entries) => Ok(Next::Frames(self.place.frames(&entries, behind > LAG))),
        }
    }
}

impl Place {
    fn new(session: SessionId, sent: u64) -> Self {
        Self {
            session,
            sent,
            take: TAKE,
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
        // What fitted says nothing of what would have.
        self.take = if rest.is_empty() {
            TAKE
        } else {
            (2 * (entries.len() - rest.len())).clamp(1, TAKE)
        };
        frames
    }

    /// Nothing of a group in which there is an event of another session.
    fn frame(&mut self, group: &[Arc<Entry>]) -> Option<Utf8Bytes> {
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

/// The last look before the wire: an event of another session goes nowhere. It cannot come to this,
/// as whoever reads points into one journal; that it did not is what the check shows.
pub(super) fn is_foreign(session: SessionId, entry: &Entry) -> bool {
    let foreign = entry.session != session;
    if foreign {
        tracing::error!(
            session.id = %session,
            offset = entry.recorded.offset,
            "an event of another session was stopped on its way out"
        );
    }
    foreign
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
        let mut place = Place::new(mine, 0);
        let mut entries = deltas(mine, 1..=1);
        entries.extend(deltas(other, 2..=2));
        let frames = place.frames(&entries, false);
        assert_eq!((frames.len(), place.violations), (1, 1));
        let joined = place.frames(&deltas(other, 3..=9), true);
        assert_eq!((joined.len(), place.violations), (0, 2));
        assert_eq!(place.sent, 9);
    }

    #[test]
    fn a_lagging_reader_gets_its_text_joined() {
        let session = SessionId::new();
        let mut place = Place::new(session, 0);
        let frames = place.frames(&deltas(session, 1..=5), true);
        assert_eq!(frames.len(), 1);
        let frame: Value = serde_json::from_str(&frames[0].text).unwrap();
        assert_eq!(frame["payload"]["content"], "1 2 3 4 5 ");
        assert_eq!(frame["offset"], 5);
        assert_eq!(place.sent, 5);
    }

    #[test]
    fn a_flush_that_is_full_does_not_read_much_more_than_it_sends() {
        let session = SessionId::new();
        let drawn = vec![(true, 0, "x".repeat(20_000)); 600];
        let entries = recorded(session, &drawn);
        let mut place = Place::new(session, 0);
        let (mut read, mut turns) = (0, 0);
        while let Some(rest) = entries.get(usize::try_from(place.sent).unwrap()..)
            && !rest.is_empty()
        {
            let taken = &rest[..rest.len().min(place.take)];
            place.frames(taken, false);
            (read, turns) = (read + taken.len(), turns + 1);
        }
        assert!(read < 2 * entries.len() + TAKE, "{read} in {turns} turns");
        // Few that fit: as many as there are, the next time.
        place.take = 8;
        let short = recorded(session, &vec![(true, 0, "x".to_owned()); 8]);
        place.frames(&short, false);
        assert_eq!(place.take, TAKE);
    }

    /// Pieces of a few utterances, and other events between them.
    fn any_entries() -> impl Strategy<Value = Vec<(bool, u8, String)>> {
        let text = prop_oneof![9 => "[a-c]{0,3}", 1 => Just("x".repeat(20_000))];
        prop::collection::vec((any::<bool>(), 0..3_u8, text), 1..60)
    }

    fn recorded(session: SessionId, drawn: &[(bool, u8, String)]) -> Vec<Arc<Entry>> {
        let run = RunId::new();
        let messages = [MessageId::new(), MessageId::new(), MessageId::new()];
        let mut index = 0..;
        let event = |(is_piece, number, text): &(bool, u8, String)| {
            if *is_piece {
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
        /// Whatever is joined and wherever a flush cuts: every offset once, in order, and all text.
        #[test]
        fn nothing_is_left_out_or_sent_twice(drawn in any_entries(), joins in any::<u64>()) {
            let session = SessionId::new();
            let entries = recorded(session, &drawn);
            let mut place = Place::new(session, 0);
            let (mut next, mut text, mut turn) = (1, String::new(), 0);
            while let Some(rest) = entries.get(usize::try_from(place.sent).unwrap()..)
                && !rest.is_empty()
            {
                let frames = place.frames(rest, joins >> (turn % 64) & 1 == 1);
                prop_assert!(!frames.is_empty());
                turn += 1;
                for frame in frames {
                    let frame: Value = serde_json::from_str(&frame.text).unwrap();
                    let last = frame["offset"].as_u64().unwrap();
                    let first = frame["payload"]["fromOffset"].as_u64().unwrap_or(last);
                    prop_assert_eq!(first, next);
                    next = last + 1;
                    let said = frame["payload"]["content"].as_str();
                    text.push_str(said.or(frame["payload"]["title"].as_str()).unwrap());
                }
            }
            prop_assert_eq!(next, entries.len() as u64 + 1);
            prop_assert_eq!(text, drawn.iter().map(|(_, _, text)| text.as_str()).collect::<String>());
        }
    }
}
