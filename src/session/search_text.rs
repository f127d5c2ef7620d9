//! What a session is found by: the texts among its events. Pure.
//!
//! Prompts, and answers once they are whole: pieces come by the thousand and are not looked at.

use crate::domain::event::{Author, Event};
use crate::store::SearchText;

/// So much of a text is searched; a database has its limits too.
const TEXT_BYTES: usize = 256 * 1024;

/// The texts among events that follow an offset.
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
    match event {
        Event::RunStarted { prompt, .. } => Some(&prompt.text),
        Event::MessageFinal {
            author: Author::User | Author::Assistant,
            text,
            ..
        } => text.as_deref(),
        // A title is found by its column, as it is also changed without an event.
        _ => None,
    }
}

/// Not every database can hold a NUL in a text.
fn clean(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES);
    text[..end].replace('\0', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::{Mode, Prompt};
    use crate::domain::event::Channel;
    use crate::domain::id::{MessageId, RunId};

    fn asked(text: &str) -> Event {
        Event::RunStarted {
            run: RunId::new(),
            prompt: Prompt::new(text, Mode::Act),
            message: MessageId::new(),
            correlation: None,
            by: None,
            merged: Vec::new(),
        }
    }

    fn said(author: Author, text: Option<&str>) -> Event {
        Event::MessageFinal {
            message: MessageId::new(),
            run: RunId::new(),
            author,
            text: text.map(str::to_owned),
            rest: String::new(),
            index: 0,
        }
    }

    fn piece() -> Event {
        Event::MessageDelta {
            message: MessageId::new(),
            run: RunId::new(),
            channel: Channel::Text,
            text: "piece".into(),
            index: 1,
            joined: 0,
        }
    }

    fn found(after: u64, events: &[Event]) -> Vec<(u64, String)> {
        let texts = searchable(after, events).into_iter();
        texts.map(|text| (text.offset, text.text)).collect()
    }

    #[test]
    fn prompts_and_whole_answers_are_found_at_their_offsets() {
        let events = [
            asked("why?"),
            piece(),
            said(Author::Assistant, Some("because")),
            said(Author::Assistant, None),
            said(Author::System, Some("a notice")),
        ];
        assert_eq!(
            found(7, &events),
            [(8, "why?".into()), (10, "because".into())]
        );
    }

    #[test]
    fn pieces_alone_are_nothing_to_be_found_by() {
        assert_eq!(found(0, &[piece(), piece()]), []);
    }

    #[test]
    fn a_text_is_cut_and_cleaned_before_it_is_stored() {
        let long = "é".repeat(TEXT_BYTES);
        assert!(found(0, &[asked(&long)])[0].1.len() <= TEXT_BYTES);
        let odd = said(Author::Assistant, Some("a\0b"));
        assert_eq!(found(0, &[odd]), [(1, "a b".into())]);
    }
}
