//! Launch: prepares an agent's workspace, environment and socket, starts its process and connects.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::agent_directories::TEMPORARY_DIR;
use super::agent_home;
use super::config::{AgentConfig, SandboxMode};
use super::dialect::{Protocol, Transport};
use super::error::AgentError;
use super::orphans;
use super::process::{Process, ProcessError, ProcessSpawner};
use super::transport::shared_socket::SharedSocket;
use super::transport::socket_leases::{Lease, Leases};
use super::transport::{ByteStream, connect, events_socket};
use crate::domain::id::{SessionId, UserId};
use crate::store::Blobs;

mod agent_memory;
mod plan;

pub(super) use plan::LaunchPlan;

/// Holds the mark of this data directory's processes, also for the next gateway process.
const MARK_FILE: &str = "agents.mark";

#[derive(Debug)]
pub(crate) struct Launcher {
    data: PathBuf,
    /// Every process of this data directory carries it, see `orphans`.
    tag: String,
    spawner: ProcessSpawner,
    leases: Leases,
    /// The sandbox of agents that do not choose another.
    sandbox: SandboxMode,
    /// Files of the gateway that no agent may reach.
    protected: Vec<PathBuf>,
    /// Whether each user has a home for agents, unless the configuration says otherwise.
    has_user_homes: bool,
    session_locks: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    blobs: Option<Arc<Blobs>>,
}

/// How a launcher is made.
pub(crate) struct LauncherConfig<'a> {
    /// The data directory.
    pub(crate) data: &'a Path,
    /// This program, which supervises the agents.
    pub(crate) binary: PathBuf,
    /// Uploaded files.
    pub(crate) blobs: Option<Arc<Blobs>>,
    pub(crate) sandbox: SandboxMode,
    /// Files that no agent may reach, besides the data directory.
    pub(crate) protected: Vec<PathBuf>,
}

/// One agent at a time for a session: held until its processes have ended.
pub(super) type SessionLock = tokio::sync::OwnedMutexGuard<()>;

#[derive(Clone, Debug)]
pub(super) struct SessionOwner {
    pub(super) session: SessionId,
    pub(super) user: UserId,
    pub(super) user_name: String,
}

pub(super) struct LaunchedAgent {
    pub(super) main: ByteStream,
    /// The separate event stream, if the transport has one.
    pub(super) events: Option<ByteStream>,
    /// None if the gateway did not start the process.
    pub(super) process: Option<Process>,
    /// The command socket of a pair, to open both again.
    pair: Option<PathBuf>,
    /// The exclusive use of a configured socket.
    lease: Option<Lease>,
    /// The agent's own socket, removed at the end.
    socket: Option<PathBuf>,
    /// Its temporary directory, removed at the end.
    temporary: Option<PathBuf>,
}

impl LaunchedAgent {
    pub(super) fn group(&self) -> Option<i32> {
        self.process.as_ref().and_then(Process::group)
    }

    /// Whether it has sockets that can be opened again.
    pub(super) fn can_reconnect(&self) -> bool {
        self.pair.is_some()
    }

    /// Closes both sockets and opens them again.
    pub(super) async fn reconnect(&mut self) -> Result<(), AgentError> {
        (self.main, self.events) = (ByteStream::closed(), None);
        let socket = self.pair.as_deref();
        let streams = connect_streams(socket, true, &mut self.process);
        (self.main, self.events) = streams.await?;
        Ok(())
    }

    /// Gives up the socket and removes what was temporary, after the process has ended.
    pub(super) async fn release(&mut self) {
        self.lease = None;
        if let Some(socket) = self.socket.take() {
            remove_sockets(&socket);
        }
        if let Some(temporary) = self.temporary.take() {
            let removing = tokio::task::spawn_blocking(|| std::fs::remove_dir_all(temporary));
            drop(removing.await);
        }
    }
}

impl Launcher {
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// A launcher for a data directory.
    pub(crate) fn open(config: LauncherConfig<'_>) -> io::Result<Self> {
        let data = std::path::absolute(config.data)?;
        let homes = data.join(agent_home::HOMES_DIR);
        // A data directory without a mark is new.
        if !data.join(MARK_FILE).exists() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true).mode(0o711).create(&homes)?;
        }
        Ok(Self {
            tag: orphans::tag(&mark(&data)?, &data)?,
            spawner: ProcessSpawner::new(config.binary),
            leases: Leases::default(),
            sandbox: config.sandbox,
            protected: config.protected,
            has_user_homes: homes.is_dir(),
            session_locks: Mutex::default(),
            blobs: config.blobs,
            data,
        })
    }

    /// Whether an agent's home belongs to one user alone.
    pub(super) fn has_private_home(&self, config: &AgentConfig) -> bool {
        agent_home::belongs_to_one_user(config, self.has_user_homes)
    }

    /// The sandbox of an agent.
    pub(super) fn sandbox(&self, config: &AgentConfig) -> SandboxMode {
        config.sandbox.unwrap_or(self.sandbox)
    }

    /// Kills the processes that an earlier gateway process left behind. Returns how many.
    pub(crate) async fn kill_orphans(&self) -> usize {
        let tag = format!("{}/", self.tag);
        let temporary = self.data.join(TEMPORARY_DIR);
        let killing = tokio::task::spawn_blocking(move || {
            let killed = orphans::kill(&tag).len();
            std::fs::remove_dir_all(temporary).ok();
            killed
        });
        killing.await.unwrap_or_default()
    }

    /// Waits until the session's former agent has ended with everything that it started: the next one
    /// works in the same directory.
    pub(super) async fn lock_session(&self, session: SessionId) -> SessionLock {
        let lock = {
            let locks = self.session_locks.lock();
            let mut locks = locks.unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let known = locks.get(&session).and_then(Weak::upgrade);
            let lock = known.unwrap_or_default();
            locks.insert(session, Arc::downgrade(&lock));
            lock
        };
        lock.lock_owned().await
    }

    pub(super) fn blobs(&self) -> Option<&Blobs> {
        self.blobs.as_deref()
    }

    /// Files that no agent may reach, besides the data directory.
    pub(super) fn protected(&self) -> &[PathBuf] {
        &self.protected
    }

    /// Starts the process of a plan, and nothing else.
    pub(super) async fn start_process(&self, plan: LaunchPlan) -> Result<Process, ProcessError> {
        let none = || io::Error::other("there is no process to start");
        self.spawner.start(plan.process.ok_or_else(none)?).await
    }

    /// Starts the process, if there is one to start, and connects.
    pub(super) async fn launch(
        &self,
        plan: LaunchPlan,
        config: &AgentConfig,
        protocol: &Protocol,
        shared_socket: Option<&SharedSocket>,
        session: SessionId,
    ) -> Result<LaunchedAgent, (AgentError, Option<Process>)> {
        if let (Some(shared_socket), Some(path)) = (shared_socket, &plan.socket) {
            let main = shared_socket.attach(&session.to_string());
            let path = path.clone();
            let main = main.ok_or((AgentError::NoPeer { path }, None))?;
            return Ok(LaunchedAgent {
                main,
                events: None,
                process: None,
                pair: None,
                lease: None,
                socket: None,
                temporary: None,
            });
        }
        let lease = match &plan.socket {
            // A socket that serves many conversations needs no lease, and our own process is not shared.
            Some(path) if plan.process.is_none() && !(protocol.shares)(&config.options) => {
                let taken = || (AgentError::Taken { path: path.clone() }, None);
                Some(self.leases.take(path.clone()).ok_or_else(taken)?)
            }
            _ => None,
        };
        let own_socket = plan.socket.clone().filter(|_| plan.process.is_some());
        if let Some(socket) = &own_socket {
            remove_sockets(socket);
        }
        let mut process = match plan.process {
            None => None,
            Some(spec) => {
                let directory = spec.workspace.path.clone();
                let started = self.spawner.start(spec).await;
                let failed = |error| (not_started(error, config, directory), None);
                Some(started.map_err(failed)?)
            }
        };
        let pair = config.transport(protocol) == Transport::UnixPair;
        let streams = connect_streams(plan.socket.as_deref(), pair, &mut process).await;
        match streams {
            Ok((main, events)) => Ok(LaunchedAgent {
                main,
                events,
                process,
                pair: plan.socket.filter(|_| pair),
                lease,
                socket: own_socket,
                temporary: plan.temporary,
            }),
            Err(error) => Err((error, process)),
        }
    }
}

fn not_started(error: ProcessError, config: &AgentConfig, directory: PathBuf) -> AgentError {
    match error {
        ProcessError::Account(reason) => AgentError::OutOfReach {
            user: config.user.clone().unwrap_or_default(),
            directory,
            reason,
        },
        ProcessError::Sandbox(reason) => AgentError::Sandbox { reason },
        ProcessError::Io(error) => AgentError::Spawn(error),
    }
}

/// Removes the sockets of a process that has ended.
fn remove_sockets(socket: &Path) {
    for path in [&events_socket(socket), socket] {
        std::fs::remove_file(path).ok();
    }
}

async fn connect_streams(
    socket: Option<&Path>,
    pair: bool,
    process: &mut Option<Process>,
) -> Result<(ByteStream, Option<ByteStream>), AgentError> {
    let Some(socket) = socket else {
        let pipes = process.as_mut().and_then(Process::pipes);
        let (reader, writer) =
            pipes.ok_or_else(|| AgentError::Spawn(io::Error::other("it has no pipes")))?;
        return Ok((ByteStream::new(reader, writer), None));
    };
    if let Some(process) = process.as_mut() {
        process.capture_stdout();
    }
    let main = connect(socket, process).await?;
    let events = if pair {
        Some(connect(&events_socket(socket), process).await?)
    } else {
        None
    };
    Ok((main, events))
}

/// The mark of this data directory's processes: made once, then kept in a file.
fn mark(data: &Path) -> io::Result<String> {
    let path = data.join(MARK_FILE);
    if let Ok(mark) = std::fs::read_to_string(&path)
        && mark.len() == 32
        && mark.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return Ok(mark);
    }
    let mark = uuid::Uuid::now_v7().simple().to_string();
    let mut options = std::fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    io::Write::write_all(&mut file, mark.as_bytes())?;
    Ok(mark)
}
