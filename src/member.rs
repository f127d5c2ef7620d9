//! Member: a connection's membership in its session, for WebSocket, SSE and HTTP commands alike.
//!
//! `frame_handler` takes a frame to the session (count → parse → authorise → dispatch, as tower `check_layer`s);
//! `outbox` is the way back, from the journal's `cursor` on, and `resume` its start; `rights` are
//! watched while the connection is open, `signals` end or change it, `close_reason` lists every reason to end.
//! Touches `wire`, `auth`, `limits`, `session`, `bus`, `store`, `domain`, `clock`, `telemetry`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

mod attachments;
mod check_layer;
mod close_reason;
mod cursor;
mod frame_handler;
mod handled_frame;
mod outbox;
mod resume;
mod rights;
mod sent_presence;
mod shared_services;
mod signals;
mod take_control;

pub(crate) use close_reason::{Close, CloseReason, End};
pub(crate) use frame_handler::FrameHandler;
pub(crate) use handled_frame::Handled;
pub(crate) use outbox::{Outbox, Outgoing};
pub(crate) use resume::Position;
pub(crate) use shared_services::{Entrance, Metrics, Parts, Shared};

use crate::domain::account::Principal;
use crate::domain::id::ConnectionId;
use crate::domain::shared_text::Text;
use crate::session::{ConnectionInfo, Registration, Session};
use crate::telemetry::Remote;
use crate::wire::outbound;
use cursor::Cursor;
use frame_handler::Handling;
use rights::Rights;
use shared_services::OpenConnection;
use signals::{Signal, Signals};

/// A live connection: how frames reach its client and come from it.
pub(crate) trait Connection {
    /// False while the client has not taken what was written before. Becomes true in [`Connection::next`]
    /// only, which returns then.
    fn can_write(&self) -> bool;
    /// Writes one batch, with one flush; false if the outbox is empty.
    async fn write(&mut self, outbox: &mut Outbox) -> Result<bool, End>;
    /// Waits until a write has finished or, if `can_read`, something was received: perhaps a frame.
    /// Cancel-safe.
    async fn next(&mut self, can_read: bool) -> Result<Option<Text>, End>;
    /// When [`Connection::keep_alive`] is due; early is harmless.
    fn due(&self) -> Instant;
    /// Pings a quiet client, ends the connection of a dead one.
    async fn keep_alive(&mut self) -> Result<(), End>;
}

pub(crate) struct Joining {
    pub(crate) connection: ConnectionId,
    pub(crate) entrance: Entrance,
    pub(crate) session: Session,
    pub(crate) principal: Principal,
    pub(crate) address: IpAddr,
    pub(crate) trace: Option<Remote>,
    pub(crate) position: Option<Position>,
}

impl Joining {
    /// The span of the connection's task. A root: the request that opened the connection ends long
    /// before it.
    pub(crate) fn span(&self) -> tracing::Span {
        tracing::info_span!(
            parent: None,
            "connection",
            connection.id = %self.connection,
            session.id = %self.session.id(),
            user.id = %self.principal.user,
        )
    }
}

/// A connection's membership in its session. It leaves when dropped.
pub(crate) struct Member {
    handler: Arc<FrameHandler>,
    rights: Rights,
    outbox: Outbox,
    signals: Signals,
    /// The frame that is being handled. Only one: replies come in the order of the requests.
    handling: Option<Handling>,
    /// Ends the membership when dropped. `None` for a long poll, which other members do not see.
    _guard: Option<(Registration, OpenConnection)>,
}

impl Member {
    /// Registers the connection and resumes at its position; `None` if the session does not answer.
    /// Boxed to keep the futures that own it small.
    pub(crate) async fn join(shared: Arc<Shared>, joining: Joining) -> Option<Box<Self>> {
        let Joining {
            connection,
            entrance,
            session,
            principal,
            address,
            trace,
            position,
        } = joining;
        let open = shared.metrics.count_open(entrance);
        let registration = shared.sessions.members().join(ConnectionInfo {
            connection,
            session: session.id(),
            user: principal.user,
            username: principal.username.clone(),
            address,
            since: shared.clock.wall(),
        });
        let handler = Arc::new(FrameHandler::new(
            shared, session, connection, address, trace,
        ));
        let (cursor, first) = resume::resume(&handler, &principal, position).await?;
        let kick = registration.close_requested().clone();
        let guard = Some((registration, open));
        Some(Self::new(handler, principal, (cursor, first), kick, guard))
    }

    /// A member that only watches its rights, for a request that waits for events after an offset.
    pub(crate) fn unregistered(
        shared: Arc<Shared>,
        session: Session,
        principal: Principal,
        address: IpAddr,
        after: u64,
    ) -> Box<Self> {
        let cursor = Cursor::new(session.journal().clone(), principal.user, after, after);
        let handler = FrameHandler::new(shared, session, ConnectionId::new(), address, None);
        let kick = CancellationToken::new();
        let first = Vec::new();
        Self::new(Arc::new(handler), principal, (cursor, first), kick, None)
    }

    fn new(
        handler: Arc<FrameHandler>,
        principal: Principal,
        (cursor, first): (Cursor, Vec<Outgoing>),
        kick: CancellationToken,
        guard: Option<(Registration, OpenConnection)>,
    ) -> Box<Self> {
        Box::new(Self {
            rights: Rights::new(&handler, principal),
            outbox: Outbox::new(&handler, cursor, first),
            signals: Signals::subscribe(&handler, kick),
            handler,
            handling: None,
            _guard: guard,
        })
    }

    pub(crate) async fn serve(&mut self, connection: &mut impl Connection) -> End {
        let Err(end) = self.serve_inner(connection).await;
        end
    }

    async fn serve_inner(&mut self, connection: &mut impl Connection) -> Result<Infallible, End> {
        // Re-check: changes made before the signals were subscribed raised none.
        self.rights.close_if_logged_out(&self.handler)?;
        self.check()?;
        let mut timer = pin!(sleep_until(self.due(connection)));
        loop {
            self.send(connection).await?;
            self.check()?;
            // Only ever earlier: a timer that fires too early does nothing but be set again.
            let due = self.due(connection);
            if due < timer.deadline() {
                timer.as_mut().reset(due);
            }
            // Full: no frame is read.
            let can_read = self.handling.is_none() && self.outbox.has_room();
            let can_send = connection.can_write() && self.outbox.can_read_journal();
            let journal = self.handler.session.journal();
            tokio::select! {
                biased;
                // Rights first: nothing more is sent to a user who lost them.
                signal = self.signals.next() => {
                    // The end of its run is committed before a session ends: the client sees it first.
                    if matches!(signal, Signal::SessionOver) {
                        self.rights.close_if_logged_out(&self.handler)?;
                        self.send(connection).await?;
                    }
                    self.apply(signal)?;
                }
                () = &mut timer => {
                    self.check_expiry(Instant::now())?;
                    connection.keep_alive().await?;
                    timer.as_mut().reset(self.due(connection));
                }
                handled = finished(&mut self.handling) => self.deliver(handled),
                // Before the journal: a long stream of events must not keep a cancel from being read.
                frame = connection.next(can_read) => if let Some(frame) = frame? {
                    self.handle(frame);
                },
                () = journal.wait_beyond(self.outbox.sent()), if can_send => {}
            }
        }
    }

    /// Starts to handle a frame. Beside the loop: storage may be slow, and a user who loses their
    /// rights meanwhile is still disconnected at once.
    fn handle(&mut self, frame: Text) {
        self.handler.shared.metrics.frames_in.inc();
        let principal = self.rights.principal.clone();
        self.handling = Some(self.handler.handle(frame, principal));
    }

    fn deliver(&mut self, handled: Handled) {
        if self.rights.withhold(&self.handler) {
            return;
        }
        match handled {
            Handled::Started(_) => {}
            Handled::Replied(frame) | Handled::Refused { frame, .. } => self.outbox.push(frame),
            Handled::TokenRefreshed(principal, frame) => {
                self.rights.renew(&self.handler, *principal);
                self.outbox.push(frame);
            }
        }
    }

    /// Sends what is ready, as long as the client takes it at once.
    async fn send(&mut self, connection: &mut impl Connection) -> Result<(), End> {
        while connection.can_write() {
            self.outbox.fill(&self.handler, &mut self.rights).await;
            if !connection.write(&mut self.outbox).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Close> {
        self.rights.close_if_revoked(&self.handler)?;
        self.handler.close_if_over_refusal_cap()
    }

    fn apply(&mut self, signal: Signal) -> Result<(), Close> {
        match signal {
            Signal::Disconnect => Err(CloseReason::RESTART.into()),
            Signal::SessionOver => {
                self.rights.close_if_logged_out(&self.handler)?;
                Err(Close::session_over(&self.handler))
            }
            Signal::RightsChanged => self.rights.close_if_logged_out(&self.handler),
            // The outbox compares versions and sends what has changed.
            Signal::PresenceChanged => self.check(),
            Signal::Notice(notice) => {
                if let Some(notice) = notice.filter(|_| self.outbox.has_room()) {
                    let now = self.handler.shared.clock.wall();
                    let frame = outbound::notice(notice.level, &notice.message, now);
                    self.outbox.push(frame);
                }
                Ok(())
            }
        }
    }

    fn due(&self, connection: &impl Connection) -> Instant {
        let due = self.rights.due().min(connection.due());
        self.outbox.retry_due().map_or(due, |retry| retry.min(due))
    }

    fn check_expiry(&mut self, now: Instant) -> Result<(), Close> {
        self.outbox.clear_retry(now);
        if let Some(warning) = self.rights.check_expiry(&self.handler, now)? {
            self.outbox.push(warning);
        }
        Ok(())
    }
}

/// The result of the frame that is being handled; never returns without one. Cancel-safe.
async fn finished(handling: &mut Option<Handling>) -> Handled {
    match handling {
        Some(under_way) => {
            let Ok(handled) = under_way.await;
            *handling = None;
            handled
        }
        None => std::future::pending().await,
    }
}
