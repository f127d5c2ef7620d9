//! Texts on their way out.
//!
//! Short ones are put behind each other and go out together; a long one is written from where it lies,
//! shared with everybody who gets it. Nothing is kept once it is written: the library's own buffer would
//! stay as large as the largest frame for as long as the socket is open. Whatever the library writes
//! itself, such as pings, goes between two texts, never into one. Touches nothing.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

/// Longer texts are not copied.
const SHORT_BYTES: usize = 4 * 1024;

/// A stream under a WebSocket that takes whole texts beside what the library writes.
pub(super) struct Freight<T> {
    stream: T,
    /// Frames, one behind the other; of a long one only the header.
    short: Vec<u8>,
    /// The long text behind them.
    long: Bytes,
    /// How much of both is written.
    written: usize,
    /// The library has begun to write and has not come to the end.
    is_cut: bool,
}

impl<T> Freight<T> {
    pub(super) fn new(stream: T) -> Self {
        Self {
            stream,
            short: Vec::new(),
            long: Bytes::new(),
            written: 0,
            is_cut: false,
        }
    }

    /// Can another text be loaded? Not behind a long one.
    pub(super) fn has_room(&self) -> bool {
        self.long.is_empty()
    }

    /// Takes a text, which goes out with the next flush.
    pub(super) fn load(&mut self, text: Utf8Bytes) {
        debug_assert!(self.has_room(), "a long text is the last");
        let header = FrameHeader {
            opcode: OpCode::Data(Data::Text),
            ..FrameHeader::default()
        };
        let length = text.len() as u64;
        let is_long = text.len() > SHORT_BYTES;
        let copied = if is_long { 0 } else { text.len() };
        self.short.reserve(header.len(length) + copied);
        // Into memory: it cannot fail.
        drop(header.format(length, &mut self.short));
        if is_long {
            self.long = text.into();
        } else {
            self.short.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
        &mut self.stream
    }

    fn is_loaded(&self) -> bool {
        !self.short.is_empty()
    }
}

impl<T: AsyncWrite + Unpin> Freight<T> {
    /// Writes all that is loaded.
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

impl<T: AsyncRead + Unpin> AsyncRead for Freight<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

/// What the library writes: it always offers everything that it has left.
impl<T: AsyncWrite + Unpin> AsyncWrite for Freight<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.is_cut {
            ready!(self.poll_unload(context))?;
        }
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = wrote {
            self.is_cut = count < bytes.len();
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_cut {
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

    type Socket = WebSocketStream<Freight<DuplexStream>>;

    /// A socket whose reader takes so many bytes at a time, and the reader.
    async fn pair(room: usize) -> (Socket, WebSocketStream<DuplexStream>) {
        let (near, far) = duplex(room);
        (
            WebSocketStream::from_raw_socket(Freight::new(near), Role::Server, None).await,
            WebSocketStream::from_raw_socket(far, Role::Client, None).await,
        )
    }

    /// Tries once to write what there is.
    async fn pushes(socket: &mut Socket) {
        let flushed = poll_fn(|context| Poll::Ready(socket.poll_flush_unpin(context))).await;
        assert!(!matches!(flushed, Poll::Ready(Err(_))), "{flushed:?}");
    }

    fn text(length: usize) -> Utf8Bytes {
        "x".repeat(length).into()
    }

    proptest! {
        /// Texts of any length and pings, in any order, to a reader of any speed: what arrives is whole,
        /// and the texts are in their order.
        #[test]
        fn whatever_is_written_between_them_texts_stay_whole_and_in_order(
            room in 1_usize..2_000,
            acts in prop::collection::vec((0_usize..10_000, any::<bool>(), any::<bool>()), 1..40),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let (mut socket, mut reader) = pair(room).await;
                let (mut sent, mut pings, mut heard) = (Vec::new(), 0, Vec::new());
                for (length, does_ping, does_read) in acts {
                    if socket.get_ref().has_room() {
                        socket.get_mut().load(text(length));
                        sent.push(length);
                    }
                    if does_ping {
                        socket.feed(Message::Ping(Bytes::from_static(b"there?"))).now_or_never();
                        pings += 1;
                    }
                    pushes(&mut socket).await;
                    if does_read && let Some(Some(message)) = reader.next().now_or_never() {
                        heard.push(message.unwrap());
                    }
                }
                // To the last text, and no further.
                let texts = |heard: &[Message]| heard.iter().filter(|one| one.is_text()).count();
                let reads = async {
                    while texts(&heard) < sent.len() {
                        heard.push(reader.next().await.unwrap().unwrap());
                    }
                };
                // Pings may come after it.
                let writes = async {
                    socket.flush().await.unwrap();
                    std::future::pending::<()>().await;
                };
                tokio::select! { () = reads => {} () = writes => {} }
                let texts: Vec<_> = heard.iter().filter(|one| one.is_text()).map(Message::len).collect();
                assert_eq!(texts, sent);
                assert!(heard.iter().filter(|one| one.is_ping()).count() <= pings);
            });
        }
    }

    #[tokio::test]
    async fn nothing_is_kept_once_it_is_written() {
        let (mut socket, mut reader) = pair(1 << 20).await;
        for length in [10, SHORT_BYTES, SHORT_BYTES + 1, 500_000] {
            socket.get_mut().load(text(length));
            socket.flush().await.unwrap();
            assert_eq!(reader.next().await.unwrap().unwrap().len(), length);
            let freight = socket.get_ref();
            assert_eq!((freight.short.capacity(), freight.long.len()), (0, 0));
        }
    }

    #[tokio::test]
    async fn a_long_text_is_not_copied() {
        let (mut socket, _reader) = pair(1).await;
        let long = text(100_000);
        socket.get_mut().load(long.clone());
        assert_eq!(socket.get_ref().long.as_ptr(), long.as_bytes().as_ptr());
        assert!(!socket.get_ref().has_room(), "it is the last");
    }
}
