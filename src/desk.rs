//! One connection's part in its session, whichever door it came through: what becomes of what it
//! says, and where it reads.
//!
//! `stack` is what every message passes through on its way to the session; `cursor` is the way back,
//! `greeting` where it begins; `ears` is what a connection hears of besides, `stay` what follows from
//! it, `close` every reason to end. Touches `wire`, `auth`,
//! `limits`, `session`, `bus`, `store`, `domain`, `clock`, `telemetry`.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio_tungstenite::tungstenite::Utf8Bytes;

mod attachments;
mod circle;
mod close;
mod cursor;
mod ears;
mod greeting;
mod reception;
mod rights;
mod stack;
mod stay;

pub(crate) use close::CloseReason;
pub(crate) use cursor::{Cursor, Outgoing};
pub(crate) use ears::Ears;
pub(crate) use greeting::{Position, begin};
pub(crate) use reception::{Metrics, Parts, Reception, Through};
pub(crate) use stack::{Answering, Frame};
pub(crate) use stay::{Goodbye, Stay};

use crate::auth::TokenError;
use crate::domain::account::Principal;
use crate::domain::act::By;
use crate::domain::code::Code;
use crate::domain::command::Inquiry;
use crate::domain::id::ConnectionId;
use crate::limits::{Aside, Budget, Overdrawn, Patience, Payer, SlidingWindow};
use crate::session::{self, Access, Effect, Sent, Session};
use crate::telemetry::{Remote, Span};
use crate::wire::details::Details;
use crate::wire::inbound::{self, Inbound, Kind, Rejected, Request};
use crate::wire::outbound::{self, Done, StateParts};

/// One connection's part in its session.
pub(crate) struct Desk {
    pub(crate) reception: Arc<Reception>,
    pub(crate) session: Session,
    pub(crate) connection: ConnectionId,
    /// From where its user acts.
    address: IpAddr,
    way: Way,
    /// With what goes beyond the limits.
    patience: Patience,
    /// The trace that what is said here belongs to, if its sender says so.
    pub(crate) remote: Option<Remote>,
}

/// How what is said comes here.
enum Way {
    /// Over the connection itself, which has a budget for its signs of life.
    Connected(SlidingWindow<ConnectionId>),
    /// Beside a connection and in its name.
    Beside,
    /// Without any connection that could drive, or go.
    Alone,
}

/// What a frame came to.
pub(crate) enum Outcome {
    /// This, to its sender only.
    Answer(Utf8Bytes),
    /// What happened stands in the journal; this to a sender who does not hear that.
    Begun(Utf8Bytes),
    /// A newer token, and the answer.
    Refreshed(Principal, Utf8Bytes),
    /// Nothing; this says why, to its sender only.
    Refused {
        code: Code,
        /// The budget that has nothing left, if that is why.
        overdrawn: Option<Overdrawn>,
        frame: Utf8Bytes,
    },
}

impl Desk {
    /// The desk of a connection that has just joined.
    pub(crate) fn new(
        reception: Arc<Reception>,
        session: Session,
        connection: ConnectionId,
        address: IpAddr,
    ) -> Self {
        let heartbeats = SlidingWindow::new(
            reception.limits.heartbeats_per_minute,
            Duration::from_mins(1),
            NonZeroU32::MIN,
            reception.clock.clone(),
        );
        Self {
            reception,
            session,
            connection,
            address,
            way: Way::Connected(heartbeats),
            patience: Patience::default(),
            remote: None,
        }
    }

    /// The desk of a message that comes by itself, perhaps in the name of a connection.
    pub(crate) fn beside(
        reception: Arc<Reception>,
        session: Session,
        connection: Option<ConnectionId>,
        address: IpAddr,
    ) -> Self {
        Self {
            reception,
            session,
            address,
            way: connection.map_or(Way::Alone, |_| Way::Beside),
            patience: Patience::default(),
            connection: connection.unwrap_or_else(ConnectionId::new),
            remote: None,
        }
    }

    /// Reads a frame and judges its shape.
    pub(crate) fn read(&self, frame: &str) -> Result<Inbound, Rejected> {
        inbound::parse(frame, self.session.id(), &self.reception.rules)
            .inspect_err(|rejected| self.reception.tally(rejected))
    }

    /// Counts a frame by what its type says.
    pub(crate) fn count(&self, kind: Kind, principal: &Principal) -> Result<(), Overdrawn> {
        let session = self.session.id();
        let payer = match self.session.access(principal) {
            Some(Access::Owner | Access::Editor) => Payer::Session(session),
            Some(Access::Viewer) | None => Payer::Viewer(session, principal.user),
        };
        let counted = match (kind, &self.way) {
            (Kind::Heartbeat, Way::Connected(heartbeats)) => {
                let admitted = heartbeats.admit(&self.connection).map(drop);
                admitted.map_err(|refusal| {
                    let budgets = &self.reception.budgets;
                    budgets.refused_aside(Aside::Heartbeats);
                    Budget::Heartbeats.overdrawn(refusal)
                })
            }
            (Kind::StateRequest, _) => self.reception.budgets.admit_state_request(payer),
            // Whoever comes without their connection has no budget but that of all messages.
            (Kind::Message | Kind::Heartbeat, _) => self.reception.budgets.admit_message(payer),
        };
        counted.inspect_err(|_| self.patience.refused(self.reception.clock.monotonic()))
    }

    /// Does what was asked, and says what its sender hears.
    pub(crate) async fn serve(
        &self,
        size_bytes: usize,
        inbound: Inbound,
        principal: &Principal,
    ) -> Outcome {
        let Inbound {
            message_id,
            once,
            fence,
            request,
        } = inbound;
        let id = message_id.as_deref();
        let now = self.reception.clock.wall();
        let wheel = rights::wheel(&request, fence);
        match request {
            Request::Heartbeat => {
                self.session.keeps_driving(self.connection);
                Outcome::Answer(outbound::heartbeat(self.session.id(), id, now))
            }
            Request::TakeControl { steal } => self.take_control(principal, steal, id),
            Request::ReleaseControl => self.release_control(id),
            Request::State {
                include_history,
                include_settings,
            } => {
                let what = StateParts {
                    history: include_history,
                    settings: include_settings,
                };
                match self.state(what, id).await {
                    Some(state) => Outcome::Answer(state),
                    None => self.refuse(
                        Code::StorageUnavailable,
                        "The session does not answer at the moment; try again.",
                        id,
                    ),
                }
            }
            Request::RefreshAuth { token } => self.refresh(&token, principal, id),
            Request::Inquiry(inquiry) => self.inquire(inquiry, once, principal, id).await,
            Request::Branch { from } => self.branch(from, once, principal, id).await,
            Request::Command(mut command) => {
                if let Err(rejected) = self.resolve(&mut command).await {
                    return self.rejected(&Rejected {
                        message_id,
                        ..rejected
                    });
                }
                let mut span = self.enter(command.name(), size_bytes, principal);
                let claim = self.claim(principal, Access::Editor, wheel);
                let sent = Sent {
                    by: self.by(principal),
                    still: Arc::new(move || claim.check()),
                    message_id: message_id.clone(),
                    once,
                    trace: span.context(),
                };
                match self
                    .session
                    .command(session::Request { command, sent })
                    .await
                {
                    Ok(effect) => self.effect(&effect, id),
                    Err(refused) => {
                        span.fail(refused.code.as_str());
                        self.refuse(refused.code, &refused.message, id)
                    }
                }
            }
        }
    }

    /// The first span of what a command leads to.
    fn enter(&self, name: &'static str, size_bytes: usize, principal: &Principal) -> Span {
        let mut span = self.reception.tracer.enter(name, self.remote);
        if span.context().is_some() {
            let door = match self.way {
                Way::Connected(_) => "ws",
                Way::Beside | Way::Alone => "http",
            };
            span.set("door", door);
            span.set("session.id", self.session.id());
            span.set("connection.id", self.connection);
            span.set("user.id", principal.user);
            span.set("size_bytes", size_bytes);
        }
        span
    }

    /// Who acts, from where.
    fn by(&self, principal: &Principal) -> By {
        By {
            actor: principal.into(),
            address: Some(self.address),
            at: self.reception.clock.wall(),
        }
    }

    /// What the sender of a command hears about its effect.
    fn effect(&self, effect: &Effect, id: Option<&str>) -> Outcome {
        match effect {
            // A prompt's first status carries the message's id itself.
            Effect::Begun(run) => Outcome::Begun(self.ack(id, &Done::to(Some(*run)))),
            Effect::Queued(run) => self.done(id, &Done::queued(*run)),
            Effect::Done(run) => self.done(id, &Done::to(*run)),
            Effect::DoneBefore(run) => self.done(id, &Done::repeated(*run)),
            Effect::Resolved { ended, accepted } => {
                self.done(id, &Done::answered(ended, *accepted))
            }
        }
    }

    /// Asks the agent itself.
    async fn inquire(
        &self,
        inquiry: Inquiry,
        once: Option<(String, [u8; 32])>,
        principal: &Principal,
        id: Option<&str>,
    ) -> Outcome {
        let topic = match &inquiry {
            Inquiry::Query { topic, .. } => Some(*topic),
            Inquiry::Extension { .. } => None,
        };
        // Asking changes nothing, and may be done again.
        let once = once.filter(|_| topic.is_none());
        let told = self
            .session
            .inquire(inquiry, self.wake(principal), once)
            .await;
        let now = self.reception.clock.wall();
        match (told, topic) {
            (Ok(told), Some(topic)) => Outcome::Answer(outbound::query_result(
                self.session.id(),
                id,
                topic,
                &told,
                now,
            )),
            (Ok(told), None) => self.done(id, &Done::told(&told)),
            (Err(refused), _) => self.refuse(refused.code, &refused.message, id),
        }
    }

    /// The state as one frame; `None` if the session does not answer.
    pub(crate) async fn state(
        &self,
        what: StateParts,
        message_id: Option<&str>,
    ) -> Option<Utf8Bytes> {
        let state = self.session.state().await?;
        Some(self.full_state(&state, what, message_id))
    }

    /// A state as a frame.
    pub(crate) fn full_state(
        &self,
        state: &session::state::SessionState,
        what: StateParts,
        message_id: Option<&str>,
    ) -> Utf8Bytes {
        outbound::full_state(
            self.session.id(),
            state,
            self.session.journal().epoch(),
            &self.reception.sessions.capabilities(self.session.agent()),
            what,
            message_id,
            self.reception.clock.wall(),
        )
    }

    /// A newer token of the same user keeps the socket open.
    fn refresh(&self, token: &str, principal: &Principal, id: Option<&str>) -> Outcome {
        let refused = |message: &str| self.refuse(Code::ValidationError, message, id);
        if !matches!(self.way, Way::Connected(_)) {
            // There is no connection that could live on.
            return refused(
                "Here every request brings its token; send the newer one with the next.",
            );
        }
        match self.reception.auth.verify(token) {
            Ok(newer) if newer.user != principal.user => refused("That token is somebody else's."),
            Ok(newer)
                if newer
                    .session
                    .is_some_and(|bound| bound != self.session.id()) =>
            {
                refused("That token is good for another session.")
            }
            Ok(newer) => {
                let answer = self.ack(id, &Done::renewed(newer.expires_at));
                Outcome::Refreshed(newer, answer)
            }
            // The socket still has the token it came with.
            Err(TokenError::Expired | TokenError::Invalid) => {
                refused("That token is not valid; the one in use stays.")
            }
        }
    }

    /// A new session with the past of this one.
    async fn branch(
        &self,
        from: Option<u64>,
        once: Option<(String, [u8; 32])>,
        principal: &Principal,
        id: Option<&str>,
    ) -> Outcome {
        if principal.session.is_some() {
            let message = "A token that is good for one session only cannot make another one.";
            return self.refuse(Code::Forbidden, message, id);
        }
        let branched = Box::pin(self.reception.sessions.branch(&self.session, from, once));
        match branched.await {
            Ok(branch) => self.done(id, &Done::branched(branch)),
            Err(refused) => self.refuse(refused.code, &refused.message, id),
        }
    }

    fn ack(&self, id: Option<&str>, done: &Done<'_>) -> Utf8Bytes {
        outbound::ack(self.session.id(), id, done, self.reception.clock.wall())
    }

    /// It was carried out.
    fn done(&self, id: Option<&str>, done: &Done<'_>) -> Outcome {
        Outcome::Answer(self.ack(id, done))
    }

    /// It was not carried out.
    fn refuse(&self, code: Code, message: &str, id: Option<&str>) -> Outcome {
        self.refusal(code, message, None, id)
    }

    /// It could not be read, or not be accepted.
    fn rejected(&self, rejected: &Rejected) -> Outcome {
        let id = rejected.message_id.as_deref();
        let details = rejected.details.as_deref();
        self.refusal(rejected.code, &rejected.message, details, id)
    }

    /// It came too often. Only its type was read, so the answer names no message.
    fn rate_limited(&self, overdrawn: Overdrawn) -> Outcome {
        let (code, message) = (Code::RateLimited, "Too many messages; try again later.");
        let details = Details::too_often(overdrawn);
        Outcome::Refused {
            code,
            overdrawn: Some(overdrawn),
            frame: self.error(code, message, Some(&details), None),
        }
    }

    fn refusal(
        &self,
        code: Code,
        message: &str,
        details: Option<&Details>,
        id: Option<&str>,
    ) -> Outcome {
        Outcome::Refused {
            code,
            overdrawn: None,
            frame: self.error(code, message, details, id),
        }
    }

    fn error(
        &self,
        code: Code,
        message: &str,
        details: Option<&Details>,
        id: Option<&str>,
    ) -> Utf8Bytes {
        let (session, now) = (Some(self.session.id()), self.reception.clock.wall());
        outbound::error(session, code, message, details, id, now)
    }
}
