//! What starting any agent needs: where it works, what it is found by, who starts processes.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::config::AgentConfig;
use super::dialect::{Protocol, Transport};
use super::environment::{self, Environment};
use super::leftovers;
use super::process::{Plan, Process, Spawner};
use super::transport::hub::Hub;
use super::transport::leases::{Lease, Leases};
use super::transport::{Wire, connect, events_socket};
use super::trouble::Trouble;
use super::workspace;
use crate::domain::id::{SessionId, UserId};
use crate::store::Contents;

/// Names this gateway's processes, also to its next life.
const MARK_FILE: &str = "agents.mark";
/// The sockets that processes open for the gateway.
const SOCKETS: &str = "sockets";
const SOCKET: &str = "agent.sock";
/// The longest path to a folder that a socket can be in, with room for its name and `.events`.
const LONGEST_SOCKET: usize = 80;

/// Where agents are made ready.
#[derive(Debug)]
pub(crate) struct Workshop {
    data: PathBuf,
    mark: String,
    spawner: Spawner,
    leases: Leases,
    turns: Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>,
    contents: Option<Arc<Contents>>,
}

/// The right to be the agent of a session, until dropped.
pub(super) type Turn = tokio::sync::OwnedMutexGuard<()>;

/// Whose agent it is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The session.
    pub(super) session: SessionId,
    /// Its owner.
    pub(super) user: UserId,
    /// The owner's name.
    pub(super) user_name: String,
}

/// A line that is open.
pub(super) struct Opened {
    /// The way for commands.
    pub(super) main: Wire,
    /// The way for events, if they have one of their own.
    pub(super) events: Option<Wire>,
    /// The process, if the gateway has started it.
    pub(super) process: Option<Process>,
    /// The socket is this session's alone.
    lease: Option<Lease>,
    /// Removed at the end.
    socket: Option<PathBuf>,
}

impl Opened {
    /// The number of the process's group, if there is one.
    pub(super) fn group(&self) -> Option<i32> {
        self.process.as_ref().and_then(Process::group)
    }

    /// The line is closed; the process goes its way.
    pub(super) fn clear(&mut self) {
        self.lease = None;
        if let Some(socket) = self.socket.take() {
            clear(&socket);
        }
    }
}

/// What is prepared before anything is started.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Where the agent works.
    pub(super) directory: PathBuf,
    socket: Option<PathBuf>,
    plan: Option<Plan>,
}

impl Workshop {
    /// Where everything of the gateway is kept.
    pub(super) fn data(&self) -> &Path {
        &self.data
    }

    /// In a data directory. `launcher` is this binary.
    pub(crate) fn open(
        data: &Path,
        launcher: Option<PathBuf>,
        contents: Option<Arc<Contents>>,
    ) -> io::Result<Self> {
        let data = std::path::absolute(data)?;
        Ok(Self {
            mark: mark(&data)?,
            data,
            spawner: Spawner::new(launcher)?,
            leases: Leases::default(),
            turns: Mutex::default(),
            contents,
        })
    }

    /// Ends the processes that a former life of this gateway has left; says how many.
    pub(crate) async fn clear_leftovers(&self) -> usize {
        let mark = format!("{}/", self.mark);
        let clearing = tokio::task::spawn_blocking(move || leftovers::kill(&mark).len());
        clearing.await.unwrap_or_default()
    }

    /// Waits until the life before of a session's agent is over, with everything that it started: the
    /// next one works in the same directory.
    pub(super) async fn turn(&self, session: SessionId) -> Turn {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            let known = turns.get(&session).and_then(Weak::upgrade);
            let turn = known.unwrap_or_default();
            turns.insert(session, Arc::downgrade(&turn));
            turn
        };
        turn.lock_owned().await
    }

    /// The files of prompts.
    pub(super) fn contents(&self) -> Option<&Contents> {
        self.contents.as_deref()
    }

    /// Looks everything up that an agent needs. Blocks for a few system calls.
    pub(super) fn prepare(
        &self,
        config: &AgentConfig,
        protocol: &Protocol,
        place: &Place,
    ) -> Result<Prepared, Trouble> {
        let link = uuid::Uuid::now_v7().simple().to_string();
        let names = |text: &str| {
            text.replace("{user}", &place.user_name)
                .replace("{session}", &place.session.to_string())
        };
        let directory = workspace::make(&self.data, &config.workspace, names)?;
        let socket = match config.transport(protocol) {
            Transport::Stdio => None,
            Transport::Unix | Transport::UnixPair => Some(match &config.socket {
                Some(socket) => self.data.join(names(socket)),
                None => self.socket(place.session).map_err(Trouble::Spawn)?,
            }),
        };
        let fill = |text: &String| {
            let socket = socket.as_deref().unwrap_or(Path::new(""));
            names(text)
                .replace("{workspace}", &directory.to_string_lossy())
                .replace("{socket}", &socket.to_string_lossy())
        };
        let plan = match config.command.split_first() {
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
                let account = match &config.user {
                    None => None,
                    Some(user) => Some(settle(&names(user), &directory, &set, &mut environment)?),
                };
                Some(Plan {
                    program: environment.program(&fill(program))?,
                    arguments: arguments.iter().map(fill).collect(),
                    directory: directory.clone(),
                    environment,
                    account,
                    umask: config.umask(),
                    mark: format!("{}/{link}", self.mark),
                })
            }
        };
        Ok(Prepared {
            directory,
            socket,
            plan,
        })
    }

    /// Starts the process, if there is one to start, and opens the line.
    pub(super) async fn connect(
        &self,
        prepared: Prepared,
        config: &AgentConfig,
        protocol: &Protocol,
        hub: Option<&Hub>,
        session: SessionId,
    ) -> Result<Opened, (Trouble, Option<Process>)> {
        if let (Some(hub), Some(path)) = (hub, &prepared.socket) {
            let main = hub.attach(&session.to_string());
            let path = path.clone();
            let main = main.ok_or((Trouble::NoPeer { path }, None))?;
            return Ok(Opened {
                main,
                events: None,
                process: None,
                lease: None,
                socket: None,
            });
        }
        let lease = match &prepared.socket {
            // One that serves many conversations may be shared, and one that was started here is not.
            Some(path) if prepared.plan.is_none() && !(protocol.shares)(&config.options) => {
                let taken = || (Trouble::Taken { path: path.clone() }, None);
                Some(self.leases.take(path.clone()).ok_or_else(taken)?)
            }
            _ => None,
        };
        let own_socket = prepared.socket.clone().filter(|_| prepared.plan.is_some());
        if let Some(socket) = &own_socket {
            clear(socket);
        }
        let mut process = match prepared.plan {
            None => None,
            Some(plan) => {
                let directory = plan.directory.clone();
                let started = self.spawner.start(plan).await;
                Some(started.map_err(|error| {
                    let denied = error.kind() == io::ErrorKind::PermissionDenied;
                    let trouble = match config.user.clone().filter(|_| denied) {
                        Some(user) => Trouble::OutOfReach { user, directory },
                        None => Trouble::Spawn(error),
                    };
                    (trouble, None)
                })?)
            }
        };
        let pair = config.transport(protocol) == Transport::UnixPair;
        let wires = wires(prepared.socket.as_deref(), pair, &mut process).await;
        match wires {
            Ok((main, events)) => Ok(Opened {
                main,
                events,
                process,
                lease,
                socket: own_socket,
            }),
            Err(trouble) => Err((trouble, process)),
        }
    }

    /// A path for a socket that a process is to open: the same for every life of a session's agent,
    /// because some keep what they remember beside it.
    fn socket(&self, session: SessionId) -> io::Result<PathBuf> {
        let session = session.to_string();
        let short = &session[session.len() - 16..];
        let mut dir = self.data.join(SOCKETS).join(short);
        if dir.as_os_str().len() > LONGEST_SOCKET {
            let root = format!("switchboard-{}", &self.mark[..16]);
            dir = std::env::temp_dir().join(root).join(short);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        Ok(dir.join(SOCKET))
    }
}

/// Removes the sockets of a life that has ended: nobody listens there.
fn clear(socket: &Path) {
    for path in [&events_socket(socket), socket] {
        std::fs::remove_file(path).ok();
    }
}

async fn wires(
    socket: Option<&Path>,
    pair: bool,
    process: &mut Option<Process>,
) -> Result<(Wire, Option<Wire>), Trouble> {
    let Some(socket) = socket else {
        let pipes = process.as_mut().and_then(Process::pipes);
        let (reader, writer) =
            pipes.ok_or_else(|| Trouble::Spawn(io::Error::other("it has no pipes")))?;
        return Ok((Wire::new(reader, writer), None));
    };
    if let Some(process) = process.as_mut() {
        process.listen_to_output();
    }
    let main = connect(socket, process).await?;
    let events = if pair {
        Some(connect(&events_socket(socket), process).await?)
    } else {
        None
    };
    Ok((main, events))
}

/// The user that an agent runs as: its directory is theirs, and their home is its home.
fn settle(
    user: &str,
    directory: &Path,
    set: &BTreeMap<String, String>,
    environment: &mut Environment,
) -> Result<environment::Account, Trouble> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let (account, home) = environment::account(&users, user).ok_or_else(|| Trouble::NoUser {
        user: user.to_owned(),
    })?;
    std::os::unix::fs::chown(directory, Some(account.uid), Some(account.gid))
        .map_err(Trouble::Spawn)?;
    for (name, value) in [
        ("HOME", home.into_os_string()),
        ("USER", user.into()),
        ("LOGNAME", user.into()),
    ] {
        // What the operator has set stays.
        if !set.contains_key(name) {
            environment.variables.insert(name.into(), value);
        }
    }
    Ok(account)
}

/// What this data directory's processes are known by: made once, and kept.
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
