//! A connection's stay in its session, whichever door it came through: its rights while they last,
//! what waits to be sent to it, and why it ends.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::Desk;
use super::circle::Told;
use super::close::CloseReason;
use super::cursor::{Cursor, Next, Outgoing};
use super::ears::Signal;
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::store::Wanted;
use crate::wire::outbound::{self, StateParts};

/// How long before its token ends a client is told.
const EXPIRY_NOTICE: Duration = Duration::from_mins(1);
/// Between two looks into a journal that cannot be read.
const RETRY: Duration = Duration::from_millis(500);
/// What may wait for a slow reader besides its journal.
const WAITING: usize = 32;
const WAITING_BYTES: usize = 1024 * 1024;

/// The end of a stay: perhaps a last word, and the reason.
pub(crate) struct Goodbye {
    pub(crate) word: Option<Utf8Bytes>,
    pub(crate) reason: CloseReason,
}

impl From<CloseReason> for Goodbye {
    fn from(reason: CloseReason) -> Self {
        Self { word: None, reason }
    }
}

impl Goodbye {
    /// To somebody whose rights have ended.
    pub(crate) fn unauthenticated(desk: &Desk, code: Code) -> Self {
        let message = match code {
            Code::SessionExpired => "The token has expired; get a new one and come back.",
            _ => "This login has ended; log in again.",
        };
        let session = Some(desk.session.id());
        let now = desk.reception.clock.wall();
        Self {
            word: Some(outbound::last_word(session, code, message, now)),
            reason: CloseReason::UNAUTHENTICATED,
        }
    }

    /// Nothing more is to come: the session ended, or is to be joined anew.
    fn over(desk: &Desk) -> Self {
        if desk.session.has_ended() {
            CloseReason::SESSION_ENDED.into()
        } else {
            CloseReason::RESTART.into()
        }
    }
}

/// What a connection remembers while it is in its session.
pub(crate) struct Stay {
    pub(crate) principal: Principal,
    /// Frames that there was no room for yet.
    pub(crate) waiting: VecDeque<Outgoing>,
    /// When the token ends, by a clock that does not jump.
    expires: Instant,
    told_expiring: bool,
    /// When to look into the journal again after it could not be read.
    retry: Option<Instant>,
    /// What it was told of the others in its session.
    told: Told,
    /// Something was kept from somebody who may not be here any more: there is no way back, as it
    /// would be missing.
    is_out: bool,
}

impl Stay {
    /// The beginning: these frames are due first.
    pub(crate) fn new(desk: &Desk, principal: Principal, first: Vec<Outgoing>) -> Self {
        Self {
            waiting: first.into(),
            expires: deadline(desk, &principal),
            principal,
            told_expiring: false,
            retry: None,
            told: Told::new(desk),
            is_out: false,
        }
    }

    /// Goes on with a newer token.
    pub(crate) fn renew(&mut self, desk: &Desk, principal: Principal) {
        self.expires = deadline(desk, &principal);
        self.principal = principal;
        self.told_expiring = false;
    }

    /// May more be put to what waits?
    pub(crate) fn has_room(&self) -> bool {
        let bytes: usize = self.waiting.iter().map(|frame| frame.text.len()).sum();
        self.waiting.len() < WAITING && bytes < WAITING_BYTES
    }

    /// What a signal leads to; `Some` if it is the last. A notice that there is no room for is
    /// missed, as it would have been by somebody who was away.
    pub(crate) fn heed(&mut self, desk: &Desk, signal: Signal) -> Option<Goodbye> {
        match signal {
            Signal::Leave => Some(CloseReason::RESTART.into()),
            Signal::Over => Some(self.signed_out(desk).unwrap_or_else(|| Goodbye::over(desk))),
            Signal::Rights => self.signed_out(desk),
            // What there is to tell is told as soon as the reader has room for it.
            Signal::Circle => self.shut_out(desk),
            Signal::Notice(notice) => {
                if let Some(notice) = notice.filter(|_| self.has_room()) {
                    let now = desk.reception.clock.wall();
                    let frame = outbound::notice(notice.level, &notice.message, now);
                    self.waiting.push_back(frame.into());
                }
                None
            }
        }
    }

    /// The end, if this login is over. Goes before every other reason: the sessions of somebody who
    /// was removed end as well, and their page is to say why.
    fn signed_out(&self, desk: &Desk) -> Option<Goodbye> {
        let stands = desk.reception.auth.stands(&self.principal);
        (!stands).then(|| Goodbye::unauthenticated(desk, Code::AuthFailed))
    }

    /// The end, if this user may not be in the session any more, or does not heed its limits.
    pub(crate) fn shut_out(&self, desk: &Desk) -> Option<Goodbye> {
        if !self.is_out && desk.session.access(&self.principal).is_some() {
            return desk.patience.is_over().then(|| {
                tracing::info!(session.id = %desk.session.id(), connection.id = %desk.connection, user.id = %self.principal.user, "a client went on after a thousand refusals; its connection is closed");
                CloseReason::ABUSE.into()
            });
        }
        if let Some(goodbye) = self.signed_out(desk) {
            return Some(goodbye);
        }
        // Storage could not be asked: it is asked when they come back.
        if !desk.session.circle().knows_grants() {
            return Some(CloseReason::RESTART.into());
        }
        let (session, now) = (Some(desk.session.id()), desk.reception.clock.wall());
        let message = "Your access to this session was taken away.";
        let word = outbound::last_word(session, Code::Forbidden, message, now);
        Some(Goodbye {
            word: Some(word),
            reason: CloseReason::ACCESS_REVOKED,
        })
    }

    /// Asked after every wait for something that is then sent: what came to be meanwhile is not for
    /// somebody who lost their access meanwhile.
    pub(crate) fn is_kept_from(&mut self, desk: &Desk) -> bool {
        self.is_out |= desk.session.access(&self.principal).is_none();
        self.is_out
    }

    /// Is there something new to tell of the others in the session?
    pub(crate) fn has_news_of_others(&self, desk: &Desk) -> bool {
        !self.is_out && self.told.is_behind(desk)
    }

    /// Takes what there is to tell of the others, only the newest of it.
    pub(crate) fn hear_of_others(&mut self, desk: &Desk) {
        if !self.is_kept_from(desk) {
            self.told.catch_up(desk, &mut self.waiting);
        }
    }

    /// Is it time to look into the journal, as far as the last look goes?
    pub(crate) fn may_look(&self) -> bool {
        self.retry.is_none()
    }

    /// Takes what comes next from the journal, or the state in its place.
    pub(crate) async fn take_from(&mut self, desk: &Arc<Desk>, cursor: &mut Cursor, head: u64) {
        let again = Some(Instant::now() + RETRY);
        match cursor.next(head).await {
            Ok(Next::Frames(frames)) => self.waiting.extend(frames),
            Ok(Next::Snapshot) => match desk.session.state().await {
                Some(state) => {
                    cursor.jump(state.offset);
                    let text = desk.full_state(&state, StateParts::WHOLE, None);
                    let offset = Some(state.offset);
                    let committed = None;
                    self.waiting.push_back(Outgoing {
                        text,
                        offset,
                        committed,
                    });
                }
                None => self.retry = again,
            },
            Err(error) => {
                desk.reception.metrics.failures.count(Wanted::Read);
                tracing::warn!(%error, session.id = %desk.session.id(), connection.id = %desk.connection, "a journal cannot be read now");
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
    pub(crate) fn due(&self) -> Instant {
        let soonest = self.next_expiry();
        self.retry.map_or(soonest, |retry| retry.min(soonest))
    }

    /// What is due by the clock; `Some` if it is the last.
    pub(crate) fn look_at_clock(&mut self, desk: &Desk, now: Instant) -> Option<Goodbye> {
        self.retry = self.retry.filter(|moment| *moment > now);
        if self.expires <= now {
            return Some(Goodbye::unauthenticated(desk, Code::SessionExpired));
        }
        if !self.told_expiring && self.next_expiry() <= now {
            self.told_expiring = true;
            let (session, ends) = (desk.session.id(), self.principal.expires_at);
            let frame = outbound::token_expiring(session, ends, desk.reception.clock.wall());
            self.waiting.push_back(frame.into());
        }
        None
    }

    /// The next moment at which the token's end matters.
    fn next_expiry(&self) -> Instant {
        if self.told_expiring {
            return self.expires;
        }
        let notice = self.expires.checked_sub(EXPIRY_NOTICE);
        notice.unwrap_or(self.expires)
    }
}

/// When a token ends, by a clock that does not jump.
fn deadline(desk: &Desk, principal: &Principal) -> Instant {
    let left = principal
        .expires_at
        .duration_since(desk.reception.clock.wall());
    Instant::now() + left.try_into().unwrap_or(Duration::ZERO)
}
