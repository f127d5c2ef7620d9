//! Search text: the texts of events that the search indexes. Pure.
//!
//! Prompts and complete messages; chunks are not indexed.

use crate::domain::event::{Author, Event};
use crate::store::SearchText;

/// Bytes of a text that are indexed; databases have limits of their own.
const MAX_TEXT_BYTES: usize = 256 * 1024;

pub(super) fn searchable(after: u64, events: &[Event]) -> Vec<SearchText> {
    (after + 1..)
        .zip(events)
        .filter_map(|(offset, event)| {
            let text = clean(text(event)?);
            (!text.is_empty()).then_some(SearchText { offset, text })
        })
        .collect()
}

fn text(event: &Event) -> Option<&str> {
    match event.bare() {
        Event::RunStarted { prompt, .. } => Some(&prompt.text),
        Event::MessageFinal {
            author: Author::User | Author::Assistant,
            text,
            ..
        } => text.as_deref(),
        // A title is indexed from its column: it also changes without an event.
        _ => None,
    }
}

/// Not every database stores a NUL in a text.
fn clean(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    text[..end].replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::{Mode, Prompt};
    use crate::domain::event::Channel;
    use crate::domain::id::{MessageId, RunId};

    fn prompted(text: &str) -> Event {
        Event::RunStarted {
            run: RunId::new(),
            prompt: Prompt::new(text, Mode::Act),
            message: MessageId::new(),
            correlation: None,
            by: None,
            senders: Vec::new(),
            merged: Vec::new(),
        }
    }

    fn message(author: Author, text: Option<&str>) -> Event {
        Event::MessageFinal {
            message: MessageId::new(),
            run: RunId::new(),
            author,
            text: text.map(str::to_owned),
            rest: String::new(),
            index: 0,
        }
    }

    fn chunk() -> Event {
        Event::MessageDelta {
            message: MessageId::new(),
            run: RunId::new(),
            channel: Channel::Text,
            text: "chunk".into(),
            index: 1,
            joined: 0,
        }
    }

    fn texts_of(after: u64, events: &[Event]) -> Vec<(u64, String)> {
        let texts = searchable(after, events).into_iter();
        texts.map(|text| (text.offset, text.text)).collect()
    }

    #[test]
    fn prompts_and_complete_messages_are_indexed_at_their_offsets() {
        let events = [
            prompted("why?"),
            chunk(),
            message(Author::Assistant, Some("because")),
            message(Author::Assistant, None),
            message(Author::System, Some("a notice")),
        ];
        assert_eq!(
            texts_of(7, &events),
            [(8, "why?".into()), (10, "because".into())]
        );
    }

    #[test]
    fn chunks_are_not_indexed() {
        assert_eq!(texts_of(0, &[chunk(), chunk()]), []);
    }

    #[test]
    fn a_text_is_cut_and_cleaned_before_it_is_stored() {
        let long = "é".repeat(MAX_TEXT_BYTES);
        assert!(texts_of(0, &[prompted(&long)])[0].1.len() <= MAX_TEXT_BYTES);
        let odd = message(Author::Assistant, Some("a\0b"));
        assert_eq!(texts_of(0, &[odd]), [(1, "a b".into())]);
    }
}
