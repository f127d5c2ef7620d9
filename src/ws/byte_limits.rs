//! Byte limits: count what goes through a socket and bound what comes in.
//!
//! Bytes that went out are the progress of a slow reader. Bytes that came in are bounded between two
//! messages: the library joins fragments itself and does not show that they are empty or endless. The
//! unfinished messages of a user's sockets, and of all sockets together, are bounded as well.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::SharedByteBudget;

/// So much of an unfinished message is free; the rest is taken from the pool of all sockets.
const FREE_BYTES: u64 = 64 * 1024;

/// How many more bytes may come in. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Allowance(Arc<Received>);

#[derive(Debug)]
struct Received {
    max_message: u64,
    bytes: AtomicU64,
    limit: AtomicU64,
    /// Of the user's and of all sockets; `held` is this one's part of it.
    pool: SharedByteBudget,
    held: AtomicU64,
}

impl Received {
    fn unfinished(&self) -> u64 {
        let limit = self.limit.load(Ordering::Relaxed);
        let start = limit.saturating_sub(self.max_message);
        self.bytes.load(Ordering::Relaxed).saturating_sub(start)
    }

    /// Counts bytes that came in; false if the pool has no room for them.
    fn add(&self, bytes: u64) -> bool {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let unfinished = self.unfinished();
        if unfinished <= FREE_BYTES {
            return true;
        }
        let needed = unfinished - FREE_BYTES;
        let more = needed.saturating_sub(self.held.load(Ordering::Relaxed));
        if !usize::try_from(more).is_ok_and(|more| self.pool.try_take(more)) {
            return false;
        }
        self.held.fetch_max(needed, Ordering::Relaxed);
        true
    }

    fn give_back(&self) {
        let held = self.held.swap(0, Ordering::Relaxed);
        let held = usize::try_from(held).expect("it was taken as a usize");
        self.pool.give_back(held);
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Allowance {
    fn new(max_message: u64, pool: SharedByteBudget) -> Self {
        Self(Arc::new(Received {
            max_message,
            bytes: AtomicU64::new(0),
            limit: AtomicU64::new(max_message),
            pool,
            held: AtomicU64::new(0),
        }))
    }

    /// A message is complete: the next one may take the full limit.
    pub(super) fn renew(&self) {
        let limit = self.0.bytes.load(Ordering::Relaxed) + self.0.max_message;
        self.0.limit.store(limit, Ordering::Relaxed);
        self.0.give_back();
    }

    /// True if bytes came after the last complete message: perhaps the start of the next.
    pub(super) fn has_unfinished(&self) -> bool {
        self.0.unfinished() > 0
    }

    /// Some of the bytes belonged to no message.
    pub(super) fn exempt(&self, bytes: u64) {
        self.0.limit.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_used_up(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) >= self.0.limit.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Overflow {
    #[error("more bytes than any message needs")]
    Message,
    #[error("too many bytes of unfinished messages, on the user's sockets or on all")]
    ByteBudget,
}

impl Overflow {
    pub(super) fn behind(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// A stream that counts the bytes in both directions.
pub(super) struct Meter<T> {
    stream: T,
    written: u64,
    allowance: Allowance,
}

impl<T> Meter<T> {
    /// `max_message` bounds a message with all its frames; `pool` holds the unfinished messages of the
    /// user and of all sockets.
    pub(super) fn new(stream: T, max_message: u64, pool: SharedByteBudget) -> (Self, Allowance) {
        let allowance = Allowance::new(max_message, pool);
        let meter = Self {
            stream,
            written: 0,
            allowance: allowance.clone(),
        };
        (meter, allowance)
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Lets everything in, as it is about to be dropped.
    pub(super) fn lift_limit(&self) {
        let received = &self.allowance.0;
        received.give_back();
        received.limit.store(u64::MAX, Ordering::Relaxed);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Meter<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.allowance.is_used_up() {
            return Poll::Ready(Err(io::Error::other(Overflow::Message)));
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len() - before;
        if self.allowance.0.add(count as u64) {
            read
        } else {
            Poll::Ready(Err(io::Error::other(Overflow::ByteBudget)))
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
            self.written += count as u64;
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
            self.written += count as u64;
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
    use crate::limits::KeyedByteBudgets;

    fn pool(bytes: usize) -> SharedByteBudget {
        KeyedByteBudgets::new(bytes, bytes).of("mia")
    }

    #[tokio::test]
    async fn a_stream_ends_when_a_message_is_too_long() {
        let (mut meter, allowance) = Meter::new(tokio::io::repeat(b'x'), 100, pool(0));
        let mut ten = [0; 10];
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        let refused = meter.read(&mut ten).await.unwrap_err();
        assert_eq!(Overflow::behind(&refused), Some(Overflow::Message));
        allowance.renew();
        for _ in 0..10 {
            meter.read_exact(&mut ten).await.unwrap();
        }
        assert!(meter.read(&mut ten).await.is_err());
    }

    #[tokio::test]
    async fn bytes_of_no_message_are_not_counted() {
        let (mut meter, allowance) = Meter::new(tokio::io::repeat(b'x'), 100, pool(0));
        let mut bytes = [0; 100];
        meter.read_exact(&mut bytes).await.unwrap();
        allowance.exempt(30);
        meter.read_exact(&mut bytes[..30]).await.unwrap();
        assert!(
            meter.read(&mut bytes).await.is_err(),
            "30, not the full limit"
        );
    }

    #[tokio::test]
    async fn unfinished_messages_of_all_sockets_share_one_pool() {
        let long = usize::try_from(FREE_BYTES).unwrap() + 100;
        let (pool, mut bytes) = (pool(150), vec![0; long]);
        let socket = || Meter::new(tokio::io::repeat(b'x'), 1 << 20, pool.clone());
        let ((mut one, ours), (mut other, _)) = (socket(), socket());
        let long = &mut bytes;
        one.read_exact(long).await.unwrap();
        let refused = other.read_exact(long).await.unwrap_err();
        assert_eq!(Overflow::behind(&refused), Some(Overflow::ByteBudget));
        drop(other);
        let (mut third, _) = socket();
        assert!(third.read_exact(long).await.is_err(), "the first holds it");
        drop(third);
        ours.renew();
        assert!(!ours.has_unfinished());
        let (mut fourth, _) = socket();
        fourth.read_exact(long).await.unwrap();
    }
}
