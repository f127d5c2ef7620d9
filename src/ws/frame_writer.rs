//! Frame writer: writes text frames below the WebSocket library.
//!
//! Short texts are copied into one buffer and go out together; a long one is written without a copy,
//! shared with every other reader. No buffer is kept after the write: the library's own would stay as
//! large as the largest frame for as long as the socket is open. What the library writes itself, such
//! as pings, goes between two texts, never into one.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::domain::shared_text::Text;

/// Longer texts are not copied.
const SHORT_BYTES: usize = 4 * 1024;

/// A stream under a WebSocket that takes whole texts besides what the library writes.
pub(super) struct FrameWriter<T> {
    stream: T,
    /// Short frames in order; of a long one only the header.
    short: Vec<u8>,
    /// The long text after them.
    long: Bytes,
    /// Bytes of both that are written.
    written: usize,
    /// The library is in the middle of a frame of its own.
    is_mid_frame: bool,
}

impl<T> FrameWriter<T> {
    pub(super) fn new(stream: T) -> Self {
        Self {
            stream,
            short: Vec::new(),
            long: Bytes::new(),
            written: 0,
            is_mid_frame: false,
        }
    }

    /// False behind a long text: it is the last of its batch.
    pub(super) fn has_room(&self) -> bool {
        self.long.is_empty()
    }

    pub(super) fn load(&mut self, text: Text) {
        debug_assert!(self.has_room(), "a long text is the last");
        let header = FrameHeader {
            opcode: OpCode::Data(Data::Text),
            ..FrameHeader::default()
        };
        let length = text.len() as u64;
        let is_long = text.len() > SHORT_BYTES;
        let copied = if is_long { 0 } else { text.len() };
        self.short.reserve(header.len(length) + copied);
        // A write into memory cannot fail.
        drop(header.format(length, &mut self.short));
        if is_long {
            self.long = text.into();
        } else {
            self.short.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn get_ref(&self) -> &T {
        &self.stream
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        &mut self.stream
    }

    fn is_loaded(&self) -> bool {
        !self.short.is_empty()
    }
}

impl<T: AsyncWrite + Unpin> FrameWriter<T> {
    fn poll_unload(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.is_loaded() {
            let short = self.short.get(self.written..).unwrap_or_default();
            let stream = Pin::new(&mut self.stream);
            let count = if self.long.is_empty() {
                ready!(stream.poll_write(context, short))?
            } else {
                let from = self.written.saturating_sub(self.short.len());
                let both = [IoSlice::new(short), IoSlice::new(&self.long[from..])];
                ready!(stream.poll_write_vectored(context, &both))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            if self.written == self.short.len() + self.long.len() {
                (self.short, self.long, self.written) = (Vec::new(), Bytes::new(), 0);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for FrameWriter<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// The library's own frames: it always offers everything that it has left.
impl<T: AsyncWrite + Unpin> AsyncWrite for FrameWriter<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_mid_frame {
            ready!(self.poll_unload(context))?;
        }
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = wrote {
            self.is_mid_frame = count < bytes.len();
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_mid_frame {
            ready!(self.poll_unload(context))?;
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
    use proptest::prelude::*;
    use tokio::io::{DuplexStream, duplex};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;

    type Socket = WebSocketStream<FrameWriter<DuplexStream>>;

    /// A socket whose reader takes so many bytes at a time, and the reader.
    async fn pair(window: usize) -> (Socket, WebSocketStream<DuplexStream>) {
        let (near, far) = duplex(window);
        (
            WebSocketStream::from_raw_socket(FrameWriter::new(near), Role::Server, None).await,
            WebSocketStream::from_raw_socket(far, Role::Client, None).await,
        )
    }

    async fn flush_once(socket: &mut Socket) {
        let flushed = poll_fn(|context| Poll::Ready(socket.poll_flush_unpin(context))).await;
        assert!(!matches!(flushed, Poll::Ready(Err(_))), "{flushed:?}");
    }

    fn text(length: usize) -> Text {
        "x".repeat(length).into()
    }

    proptest! {
        /// Texts of any length and pings, in any order, to a reader of any speed: texts arrive whole and
        /// in order.
        #[test]
        fn texts_stay_whole_and_in_order_between_pings(
            window in 1_usize..2_000,
            steps in prop::collection::vec((0_usize..10_000, any::<bool>(), any::<bool>()), 1..40),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut socket, mut reader) = pair(window).await;
                let (mut sent, mut pings, mut received) = (Vec::new(), 0, Vec::new());
                for (length, does_ping, does_read) in steps {
                    if socket.get_ref().has_room() {
                        socket.get_mut().load(text(length));
                        sent.push(length);
                    }
                    if does_ping {
                        socket.feed(Message::Ping(Bytes::from_static(b"there?"))).now_or_never();
                        pings += 1;
                    }
                    flush_once(&mut socket).await;
                    if does_read && let Some(Some(message)) = reader.next().now_or_never() {
                        received.push(message.unwrap());
                    }
                }
                // Up to the last text.
                let texts = |received: &[Message]| received.iter().filter(|one| one.is_text()).count();
                let reads = async {
                    while texts(&received) < sent.len() {
                        received.push(reader.next().await.unwrap().unwrap());
                    }
                };
                // Pings may follow it.
                let writes = async {
                    socket.flush().await.unwrap();
                    std::future::pending::<()>().await;
                };
                tokio::select! { () = reads => {} () = writes => {} }
                let texts: Vec<_> = received.iter().filter(|one| one.is_text()).map(Message::len).collect();
                assert_eq!(texts, sent);
                assert!(received.iter().filter(|one| one.is_ping()).count() <= pings);
            });
        }
    }

    #[tokio::test]
    async fn no_buffer_is_kept_after_a_write() {
        let (mut socket, mut reader) = pair(1 << 20).await;
        for length in [10, SHORT_BYTES, SHORT_BYTES + 1, 500_000] {
            socket.get_mut().load(text(length));
            socket.flush().await.unwrap();
            assert_eq!(reader.next().await.unwrap().unwrap().len(), length);
            let frame_writer = socket.get_ref();
            assert_eq!(
                (frame_writer.short.capacity(), frame_writer.long.len()),
                (0, 0)
            );
        }
    }

    #[tokio::test]
    async fn a_long_text_is_not_copied() {
        let (mut socket, _reader) = pair(1).await;
        let long = text(100_000);
        socket.get_mut().load(long.clone());
        assert_eq!(socket.get_ref().long.as_ptr(), long.as_bytes().as_ptr());
        assert!(!socket.get_ref().has_room(), "it is the last of its batch");
    }
}
