//! Shared socket: the gateway listens, an agent's program connects, and many sessions share that
//! connection.
//!
//! The only code that routes a line by its content. A peer must show the configured token first; a
//! line for a session that is not attached to this peer is dropped and counted.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ByteStream;
use crate::runtime::dialect::Framing;
use crate::runtime::lines::{Line, Lines};

const TOKEN_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes buffered between a peer and one session. Full: the peer waits for that session.
const SESSION_BUFFER_BYTES: usize = 256 * 1024;
/// Chunks queued for a peer, or for one session. Full: the sender waits.
const MAX_QUEUED_CHUNKS: usize = 64;
/// How long one slow session may hold up the others of its peer.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);
const READ_BUFFER_BYTES: usize = 64 * 1024;
/// The longest line before the token was shown.
const MAX_TOKEN_LINE_BYTES: usize = 4 * 1024;

/// A socket where an agent's program connects.
pub(in crate::runtime) struct SharedSocket {
    path: PathBuf,
    token: Option<String>,
    framing: Framing,
    max_line_bytes: usize,
    /// The peer that connected last; new sessions attach to it.
    peer: Mutex<Option<Peer>>,
    /// Counts lines for sessions that are not attached.
    on_misrouted: Box<dyn Fn() + Send + Sync>,
    tracker: TaskTracker,
}

#[derive(Clone)]
struct Peer {
    sessions: Arc<Mutex<HashMap<String, mpsc::Sender<Vec<u8>>>>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    closed: CancellationToken,
}

impl std::fmt::Debug for SharedSocket {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SharedSocket")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

pub(in crate::runtime) struct SharedSocketConfig {
    pub(in crate::runtime) path: PathBuf,
    pub(in crate::runtime) token: Option<String>,
    pub(in crate::runtime) framing: Framing,
    /// Longer lines are dropped.
    pub(in crate::runtime) max_line_bytes: usize,
    /// Called for every line for a session that is not attached.
    pub(in crate::runtime) on_misrouted: Box<dyn Fn() + Send + Sync>,
}

impl SharedSocket {
    /// Listens until `stop`; only this user of the machine can connect.
    pub(in crate::runtime) fn open(
        config: SharedSocketConfig,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> io::Result<Arc<Self>> {
        remove_stale(&config.path)?;
        let listener = UnixListener::bind(&config.path)?;
        std::fs::set_permissions(&config.path, std::fs::Permissions::from_mode(0o600))?;
        let shared_socket = Arc::new(Self {
            path: config.path,
            token: config.token,
            framing: config.framing,
            max_line_bytes: config.max_line_bytes,
            peer: Mutex::new(None),
            on_misrouted: config.on_misrouted,
            tracker: tracker.clone(),
        });
        let (listening, stop) = (Arc::clone(&shared_socket), stop.clone());
        tracker.spawn(async move {
            stop.run_until_cancelled(listening.listen(listener, &stop))
                .await;
            std::fs::remove_file(&listening.path).ok();
        });
        Ok(shared_socket)
    }

    async fn listen(self: &Arc<Self>, listener: UnixListener, stop: &CancellationToken) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (shared_socket, stop) = (Arc::clone(self), stop.clone());
                    self.tracker.spawn(async move {
                        stop.run_until_cancelled(shared_socket.receive(stream))
                            .await;
                    });
                }
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), %error, "cannot accept a connection of an agent's program");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    async fn receive(self: Arc<Self>, stream: UnixStream) {
        let (mut reader, writer) = stream.into_split();
        let mut lines = Lines::new(self.framing, MAX_TOKEN_LINE_BYTES);
        let admitted =
            tokio::time::timeout(TOKEN_TIMEOUT, self.has_token(&mut reader, &mut lines)).await;
        if admitted != Ok(true) {
            tracing::warn!(path = %self.path.display(), "closed the connection of an agent's program without a valid token");
            return;
        }
        let mut rest = Lines::new(self.framing, self.max_line_bytes);
        rest.push(&lines.rest());
        let (outgoing, waiting) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let peer = Peer {
            sessions: Arc::default(),
            outgoing,
            closed: CancellationToken::new(),
        };
        *lock(&self.peer) = Some(peer.clone());
        tracing::info!(path = %self.path.display(), "an agent's program connected");
        let closed = peer.closed.clone();
        tokio::select! {
            () = self.read(reader, rest, &peer) => {}
            () = write(writer, waiting) => {}
        }
        closed.cancel();
        lock(&peer.sessions).clear();
        tracing::info!(path = %self.path.display(), "an agent's program disconnected");
    }

    /// Whether the first line shows the token. Without a configured token every peer is admitted.
    async fn has_token(&self, reader: &mut OwnedReadHalf, lines: &mut Lines) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let mut buffer = vec![0; MAX_TOKEN_LINE_BYTES];
        loop {
            if let Some(line) = lines.next() {
                return matches!(line, Line::Message(line) if has_valid_token(&line, token));
            }
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return false,
                Ok(read) => lines.push(&buffer[..read]),
            }
        }
    }

    async fn read(&self, mut reader: OwnedReadHalf, mut lines: Lines, peer: &Peer) {
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        loop {
            while let Some(line) = lines.next() {
                if let Line::Message(line) = line {
                    self.route(line, peer).await;
                }
            }
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => lines.push(&buffer[..read]),
            }
        }
    }

    async fn route(&self, line: Value, peer: &Peer) {
        let named = session_of(&line).map(str::to_owned);
        let known = |session: &String| lock(&peer.sessions).get(session).cloned();
        let to = named.as_ref().and_then(known);
        let Some(to) = to else {
            (self.on_misrouted)();
            return;
        };
        let mut bytes = line.to_string().into_bytes();
        bytes.push(self.framing.delimiter());
        // A session that does not keep up must not hold up the others of this peer: it is detached.
        let sent = tokio::time::timeout(STALL_TIMEOUT, to.send(bytes)).await;
        if sent.is_err()
            && let Some(session) = named
        {
            lock(&peer.sessions).remove(&session);
        }
    }

    /// A stream to the peer for one session; none if no peer is connected.
    pub(in crate::runtime) fn attach(&self, session: &str) -> Option<ByteStream> {
        let peer = lock(&self.peer)
            .clone()
            .filter(|peer| !peer.closed.is_cancelled())?;
        let (ours, theirs) = tokio::io::duplex(SESSION_BUFFER_BYTES);
        let (sender, from_peer) = mpsc::channel(MAX_QUEUED_CHUNKS);
        let mine = sender.downgrade();
        lock(&peer.sessions).insert(session.to_owned(), sender);
        let (name, delimiter) = (session.to_owned(), self.framing.delimiter());
        self.tracker.spawn(async move {
            carry(theirs, from_peer, &peer, delimiter).await;
            // The session's next link may have attached already.
            let mut sessions = lock(&peer.sessions);
            let is_mine =
                |now: &mpsc::Sender<_>| mine.upgrade().is_some_and(|mine| now.same_channel(&mine));
            if sessions.get(&name).is_some_and(is_mine) {
                sessions.remove(&name);
            }
        });
        let (reader, writer) = tokio::io::split(ours);
        Some(ByteStream::new(reader, writer))
    }
}

/// Carries lines between one session and the peer until either closes.
async fn carry(
    stream: DuplexStream,
    mut from_peer: mpsc::Receiver<Vec<u8>>,
    peer: &Peer,
    delimiter: u8,
) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let outward = async {
        let (mut buffer, mut line) = (vec![0; 16 * 1024], Vec::new());
        // Whole lines only: lines of other sessions come in between.
        while let Ok(read @ 1..) = reader.read(&mut buffer).await {
            line.extend_from_slice(&buffer[..read]);
            if let Some(end) = line.iter().rposition(|byte| *byte == delimiter) {
                let rest = line.split_off(end + 1);
                if peer
                    .outgoing
                    .send(std::mem::replace(&mut line, rest))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    };
    let inward = async {
        while let Some(line) = from_peer.recv().await {
            if writer.write_all(&line).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = outward => {}
        () = inward => {}
        () = peer.closed.cancelled() => {}
    }
}

async fn write(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = waiting.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// The session id of a line, wrapped or not.
fn session_of(line: &Value) -> Option<&str> {
    let inner = if line["type"] == "message" {
        &line["data"]
    } else {
        line
    };
    inner["data"]["sessionId"].as_str()
}

fn has_valid_token(line: &Value, token: &str) -> bool {
    let inner = if line["type"] == "message" {
        &line["data"]
    } else {
        line
    };
    let shown = inner["data"]["token"].as_str().unwrap_or_default();
    inner["type"] == "RemoteUIAuth"
        && aws_lc_rs::constant_time::verify_slices_are_equal(shown.as_bytes(), token.as_bytes())
            .is_ok()
}

/// Removes the socket of a crashed gateway; one with a listener is an error.
fn remove_stale(path: &Path) -> io::Result<()> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        ));
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
