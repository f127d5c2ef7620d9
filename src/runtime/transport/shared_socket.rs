//! A socket where the gateway listens and an agent's program connects: many sessions share the
//! connection of one peer.
//!
//! The one place where a line is given to a session because of what stands in it. A peer has to show
//! the configured token first; a line for a session that this peer was not given is dropped and
//! counted.

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

use super::Wire;
use crate::runtime::dialect::Framing;
use crate::runtime::lines::{Line, Lines};

/// How long a peer may take to show its token.
const PATIENCE: Duration = Duration::from_secs(5);
/// What may be under way between a peer and one session. Full: the peer waits for that session.
const BETWEEN: usize = 256 * 1024;
/// Lines of all sessions that wait to be written to a peer. Full: sessions wait.
const WAITING: usize = 64;
/// How long the others of a peer may wait for one of them.
const STALL: Duration = Duration::from_secs(1);
const BUFFER: usize = 64 * 1024;
/// A line before the token was shown.
const FIRST_LINE: usize = 4 * 1024;

/// Where an agent's program connects.
pub(in crate::runtime) struct Hub {
    path: PathBuf,
    token: Option<String>,
    framing: Framing,
    longest: usize,
    /// The peer that connected last is used for sessions that begin.
    peer: Mutex<Option<Peer>>,
    /// Lines for sessions that the peer was not given.
    strays: Box<dyn Fn() + Send + Sync>,
    tracker: TaskTracker,
}

#[derive(Clone)]
struct Peer {
    sessions: Arc<Mutex<HashMap<String, mpsc::Sender<Vec<u8>>>>>,
    outgoing: mpsc::Sender<Vec<u8>>,
    gone: CancellationToken,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// What a hub is made of.
pub(in crate::runtime) struct Terms {
    /// Where it listens.
    pub(in crate::runtime) path: PathBuf,
    /// What a peer has to show.
    pub(in crate::runtime) token: Option<String>,
    /// What ends a line.
    pub(in crate::runtime) framing: Framing,
    /// Longer lines are dropped.
    pub(in crate::runtime) longest: usize,
    /// Called for every line for a session that the peer was not given.
    pub(in crate::runtime) strays: Box<dyn Fn() + Send + Sync>,
}

impl Hub {
    /// Listens until `stop`; only this user of the machine can connect.
    pub(in crate::runtime) fn open(
        terms: Terms,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> io::Result<Arc<Self>> {
        remove_stale(&terms.path)?;
        let listener = UnixListener::bind(&terms.path)?;
        std::fs::set_permissions(&terms.path, std::fs::Permissions::from_mode(0o600))?;
        let hub = Arc::new(Self {
            path: terms.path,
            token: terms.token,
            framing: terms.framing,
            longest: terms.longest,
            peer: Mutex::new(None),
            strays: terms.strays,
            tracker: tracker.clone(),
        });
        let (listening, stop) = (Arc::clone(&hub), stop.clone());
        tracker.spawn(async move {
            stop.run_until_cancelled(listening.listen(listener, &stop))
                .await;
            std::fs::remove_file(&listening.path).ok();
        });
        Ok(hub)
    }

    async fn listen(self: &Arc<Self>, listener: UnixListener, stop: &CancellationToken) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (hub, stop) = (Arc::clone(self), stop.clone());
                    self.tracker.spawn(async move {
                        stop.run_until_cancelled(hub.receive(stream)).await;
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an agent's connection");
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            }
        }
    }

    async fn receive(self: Arc<Self>, stream: UnixStream) {
        let (mut reader, writer) = stream.into_split();
        let mut lines = Lines::new(self.framing, FIRST_LINE);
        let greeted = tokio::time::timeout(PATIENCE, self.is_let_in(&mut reader, &mut lines)).await;
        if greeted != Ok(true) {
            tracing::warn!(path = %self.path.display(), "a peer did not show the token");
            return;
        }
        let mut rest = Lines::new(self.framing, self.longest);
        rest.push(&lines.rest());
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let peer = Peer {
            sessions: Arc::default(),
            outgoing,
            gone: CancellationToken::new(),
        };
        *lock(&self.peer) = Some(peer.clone());
        tracing::info!(path = %self.path.display(), "an agent's program has connected");
        let gone = peer.gone.clone();
        tokio::select! {
            () = self.read(reader, rest, &peer) => {}
            () = write(writer, waiting) => {}
        }
        gone.cancel();
        lock(&peer.sessions).clear();
        tracing::info!(path = %self.path.display(), "an agent's program is gone");
    }

    /// Does the first line show the token? Without one configured, whoever can reach the socket may
    /// come in.
    async fn is_let_in(&self, reader: &mut OwnedReadHalf, lines: &mut Lines) -> bool {
        let Some(token) = &self.token else {
            return true;
        };
        let mut buffer = vec![0; FIRST_LINE];
        loop {
            if let Some(line) = lines.next() {
                return matches!(line, Line::Message(line) if shows(&line, token));
            }
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return false,
                Ok(read) => lines.push(&buffer[..read]),
            }
        }
    }

    async fn read(&self, mut reader: OwnedReadHalf, mut lines: Lines, peer: &Peer) {
        let mut buffer = vec![0; BUFFER];
        loop {
            while let Some(line) = lines.next() {
                if let Line::Message(line) = line {
                    self.hand_on(line, peer).await;
                }
            }
            match reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => lines.push(&buffer[..read]),
            }
        }
    }

    async fn hand_on(&self, line: Value, peer: &Peer) {
        let named = session_of(&line).map(str::to_owned);
        let known = |session: &String| lock(&peer.sessions).get(session).cloned();
        let to = named.as_ref().and_then(known);
        let Some(to) = to else {
            (self.strays)();
            return;
        };
        let mut bytes = line.to_string().into_bytes();
        bytes.push(self.framing.delimiter());
        // One session that does not keep up must not hold up the others of this peer: it is cut off.
        let sent = tokio::time::timeout(STALL, to.send(bytes)).await;
        if sent.is_err()
            && let Some(session) = named
        {
            lock(&peer.sessions).remove(&session);
        }
    }

    /// A way to the peer for one session; none if nobody is connected.
    pub(in crate::runtime) fn attach(&self, session: &str) -> Option<Wire> {
        let peer = lock(&self.peer)
            .clone()
            .filter(|peer| !peer.gone.is_cancelled())?;
        let (ours, theirs) = tokio::io::duplex(BETWEEN);
        let (sender, from_peer) = mpsc::channel(WAITING);
        let mine = sender.downgrade();
        lock(&peer.sessions).insert(session.to_owned(), sender);
        let (name, delimiter) = (session.to_owned(), self.framing.delimiter());
        self.tracker.spawn(async move {
            carry(theirs, from_peer, &peer, delimiter).await;
            // The next life of that session may have its own way already.
            let mut sessions = lock(&peer.sessions);
            let is_mine =
                |now: &mpsc::Sender<_>| mine.upgrade().is_some_and(|mine| now.same_channel(&mine));
            if sessions.get(&name).is_some_and(is_mine) {
                sessions.remove(&name);
            }
        });
        let (reader, writer) = tokio::io::split(ours);
        Some(Wire::new(reader, writer))
    }
}

/// Carries lines between one session and the peer until either is gone.
async fn carry(
    stream: DuplexStream,
    mut from_peer: mpsc::Receiver<Vec<u8>>,
    peer: &Peer,
    delimiter: u8,
) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let outward = async {
        let (mut buffer, mut line) = (vec![0; 16 * 1024], Vec::new());
        // Whole lines only: those of others come in between.
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
        () = peer.gone.cancelled() => {}
    }
}

async fn write(mut writer: OwnedWriteHalf, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = waiting.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// The session that a line names, wrapped or not.
fn session_of(line: &Value) -> Option<&str> {
    let inner = if line["type"] == "message" {
        &line["data"]
    } else {
        line
    };
    inner["data"]["sessionId"].as_str()
}

fn shows(line: &Value, token: &str) -> bool {
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

/// The socket of a gateway that has ended badly; one that somebody listens on stays.
fn remove_stale(path: &Path) -> io::Result<()> {
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "somebody listens there",
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
