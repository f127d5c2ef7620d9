//! What a socket remembers between two turns of its loop, besides its stay.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::pulse::Pulse;
use crate::desk::{Answering, CloseReason, Desk, Frame, Goodbye, Outcome, Stay};

/// Why the loop ends.
pub(super) enum End {
    /// The other end is gone, or said goodbye.
    Gone,
    /// We close, perhaps after a last word.
    Close(Option<Utf8Bytes>, CloseReason),
}

impl From<Goodbye> for End {
    fn from(goodbye: Goodbye) -> Self {
        Self::Close(goodbye.word, goodbye.reason)
    }
}

/// What a socket remembers between two turns of its loop.
pub(super) struct Visit {
    pub(super) stay: Stay,
    /// The frame that is being answered. Beside the rest: storage may take its time, and whoever
    /// loses their rights meanwhile is still sent away at once.
    pub(super) answering: Option<Answering>,
    pub(super) pulse: Pulse,
    pub(super) flushing: bool,
    /// When the oldest event was committed of those that are being written.
    pub(super) oldest: Option<std::time::Instant>,
}

impl Visit {
    pub(super) fn new(stay: Stay, pulse: Pulse) -> Self {
        Self {
            stay,
            answering: None,
            pulse,
            flushing: false,
            oldest: None,
        }
    }

    /// Begins with what a frame asks for; `Some` if it is the last.
    pub(super) fn receive(&mut self, desk: &Arc<Desk>, frame: Message) -> Option<End> {
        self.pulse.hear();
        match frame {
            Message::Text(text) => {
                desk.reception.metrics.frames_in.inc();
                let frame = Frame {
                    text,
                    principal: self.stay.principal.clone(),
                    desk: Arc::clone(desk),
                };
                self.answering = Some(frame.answering());
                None
            }
            Message::Binary(_) => Some(End::Close(None, CloseReason::UNSUPPORTED_DATA)),
            Message::Close(_) => Some(End::Gone),
            // The library answers pings itself, with the next flush.
            Message::Ping(_) => {
                self.flushing = true;
                None
            }
            Message::Pong(_) | Message::Frame(_) => None,
        }
    }

    /// Everything was written.
    pub(super) fn delivered(&mut self, desk: &Desk) {
        if let Some(committed) = self.oldest.take() {
            desk.reception.metrics.delivery.observe(committed.elapsed());
        }
    }

    /// What a frame came to.
    pub(super) fn take(&mut self, desk: &Arc<Desk>, outcome: Outcome) {
        if self.stay.is_kept_from(desk) {
            return;
        }
        match outcome {
            // The event that follows says the same.
            Outcome::Begun(_) => {}
            Outcome::Answer(frame) | Outcome::Refused { frame, .. } => {
                self.stay.waiting.push_back(frame.into());
            }
            Outcome::Refreshed(principal, answer) => {
                self.stay.renew(desk, principal);
                self.stay.waiting.push_back(answer.into());
            }
        }
    }

    /// Shall it look for more in the journal? Not before the reader has what there is, nor before it
    /// is time to try again.
    pub(super) fn is_ready_for_more(&self) -> bool {
        !self.flushing && self.stay.may_look()
    }

    /// The next moment at which the clock matters.
    pub(super) fn due(&self) -> Instant {
        self.stay.due().min(self.pulse.next(self.flushing))
    }
}

/// The outcome of the frame under way; waits for ever without one.
pub(super) async fn answered(answering: &mut Option<Answering>) -> Outcome {
    match answering {
        Some(under_way) => {
            let Ok(outcome) = under_way.await;
            *answering = None;
            outcome
        }
        None => std::future::pending().await,
    }
}
