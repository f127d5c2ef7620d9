//! Frame handler: takes a client's frame to the session: count, parse, authorise, dispatch.
//!
//! A sender is a connection, or one HTTP request with or without a connection's name. The rate limits
//! come first and read only the frame's type, so that a refusal is cheap.

use std::convert::Infallible;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tower::{ServiceBuilder, ServiceExt as _};

use super::check_layer::check;
use super::close_reason::{Close, CloseReason};
use super::handled_frame::Handled;
use super::rights::DriverCheck;
use super::shared_services::Shared;
use crate::auth::TokenError;
use crate::domain::account::Principal;
use crate::domain::audit::AuditContext;
use crate::domain::command::{AgentRequest, Command};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::ConnectionId;
use crate::domain::idempotency::IdempotencyKey;
use crate::domain::shared_text::Text;
use crate::limits::{Budget, BudgetKey, FrameLimit, LimitExceeded, RefusalCap, SlidingWindow};
use crate::session::state::SessionState;
use crate::session::{self, Access, CommandMeta, Refused, Reply, Session};
use crate::telemetry::{Remote, Span};
use crate::wire::inbound::{self, Inbound, Kind, Rejected, Request};
use crate::wire::outbound::{self, StateParts};

/// Takes the frames of one sender to its session: who sends, by which entrance, under which limits.
pub(crate) struct FrameHandler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Session,
    pub(crate) connection: ConnectionId,
    pub(super) address: IpAddr,
    pub(super) via: Via,
    pub(super) abuse: RefusalCap,
    /// The client's trace, if it named one.
    trace: Option<Remote>,
}

pub(super) enum Via {
    /// Over the connection itself, which has a limit of its own for heartbeats.
    Connection(SlidingWindow<ConnectionId>),
    HttpForConnection,
    /// By HTTP, without a connection: such a sender cannot have control.
    Http,
}

pub(crate) type Handling = Pin<Box<dyn Future<Output = Result<Handled, Infallible>> + Send>>;

struct Frame {
    text: Text,
    principal: Principal,
    handler: Arc<FrameHandler>,
}

struct Message {
    frame: Frame,
    inbound: Inbound,
}

impl FrameHandler {
    /// Handles one frame. The result does not borrow: it is awaited while rights are still watched.
    pub(crate) fn handle(self: &Arc<Self>, text: Text, principal: Principal) -> Handling {
        let stack = ServiceBuilder::new()
            .layer(check(Frame::count))
            .layer(check(Frame::parse))
            .layer(check(Message::authorise))
            .service_fn(Message::dispatch);
        let handler = Arc::clone(self);
        Box::pin(stack.oneshot(Frame {
            text,
            principal,
            handler,
        }))
    }
}

impl Frame {
    fn count(self) -> Result<Self, Handled> {
        let kind = inbound::kind(&self.text);
        match self.handler.admit(kind, &self.principal) {
            Ok(()) => Ok(self),
            Err(overdrawn) => {
                let id = inbound::glimpsed_id(&self.text, &self.handler.shared.rules);
                Err(self.handler.rate_limited(overdrawn, id.as_deref()))
            }
        }
    }

    fn parse(self) -> Result<Message, Handled> {
        let shared = &self.handler.shared;
        match inbound::parse(&self.text, self.handler.session.id(), &shared.rules) {
            Ok(inbound) => Ok(Message {
                frame: self,
                inbound,
            }),
            Err(rejected) => {
                shared.count_rejected(&rejected);
                Err(self.handler.reject(&rejected))
            }
        }
    }
}

impl Message {
    /// A sender whose rights have ended is about to be closed; until then nothing more is done.
    fn authorise(self) -> Result<Self, Handled> {
        let (handler, inbound) = (&self.frame.handler, &self.inbound);
        match handler.authorise(&self.frame.principal, inbound) {
            Ok(()) => Ok(self),
            Err(refused) => Err(handler.refuse(&refused, inbound.message_id.as_deref())),
        }
    }

    async fn dispatch(self) -> Result<Handled, Infallible> {
        let Frame {
            text,
            principal,
            handler,
        } = self.frame;
        let Inbound {
            message_id,
            idempotency_key,
            fence,
            request,
        } = self.inbound;
        let id = message_id.as_deref();
        let driver = DriverCheck::of(&request, fence);
        let replied = match request {
            Request::Heartbeat => {
                handler.session.renew_control(handler.connection);
                Ok(Reply::Heartbeat)
            }
            Request::TakeControl { steal } => handler.take_control(&principal, steal),
            Request::ReleaseControl => handler.release_control(),
            Request::State {
                include_history,
                include_settings,
            } => {
                let parts = StateParts {
                    history: include_history,
                    settings: include_settings,
                };
                return Ok(handler.state(parts, id).await);
            }
            Request::RefreshAuth { token } => {
                return Ok(handler.refresh_token(&token, &principal, id));
            }
            Request::AgentRequest(request) => {
                handler
                    .ask_agent(request, idempotency_key, &principal)
                    .await
            }
            Request::Branch { from } => handler.branch(from, idempotency_key, &principal).await,
            Request::Command(mut command) => {
                if let Err(rejected) = handler.resolve(&mut command).await {
                    return Ok(handler.reject(&Rejected {
                        message_id,
                        ..rejected
                    }));
                }
                let permission = handler.permission(&principal, Access::Editor, driver);
                let mut span = handler.start_span(command.name(), text.len(), &principal);
                let meta = CommandMeta {
                    by: handler.audit_context(&principal),
                    recheck: Arc::new(move || permission.check()),
                    message_id: message_id.clone(),
                    idempotency_key,
                    trace: span.context(),
                };
                handler.command(command, meta, &mut span).await
            }
        };
        Ok(match replied {
            Ok(reply) => handler.reply(&reply, id),
            Err(refused) => handler.refuse(&refused, id),
        })
    }
}

impl FrameHandler {
    /// The handler of a connection's frames.
    pub(super) fn new(
        shared: Arc<Shared>,
        session: Session,
        connection: ConnectionId,
        address: IpAddr,
        trace: Option<Remote>,
    ) -> Self {
        let heartbeats = SlidingWindow::new(
            shared.limits.heartbeats_per_minute,
            Duration::from_mins(1),
            NonZeroU32::MIN,
            shared.clock.clone(),
        );
        Self {
            shared,
            session,
            connection,
            address,
            via: Via::Connection(heartbeats),
            abuse: RefusalCap::default(),
            trace,
        }
    }

    /// The sender of one HTTP request, perhaps on behalf of an open connection.
    pub(crate) fn http(
        shared: Arc<Shared>,
        session: Session,
        on_behalf_of: Option<ConnectionId>,
        address: IpAddr,
        trace: Option<Remote>,
    ) -> Self {
        Self {
            shared,
            session,
            address,
            via: on_behalf_of.map_or(Via::Http, |_| Via::HttpForConnection),
            abuse: RefusalCap::default(),
            connection: on_behalf_of.unwrap_or_else(ConnectionId::new),
            trace,
        }
    }

    fn admit(&self, kind: Kind, principal: &Principal) -> Result<(), LimitExceeded> {
        let session = self.session.id();
        let payer = match self.session.access(principal) {
            Some(Access::Owner | Access::Editor) => BudgetKey::Session(session),
            Some(Access::Viewer) | None => BudgetKey::Viewer(session, principal.user),
        };
        let budgets = &self.shared.budgets;
        let admitted = match (kind, &self.via) {
            (Kind::Heartbeat, Via::Connection(heartbeats)) => {
                let admitted = heartbeats.admit(&self.connection).map(drop);
                admitted.map_err(|refusal| {
                    budgets.count_refusal(FrameLimit::Heartbeats);
                    Budget::Heartbeats.exceeded(refusal)
                })
            }
            (Kind::StateRequest, _) => budgets.admit_state_request(payer, principal.user),
            // A heartbeat by HTTP counts as a message: there is no connection to count it by.
            (Kind::Message | Kind::Heartbeat, _) => budgets.admit_message(payer, principal.user),
        };
        admitted.inspect_err(|_| self.abuse.refused(self.shared.clock.monotonic()))
    }

    pub(super) fn close_if_over_refusal_cap(&self) -> Result<(), Close> {
        if !self.abuse.is_over() {
            return Ok(());
        }
        tracing::info!("closing a connection that kept sending after a thousand refusals");
        Err(CloseReason::ABUSE.into())
    }

    async fn command(
        &self,
        command: Command,
        meta: CommandMeta,
        span: &mut Span,
    ) -> Result<Reply, Refused> {
        let request = session::Request { command, meta };
        let replied = self.session.submit(request).await;
        replied.inspect_err(|refused| span.fail(refused.code.as_str()))
    }

    fn start_span(&self, name: &'static str, size_bytes: usize, principal: &Principal) -> Span {
        let mut span = self.shared.tracer.enter(name, self.trace);
        if span.context().is_some() {
            let entrance = match self.via {
                Via::Connection(_) => "ws",
                Via::HttpForConnection | Via::Http => "http",
            };
            span.set("door", entrance);
            span.set("session.id", self.session.id());
            span.set("connection.id", self.connection);
            span.set("user.id", principal.user);
            span.set("size_bytes", size_bytes);
        }
        span
    }

    fn audit_context(&self, principal: &Principal) -> AuditContext {
        AuditContext {
            actor: principal.into(),
            address: Some(self.address),
            at: self.shared.clock.wall(),
        }
    }

    async fn ask_agent(
        &self,
        request: AgentRequest,
        idempotency_key: Option<IdempotencyKey>,
        principal: &Principal,
    ) -> Result<Reply, Refused> {
        let topic = match &request {
            AgentRequest::Query { topic, .. } => Some(*topic),
            AgentRequest::Extension { .. } => None,
        };
        // A query changes nothing and may be repeated.
        let key = idempotency_key.filter(|_| topic.is_none());
        let wake = self.wake(principal);
        let answer = self.session.request_agent(request, wake, key).await?;
        Ok(match topic {
            Some(topic) => Reply::QueryResult(topic, answer),
            None => Reply::Extension(answer),
        })
    }

    async fn branch(
        &self,
        from: Option<u64>,
        idempotency_key: Option<IdempotencyKey>,
        principal: &Principal,
    ) -> Result<Reply, Refused> {
        if principal.session.is_some() {
            let message = "A token that is good for one session only cannot make another one.";
            return Err(Refused::new(ErrorCode::Forbidden, message));
        }
        // Boxed to keep the futures of other frames small.
        let sessions = &self.shared.sessions;
        let branched = Box::pin(sessions.branch(&self.session, from, idempotency_key));
        branched.await.map(Reply::Branched)
    }

    async fn state(&self, parts: StateParts, id: Option<&str>) -> Handled {
        let Some(state) = self.session.state().await else {
            let message = "The session does not answer at the moment; try again.";
            return self.refuse(&Refused::new(ErrorCode::StorageUnavailable, message), id);
        };
        Handled::Replied(self.full_state(&state, parts, id))
    }

    pub(super) fn full_state(
        &self,
        state: &SessionState,
        parts: StateParts,
        message_id: Option<&str>,
    ) -> Text {
        outbound::full_state(
            self.session.id(),
            state,
            self.session.journal().epoch(),
            &self.shared.sessions.capabilities(self.session.agent()),
            parts,
            message_id,
            self.shared.clock.wall(),
        )
    }

    /// A newer token of the same user keeps the connection open; an invalid one changes nothing.
    fn refresh_token(&self, token: &str, principal: &Principal, id: Option<&str>) -> Handled {
        let refuse = |message| self.refuse(&Refused::new(ErrorCode::ValidationError, message), id);
        if !matches!(self.via, Via::Connection(_)) {
            return refuse(
                "Here every request brings its token; send the newer one with the next.",
            );
        }
        match self.shared.auth.verify(token) {
            Ok(newer) if newer.user != principal.user => refuse("That token is somebody else's."),
            Ok(Principal {
                session: Some(bound),
                ..
            }) if bound != self.session.id() => refuse("That token is good for another session."),
            Ok(newer) => {
                let refreshed = Reply::TokenRefreshed(newer.expires_at);
                Handled::TokenRefreshed(Box::new(newer), self.reply_frame(&refreshed, id))
            }
            Err(TokenError::Expired | TokenError::Invalid) => {
                refuse("That token is not valid; the one in use stays.")
            }
        }
    }
}
