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

use serde_json::json;
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
use crate::limits::{Aside, Patience, Payer, Refusal, SlidingWindow};
use crate::session::{self, Access, Effect, Sent, Session};
use crate::telemetry::{Remote, Span};
use crate::wire::inbound::{self, Inbound, Kind, Rejected, Request};
use crate::wire::outbound::{self, StateParts};

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
    pub(crate) fn count(&self, kind: Kind, principal: &Principal) -> Result<(), Refusal> {
        let session = self.session.id();
        let payer = match self.session.access(principal) {
            Some(Access::Owner | Access::Editor) => Payer::Session(session),
            Some(Access::Viewer) | None => Payer::Viewer(session, principal.user),
        };
        let counted = match (kind, &self.way) {
            (Kind::Heartbeat, Way::Connected(heartbeats)) => {
                let admitted = heartbeats.admit(&self.connection).map(drop);
                admitted.inspect_err(|_| {
                    let budgets = &self.reception.budgets;
                    budgets.refused_aside(Aside::Heartbeats);
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
        frame: &str,
        inbound: Inbound,
        principal: &Principal,
    ) -> Outcome {
        let Inbound {
            message_id,
            idempotency_key,
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
                    None => Outcome::Answer(self.error(
                        Code::StorageUnavailable,
                        "The session does not answer at the moment; try again.",
                        id,
                    )),
                }
            }
            Request::RefreshAuth { token } => self.refresh(&token, principal, id),
            Request::Inquiry(inquiry) => {
                let once = idempotency_key.map(|key| (key, digest(frame)));
                self.inquire(inquiry, once, principal, id).await
            }
            Request::Branch { from } => {
                let once = idempotency_key.map(|key| (key, digest(frame)));
                self.branch(from, once, principal, id).await
            }
            Request::Command(mut command) => {
                if let Err(rejected) = self.resolve(&mut command).await {
                    return Outcome::Answer(self.rejected(&Rejected {
                        message_id,
                        ..rejected
                    }));
                }
                let mut span = self.enter(command.name(), frame, principal);
                let claim = self.claim(principal, Access::Editor, wheel);
                let sent = Sent {
                    by: self.by(principal),
                    still: Arc::new(move || claim.check()),
                    message_id: message_id.clone(),
                    once: idempotency_key.map(|key| (key, digest(frame))),
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
                        Outcome::Answer(self.error(refused.code, &refused.message, id))
                    }
                }
            }
        }
    }

    /// The first span of what a command leads to.
    fn enter(&self, name: &'static str, frame: &str, principal: &Principal) -> Span {
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
            span.set("size_bytes", frame.len());
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
        let ack = |payload: serde_json::Value| Outcome::Answer(self.ack(id, &payload));
        match effect {
            // A prompt's first status carries the message's id itself.
            Effect::Begun(run) => Outcome::Begun(self.ack(id, &json!({ "taskId": run }))),
            Effect::Queued(run) => ack(json!({ "taskId": run, "queued": true })),
            Effect::Done(run) => ack(json!({ "taskId": run })),
            Effect::DoneBefore(run) => ack(json!({ "taskId": run, "repeated": true })),
            Effect::Resolved { ended, accepted } => Outcome::Answer(outbound::answer_ack(
                self.session.id(),
                id,
                ended,
                *accepted,
                self.reception.clock.wall(),
            )),
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
            (Ok(told), None) => Outcome::Answer(self.ack(id, &json!({ "result": told }))),
            (Err(refused), _) => Outcome::Answer(self.error(refused.code, &refused.message, id)),
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
        let refused = |code, message: &str| Outcome::Answer(self.error(code, message, id));
        match self.reception.auth.verify(token) {
            Ok(newer) if newer.user != principal.user => {
                refused(Code::ValidationError, "That token is somebody else's.")
            }
            Ok(newer)
                if newer
                    .session
                    .is_some_and(|bound| bound != self.session.id()) =>
            {
                refused(
                    Code::ValidationError,
                    "That token is good for another session.",
                )
            }
            Ok(newer) => {
                let payload = json!({ "tokenExpiresAt": newer.expires_at.to_string() });
                let answer =
                    outbound::ack(self.session.id(), id, &payload, self.reception.clock.wall());
                Outcome::Refreshed(newer, answer)
            }
            // The socket still has the token it came with.
            Err(TokenError::Expired | TokenError::Invalid) => refused(
                Code::ValidationError,
                "That token is not valid; the one in use stays.",
            ),
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
            return Outcome::Answer(self.error(Code::Forbidden, message, id));
        }
        let branched = Box::pin(self.reception.sessions.branch(&self.session, from, once));
        match branched.await {
            Ok(branch) => Outcome::Answer(self.ack(id, &json!(branch))),
            Err(refused) => Outcome::Answer(self.error(refused.code, &refused.message, id)),
        }
    }

    fn ack(&self, id: Option<&str>, payload: &serde_json::Value) -> Utf8Bytes {
        outbound::ack(self.session.id(), id, payload, self.reception.clock.wall())
    }

    pub(crate) fn error(&self, code: Code, message: &str, id: Option<&str>) -> Utf8Bytes {
        let session = Some(self.session.id());
        outbound::error(
            session,
            code,
            message,
            None,
            id,
            self.reception.clock.wall(),
        )
    }

    pub(crate) fn rejected(&self, rejected: &Rejected) -> Utf8Bytes {
        outbound::error(
            Some(self.session.id()),
            rejected.code,
            &rejected.message,
            rejected.details.as_ref(),
            rejected.message_id.as_deref(),
            self.reception.clock.wall(),
        )
    }

    pub(crate) fn rate_limited(&self, refusal: Refusal) -> Utf8Bytes {
        let details = json!({
            "limit": refusal.limit,
            "periodMs": refusal.period.as_millis(),
            "retryAfterMs": whole_millis(refusal.retry_after),
        });
        outbound::error(
            Some(self.session.id()),
            Code::RateLimited,
            "Too many messages; try again later.",
            Some(&details),
            None,
            self.reception.clock.wall(),
        )
    }
}

/// Rounded up: whoever waits this long is admitted.
fn whole_millis(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000)
}

/// Of what a client sent under a key: the command itself, not when or as what it was sent.
fn digest(frame: &str) -> [u8; 32] {
    let mut command: serde_json::Value = serde_json::from_str(frame).unwrap_or_default();
    // What somebody answers may be a secret, which is not even kept as a digest.
    if command["type"] == "ANSWER"
        && let Some(payload) = command["payload"].as_object_mut()
    {
        payload.remove("value");
    }
    let essence = json!([command["type"], command["payload"]]).to_string();
    let mut digest = [0; 32];
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, essence.as_bytes());
    digest.copy_from_slice(hash.as_ref());
    digest
}
