//! One task per socket: reads frames, writes from its cursor, and notices when it is over.
//!
//! Everything that is ready is fed and flushed once. While a flush is under way nothing new is taken
//! from the journal, so a slow reader holds up nobody but itself and costs no more than one buffer.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tower::ServiceExt as _;

use super::Door;
use super::close::CloseReason;
use super::cursor::{Cursor, Next};
use super::desk::{Desk, Outcome};
use super::stack::Frame;
use super::upgrade::Position;
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::ConnectionId;
use crate::limits::SlidingWindow;
use crate::session::{Found, Member, Session};
use crate::wire::outbound::{self, Ack, Resume, StateParts};

const PING_EVERY: Duration = Duration::from_secs(25);
const PONG_WITHIN: Duration = Duration::from_secs(10);
/// While output is pending, alive means that some of it went out within this.
const PROGRESS_WITHIN: Duration = Duration::from_mins(1);
/// How long before its token ends a client is told.
const EXPIRY_NOTICE: Duration = Duration::from_mins(1);
/// How long a close may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// After a restart, clients come back within this, each at its own moment.
const SPREAD_MS: u64 = 3_000;
/// Answers that may wait for a slow reader. Full: its frames are not read.
const ANSWERS: usize = 32;
const WHOLE: StateParts = StateParts {
    history: true,
    settings: true,
};

/// What a connection is made of.
pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A socket that nobody has joined yet.
pub(super) struct Connection {
    door: Arc<Door>,
    id: ConnectionId,
    sink: SplitSink<Socket, Message>,
    stream: SplitStream<Socket>,
}

/// Why the loop ends.
enum End {
    /// The other end is gone, or said goodbye.
    Gone,
    /// We close, perhaps after a last word.
    Close(Option<Utf8Bytes>, CloseReason),
}

impl Connection {
    pub(super) fn new(door: Arc<Door>, socket: Socket) -> Self {
        let (sink, stream) = socket.split();
        Self {
            door,
            id: ConnectionId::new(),
            sink,
            stream,
        }
    }

    /// Says why and closes.
    pub(super) async fn turn_away(mut self, code: Code, message: &str, reason: CloseReason) {
        let word = outbound::error(None, code, message, None, None, self.door.clock.wall());
        self.say_goodbye(Some(word), reason).await;
    }

    /// Joins a session and serves the socket to its end.
    pub(super) async fn run(
        mut self,
        principal: Principal,
        session: Session,
        position: Option<Position>,
        address: IpAddr,
    ) {
        self.door.metrics.open.inc();
        let membership = self.door.sessions.members().join(Member {
            connection: self.id,
            session: session.id(),
            user: principal.user,
            username: principal.username.clone(),
            address,
            since: self.door.clock.wall(),
        });
        let end = tokio::select! {
            biased;
            () = membership.leave().cancelled() => End::Close(None, CloseReason::RESTART),
            end = self.run_inner(principal, &session, position) => end,
        };
        drop(membership);
        self.door.metrics.open.dec();
        match end {
            End::Close(word, reason) => self.say_goodbye(word, reason).await,
            // Answers the peer's close, if that is how it went.
            End::Gone => drop(tokio::time::timeout(FAREWELL, self.sink.close()).await),
        }
    }

    async fn run_inner(
        &mut self,
        principal: Principal,
        session: &Session,
        position: Option<Position>,
    ) -> End {
        let door = Arc::clone(&self.door);
        let heartbeats = SlidingWindow::new(
            door.limits.heartbeats_per_minute,
            Duration::from_mins(1),
            NonZeroU32::MIN,
            door.clock.clone(),
        );
        let desk = Arc::new(Desk {
            door,
            session: session.clone(),
            connection: self.id,
            heartbeats,
        });
        let Some((mut cursor, first)) = begin(&desk, &principal, position).await else {
            return End::Close(None, CloseReason::RESTART);
        };
        let mut visit = Visit {
            answers: first.into(),
            principal,
            pulse: Pulse::new(),
            flushing: false,
            told_expiring: false,
        };
        match self.serve(&desk, &mut cursor, &mut visit).await {
            Ok(end) => end,
            Err(error) => farewell_for(&error),
        }
    }

    async fn serve(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
    ) -> Result<End, Error> {
        let mut head = desk.session.journal().head();
        let mut changes = desk.door.auth.changes();
        let mut notices = desk.door.notices.hear();
        loop {
            if !visit.flushing {
                let target = *head.borrow_and_update();
                visit.flushing = self.fill(desk, cursor, visit, target).await?;
            }
            let may_read = visit.answers.len() < ANSWERS;
            tokio::select! {
                biased;
                () = desk.door.stop.cancelled() => {
                    return Ok(End::Close(None, CloseReason::RESTART));
                }
                () = desk.session.ended().cancelled() => {
                    return Ok(End::Close(None, CloseReason::SESSION_ENDED));
                }
                () = desk.session.gone().cancelled() => {
                    return Ok(End::Close(None, CloseReason::RESTART));
                }
                // Rights first: nothing more is sent to somebody who lost them.
                _ = changes.changed() => {
                    if !desk.door.auth.stands(&visit.principal) {
                        return Ok(unauthenticated(desk, Code::AuthFailed));
                    }
                }
                () = tokio::time::sleep_until(visit.next_expiry(desk)) => {
                    if let Some(end) = visit.expire(desk) {
                        return Ok(end);
                    }
                }
                flushed = self.sink.flush(), if visit.flushing => {
                    flushed?;
                    visit.flushing = false;
                    visit.pulse.progress();
                }
                frame = self.stream.next(), if may_read => {
                    let Some(frame) = frame else { return Ok(End::Gone) };
                    if let Some(end) = receive(desk, visit, frame?).await {
                        return Ok(end);
                    }
                }
                grown = head.changed(), if !visit.flushing => {
                    if grown.is_err() {
                        return Ok(End::Close(None, CloseReason::RESTART));
                    }
                }
                notice = notices.recv(), if may_read => {
                    if let Ok(notice) = notice {
                        let now = desk.door.clock.wall();
                        let frame = outbound::notice(notice.level, &notice.message, now);
                        visit.answers.push_back(frame);
                    }
                }
                () = tokio::time::sleep_until(visit.pulse.next()) => {
                    if visit.pulse.is_dead(visit.flushing) {
                        return Ok(End::Close(None, CloseReason::DEAD_PEER));
                    }
                    if visit.pulse.ping_is_due(visit.flushing) {
                        self.sink.feed(Message::Ping(Vec::new().into())).await?;
                        visit.flushing = true;
                    }
                }
            }
        }
    }

    /// Feeds what is ready: answers, then events. True if there is something to flush.
    async fn fill(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
        head: u64,
    ) -> Result<bool, Error> {
        let mut frames: Vec<Utf8Bytes> = visit.answers.drain(..).collect();
        if cursor.sent() < head {
            match cursor.next(head).await {
                Ok(Next::Frames(next)) => frames.extend(next),
                Ok(Next::Snapshot) => {
                    if let Some(state) = desk.session.state().await {
                        cursor.jump(state.offset);
                        frames.push(desk.full_state(&state, WHOLE, None));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, connection.id = %self.id, "a journal cannot be read now");
                }
            }
        }
        if cursor.violations > 0 {
            desk.door
                .metrics
                .isolation_violations
                .inc_by(cursor.violations);
            cursor.violations = 0;
        }
        desk.door.metrics.frames_out.inc_by(frames.len() as u64);
        let any = !frames.is_empty();
        for frame in frames {
            self.sink.feed(Message::Text(frame)).await?;
        }
        Ok(any)
    }

    /// A last word and a close frame, to a peer that may not listen any more.
    async fn say_goodbye(&mut self, word: Option<Utf8Bytes>, reason: CloseReason) {
        let frame = if reason == CloseReason::RESTART {
            reason.frame_after(self.door.spread(SPREAD_MS))
        } else {
            reason.frame()
        };
        let goodbye = async {
            if let Some(word) = word {
                self.sink.feed(Message::Text(word)).await?;
            }
            self.sink.send(Message::Close(Some(frame))).await?;
            // The peer answers with its own close; until then its data may be under way.
            while let Some(Ok(_)) = self.stream.next().await {}
            Ok::<(), Error>(())
        };
        if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, goodbye).await {
            tracing::debug!(%error, connection.id = %self.id, "a socket was gone before its close");
        }
    }
}

/// What a connection remembers between two turns of its loop.
struct Visit {
    principal: Principal,
    answers: VecDeque<Utf8Bytes>,
    pulse: Pulse,
    flushing: bool,
    told_expiring: bool,
}

impl Visit {
    /// The next moment at which the token's end matters. Counted from now by a clock that does not
    /// jump.
    fn next_expiry(&self, desk: &Arc<Desk>) -> Instant {
        let left = self.left(desk);
        let wait = if self.told_expiring {
            left
        } else {
            left.saturating_sub(EXPIRY_NOTICE)
        };
        Instant::now() + wait
    }

    fn left(&self, desk: &Arc<Desk>) -> Duration {
        let left = self
            .principal
            .expires_at
            .duration_since(desk.door.clock.wall());
        left.try_into().unwrap_or(Duration::ZERO)
    }

    /// The token ends: tells so once, then closes.
    fn expire(&mut self, desk: &Arc<Desk>) -> Option<End> {
        if self.left(desk).is_zero() {
            return Some(unauthenticated(desk, Code::SessionExpired));
        }
        if !self.told_expiring {
            self.told_expiring = true;
            let now = desk.door.clock.wall();
            let ends = self.principal.expires_at;
            self.answers
                .push_back(outbound::token_expiring(desk.session.id(), ends, now));
        }
        None
    }
}

/// The last word to somebody whose rights have ended.
fn unauthenticated(desk: &Arc<Desk>, code: Code) -> End {
    let message = match code {
        Code::SessionExpired => "The token has expired; get a new one and come back.",
        _ => "This login has ended; log in again.",
    };
    let session = Some(desk.session.id());
    let now = desk.door.clock.wall();
    let word = outbound::error(session, code, message, None, None, now);
    End::Close(Some(word), CloseReason::UNAUTHENTICATED)
}

/// Signs of life.
struct Pulse {
    heard: Instant,
    pinged: Option<Instant>,
    progressed: Instant,
}

impl Pulse {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            heard: now,
            pinged: None,
            progressed: now,
        }
    }

    fn hear(&mut self) {
        self.heard = Instant::now();
        self.pinged = None;
    }

    fn progress(&mut self) {
        self.progressed = Instant::now();
    }

    fn next(&self) -> Instant {
        match self.pinged {
            Some(pinged) => pinged + PONG_WITHIN,
            None => self.heard + PING_EVERY,
        }
        .max(Instant::now() + Duration::from_millis(100))
    }

    fn ping_is_due(&mut self, flushing: bool) -> bool {
        let due = !flushing && self.pinged.is_none() && self.heard.elapsed() >= PING_EVERY;
        if due {
            self.pinged = Some(Instant::now());
        }
        due
    }

    /// A ping waits behind what the peer has not read yet: then only standing still counts.
    fn is_dead(&self, flushing: bool) -> bool {
        if flushing {
            self.progressed.elapsed() >= PROGRESS_WITHIN && self.heard.elapsed() >= PROGRESS_WITHIN
        } else {
            self.pinged.is_some_and(|pinged| {
                pinged.elapsed() >= PONG_WITHIN && self.progressed.elapsed() >= PONG_WITHIN
            })
        }
    }
}

/// The cursor of a new connection and the first frames: the acknowledgement, perhaps the state.
async fn begin(
    desk: &Arc<Desk>,
    principal: &Principal,
    position: Option<Position>,
) -> Option<(Cursor, Vec<Utf8Bytes>)> {
    let journal = desk.session.journal();
    let head = *journal.head().borrow();
    let (resume, sent) = match position {
        None => (Resume::New, head),
        Some(position) if can_replay(desk, position, head).await => {
            (Resume::Replayed, position.after)
        }
        Some(_) => (Resume::Snapshot, head),
    };
    let ack = Ack {
        session: desk.session.id(),
        server_version: env!("CARGO_PKG_VERSION"),
        capabilities: desk.door.sessions.capabilities(desk.session.agent()),
        connection: desk.connection,
        agent: desk.session.agent(),
        epoch: journal.epoch(),
        offset: head,
        resume,
        heartbeat_seconds: PING_EVERY.as_secs(),
        limits: desk.door.told_limits(),
        token_expires_at: principal.expires_at,
        at: desk.door.clock.wall(),
    };
    let mut frames = vec![outbound::connection_ack(&ack)];
    let mut cursor = Cursor::new(desk.session.id(), journal.clone(), sent, head);
    if matches!(resume, Resume::Snapshot) {
        let state = desk.session.state().await?;
        cursor.jump(state.offset);
        frames.push(desk.full_state(&state, WHOLE, None));
    }
    Some((cursor, frames))
}

/// Is everything after that position there?
async fn can_replay(desk: &Arc<Desk>, position: Position, head: u64) -> bool {
    let journal = desk.session.journal();
    let same_epoch = position.epoch.is_none_or(|epoch| epoch == journal.epoch());
    same_epoch
        && position.after <= head
        && matches!(
            journal.after(position.after, 1).await,
            Ok(Found::Entries(_))
        )
}

/// What a frame leads to; `Some` if it is the last.
async fn receive(desk: &Arc<Desk>, visit: &mut Visit, frame: Message) -> Option<End> {
    visit.pulse.hear();
    match frame {
        Message::Text(text) => {
            desk.door.metrics.frames_in.inc();
            let frame = Frame {
                text,
                principal: visit.principal.clone(),
                desk: Arc::clone(desk),
            };
            let Ok(outcome) = desk.door.stack.clone().oneshot(frame).await;
            match outcome {
                Outcome::Silent => {}
                Outcome::Answer(answer) => visit.answers.push_back(answer),
                Outcome::Refreshed(principal, answer) => {
                    visit.principal = principal;
                    visit.told_expiring = false;
                    visit.answers.push_back(answer);
                }
            }
            None
        }
        Message::Binary(_) => Some(End::Close(None, CloseReason::UNSUPPORTED_DATA)),
        Message::Close(_) => Some(End::Gone),
        // The library answers pings itself, with the next flush.
        Message::Ping(_) => {
            visit.flushing = true;
            None
        }
        Message::Pong(_) | Message::Frame(_) => None,
    }
}

fn farewell_for(error: &Error) -> End {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { .. }) => {
            End::Close(None, CloseReason::TOO_LARGE)
        }
        Error::Utf8(_) => End::Close(None, CloseReason::BAD_TEXT),
        Error::Protocol(_) => End::Close(None, CloseReason::PROTOCOL_ERROR),
        _ => End::Gone,
    }
}
