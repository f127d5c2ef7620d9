//! Joins the pieces of answers that are old: a long answer takes a few rows, not thousands.
//!
//! Pure. What an offset means stays: a joined piece says which offsets it stands for, and somebody
//! who comes back to the middle of it gets the state instead.

use crate::domain::event::{Event, Recorded};

/// The text of one joined piece, so that nobody has to take a whole answer at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The same events with pieces joined that follow each other.
pub(super) fn compact(events: impl IntoIterator<Item = Recorded>) -> Vec<Recorded> {
    let mut kept: Vec<Recorded> = Vec::new();
    for next in events {
        let joined = kept
            .last_mut()
            .filter(|last| text_bytes(last) + text_bytes(&next) <= PIECE_BYTES)
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
