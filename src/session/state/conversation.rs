//! Conversation: the messages of a session's state, within its bounds.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Bounds, Message, SessionState, excerpt};
use crate::domain::event::{Author, MessageDetails};
use crate::domain::id::{MessageId, RunId};

impl SessionState {
    pub(super) fn append(&mut self, id: MessageId, run: RunId, text: &str, at: Timestamp) {
        let cut = self.cut == Some(id);
        match self.message(id) {
            // Too late, or of another run: those messages are complete.
            Some(known) if known.complete => return,
            Some(known) => {
                if !cut {
                    known.text.push_str(text);
                    self.text_bytes = self.text_bytes.saturating_add(text.len());
                }
            }
            None => self.push(Message {
                id,
                author: Author::Assistant,
                text: text.to_owned(),
                at,
                run: Some(run),
                complete: false,
                usage: None,
                details: None,
            }),
        }
        if let Some(current) = &mut self.current {
            current.message = Some(id);
        }
    }

    pub(super) fn finalise(
        &mut self,
        id: MessageId,
        run: RunId,
        author: Author,
        text: &str,
        at: Timestamp,
    ) {
        match self.message(id) {
            Some(known) if known.run != Some(run) => return,
            Some(known) => {
                let before = known.text.len();
                text.clone_into(&mut known.text);
                known.author = author;
                known.complete = true;
                self.text_bytes = self.text_bytes.saturating_sub(before) + text.len();
                self.cut = self.cut.filter(|cut| *cut != id);
            }
            None => self.push(Message {
                id,
                author,
                text: text.to_owned(),
                at,
                run: Some(run),
                complete: true,
                usage: None,
                details: None,
            }),
        }
        if author == Author::User {
            self.last_user_message = Some(excerpt(text));
        }
        if let Some(current) = &mut self.current {
            current.message = current.message.filter(|writing| *writing != id);
        }
    }

    /// Marks a message complete; its chunks are its text.
    pub(super) fn complete(&mut self, id: MessageId, run: RunId) {
        if let Some(known) = self.message(id).filter(|known| known.run == Some(run)) {
            known.complete = true;
        }
        if let Some(current) = &mut self.current {
            current.message = current.message.filter(|writing| *writing != id);
        }
    }

    /// Keeps what the agent says about a message.
    pub(super) fn describe(&mut self, id: MessageId, run: RunId, details: &MessageDetails) {
        let known = self.message(id).filter(|known| known.run == Some(run));
        let Some(known) = known else { return };
        let before = known.bytes();
        known.details = Some(Box::new(details.clone()));
        let after = known.bytes();
        self.text_bytes = self.text_bytes.saturating_sub(before) + after;
    }

    /// Searched from the end, where the recent messages are.
    pub(super) fn message(&mut self, id: MessageId) -> Option<&mut Message> {
        let known = self.messages.iter_mut().rfind(|message| message.id == id);
        known.map(Arc::make_mut)
    }

    pub(super) fn push(&mut self, message: Message) {
        self.text_bytes = self.text_bytes.saturating_add(message.text.len());
        self.message_count = self.message_count.saturating_add(1);
        self.messages.push_back(Arc::new(message));
    }

    pub(super) fn complete_messages(&mut self, run: RunId) {
        for message in &mut self.messages {
            if message.run == Some(run) && !message.complete {
                Arc::make_mut(message).complete = true;
            }
        }
    }

    pub(super) fn trim(&mut self, bounds: &Bounds) {
        while self.messages.len() > 1
            && (self.messages.len() > bounds.messages || self.text_bytes > bounds.bytes)
        {
            if let Some(oldest) = self.messages.pop_front() {
                self.text_bytes = self.text_bytes.saturating_sub(oldest.bytes());
                self.cut = self.cut.filter(|cut| *cut != oldest.id);
                self.truncated = true;
            }
        }
        // Only a single message can still be over the bound.
        if self.text_bytes > bounds.bytes
            && let Some(only) = self.messages.front_mut()
        {
            let only = Arc::make_mut(only);
            only.text
                .truncate(only.text.floor_char_boundary(bounds.bytes));
            only.text.shrink_to_fit();
            only.details = None;
            self.text_bytes = only.text.len();
            self.cut = Some(only.id);
            self.truncated = true;
        }
    }
}
