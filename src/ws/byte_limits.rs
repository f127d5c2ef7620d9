//! Counts what goes through a socket.
//!
//! What it has taken is the sign of life of a reader who is slow but there. What came in is bounded
//! between two messages: the library joins fragments by itself and shows nobody that they are empty
//! or endless. What all sockets hold of messages that are not complete is bounded, too. Touches `limits`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::Pool;

/// So much of an unfinished message is free; whatever is longer comes out of what all share.
const FREE_BYTES: u64 = 64 * 1024;

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
    /// What all sockets share, and what of it is held here.
    pool: Pool,
    held: AtomicU64,
}

impl Received {
    /// How much has come of a message that is not complete.
    fn unfinished(&self) -> u64 {
        let renewed = self.up_to.load(Ordering::Relaxed).saturating_sub(self.most);
        self.so_far.load(Ordering::Relaxed).saturating_sub(renewed)
    }

    /// Notes that bytes came; false if there is no room for them.
    fn note(&self, bytes: u64) -> bool {
        self.so_far.fetch_add(bytes, Ordering::Relaxed);
        let unfinished = self.unfinished();
        if unfinished <= FREE_BYTES {
            return true;
        }
        let due = unfinished - FREE_BYTES;
        let more = due.saturating_sub(self.held.fetch_max(due, Ordering::Relaxed));
        self.pool.take(more)
    }

    fn give_back(&self) {
        self.pool.give_back(self.held.swap(0, Ordering::Relaxed));
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Allowance {
    fn new(most: u64, pool: Pool) -> Self {
        Self(Arc::new(Received {
            most,
            so_far: AtomicU64::new(0),
            up_to: AtomicU64::new(most),
            pool,
            held: AtomicU64::new(0),
        }))
    }

    /// A message is complete: the next one may take as much again.
    pub(super) fn renew(&self) {
        let so_far = self.0.so_far.load(Ordering::Relaxed);
        self.0.up_to.store(so_far + self.0.most, Ordering::Relaxed);
        self.0.give_back();
    }

    /// Is a message under way? What follows a complete one may be the beginning of the next.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.unfinished() > 0
    }

    /// So many bytes belonged to no message.
    pub(super) fn excuse(&self, bytes: u64) {
        self.0.up_to.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_used_up(&self) -> bool {
        self.0.so_far.load(Ordering::Relaxed) >= self.0.up_to.load(Ordering::Relaxed)
    }
}

/// Why no more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Overflow {
    #[error("more bytes than any message needs")]
    Endless,
    #[error("too much of unfinished messages in all")]
    Crowded,
}

impl Overflow {
    /// The overflow that an error stands for.
    pub(super) fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// A stream that counts what goes through it.
pub(super) struct Meter<T> {
    stream: T,
    written: Written,
    allowance: Allowance,
}

impl<T> Meter<T> {
    /// A stream on which a message takes at most so many bytes, with all its frames; `pool` is for
    /// those that are not complete.
    pub(super) fn new(stream: T, most: u64, pool: Pool) -> (Self, Written, Allowance) {
        let (written, allowance) = (Written::default(), Allowance::new(most, pool));
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
        received.give_back();
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
            return Poll::Ready(Err(io::Error::other(Overflow::Endless)));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        if self.allowance.0.note(count as u64) {
            read
        } else {
            Poll::Ready(Err(io::Error::other(Overflow::Crowded)))
        }
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

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        if let Poll::Ready(Ok(count)) = wrote {
            self.written.0.fetch_add(count as u64, Ordering::Relaxed);
        }
        wrote
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
        let (mut meter, _, allowance) = Meter::new(tokio::io::repeat(b'x'), 100, Pool::new(0));
        let mut ten = [0; 10];
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        let refused = meter.read(&mut ten).await.unwrap_err();
        assert_eq!(Overflow::behind(&refused), Some(Overflow::Endless));
        allowance.renew();
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        assert!(meter.read(&mut ten).await.is_err());
    }

    #[tokio::test]
    async fn what_belongs_to_no_message_is_not_counted() {
        let (mut meter, _, allowance) = Meter::new(tokio::io::repeat(b'x'), 100, Pool::new(0));
        let mut bytes = [0; 100];
        meter.read_exact(&mut bytes).await.unwrap();
        allowance.excuse(30);
        meter.read_exact(&mut bytes[..30]).await.unwrap();
        assert!(
            meter.read(&mut bytes).await.is_err(),
            "30, not as much again"
        );
    }

    #[tokio::test]
    async fn what_is_unfinished_in_all_is_bounded_and_given_back() {
        let long = usize::try_from(FREE_BYTES).unwrap() + 100;
        let (pool, mut bytes) = (Pool::new(150), vec![0; long]);
        let socket = || Meter::new(tokio::io::repeat(b'x'), 1 << 20, pool.clone());
        let ((mut one, _, ours), (mut other, ..)) = (socket(), socket());
        let long = &mut bytes;
        one.read_exact(long).await.unwrap();
        let refused = other.read_exact(long).await.unwrap_err();
        assert_eq!(Overflow::behind(&refused), Some(Overflow::Crowded));
        drop(other);
        let (mut third, ..) = socket();
        assert!(third.read_exact(long).await.is_err(), "the first holds it");
        drop(third);
        ours.renew();
        assert!(!ours.is_under_way());
        let (mut fourth, ..) = socket();
        fourth.read_exact(long).await.unwrap();
    }
}
