//! The bytes of an upload on their way in: not too slowly, a piece at a time, and of a form not much
//! before its file.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;
use tower_http::timeout::TimeoutError;

/// What there may be of a form before its first file.
pub(super) const FOREWORD_BYTES: u64 = 64 * 1024;
/// From then on, so much per second on average: whoever sends a byte now and then keeps a place that
/// others wait for.
const SLOW_START: Duration = Duration::from_secs(10);
const LEAST_BYTES_PER_SEC: u64 = 1024;

/// A body that is being received.
pub(super) struct Arrival<S> {
    pieces: S,
    started: Instant,
    seen: u64,
    /// Whoever reads a form takes all that can be had before looking at it: after each piece there is
    /// nothing for a moment, so that no more is in memory than was looked at.
    rests: bool,
    progress: Progress,
}

/// How far a form has come. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Steps>);

#[derive(Debug, Default)]
struct Steps {
    is_in_file: AtomicBool,
    is_too_long: AtomicBool,
}

impl Progress {
    /// What comes now is the file.
    pub(super) fn enter_file(&self) {
        self.0.is_in_file.store(true, Ordering::Relaxed);
    }

    /// Was there too much before the file?
    pub(super) fn is_too_long(&self) -> bool {
        self.0.is_too_long.load(Ordering::Relaxed)
    }
}

/// Did a body end because it took too long, and not because something is wrong with it?
pub(super) fn is_late(error: &(dyn Error + 'static)) -> bool {
    let timed_out = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TimeoutError>() || error.downcast_ref().is_some_and(timed_out) {
            return true;
        }
        cause = error.source();
    }
    false
}

impl<S> Arrival<S> {
    /// A body that is the file.
    pub(super) fn of_file(pieces: S) -> Self {
        let progress = Progress::default();
        progress.enter_file();
        Self::of_form(pieces, progress)
    }

    /// A body with a file somewhere in it.
    pub(super) fn of_form(pieces: S, progress: Progress) -> Self {
        Self {
            pieces,
            started: Instant::now(),
            seen: 0,
            rests: false,
            progress,
        }
    }

    fn is_too_slow(&self) -> bool {
        let elapsed = self.started.elapsed();
        elapsed > SLOW_START && self.seen < elapsed.as_secs() * LEAST_BYTES_PER_SEC
    }
}

impl<S, E> Stream for Arrival<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.rests) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let steps = &self.progress.0;
        if self.seen >= FOREWORD_BYTES && !steps.is_in_file.load(Ordering::Relaxed) {
            steps.is_too_long.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
        }
        let Some(piece) = ready!(self.pieces.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        let piece = piece.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.seen += piece.len() as u64;
        self.rests = true;
        if self.is_too_slow() {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    /// Pieces of this size, one every so often.
    fn pieces(
        size: usize,
        every: Duration,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
        Box::pin(stream::unfold((), move |()| async move {
            tokio::time::sleep(every).await;
            Some((Ok(Bytes::from(vec![b'x'; size])), ()))
        }))
    }

    async fn ends_after<S>(mut arrival: Arrival<S>) -> (io::ErrorKind, Duration)
    where
        Arrival<S>: Stream<Item = io::Result<Bytes>> + Unpin,
    {
        let started = Instant::now();
        loop {
            match arrival.next().await.unwrap() {
                Ok(_) if started.elapsed() > Duration::from_mins(5) => {
                    return (io::ErrorKind::Other, started.elapsed());
                }
                Ok(_) => {}
                Err(error) => return (error.kind(), started.elapsed()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_sends_a_byte_now_and_then_is_not_waited_for() {
        let second = Duration::from_secs(1);
        let (kind, after) = ends_after(Arrival::of_file(pieces(1000, second))).await;
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert_eq!(after, Duration::from_secs(11));
        let (kind, _) = ends_after(Arrival::of_file(pieces(1024, second))).await;
        assert_eq!(kind, io::ErrorKind::Other, "slow, and not too slow");
    }

    #[tokio::test(start_paused = true)]
    async fn little_is_read_of_a_form_before_its_file() {
        let (progress, millis) = (Progress::default(), Duration::from_millis(1));
        let form = Arrival::of_form(pieces(8 * 1024, millis), progress.clone());
        let (kind, after) = ends_after(form).await;
        assert_eq!(kind, io::ErrorKind::InvalidData);
        assert_eq!(after, 8 * millis);
        assert!(progress.is_too_long());

        let progress = Progress::default();
        let form = Arrival::of_form(pieces(8 * 1024, millis), progress.clone());
        progress.enter_file();
        assert_eq!(ends_after(form).await.0, io::ErrorKind::Other);
    }

    #[tokio::test]
    async fn it_comes_a_piece_at_a_time() {
        let two = stream::iter([Ok::<_, Infallible>(Bytes::from("a")), Ok(Bytes::from("b"))]);
        let mut arrival = Arrival::of_file(two);
        let mut polled = Vec::new();
        while polled.len() < 4 {
            let next = std::future::poll_fn(|context| {
                Poll::Ready(arrival.poll_next_unpin(context).is_ready())
            });
            polled.push(next.await);
        }
        assert_eq!(polled, [true, false, true, false]);
    }
}
