//! One task per socket: reads frames, writes from its cursor, and notices when it is over.
//!
//! Everything that is ready is loaded and flushed once. While a flush is under way nothing new is taken
//! from the journal, so a slow reader holds up nobody but itself and costs no more than one buffer.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::budget::Budget;
use super::farewell;
use super::freight::Freight;
use super::meter::{Meter, Written};
use super::pulse::Pulse;
use super::visit::{End, Visit, answered};
use crate::desk::{
    self, CloseReason, Cursor, Desk, Ears, Goodbye, Position, Reception, Stay, Through,
};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::ConnectionId;
use crate::session::{Member, Session};
use crate::telemetry::Remote;
use crate::wire::outbound;

/// Short texts are written together up to this much.
const TOGETHER_BYTES: usize = 60 * 1024;

/// What a connection is made of.
pub(super) type Socket = WebSocketStream<Freight<Meter<TcpStream>>>;

/// A socket that nobody has joined yet.
pub(super) struct Connection {
    door: Arc<Reception>,
    id: ConnectionId,
    socket: Socket,
    written: Written,
    budget: Budget,
}

impl Connection {
    /// Boxed: whatever is handed from one future to the next takes its room in each of them.
    pub(super) fn new(
        door: Arc<Reception>,
        socket: Socket,
        written: Written,
        budget: Budget,
    ) -> Box<Self> {
        Box::new(Self {
            door,
            id: ConnectionId::new(),
            socket,
            written,
            budget,
        })
    }

    /// Says why and closes.
    pub(super) async fn turn_away(self: Box<Self>, code: Code, message: &str, reason: CloseReason) {
        let word = outbound::last_word(None, code, message, self.door.clock.wall());
        self.say_goodbye(Some(word), reason).await;
    }

    /// Joins a session and serves the socket to its end.
    pub(super) async fn run(
        mut self: Box<Self>,
        principal: Principal,
        session: Session,
        position: Option<Position>,
        (address, remote): (IpAddr, Option<Remote>),
    ) {
        let open = self.door.metrics.opens(Through::Socket);
        let membership = self.door.sessions.members().join(Member {
            connection: self.id,
            session: session.id(),
            user: principal.user,
            username: principal.username.clone(),
            address,
            since: self.door.clock.wall(),
        });
        let leave = membership.leave().clone();
        let end = self
            .run_inner(principal, &session, position, (address, remote), leave)
            .await;
        drop(membership);
        drop(open);
        match end {
            // Most likely nobody is there to read it.
            End::Close(_, reason @ CloseReason::DEAD_PEER) => {
                farewell::drop_a_word(self.socket, reason.frame());
            }
            // Boxed, as everything that most connections need only once: it would take room in each
            // of them as long as they are open.
            End::Close(word, reason) => Box::pin(self.say_goodbye(word, reason)).await,
            End::Gone => Box::pin(farewell::answer(self.socket)).await,
        }
    }

    async fn run_inner(
        &mut self,
        principal: Principal,
        session: &Session,
        position: Option<Position>,
        (address, remote): (IpAddr, Option<Remote>),
        leave: CancellationToken,
    ) -> End {
        let reception = Arc::clone(&self.door);
        let mut desk = Desk::new(reception, session.clone(), self.id, address);
        desk.remote = remote;
        let desk = Arc::new(desk);
        let greeting = Box::pin(desk::begin(&desk, &principal, position)).await;
        let Some((mut cursor, first)) = greeting else {
            return End::Close(None, CloseReason::RESTART);
        };
        let pulse = Pulse::new(self.written.clone(), self.door.ping);
        let stay = Stay::new(&desk, principal, first);
        let mut visit = Visit::new(stay, pulse);
        match self.serve(&desk, &mut cursor, &mut visit, leave).await {
            Ok(end) => end,
            Err(error) => farewell_for(&error),
        }
    }

    async fn serve(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
        leave: CancellationToken,
    ) -> Result<End, Error> {
        let journal = desk.session.journal();
        let mut ears = Ears::new(desk, leave);
        // What happened between the look at the token and now woke nobody.
        if !desk.reception.auth.stands(&visit.stay.principal) {
            return Ok(Goodbye::unauthenticated(desk, Code::AuthFailed).into());
        }
        if let Some(goodbye) = visit.stay.shut_out(desk) {
            return Ok(goodbye.into());
        }
        let mut alarm = pin!(tokio::time::sleep_until(visit.due()));
        loop {
            self.send(desk, cursor, visit).await?;
            if let Some(goodbye) = visit.stay.shut_out(desk) {
                return Ok(goodbye.into());
            }
            // Too early is no harm: then there is nothing to do but to set it anew.
            if visit.due() < alarm.deadline() {
                alarm.as_mut().reset(visit.due());
            }
            // Full: its frames are not read.
            let may_read = visit.answering.is_none() && visit.stay.has_room();
            tokio::select! {
                biased;
                // Rights first: nothing more is sent to somebody who lost them.
                signal = ears.hear() => {
                    if let Some(goodbye) = visit.stay.heed(desk, signal) {
                        return Ok(goodbye.into());
                    }
                }
                () = &mut alarm => {
                    if let Some(end) = self.look_after(desk, visit).await? {
                        return Ok(end);
                    }
                    alarm.as_mut().reset(visit.due());
                }
                // One frame at a time: answers come in the order of what was asked.
                outcome = answered(&mut visit.answering) => visit.take(desk, outcome),
                turn = turn(&mut self.socket, visit.flushing, may_read) => match turn {
                    Turn::Flushed(flushed) => {
                        flushed?;
                        visit.flushing = false;
                        visit.delivered(desk);
                    }
                    Turn::Read(frame) => {
                        let Some(frame) = frame else { return Ok(End::Gone) };
                        let frame = frame?;
                        if let Err(reason) = self.budget.count(&frame) {
                            return Ok(End::Close(None, reason));
                        }
                        if let Some(end) = visit.receive(desk, frame) {
                            return Ok(end);
                        }
                    }
                },
                // Also while storage does not answer: another look is due by the clock.
                () = journal.grows_beyond(cursor.sent()), if visit.is_ready_for_more() => {}
            }
        }
    }

    /// Sends what is ready, as long as the reader takes it at once.
    async fn send(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
    ) -> Result<(), Error> {
        while !visit.flushing {
            let head = desk.session.journal().head();
            if !self.fill(desk, cursor, visit, head).await {
                return Ok(());
            }
            let flushed = poll_fn(|context| Poll::Ready(self.socket.poll_flush_unpin(context)));
            match flushed.await {
                Poll::Ready(flushed) => {
                    flushed?;
                    visit.delivered(desk);
                }
                Poll::Pending => visit.flushing = true,
            }
        }
        Ok(())
    }

    /// What is due by the clock: the token's end, another look into the journal, a sign of life.
    async fn look_after(
        &mut self,
        desk: &Arc<Desk>,
        visit: &mut Visit,
    ) -> Result<Option<End>, Error> {
        if let Some(goodbye) = visit.stay.look_at_clock(desk, Instant::now()) {
            return Ok(Some(goodbye.into()));
        }
        if visit.pulse.is_dead(visit.flushing) {
            return Ok(Some(End::Close(None, CloseReason::DEAD_PEER)));
        }
        if self.budget.is_overdue(Instant::now()) {
            return Ok(Some(End::Close(None, CloseReason::UNFINISHED)));
        }
        if visit.pulse.ping_is_due(visit.flushing) {
            self.socket.feed(Message::Ping(Vec::new().into())).await?;
            visit.flushing = true;
        }
        Ok(None)
    }

    /// Loads what is ready, as much as is written at once. True if there is something to flush.
    async fn fill(
        &mut self,
        desk: &Arc<Desk>,
        cursor: &mut Cursor,
        visit: &mut Visit,
        head: u64,
    ) -> bool {
        if visit.stay.waiting.is_empty() {
            visit.stay.hear_of_others(desk);
        }
        if visit.stay.waiting.is_empty() && cursor.sent() < head {
            visit.stay.take_from(desk, cursor, head).await;
        }
        let mut bytes = 0;
        while let Some(frame) = visit.stay.waiting.front()
            && (bytes == 0 || bytes + frame.text.len() < TOGETHER_BYTES)
            && self.socket.get_ref().has_room()
            && let Some(frame) = visit.stay.waiting.pop_front()
        {
            bytes += frame.text.len();
            // The oldest of them stands for all.
            visit.oldest = visit.oldest.or(frame.committed);
            desk.reception.metrics.frames_out.inc();
            self.socket.get_mut().load(frame.text);
        }
        bytes > 0
    }

    async fn say_goodbye(self: Box<Self>, word: Option<Utf8Bytes>, reason: CloseReason) {
        let frame = match self.door.retry_ms(reason) {
            Some(millis) => reason.frame_after(millis),
            None => reason.frame(),
        };
        farewell::say(self.socket, word, frame).await;
    }
}

/// What a socket came to.
enum Turn {
    /// Everything went out.
    Flushed(Result<(), Error>),
    /// A frame came in; nothing if the other end is gone.
    Read(Option<Result<Message, Error>>),
}

/// Goes on with what the socket has to do. Cancel-safe: nothing is taken that is not returned.
async fn turn(socket: &mut Socket, flushing: bool, reading: bool) -> Turn {
    poll_fn(|context| {
        if flushing && let Poll::Ready(flushed) = socket.poll_flush_unpin(context) {
            return Poll::Ready(Turn::Flushed(flushed));
        }
        if reading && let Poll::Ready(frame) = socket.poll_next_unpin(context) {
            return Poll::Ready(Turn::Read(frame));
        }
        Poll::Pending
    })
    .await
}

fn farewell_for(error: &Error) -> End {
    farewell::reason_for(error).map_or(End::Gone, |reason| End::Close(None, reason))
}
