//! Connection: one task per socket, from its first byte to its last.
//!
//! What is ready is loaded and flushed once. While a flush is pending nothing more is taken from the
//! journal, so a slow reader delays only itself and costs one buffer.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::byte_limits::Meter;
use super::closing_handshake;
use super::control_frame_limits::ControlFrameLimits;
use super::frame_writer::FrameWriter;
use super::keepalive::Keepalive;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::ConnectionId;
use crate::domain::shared_text::Text;
use crate::member::{Close, CloseReason, Connection, End, Joining, Member, Outbox, Shared};
use crate::wire::outbound;

pub(super) type Socket = WebSocketStream<FrameWriter<Meter<TcpStream>>>;

pub(super) struct WebSocket {
    pub(super) id: ConnectionId,
    shared: Arc<Shared>,
    socket: Socket,
    limits: ControlFrameLimits,
    keepalive: Keepalive,
    /// A flush is pending: the client has not taken everything yet.
    is_flushing: bool,
    /// When the oldest event in this flush was committed.
    oldest: Option<std::time::Instant>,
}

impl WebSocket {
    /// Boxed to keep the futures small that hand it on.
    pub(super) fn new(
        shared: Arc<Shared>,
        socket: Socket,
        limits: ControlFrameLimits,
    ) -> Box<Self> {
        Box::new(Self {
            id: ConnectionId::new(),
            keepalive: Keepalive::new(shared.ping_interval),
            shared,
            socket,
            limits,
            is_flushing: false,
            oldest: None,
        })
    }

    /// Closes a socket that joins no session.
    pub(super) async fn refuse(
        self: Box<Self>,
        code: ErrorCode,
        message: &str,
        reason: CloseReason,
    ) {
        let error = outbound::last_word(None, code, message, self.shared.clock.wall());
        self.close(Some(error), reason).await;
    }

    /// Joins a session and serves the socket to its end.
    pub(super) async fn run(mut self: Box<Self>, joining: Joining) {
        let joined = Box::pin(Member::join(Arc::clone(&self.shared), joining)).await;
        let end = match joined {
            Some(mut member) => member.serve(&mut *self).await,
            None => CloseReason::RESTART.into(),
        };
        match end {
            // Most likely nothing reads it any more.
            End::Close(Close {
                reason: reason @ CloseReason::DEAD_PEER,
                ..
            }) => closing_handshake::try_send(self.socket, closing_handshake::frame(reason, None)),
            // Boxed: needed once, it would enlarge the task for as long as the socket is open.
            End::Close(close) => Box::pin(self.close(close.last_message, close.reason)).await,
            End::Gone => Box::pin(closing_handshake::answer(self.socket)).await,
        }
    }

    async fn close(self: Box<Self>, last_message: Option<Text>, reason: CloseReason) {
        let frame = closing_handshake::frame(reason, self.shared.retry_after_ms(reason));
        closing_handshake::send(self.socket, last_message, frame).await;
    }

    /// Returns the text of a frame that is for the session.
    fn receive(&mut self, frame: Message) -> Result<Option<Text>, End> {
        self.limits.count(&frame)?;
        self.keepalive.frame_received();
        match frame {
            Message::Text(text) => Ok(Some(text.as_str().into())),
            Message::Binary(_) => Err(CloseReason::UNSUPPORTED_DATA.into()),
            Message::Close(_) => Err(End::Gone),
            // The library answers pings itself, with the next flush.
            Message::Ping(_) => {
                self.is_flushing = true;
                Ok(None)
            }
            Message::Pong(_) | Message::Frame(_) => Ok(None),
        }
    }

    fn flushed(&mut self) {
        self.is_flushing = false;
        if let Some(committed) = self.oldest.take() {
            self.shared.metrics.delivery.observe(committed.elapsed());
        }
    }
}

impl Connection for WebSocket {
    fn can_write(&self) -> bool {
        !self.is_flushing
    }

    async fn write(&mut self, outbox: &mut Outbox) -> Result<bool, End> {
        let mut bytes = 0;
        while self.socket.get_ref().has_room()
            && let Some(frame) = outbox.pop_for_batch(bytes)
        {
            bytes += frame.text.len();
            self.oldest = self.oldest.or(frame.committed);
            self.shared.metrics.frames_out.inc();
            self.socket.get_mut().load(frame.text);
        }
        if bytes == 0 {
            return Ok(false);
        }
        match poll_fn(|context| Poll::Ready(self.socket.poll_flush_unpin(context))).await {
            Poll::Ready(flushed) => {
                flushed.map_err(|error| end(&error))?;
                self.flushed();
            }
            Poll::Pending => self.is_flushing = true,
        }
        Ok(true)
    }

    async fn next(&mut self, can_read: bool) -> Result<Option<Text>, End> {
        match progress(&mut self.socket, self.is_flushing, can_read).await {
            Progress::Flushed(flushed) => {
                flushed.map_err(|error| end(&error))?;
                self.flushed();
                Ok(None)
            }
            Progress::Received(None) => Err(End::Gone),
            Progress::Received(Some(frame)) => self.receive(frame.map_err(|error| end(&error))?),
        }
    }

    fn due(&self) -> Instant {
        self.keepalive.due(self.is_flushing)
    }

    async fn keep_alive(&mut self) -> Result<(), End> {
        let written = self.socket.get_ref().get_ref().written();
        if self.keepalive.is_dead(self.is_flushing, written) {
            return Err(CloseReason::DEAD_PEER.into());
        }
        if self.limits.is_overdue(Instant::now()) {
            return Err(CloseReason::UNFINISHED.into());
        }
        if self.keepalive.take_ping(self.is_flushing) {
            let ping = self.socket.feed(Message::Ping(Vec::new().into()));
            ping.await.map_err(|error| end(&error))?;
            self.is_flushing = true;
        }
        Ok(())
    }
}

enum Progress {
    Flushed(Result<(), Error>),
    /// `None` if the client is gone.
    Received(Option<Result<Message, Error>>),
}

/// Waits for the pending flush, or for a frame. Cancel-safe: nothing is taken that is not returned.
async fn progress(socket: &mut Socket, is_flushing: bool, can_read: bool) -> Progress {
    poll_fn(|context| {
        if is_flushing && let Poll::Ready(flushed) = socket.poll_flush_unpin(context) {
            return Poll::Ready(Progress::Flushed(flushed));
        }
        if can_read && let Poll::Ready(frame) = socket.poll_next_unpin(context) {
            return Poll::Ready(Progress::Received(frame));
        }
        Poll::Pending
    })
    .await
}

fn end(error: &Error) -> End {
    closing_handshake::reason_for(error).map_or(End::Gone, End::from)
}
