//! Launch: prepares an agent's workspace, environment and socket, starts its process and connects.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::config::AgentConfig;
use super::dialect::{Protocol, Transport};
use super::error::AgentError;
use super::orphans;
use super::process::{Process, ProcessError, ProcessSpawner, ProcessSpec};
use super::process_environment::{self, Account, Environment};
use super::sandbox::ProcessLimits;
use super::transport::shared_socket::SharedSocket;
use super::transport::socket_leases::{Lease, Leases};
use super::transport::{ByteStream, connect, events_socket};
use super::workspace;
use crate::domain::id::{SessionId, UserId};
use crate::store::Blobs;

/// Holds the mark of this data directory's processes, also for the next gateway process.
const MARK_FILE: &str = "agents.mark";
const SOCKET_DIR: &str = "sockets";
const SOCKET_NAME: &str = "agent.sock";
/// The longest path of a socket's directory: Unix sockets have at most 108 bytes, name and `.events`
/// included.
const MAX_SOCKET_DIR_BYTES: usize = 80;

#[derive(Debug)]
pub(crate) struct Launcher {
    data: PathBuf,
    /// Every process of this data directory carries it, see `orphans`.
    tag: String,
    spawner: ProcessSpawner,
    leases: Leases,
    session_locks: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    blobs: Option<Arc<Blobs>>,
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
    /// The exclusive use of a configured socket.
    lease: Option<Lease>,
    /// The agent's own socket, removed at the end.
    socket: Option<PathBuf>,
}

impl LaunchedAgent {
    pub(super) fn group(&self) -> Option<i32> {
        self.process.as_ref().and_then(Process::group)
    }

    /// Gives up the socket, after the process has ended.
    pub(super) fn release(&mut self) {
        self.lease = None;
        if let Some(socket) = self.socket.take() {
            remove_sockets(&socket);
        }
    }
}

/// What a launch needs, looked up before anything is started.
#[derive(Debug)]
pub(super) struct LaunchPlan {
    pub(super) directory: PathBuf,
    socket: Option<PathBuf>,
    process: Option<ProcessSpec>,
}

impl Launcher {
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// A launcher for a data directory. `binary` is this program, which supervises the agents.
    pub(crate) fn open(
        data: &Path,
        binary: PathBuf,
        blobs: Option<Arc<Blobs>>,
    ) -> io::Result<Self> {
        let data = std::path::absolute(data)?;
        Ok(Self {
            tag: orphans::tag(&mark(&data)?, &data)?,
            data,
            spawner: ProcessSpawner::new(binary),
            leases: Leases::default(),
            session_locks: Mutex::default(),
            blobs,
        })
    }

    /// Kills the processes that an earlier gateway process left behind. Returns how many.
    pub(crate) async fn kill_orphans(&self) -> usize {
        let tag = format!("{}/", self.tag);
        let killing = tokio::task::spawn_blocking(move || orphans::kill(&tag).len());
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

    /// Looks up everything that an agent needs. Blocks for a few system calls.
    pub(super) fn prepare(
        &self,
        config: &AgentConfig,
        protocol: &Protocol,
        owner: &SessionOwner,
    ) -> Result<LaunchPlan, AgentError> {
        let link = uuid::Uuid::now_v7().simple().to_string();
        let names = |text: &str| {
            text.replace("{user}", &owner.user_name)
                .replace("{session}", &owner.session.to_string())
        };
        let account = match &config.user {
            None => None,
            Some(user) => Some(find_account(&names(user))?),
        };
        let ids = account.as_ref().map(|found| found.account);
        let workspace = workspace::make(&self.data, &config.workspace, names, ids)?;
        let directory = workspace.path.clone();
        let socket = match config.transport(protocol) {
            Transport::Stdio => None,
            Transport::Unix | Transport::UnixPair => Some(match &config.socket {
                Some(socket) => self.data.join(names(socket)),
                None => self.socket_path(owner.session).map_err(AgentError::Spawn)?,
            }),
        };
        let fill = |text: &String| {
            let socket = socket.as_deref().unwrap_or(Path::new(""));
            names(text)
                .replace("{workspace}", &directory.to_string_lossy())
                .replace("{socket}", &socket.to_string_lossy())
        };
        let process = match config.command.split_first() {
            None => None,
            Some((program, arguments)) => {
                let set: BTreeMap<_, _> = config
                    .env
                    .iter()
                    .map(|(name, value)| (name.clone(), fill(value)))
                    .collect();
                let own = |name: &str| std::env::var_os(name);
                let mut environment =
                    Environment::new(own, &config.pass_env, &set, &config.env_files)?;
                if let Some(account) = &account {
                    account.describe(&set, &mut environment);
                }
                Some(ProcessSpec {
                    program: environment.program(&fill(program))?,
                    arguments: arguments.iter().map(fill).collect(),
                    workspace,
                    directories: Vec::new(),
                    environment,
                    account: ids,
                    umask: config.umask(),
                    tag: format!("{}/{link}", self.tag),
                    limits: ProcessLimits::default(),
                    confinement: None,
                })
            }
        };
        Ok(LaunchPlan {
            directory,
            socket,
            process,
        })
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
                lease: None,
                socket: None,
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
                lease,
                socket: own_socket,
            }),
            Err(error) => Err((error, process)),
        }
    }

    /// The path of the socket that a process is to open: always the same for a session, because some
    /// agents keep their memory beside it.
    fn socket_path(&self, session: SessionId) -> io::Result<PathBuf> {
        let session = session.to_string();
        let short = &session[session.len() - 16..];
        let mut dir = self.data.join(SOCKET_DIR).join(short);
        if dir.as_os_str().len() > MAX_SOCKET_DIR_BYTES {
            let root = format!("switchboard-{}", &self.tag[..16]);
            dir = std::env::temp_dir().join(root).join(short);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        Ok(dir.join(SOCKET_NAME))
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

/// The system user that an agent runs as.
struct SystemUser {
    name: String,
    account: Account,
    home: PathBuf,
}

fn find_account(name: &str) -> Result<SystemUser, AgentError> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = process_environment::account(&users, name);
    let (account, home) = found.ok_or_else(|| AgentError::NoUser {
        user: name.to_owned(),
    })?;
    Ok(SystemUser {
        name: name.to_owned(),
        account,
        home,
    })
}

impl SystemUser {
    /// The variables that name it, unless the operator set them.
    fn describe(&self, set: &BTreeMap<String, String>, environment: &mut Environment) {
        for (name, value) in [
            ("HOME", self.home.clone().into_os_string()),
            ("USER", self.name.clone().into()),
            ("LOGNAME", self.name.clone().into()),
        ] {
            if !set.contains_key(name) {
                environment.variables.insert(name.into(), value);
            }
        }
    }
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
