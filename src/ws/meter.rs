//! Counts what goes through a socket.
//!
//! What it has taken is the sign of life of a reader who is slow but there. What came in is bounded
//! between two messages: the library joins fragments by itself and shows nobody that they are empty
//! or endless. Touches nothing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes went out so far. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Arc<AtomicU64>);

impl Written {
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many bytes may still come in. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<Received>);

#[derive(Debug)]
struct Received {
    /// How many a message may take.
    most: u64,
    so_far: AtomicU64,
    up_to: AtomicU64,
}

impl Allowance {
    fn new(most: u64) -> Self {
        Self(Arc::new(Received {
            most,
            so_far: AtomicU64::new(0),
            up_to: AtomicU64::new(most),
        }))
    }

    /// A message is complete: the next one may take as much again.
    pub(super) fn renew(&self) {
        let so_far = self.0.so_far.load(Ordering::Relaxed);
        self.0.up_to.store(so_far + self.0.most, Ordering::Relaxed);
    }

    /// So many bytes belonged to no message.
    pub(super) fn excuse(&self, bytes: u64) {
        self.0.up_to.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_used_up(&self) -> bool {
        self.0.so_far.load(Ordering::Relaxed) >= self.0.up_to.load(Ordering::Relaxed)
    }
}

/// More came in than any message needs.
#[derive(Debug, thiserror::Error)]
#[error("more bytes than any message needs")]
pub(super) struct Overflow;

impl Overflow {
    pub(super) fn is_cause_of(error: &io::Error) -> bool {
        let inner = error.get_ref();
        inner.is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>)
    }
}

/// A stream that counts what goes through it.
pub(super) struct Meter<T> {
    stream: T,
    written: Written,
    allowance: Allowance,
}

impl<T> Meter<T> {
    /// A stream on which a message takes at most so many bytes, with all its frames.
    pub(super) fn new(stream: T, most: u64) -> (Self, Written, Allowance) {
        let (written, allowance) = (Written::default(), Allowance::new(most));
        let meter = Self {
            stream,
            written: written.clone(),
            allowance: allowance.clone(),
        };
        (meter, written, allowance)
    }

    /// Lets in whatever comes: it is about to be dropped.
    pub(super) fn lift_limit(&self) {
        let received = &self.allowance.0;
        received.up_to.store(u64::MAX, Ordering::Relaxed);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Meter<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.is_used_up() {
            return Poll::Ready(Err(io::Error::other(Overflow)));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        let received = &self.allowance.0;
        received.so_far.fetch_add(count as u64, Ordering::Relaxed);
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Meter<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = wrote {
            self.written.0.fetch_add(count as u64, Ordering::Relaxed);
        }
        wrote
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_stream_stops_where_no_message_can_be_that_long() {
        let (mut meter, _, allowance) = Meter::new(tokio::io::repeat(b'x'), 100);
        let mut ten = [0; 10];
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        let refused = meter.read(&mut ten).await.unwrap_err();
        assert!(Overflow::is_cause_of(&refused));
        allowance.renew();
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        assert!(meter.read(&mut ten).await.is_err());
    }

    #[tokio::test]
    async fn what_belongs_to_no_message_is_not_counted() {
        let (mut meter, _, allowance) = Meter::new(tokio::io::repeat(b'x'), 100);
        let mut bytes = [0; 100];
        meter.read_exact(&mut bytes).await.unwrap();
        allowance.excuse(30);
        meter.read_exact(&mut bytes[..30]).await.unwrap();
        assert!(
            meter.read(&mut bytes).await.is_err(),
            "30, not as much again"
        );
    }
}
