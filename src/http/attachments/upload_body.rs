//! Upload body: passes on one chunk at a time, and fails if it is too slow or if a form has too much
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

/// Maximum size of a form's part before its first file.
pub(in crate::http) const MAX_BYTES_BEFORE_FILE: u64 = 64 * 1024;
/// After this time an upload must have reached a minimum average rate: a dripping upload would hold
/// a slot that others wait for.
const RATE_GRACE: Duration = Duration::from_secs(10);
const MIN_BYTES_PER_SEC: u64 = 1024;

pub(in crate::http) struct UploadBody<S> {
    chunks: S,
    started: Instant,
    received: u64,
    /// Pending for one poll after each chunk: the form parser buffers all that is ready before it
    /// parses, so this bounds its memory.
    yields: bool,
    progress: FormProgress,
}

/// How far a form has been read. Clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::http) struct FormProgress(Arc<FormFlags>);

#[derive(Debug, Default)]
struct FormFlags {
    is_in_file: AtomicBool,
    is_too_long_before_file: AtomicBool,
}

impl FormProgress {
    /// The bytes from here on are the file.
    pub(in crate::http) fn enter_file(&self) {
        self.0.is_in_file.store(true, Ordering::Relaxed);
    }

    pub(in crate::http) fn is_too_long_before_file(&self) -> bool {
        self.0.is_too_long_before_file.load(Ordering::Relaxed)
    }
}

/// Did reading a body fail because of a timeout?
pub(in crate::http) fn is_timeout(error: &(dyn Error + 'static)) -> bool {
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

impl<S> UploadBody<S> {
    /// A body that is the file.
    pub(in crate::http) fn of_file(chunks: S) -> Self {
        let progress = FormProgress::default();
        progress.enter_file();
        Self::of_form(chunks, progress)
    }

    /// A body with a file somewhere in it.
    pub(in crate::http) fn of_form(chunks: S, progress: FormProgress) -> Self {
        Self {
            chunks,
            started: Instant::now(),
            received: 0,
            yields: false,
            progress,
        }
    }

    fn is_too_slow(&self) -> bool {
        let elapsed = self.started.elapsed();
        elapsed > RATE_GRACE && self.received < elapsed.as_secs() * MIN_BYTES_PER_SEC
    }
}

impl<S, E> Stream for UploadBody<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
{
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.yields) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let flags = &self.progress.0;
        if self.received >= MAX_BYTES_BEFORE_FILE && !flags.is_in_file.load(Ordering::Relaxed) {
            flags.is_too_long_before_file.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(io::ErrorKind::InvalidData.into())));
        }
        let Some(chunk) = ready!(self.chunks.poll_next_unpin(context)) else {
            return Poll::Ready(None);
        };
        let chunk = chunk.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        self.received += chunk.len() as u64;
        self.yields = true;
        if self.is_too_slow() {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    /// An endless body: a chunk of this size in every interval.
    fn chunks(
        size: usize,
        interval: Duration,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
        Box::pin(stream::unfold((), move |()| async move {
            tokio::time::sleep(interval).await;
            Some((Ok(Bytes::from(vec![b'x'; size])), ()))
        }))
    }

    async fn ends_after<S>(mut body: UploadBody<S>) -> (io::ErrorKind, Duration)
    where
        UploadBody<S>: Stream<Item = io::Result<Bytes>> + Unpin,
    {
        let started = Instant::now();
        loop {
            match body.next().await.unwrap() {
                Ok(_) if started.elapsed() > Duration::from_mins(5) => {
                    return (io::ErrorKind::Other, started.elapsed());
                }
                Ok(_) => {}
                Err(error) => return (error.kind(), started.elapsed()),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_below_the_minimum_rate_is_given_up() {
        let second = Duration::from_secs(1);
        let (kind, after) = ends_after(UploadBody::of_file(chunks(1000, second))).await;
        assert_eq!(kind, io::ErrorKind::TimedOut);
        assert_eq!(after, Duration::from_secs(11));
        let (kind, _) = ends_after(UploadBody::of_file(chunks(1024, second))).await;
        assert_eq!(kind, io::ErrorKind::Other, "just fast enough");
    }

    #[tokio::test(start_paused = true)]
    async fn a_form_with_too_much_before_its_file_is_refused() {
        let (progress, millis) = (FormProgress::default(), Duration::from_millis(1));
        let form = UploadBody::of_form(chunks(8 * 1024, millis), progress.clone());
        let (kind, after) = ends_after(form).await;
        assert_eq!(kind, io::ErrorKind::InvalidData);
        assert_eq!(after, 8 * millis);
        assert!(progress.is_too_long_before_file());

        let progress = FormProgress::default();
        let form = UploadBody::of_form(chunks(8 * 1024, millis), progress.clone());
        progress.enter_file();
        assert_eq!(ends_after(form).await.0, io::ErrorKind::Other);
    }

    #[tokio::test]
    async fn a_body_is_passed_on_one_chunk_at_a_time() {
        let two = stream::iter([Ok::<_, Infallible>(Bytes::from("a")), Ok(Bytes::from("b"))]);
        let mut body = UploadBody::of_file(two);
        let mut polled = Vec::new();
        while polled.len() < 4 {
            let next = std::future::poll_fn(|context| {
                Poll::Ready(body.poll_next_unpin(context).is_ready())
            });
            polled.push(next.await);
        }
        assert_eq!(polled, [true, false, true, false]);
    }
}
