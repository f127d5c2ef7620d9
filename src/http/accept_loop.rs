//! Accept loop: admits TCP connections up to a cap, gives each its deadlines, drains them at the end.

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
use super::dead_peers::OpenPeers;
use super::metrics::Metrics;
use crate::limits::{ConnectionCaps, ConnectionPermit};

/// The kernel drops a peer that takes nothing for this long. Not less: the kernel cannot tell a dead
/// peer from one that reads slowly, in pieces smaller than the segment at the front of the queue.
/// A WebSocket notices sooner by its keepalive, other connections by [`OpenPeers`].
const TCP_USER_TIMEOUT: Duration = Duration::from_mins(3);
const SEND_BUFFER_BYTES: usize = 64 * 1024;
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Out of file descriptors, the next accept would fail at once.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// How long a file transfer may continue once draining has begun.
const TRANSFER_DRAIN_GRACE: Duration = Duration::from_secs(2);

/// A TCP connection, as the handlers of its requests see it. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpConnection {
    abort: CancellationToken,
    closed: CancellationToken,
    /// The deadline of the file transfer on it, if there is one.
    transfer: Arc<watch::Sender<Option<Instant>>>,
}

impl HttpConnection {
    /// Closes the connection at once; unsent bytes are lost.
    pub(super) fn abort(&self) {
        self.abort.cancel();
    }

    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// A file is transferred from now on, in or out. The connection is closed after this time even
    /// if the peer stalls, and the transfer does not hold up a shutdown.
    pub(super) fn start_transfer(&self, timeout: Duration) {
        self.transfer.send_replace(Some(Instant::now() + timeout));
    }

    /// A new request: the transfer before it is complete.
    fn start_request(&self) {
        self.transfer
            .send_if_modified(|deadline| deadline.take().is_some());
    }

    /// Returns once a transfer has passed its deadline, or the grace after draining began.
    async fn transfer_timeout(&self, drain: &CancellationToken) {
        let mut transfer = self.transfer.subscribe();
        loop {
            let deadline = *transfer.borrow_and_update();
            let expired = async {
                let Some(deadline) = deadline else {
                    return std::future::pending().await;
                };
                let draining = tokio::time::timeout_at(deadline, drain.cancelled()).await;
                if draining.is_ok() {
                    let last = (Instant::now() + TRANSFER_DRAIN_GRACE).min(deadline);
                    tokio::time::sleep_until(last).await;
                }
            };
            tokio::select! {
                biased;
                // Never an error: `self` holds the sender.
                _ = transfer.changed() => {}
                () = expired => return,
            }
        }
    }
}

pub(crate) struct Listener {
    pub(crate) tcp: TcpListener,
    pub(crate) router: Router,
    pub(crate) caps: ConnectionCaps,
    pub(crate) header_timeout: Duration,
    pub(crate) metrics: Metrics,
}

impl Listener {
    /// Accepts until `drain`, then lets every connection finish its request. The caller waits for
    /// the tracker.
    pub(crate) async fn run(self, drain: CancellationToken, connections: TaskTracker) {
        let port = self.tcp.local_addr().map_or(0, |address| address.port());
        let peers = OpenPeers::default();
        connections.spawn(peers.clone().watch(port, drain.clone()));
        loop {
            let accepted = tokio::select! {
                biased;
                () = drain.cancelled() => return,
                accepted = self.tcp.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    self.admit(stream, peer, &peers, (&drain, &connections));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a TCP connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    /// Above a cap the connection is closed at once: a response would cost what the cap protects.
    fn admit(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        peers: &OpenPeers,
        (drain, connections): (&CancellationToken, &TaskTracker),
    ) {
        match self
            .caps
            .try_acquire(peer.ip(), &self.metrics.open_connections)
        {
            Ok(permit) => {
                let handle = HttpConnection::default();
                let guard = peers.add(peer, handle.abort.clone());
                let connection = self.serve(stream, peer, handle, permit, drain.clone());
                let connection = async move {
                    let _guard = guard;
                    connection.await;
                };
                connections.spawn(connection);
            }
            Err(reached) => {
                self.metrics.refused_connections.inc();
                tracing::debug!(%peer, %reached, "a TCP connection was refused");
            }
        }
    }

    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        handle: HttpConnection,
        permit: ConnectionPermit,
        drain: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%peer, %error, "cannot set the options of a TCP socket");
        }
        // A WebSocket outlives this HTTP connection: the upgrade keeps a share of the permit.
        let permit = Arc::new(permit);
        let share = Arc::clone(&permit);
        let own = handle.clone();
        let router = self.router.clone();
        let service =
            TowerToHyperService::new(router.map_request(move |request: Request<Incoming>| {
                handle.start_request();
                let mut request = request.map(axum::body::Body::new);
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(Arc::clone(&share));
                request.extensions_mut().insert(handle.clone());
                request
            }));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_buf_size(MAX_HEAD_BYTES);
        async move {
            let _closed = own.closed.clone().drop_guard();
            let connection = http
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let transfer_timeout = Box::pin(own.transfer_timeout(&drain));
            let served = async {
                let mut connection = std::pin::pin!(connection);
                tokio::select! {
                    biased;
                    () = drain.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                    ended = connection.as_mut() => ended,
                }
            };
            tokio::select! {
                biased;
                () = own.abort.cancelled() => {}
                ended = served => if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "a TCP connection ended early");
                },
                () = transfer_timeout => tracing::debug!(%peer, "a file transfer timed out"),
            }
            drop(permit);
        }
    }
}

fn set_options(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(TCP_KEEPALIVE))?;
    // Events for a slow reader wait in the journal, not in the kernel.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_file_transfer_ends_at_its_deadline() {
        let (connection, drain) = (HttpConnection::default(), CancellationToken::new());
        let timeout = Duration::from_mins(10);
        let expires_within = async |wait| {
            let expired = tokio::time::timeout(wait, connection.transfer_timeout(&drain));
            expired.await.is_ok()
        };
        assert!(!expires_within(2 * timeout).await, "no transfer");
        connection.start_transfer(timeout);
        assert!(!expires_within(timeout / 2).await);
        connection.start_request();
        assert!(!expires_within(timeout).await, "it is complete");
        connection.start_transfer(timeout);
        let started = Instant::now();
        connection.transfer_timeout(&drain).await;
        assert_eq!(started.elapsed(), timeout);
    }

    #[tokio::test(start_paused = true)]
    async fn a_shutdown_gives_a_file_transfer_two_seconds() {
        let (connection, drain) = (HttpConnection::default(), CancellationToken::new());
        drain.cancel();
        let waiting =
            tokio::time::timeout(Duration::from_mins(1), connection.transfer_timeout(&drain));
        assert!(waiting.await.is_err(), "other requests have their own time");
        connection.start_transfer(Duration::from_mins(10));
        let started = Instant::now();
        connection.transfer_timeout(&drain).await;
        assert_eq!(started.elapsed(), TRANSFER_DRAIN_GRACE);
    }
}
