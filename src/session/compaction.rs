//! Compaction: joins the chunks of old messages; a long message takes a few rows, not thousands.
//!
//! Pure. Offsets keep their meaning: a joined chunk names the offsets it stands for, and a client that
//! resumes in the middle of it gets the state instead.

use crate::domain::event::{Event, Recorded};

/// Bytes of one joined chunk, so that no reader has to take a whole message at once.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Joins consecutive chunks of the same message.
pub(super) fn compact(events: impl IntoIterator<Item = Recorded>) -> Vec<Recorded> {
    let mut kept: Vec<Recorded> = Vec::new();
    for next in events {
        let joined = kept
            .last_mut()
            .filter(|last| text_bytes(last) + text_bytes(&next) <= MAX_CHUNK_BYTES)
            .is_some_and(|last| last.join(&next));
        if !joined {
            kept.push(next);
        }
    }
    kept
}

fn text_bytes(recorded: &Recorded) -> usize {
    match &recorded.event {
        Event::MessageDelta { text, .. } => text.len(),
        _ => 0,
    }
}
