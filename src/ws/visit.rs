//! What a connection remembers between two turns of its loop, and what follows from it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::close::CloseReason;
use super::pulse::Pulse;
use crate::desk::{Answering, Cursor, Desk, Frame, Next, Outcome, Signal, Told};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::wire::outbound::{self, StateParts};

/// How long before its token ends a client is told.
const EXPIRY_NOTICE: Duration = Duration::from_mins(1);
const RETRY: Duration = Duration::from_millis(500);

/// Why the loop ends.
pub(super) enum End {
    /// The other end is gone, or said goodbye.
    Gone,
    /// We close, perhaps after a last word.
    Close(Option<Utf8Bytes>, CloseReason),
}

/// What a connection remembers between two turns of its loop.
pub(super) struct Visit {
    pub(super) principal: Principal,
    /// When the token ends, by a clock that does not jump.
    pub(super) expires: Instant,
    /// Frames that the socket has no room for yet.
    pub(super) waiting: VecDeque<Utf8Bytes>,
    /// The frame that is being answered. Beside the rest: storage may take its time, and whoever
    /// loses their rights meanwhile is still sent away at once.
    pub(super) answering: Option<Answering>,
    pub(super) pulse: Pulse,
    pub(super) flushing: bool,
    pub(super) told_expiring: bool,
    /// When to look into the journal again after it could not be read.
    pub(super) retry: Option<Instant>,
    /// What it was told of the others in its session.
    told: Told,
    /// Something was kept from somebody who may not be here any more: there is no way back, as it
    /// would be missing.
    is_out: bool,
}

impl Visit {
    /// The beginning: these frames are due first.
    pub(super) fn new(
        desk: &Arc<Desk>,
        principal: Principal,
        first: Vec<Utf8Bytes>,
        pulse: Pulse,
    ) -> Self {
        Self {
            waiting: first.into(),
            expires: deadline(desk, &principal),
            principal,
            answering: None,
            pulse,
            flushing: false,
            told_expiring: false,
            retry: None,
            told: Told::new(desk),
            is_out: false,
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
                    principal: self.principal.clone(),
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

    /// What a signal leads to; `Some` if it is the last. A notice that there is no room for is
    /// missed, as it would have been by somebody who was away.
    pub(super) fn heed(&mut self, desk: &Arc<Desk>, signal: Signal, has_room: bool) -> Option<End> {
        match signal {
            Signal::Leave => Some(End::Close(None, CloseReason::RESTART)),
            Signal::Over => Some(End::Close(None, end_of_session(desk))),
            Signal::Rights => {
                let stands = desk.reception.auth.stands(&self.principal);
                (!stands).then(|| unauthenticated(desk, Code::AuthFailed))
            }
            // What there is to tell is told as soon as the reader has room for it.
            Signal::Circle => self.shut_out(desk),
            Signal::Notice(notice) => {
                if let Some(notice) = notice.filter(|_| has_room) {
                    let now = desk.reception.clock.wall();
                    let frame = outbound::notice(notice.level, &notice.message, now);
                    self.waiting.push_back(frame);
                }
                None
            }
        }
    }

    /// The end, if this user may not be in the session any more.
    pub(super) fn shut_out(&self, desk: &Desk) -> Option<End> {
        if !self.is_out && desk.session.access(&self.principal).is_some() {
            return None;
        }
        // Storage could not be asked: it is asked when they come back.
        if !desk.session.circle().knows_grants() {
            return Some(End::Close(None, CloseReason::RESTART));
        }
        let now = desk.reception.clock.wall();
        let word = outbound::revoked(desk.session.id(), now);
        Some(End::Close(Some(word), CloseReason::ACCESS_REVOKED))
    }

    /// Asked after every wait for something that is then sent: what came to be meanwhile is not for
    /// somebody who lost their access meanwhile.
    fn is_kept_from(&mut self, desk: &Desk) -> bool {
        self.is_out |= desk.session.access(&self.principal).is_none();
        self.is_out
    }

    /// Takes what there is to tell of the others, only the newest of it.
    pub(super) fn hear_of_others(&mut self, desk: &Desk) {
        if !self.is_kept_from(desk) {
            self.told.catch_up(desk, &mut self.waiting);
        }
    }

    /// What a frame came to.
    pub(super) fn take(&mut self, desk: &Arc<Desk>, outcome: Outcome) {
        if self.is_kept_from(desk) {
            return;
        }
        match outcome {
            Outcome::Silent => {}
            Outcome::Answer(answer) => self.waiting.push_back(answer),
            Outcome::Refreshed(principal, answer) => {
                self.expires = deadline(desk, &principal);
                self.principal = principal;
                self.told_expiring = false;
                self.waiting.push_back(answer);
            }
        }
    }

    /// Shall it look for more in the journal? Not before the reader has what there is, nor before it
    /// is time to try again.
    pub(super) fn is_ready_for_more(&self) -> bool {
        !self.flushing && self.retry.is_none()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|frame| frame.len()).sum()
    }

    /// Takes what comes next from the journal, or the state in its place.
    pub(super) async fn take_from(&mut self, desk: &Arc<Desk>, cursor: &mut Cursor, head: u64) {
        let again = Some(Instant::now() + RETRY);
        match cursor.next(head).await {
            Ok(Next::Frames(frames)) => self.waiting.extend(frames),
            Ok(Next::Snapshot) => match desk.session.state().await {
                Some(state) => {
                    cursor.jump(state.offset);
                    self.waiting
                        .push_back(desk.full_state(&state, StateParts::WHOLE, None));
                }
                None => self.retry = again,
            },
            Err(error) => {
                tracing::warn!(%error, connection.id = %desk.connection, "a journal cannot be read now");
                self.retry = again;
            }
        }
        if self.is_kept_from(desk) {
            self.waiting.clear();
        }
        let violations = cursor.take_violations();
        if violations > 0 {
            desk.reception
                .metrics
                .isolation_violations
                .inc_by(violations);
        }
    }

    /// The next moment at which the clock matters.
    pub(super) fn due(&self) -> Instant {
        let soonest = self.next_expiry().min(self.pulse.next(self.flushing));
        self.retry.map_or(soonest, |retry| retry.min(soonest))
    }

    /// The next moment at which the token's end matters.
    pub(super) fn next_expiry(&self) -> Instant {
        if self.told_expiring {
            self.expires
        } else {
            self.expires
                .checked_sub(EXPIRY_NOTICE)
                .unwrap_or(self.expires)
        }
    }

    /// The token ends: tells so once, then closes.
    pub(super) fn expire(&mut self, desk: &Arc<Desk>) -> Option<End> {
        if self.expires <= Instant::now() {
            return Some(unauthenticated(desk, Code::SessionExpired));
        }
        if !self.told_expiring {
            self.told_expiring = true;
            let now = desk.reception.clock.wall();
            let ends = self.principal.expires_at;
            self.waiting
                .push_back(outbound::token_expiring(desk.session.id(), ends, now));
        }
        None
    }
}

/// Why there is nothing more to come: the session ended, or is to be joined anew.
fn end_of_session(desk: &Desk) -> CloseReason {
    if desk.session.has_ended() {
        CloseReason::SESSION_ENDED
    } else {
        CloseReason::RESTART
    }
}

/// When a token ends, by a clock that does not jump.
fn deadline(desk: &Arc<Desk>, principal: &Principal) -> Instant {
    let left = principal
        .expires_at
        .duration_since(desk.reception.clock.wall());
    Instant::now() + left.try_into().unwrap_or(Duration::ZERO)
}

/// The last word to somebody whose rights have ended.
pub(super) fn unauthenticated(desk: &Arc<Desk>, code: Code) -> End {
    let message = match code {
        Code::SessionExpired => "The token has expired; get a new one and come back.",
        _ => "This login has ended; log in again.",
    };
    let session = Some(desk.session.id());
    let now = desk.reception.clock.wall();
    let word = outbound::error(session, code, message, None, None, now);
    End::Close(Some(word), CloseReason::UNAUTHENTICATED)
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
