//! Outbox: what a connection is sent next: direct replies and notices that wait, presence that is due,
//! then the journal from the cursor on.
//!
//! Only replies and notices are queued, and that queue is bounded: when it is full no frame is read
//! and notices are dropped. Events stay in the journal until the client has taken what was written.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::cursor::{Cursor, Next};
use super::frame_handler::FrameHandler;
use super::rights::Rights;
use super::sent_presence::SentPresence;
use crate::domain::shared_text::Text;
use crate::session::ReadError;
use crate::store::StoreOperation;
use crate::wire::outbound::StateParts;

/// Until a journal that could not be read is read again.
const JOURNAL_RETRY: Duration = Duration::from_millis(500);
const MAX_WAITING: usize = 32;
const MAX_WAITING_BYTES: usize = 1024 * 1024;
/// Short frames are written together up to this much.
const BATCH_BYTES: usize = 60 * 1024;

pub(crate) struct Outgoing {
    pub(crate) text: Text,
    /// The client's position in the journal once it has the frame; `None` if it stands for no event.
    pub(crate) offset: Option<u64>,
    /// When the event was committed, if that was just now.
    pub(crate) committed: Option<std::time::Instant>,
}

impl From<Text> for Outgoing {
    fn from(text: Text) -> Self {
        Self {
            text,
            offset: None,
            committed: None,
        }
    }
}

pub(crate) struct Outbox {
    waiting: VecDeque<Outgoing>,
    cursor: Cursor,
    presence: SentPresence,
    /// When to read the journal again after a failure.
    retry: Option<Instant>,
}

impl Outbox {
    pub(super) fn new(handler: &FrameHandler, cursor: Cursor, first: Vec<Outgoing>) -> Self {
        Self {
            waiting: first.into(),
            cursor,
            presence: SentPresence::new(handler),
            retry: None,
        }
    }

    pub(super) fn push(&mut self, frame: Text) {
        self.waiting.push_back(frame.into());
    }

    pub(super) fn has_room(&self) -> bool {
        let bytes: usize = self.waiting.iter().map(|frame| frame.text.len()).sum();
        self.waiting.len() < MAX_WAITING && bytes < MAX_WAITING_BYTES
    }

    /// The next frame of a batch that has so many bytes already; `None` if the batch is complete.
    pub(crate) fn pop_for_batch(&mut self, batch_bytes: usize) -> Option<Outgoing> {
        let next = self.waiting.front()?;
        let fits = batch_bytes == 0 || batch_bytes + next.text.len() < BATCH_BYTES;
        if fits { self.waiting.pop_front() } else { None }
    }

    pub(super) fn sent(&self) -> u64 {
        self.cursor.sent()
    }

    /// False between a failed read of the journal and the retry.
    pub(super) fn can_read_journal(&self) -> bool {
        self.retry.is_none()
    }

    pub(super) fn retry_due(&self) -> Option<Instant> {
        self.retry
    }

    pub(super) fn clear_retry(&mut self, now: Instant) {
        self.retry = self.retry.filter(|moment| *moment > now);
    }

    /// Fills an empty outbox: with presence if that is due, else from the journal.
    pub(super) async fn fill(&mut self, handler: &FrameHandler, rights: &mut Rights) {
        if self.waiting.is_empty() {
            self.push_presence(handler, rights);
        }
        let head = handler.session.journal().head();
        if self.waiting.is_empty() && self.can_read_journal() && self.cursor.sent() < head {
            self.read_journal(handler, rights, head).await;
        }
    }

    fn push_presence(&mut self, handler: &FrameHandler, rights: &mut Rights) {
        if self.presence.is_behind(handler) && !rights.withhold(handler) {
            self.waiting.extend(self.presence.catch_up(handler));
        }
    }

    /// Takes the next events from the journal, or the state in their place.
    async fn read_journal(&mut self, handler: &FrameHandler, rights: &mut Rights, head: u64) {
        let retry = Some(Instant::now() + JOURNAL_RETRY);
        match self.cursor.next(head).await {
            Ok(Next::Frames(frames)) => self.waiting.extend(frames),
            Ok(Next::Snapshot) => match snapshot(handler, &mut self.cursor).await {
                Some(frame) => self.waiting.push_back(frame),
                None => self.retry = retry,
            },
            // The user's other readers are in front.
            Err(ReadError::Busy(_)) => self.retry = retry,
            Err(error) => {
                handler.shared.metrics.failures.count(StoreOperation::Read);
                tracing::warn!(%error, "the session's journal cannot be read; retrying");
                self.retry = retry;
            }
        }
        if rights.withhold(handler) {
            self.waiting.clear();
        }
        let violations = self.cursor.take_violations();
        if violations > 0 {
            let metrics = &handler.shared.metrics;
            metrics.isolation_violations.inc_by(violations);
        }
    }
}

/// The whole state as one frame, which moves the cursor; `None` if the session does not answer.
pub(super) async fn snapshot(handler: &FrameHandler, cursor: &mut Cursor) -> Option<Outgoing> {
    let state = handler.session.state().await?;
    cursor.jump(state.offset);
    Some(Outgoing {
        text: handler.full_state(&state, StateParts::WHOLE, None),
        offset: Some(state.offset),
        committed: None,
    })
}
