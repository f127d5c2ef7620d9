//! One task per socket: reads frames, writes from its cursor, and notices when it is over.
//!
//! Everything that is ready is fed and flushed once. While a flush is under way nothing new is taken
//! from the journal, so a slow reader holds up nobody but itself and costs no more than one buffer.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::budget::Budget;
use super::close::CloseReason;
use super::cursor::Cursor;
use super::desk::Desk;
use super::greeting;
use super::meter::{Meter, Written};
use super::pulse::Pulse;
use super::upgrade::Position;
use super::visit::{End, Visit, answered, unauthenticated};
use super::{Door, farewell};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::ConnectionId;
use crate::limits::SlidingWindow;
use crate::session::{Member, Session};
use crate::wire::outbound;

/// After a restart, clients come back within this, each at its own moment.
const SPREAD_MS: u64 = 3_000;
/// Answers that may wait for a slow reader. Full: its frames are not read.
const ANSWERS: usize = 32;
const ANSWER_BYTES: usize = 1024 * 1024;
/// Less than the socket's own buffer, so that feeding this much never waits.
const BUFFER_BYTES: usize = 60 * 1024;

/// What a connection is made of.
pub(super) type Socket = WebSocketStream<Meter<TokioIo<Upgraded>>>;

/// A socket that nobody has joined yet.
pub(super) struct Connection {
    door: Arc<Door>,
    id: ConnectionId,
    sink: SplitSink<Socket, Message>,
    stream: SplitStream<Socket>,
    written: Written,
    budget: Budget,
}

impl Connection {
    pub(super) fn new(door: Arc<Door>, socket: Socket, written: Written, budget: Budget) -> Self {
        let (sink, stream) = socket.split();
        Self {
            door,
            id: ConnectionId::new(),
            sink,
            stream,
            written,
            budget,
        }
    }

    /// Says why and closes.
    pub(super) async fn turn_away(self, code: Code, message: &str, reason: CloseReason) {
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
            // Nobody is there to read a farewell.
            End::Close(_, CloseReason::DEAD_PEER) => {}
            End::Close(word, reason) => self.say_goodbye(word, reason).await,
            End::Gone => farewell::answer(self.whole()).await,
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
        let Some((mut cursor, first)) = greeting::begin(&desk, &principal, position).await else {
            return End::Close(None, CloseReason::RESTART);
        };
        let pulse = Pulse::new(self.written.clone());
        let mut visit = Visit::new(&desk, principal, first, pulse);
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
        // What happened between the look at the token and now woke nobody.
        if !desk.door.auth.stands(&visit.principal) {
            return Ok(unauthenticated(desk, Code::AuthFailed));
        }
        // Made once and polled again: waiting anew for each of these at every event would cost more
        // than the event.
        let mut stop = pin!(desk.door.stop.cancelled());
        let mut over = pin!(desk.session.over().cancelled());
        let mut alarm = pin!(tokio::time::sleep_until(visit.due()));
        loop {
            if !visit.flushing {
                let target = *head.borrow_and_update();
                visit.flushing = self.fill(desk, cursor, visit, target).await?;
            }
            // Too early is no harm: then there is nothing to do but to set it anew.
            if visit.due() < alarm.deadline() {
                alarm.as_mut().reset(visit.due());
            }
            let has_room = visit.waiting.len() < ANSWERS && visit.waiting_bytes() < ANSWER_BYTES;
            tokio::select! {
                biased;
                () = &mut stop => return Ok(End::Close(None, CloseReason::RESTART)),
                () = &mut over => return Ok(End::Close(None, desk.end_of_session())),
                // Rights first: nothing more is sent to somebody who lost them.
                _ = changes.changed() => {
                    if !desk.door.auth.stands(&visit.principal) {
                        return Ok(unauthenticated(desk, Code::AuthFailed));
                    }
                }
                () = &mut alarm => {
                    if let Some(end) = self.look_after(desk, visit).await? {
                        return Ok(end);
                    }
                    alarm.as_mut().reset(visit.due());
                }
                flushed = self.sink.flush(), if visit.flushing => {
                    flushed?;
                    visit.flushing = false;
                }
                // One frame at a time: answers come in the order of what was asked.
                outcome = answered(&mut visit.answering) => visit.take(desk, outcome),
                frame = self.stream.next(), if has_room && visit.answering.is_none() => {
                    let Some(frame) = frame else { return Ok(End::Gone) };
                    let frame = frame?;
                    if let Err(reason) = self.budget.count(&frame) {
                        return Ok(End::Close(None, reason));
                    }
                    if let Some(end) = visit.receive(desk, frame) {
                        return Ok(end);
                    }
                }
                grown = head.changed(), if !visit.flushing => {
                    if grown.is_err() {
                        return Ok(End::Close(None, CloseReason::RESTART));
                    }
                }
                notice = notices.recv(), if has_room => {
                    if let Ok(notice) = notice {
                        let now = desk.door.clock.wall();
                        let frame = outbound::notice(notice.level, &notice.message, now);
                        visit.waiting.push_back(frame);
                    }
                }
            }
        }
    }

    /// What is due by the clock: the token's end, another look into the journal, a sign of life.
    async fn look_after(
        &mut self,
        desk: &Arc<Desk>,
        visit: &mut Visit,
    ) -> Result<Option<End>, Error> {
        let now = Instant::now();
        if visit.next_expiry() <= now
            && let Some(end) = visit.expire(desk)
        {
            return Ok(Some(end));
        }
        visit.retry = visit.retry.filter(|moment| *moment > now);
        if visit.pulse.is_dead(visit.flushing) {
            return Ok(Some(End::Close(None, CloseReason::DEAD_PEER)));
        }
        if visit.pulse.ping_is_due(visit.flushing) {
            self.sink.feed(Message::Ping(Vec::new().into())).await?;
            visit.flushing = true;
        }
        Ok(None)
    }

    /// Feeds what is ready, no more than the socket's buffer holds: beyond that, feeding would wait
    /// for the reader, and this task would be deaf meanwhile. True if there is something to flush.
    async fn fill(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
        head: u64,
    ) -> Result<bool, Error> {
        if visit.waiting.is_empty() && cursor.sent() < head {
            visit.take_from(desk, cursor, head).await;
        }
        let mut bytes = 0;
        while let Some(frame) = visit.waiting.front()
            && (bytes == 0 || bytes + frame.len() < BUFFER_BYTES)
            && let Some(frame) = visit.waiting.pop_front()
        {
            bytes += frame.len();
            desk.door.metrics.frames_out.inc();
            self.sink.feed(Message::Text(frame)).await?;
        }
        Ok(bytes > 0)
    }

    async fn say_goodbye(self, word: Option<Utf8Bytes>, reason: CloseReason) {
        let frame = if reason == CloseReason::RESTART {
            reason.frame_after(self.door.spread(SPREAD_MS))
        } else {
            reason.frame()
        };
        farewell::say(self.whole(), word, frame).await;
    }

    fn whole(self) -> Socket {
        let socket = self.stream.reunite(self.sink);
        socket.expect("both halves are of one socket")
    }
}

fn farewell_for(error: &Error) -> End {
    farewell::reason_for(error).map_or(End::Gone, |reason| End::Close(None, reason))
}
