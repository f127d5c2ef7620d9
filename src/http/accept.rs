//! The accept loop: every connection has deadlines, a cap, and somebody who waits for its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::caller::Peer;
use super::metrics::Metrics;
use crate::limits::{Admission, ConnectionCaps, ConnectionPermit};

/// A peer that takes nothing for this long is gone, in the kernel too. Not less: to the kernel a reader
/// counts the same that is there and stands still, or that takes less at a time than waits at the front.
/// A WebSocket has a pulse of its own instead.
const UNACKNOWLEDGED: Duration = Duration::from_mins(3);
const SEND_BUFFER_BYTES: usize = 64 * 1024;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// The longest request head.
const HEAD_BYTES: usize = 32 * 1024;
/// After accept fails for want of descriptors, it would fail again at once.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a file may still take once the gateway was told to stop.
const LAST_BYTES: Duration = Duration::from_secs(2);

/// A connection, as what goes over it sees it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    cut: CancellationToken,
    closed: CancellationToken,
    /// Until when a file may be on it, if there is one.
    carries: Arc<watch::Sender<Option<Instant>>>,
}

impl Line {
    /// Ends the connection as it is, whatever has not been sent.
    pub(super) fn cut(&self) {
        self.cut.cancel();
    }

    /// Returns once the connection has ended.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// From now on it carries a file, in or out: that may take this long, whether or not the other
    /// end does its part, and does not hold up a stop.
    pub(super) fn carry(&self, longest: Duration) {
        self.carries.send_replace(Some(Instant::now() + longest));
    }

    /// The next request begins: what was carried has arrived.
    fn begin(&self) {
        self.carries
            .send_if_modified(|until| until.take().is_some());
    }

    /// Returns once a file has been on it for too long.
    async fn overdue(&self, stop: &CancellationToken) {
        let mut carries = self.carries.subscribe();
        loop {
            let until = *carries.borrow_and_update();
            let late = async {
                let Some(until) = until else {
                    return std::future::pending().await;
                };
                let told = tokio::time::timeout_at(until, stop.cancelled()).await;
                if told.is_ok() {
                    let last = (Instant::now() + LAST_BYTES).min(until);
                    tokio::time::sleep_until(last).await;
                }
            };
            tokio::select! {
                biased;
                // This line holds the sender.
                _ = carries.changed() => {}
                () = late => return,
            }
        }
    }
}

/// A listener with what every connection through it gets.
pub(crate) struct Door {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) caps: ConnectionCaps,
    pub(crate) header_timeout: Duration,
    pub(crate) metrics: Metrics,
}

impl Door {
    /// Accepts until told to stop, then tells every connection to finish what it is doing. The
    /// caller waits for the tracker.
    pub(crate) async fn run(self, stop: CancellationToken, connections: TaskTracker) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, &stop, &connections),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Above a cap the connection is closed at once: an answer would cost what the cap protects.
    fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        stop: &CancellationToken,
        connections: &TaskTracker,
    ) {
        match self.caps.try_enter(peer.ip()) {
            Ok(permit) => {
                let connection = self.serve(stream, peer, permit, stop.clone());
                connections.spawn(connection);
            }
            Err(reached) => {
                self.metrics.refused_connections.inc();
                tracing::debug!(%peer, %reached, "a connection was refused");
            }
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        permit: ConnectionPermit,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        if let Err(error) = tune(&stream) {
            tracing::debug!(%peer, %error, "a socket could not be tuned");
        }
        // A socket outlives the HTTP connection that it began as: whoever upgrades keeps a share.
        let admission = Arc::new(Admission::new(
            permit,
            self.metrics.open_connections.clone(),
        ));
        let share = Arc::clone(&admission);
        let line = Line::default();
        let end = line.clone();
        let router = self.router.clone();
        let service =
            TowerToHyperService::new(router.map_request(move |request: Request<Incoming>| {
                line.begin();
                let mut request = request.map(axum::body::Body::new);
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(Arc::clone(&share));
                request.extensions_mut().insert(line.clone());
                request
            }));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(HEAD_BYTES);
        async move {
            let _closed = end.closed.clone().drop_guard();
            let connection = http
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let overdue = Box::pin(end.overdue(&stop));
            let served = async {
                let mut connection = std::pin::pin!(connection);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                    ended = connection.as_mut() => ended,
                }
            };
            tokio::select! {
                biased;
                () = end.cut.cancelled() => {}
                ended = served => if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a connection ended early");
                },
                () = overdue => tracing::debug!(%peer, "a file took too long"),
            }
            drop(admission);
        }
    }
}

fn tune(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEP_ALIVE))?;
    // What a slow reader has not taken yet waits in its journal, not in the kernel.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_may_take_its_time_and_no_longer() {
        let (line, stop) = (Line::default(), CancellationToken::new());
        let longest = Duration::from_mins(10);
        let waits = async |patience| tokio::time::timeout(patience, line.overdue(&stop)).await;
        assert!(waits(2 * longest).await.is_err(), "nothing is carried");
        line.carry(longest);
        assert!(waits(longest / 2).await.is_err());
        line.begin();
        assert!(waits(longest).await.is_err(), "it has arrived");
        line.carry(longest);
        let started = Instant::now();
        line.overdue(&stop).await;
        assert_eq!(started.elapsed(), longest);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_gives_a_file_two_seconds() {
        let (line, stop) = (Line::default(), CancellationToken::new());
        stop.cancel();
        let nothing = tokio::time::timeout(Duration::from_mins(1), line.overdue(&stop));
        assert!(nothing.await.is_err(), "other requests have their own time");
        line.carry(Duration::from_mins(10));
        let started = Instant::now();
        line.overdue(&stop).await;
        assert_eq!(started.elapsed(), LAST_BYTES);
    }
}
