//! Catalog: the configured agents, what they can do, and how to start them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agent_readiness::AgentReadiness;
use super::agent_status::AgentStatus;
use super::config::{AgentConfig, Config, DEMO, Limits, SandboxMode};
use super::dialect::{PastMessage, Transport};
use super::launch::{Launcher, SessionOwner};
use super::link::task::LinkTask;
use super::sandbox::KernelSupport;
use super::slots::Slots;
use super::transport::shared_socket::{SharedSocket, SharedSocketConfig};
use super::{FromAgent, Link, demo};
use crate::clock::Clock;
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Author;
use crate::domain::id::{SessionId, UserId};
use crate::domain::run::FailureCause;
use crate::limits::{ByteBudget, CapReached};

/// Agent events of one link that are not committed yet, in bytes.
const UNCOMMITTED_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) config: AgentConfig,
    pub(super) status: AgentStatus,
}

/// An agent's configuration and status, for the operator.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) enabled: bool,
    pub(crate) setup: AgentReadiness,
    pub(crate) live: usize,
    pub(crate) starts: u64,
    pub(crate) crashes: u64,
    /// Dropped lines of other conversations.
    pub(crate) misrouted: u64,
    /// Dropped lines that made no sense.
    pub(crate) unexpected: u64,
    pub(crate) groups: BTreeSet<i32>,
    pub(crate) last_error: Option<(Timestamp, String)>,
    /// The standard error of the last process that ended.
    pub(crate) stderr_tail: Vec<String>,
}

/// The conversation that a session branched from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) session: SessionId,
    /// The agent's own id of it.
    pub(crate) thread: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) session: SessionId,
    /// The session's owner.
    pub(crate) user: UserId,
    pub(crate) user_name: String,
    /// The agent's own id of the conversation to continue.
    pub(crate) thread: Option<String>,
    /// What it branched from, if it has no conversation of its own yet.
    pub(crate) origin: Option<Origin>,
    /// The conversation so far, oldest first.
    pub(crate) history: Vec<(Author, String)>,
}

impl Start {
    /// A start without a conversation to continue.
    pub(crate) fn of(session: SessionId, user: UserId) -> Self {
        Self {
            session,
            user,
            user_name: user.to_string(),
            thread: None,
            origin: None,
            history: Vec::new(),
        }
    }
}

/// The configured agents; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    agents: Arc<BTreeMap<String, Arc<Entry>>>,
    shared_sockets: Arc<BTreeMap<String, Arc<SharedSocket>>>,
    slots: Slots,
    launcher: Arc<Launcher>,
    test_lock: Arc<tokio::sync::Mutex<()>>,
    clock: Clock,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum StartAgentError {
    /// Not configured, or disabled.
    #[error("there is no agent `{0}` here")]
    Unknown(String),
    #[error("{0} agents run already, as many as may run at once; try again when one has ended")]
    Full(usize),
    #[error(
        "{0} of your agents run already, as many as one user may have; end a session or let one rest"
    )]
    UserFull(usize),
    #[error("the agent `{name}` has crashed too often in this session; it is started again in {} s", .again_in.as_secs() + 1)]
    Crashing { name: String, again_in: Duration },
}

impl StartAgentError {
    pub(crate) fn code(&self) -> ErrorCode {
        match self {
            Self::Full(_) | Self::UserFull(_) => ErrorCode::Busy,
            Self::Unknown(_) | Self::Crashing { .. } => ErrorCode::ConnectionLost,
        }
    }

    pub(crate) fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::Unknown(_) => Some(FailureCause::NotInstalled),
            Self::Crashing { .. } => Some(FailureCause::Crashed),
            Self::Full(_) | Self::UserFull(_) => None,
        }
    }
}

impl Catalog {
    pub(crate) fn new(config: &Config, limits: &Limits, launcher: Launcher, clock: Clock) -> Self {
        let agents = config.with_demo().into_iter();
        let entry = |(name, config): (String, AgentConfig)| {
            let entry = Entry {
                name: name.clone(),
                config,
                status: AgentStatus::default(),
            };
            (name, Arc::new(entry))
        };
        Self {
            agents: Arc::new(agents.map(entry).collect()),
            shared_sockets: Arc::default(),
            slots: Slots::new(limits),
            launcher: Arc::new(launcher),
            test_lock: Arc::default(),
            clock,
        }
    }

    pub(super) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// The lock of the agent test; none while another test runs.
    pub(super) fn lock_test(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.test_lock.try_lock().ok()
    }

    /// Kills orphans of an earlier gateway process, and listens on the shared sockets.
    pub(crate) async fn open(
        &mut self,
        data: &Path,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> std::io::Result<()> {
        let orphans = self.launcher.kill_orphans().await;
        if orphans > 0 {
            tracing::warn!(
                processes = orphans,
                "killed orphaned agent processes of an earlier gateway process"
            );
        }
        let mut shared_sockets = BTreeMap::new();
        let listening = self
            .agents
            .values()
            .filter(|entry| entry.config.enabled && entry.config.listen);
        for entry in listening {
            if let Some(shared_socket) = shared_socket(entry, data, stop, tracker)? {
                shared_sockets.insert(entry.name.clone(), shared_socket);
            }
        }
        self.shared_sockets = Arc::new(shared_sockets);
        self.log_weak_isolation();
        Ok(())
    }

    /// Logs what agents of different users can reach of each other, or of the gateway.
    fn log_weak_isolation(&self) {
        let enabled = self.agents.values().filter(|entry| entry.config.enabled);
        let processes: Vec<_> = enabled
            .filter(|entry| !entry.config.command.is_empty())
            .collect();
        for entry in &processes {
            if self.launcher.sandbox(&entry.config) == SandboxMode::Off {
                tracing::warn!(
                    agent = entry.name,
                    "runs without a sandbox: it reaches everything that its system user can"
                );
            }
            if !self.launcher.has_private_home(&entry.config) {
                tracing::warn!(
                    agent = entry.name,
                    "its home is shared by all users: each reads the others' logins and \
                     conversations; set `home = \"user\"`"
                );
            }
        }
        let support = KernelSupport::detect();
        if processes.is_empty() {
            return;
        }
        if !support.has_landlock() {
            tracing::warn!(
                "this kernel has no Landlock: agents reach every file that their system user can"
            );
        }
        for missing in support.missing() {
            tracing::info!(missing, "this kernel cannot enforce a part of the sandbox");
        }
    }

    /// The names of the enabled agents, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let enabled = self.agents.values().filter(|entry| entry.config.enabled);
        enabled.map(|entry| entry.name.as_str())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// All agents by name, also the disabled ones.
    pub(crate) fn described(&self) -> Vec<Described> {
        let describe = |entry: &Arc<Entry>| {
            let report = entry.status.report();
            Described {
                name: entry.name.clone(),
                protocol: entry.config.protocol.clone().unwrap_or_else(|| DEMO.into()),
                enabled: entry.config.enabled,
                setup: AgentReadiness::of(&entry.config, &report),
                live: report.live,
                starts: report.starts,
                crashes: report.crashes,
                misrouted: report.misrouted,
                unexpected: report.unexpected,
                groups: report.groups,
                last_error: report.last_error,
                stderr_tail: report.stderr_tail,
            }
        };
        self.agents.values().map(describe).collect()
    }

    /// How many slots are taken, and how many there are.
    pub(super) fn slots(&self) -> (usize, usize) {
        self.slots.count()
    }

    /// The known capabilities of an agent; none if there is no such agent.
    pub(crate) fn capabilities(&self, name: &str) -> Vec<&'static str> {
        let Some(entry) = self.entry(name) else {
            return Vec::new();
        };
        let Some(protocol) = entry.config.dialect() else {
            return demo::CAPABILITIES.split(' ').collect();
        };
        let lacks = entry.status.lacks();
        let all = protocol.capabilities.split(' ');
        all.filter(|capability| !lacks.contains(capability))
            .collect()
    }

    pub(super) fn config(&self, name: &str) -> Option<&AgentConfig> {
        self.entry(name).map(|entry| &entry.config)
    }

    /// Whether its program connects to the gateway instead of being started.
    pub(super) fn listens(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.config.listen)
    }

    /// Whether a handshake with this agent ever succeeded. The demo agent is always ready.
    pub(crate) fn was_ready(&self, name: &str) -> bool {
        let entry = self.entry(name);
        entry.is_some_and(|entry| entry.config.is_demo() || entry.status.report().ready > 0)
    }

    pub(crate) fn lacks(&self, name: &str) -> Vec<&'static str> {
        self.entry(name)
            .map(|entry| entry.status.lacks())
            .unwrap_or_default()
    }

    pub(crate) fn is_able(&self, name: &str, capability: &str) -> bool {
        self.capabilities(name).contains(&capability)
    }

    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.config.is_demo())
    }

    /// Whether a restarted agent can continue a run that waits for answers.
    pub(crate) fn can_resume(&self, name: &str) -> bool {
        self.is_built_in(name)
    }

    /// How long an agent may be idle before it is stopped, if it can continue afterwards.
    pub(crate) fn idle(&self, name: &str) -> Option<Duration> {
        let entry = self.entry(name)?;
        let seconds = entry.config.idle_secs;
        let resumes = entry.config.dialect()?.resumes && !entry.status.lacks().contains(&"resume");
        (resumes && seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    /// The operator's timeout for this agent's questions, if it has one of its own.
    pub(crate) fn question_timeout(&self, name: &str) -> Option<Duration> {
        let seconds = self.entry(name)?.config.question_timeout_secs?;
        Some(Duration::from_secs(seconds.get().into()))
    }

    pub(crate) fn hears_steering(&self, name: &str, prompt: &str) -> bool {
        let is_demo = self.entry(name).is_some_and(|entry| entry.config.is_demo());
        self.is_able(name, "steer") && (!is_demo || demo::can_be_steered(prompt))
    }

    /// Whether an agent takes up follow-ups within the run under way.
    pub(crate) fn takes_follow_ups(&self, name: &str) -> bool {
        self.is_able(name, "followUpInRun")
    }

    /// Whether another agent of this user may start now.
    pub(crate) fn has_room(
        &self,
        name: &str,
        user: UserId,
        session: SessionId,
    ) -> Result<(), StartAgentError> {
        match self.entry(name) {
            Some(entry) if !entry.config.is_demo() => self
                .slots
                .take(user, session)
                .map(drop)
                .map_err(StartAgentError::from),
            _ => Ok(()),
        }
    }

    /// Starts an agent for one session.
    ///
    /// It sends its events through `events` and waits while that is full; `events` is dropped when the
    /// agent is gone. It ends with `stop` and with its link; `tracker` awaits its task.
    pub(crate) fn start(
        &self,
        name: &str,
        start: Start,
        events: mpsc::Sender<FromAgent>,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> Result<Link, StartAgentError> {
        let unknown = || StartAgentError::Unknown(name.to_owned());
        let entry = self.entry(name).ok_or_else(unknown)?;
        if entry.config.is_demo() {
            return Ok(Link::start(stop, tracker, |commands| {
                demo::run(commands, events)
            }));
        }
        let protocol = entry.config.dialect().ok_or_else(unknown)?;
        let (delays, max_crashes) = (protocol.restart_after, entry.config.max_crashes.get());
        let backoff = entry
            .status
            .backoff(start.session, delays, max_crashes, Instant::now());
        let backoff = backoff.map_err(|again_in| StartAgentError::Crashing {
            name: name.to_owned(),
            again_in,
        })?;
        let budget = ByteBudget::new(UNCOMMITTED_BYTES);
        let message = |(author, text)| PastMessage { author, text };
        let task = LinkTask {
            entry: Arc::clone(entry),
            protocol,
            launcher: Arc::clone(&self.launcher),
            shared_socket: self.shared_sockets.get(name).cloned(),
            thread: start.thread,
            origin: start.origin,
            history: start.history.into_iter().map(message).collect(),
            backoff,
            budget: budget.clone(),
            clock: self.clock.clone(),
            slot: self.slots.take(start.user, start.session)?,
            owner: SessionOwner {
                session: start.session,
                user: start.user,
                user_name: start.user_name,
            },
        };
        let gateway_stop = stop.clone();
        Ok(Link::start_with_stop(
            stop,
            tracker,
            Some(budget),
            |commands, stop| task.run(commands, events, stop, gateway_stop),
        ))
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.agents.get(name).filter(|entry| entry.config.enabled)
    }
}

impl From<CapReached> for StartAgentError {
    fn from(reached: CapReached) -> Self {
        match reached {
            CapReached::Total(max) => Self::Full(max),
            CapReached::Key(max) => Self::UserFull(max),
        }
    }
}

/// Opens the socket where an agent's program connects.
fn shared_socket(
    entry: &Arc<Entry>,
    data: &Path,
    stop: &CancellationToken,
    tracker: &TaskTracker,
) -> std::io::Result<Option<Arc<SharedSocket>>> {
    let config = &entry.config;
    let (Some(socket), Some(protocol)) = (&config.socket, config.dialect()) else {
        return Ok(None);
    };
    if config.transport(protocol) != Transport::Unix {
        return Ok(None);
    }
    let option = |name: &str| config.options.get(name).and_then(|value| value.as_str());
    let token = match option("token_file") {
        Some(path) => Some(std::fs::read_to_string(path)?.trim().to_owned()),
        None => option("token").map(str::to_owned),
    };
    let counted = Arc::clone(entry);
    let socket_config = SharedSocketConfig {
        path: data.join(socket),
        token,
        framing: config.framing(protocol),
        max_line_bytes: config.max_line_bytes.get() as usize,
        on_misrouted: Box::new(move || counted.status.update(|report| report.misrouted += 1)),
    };
    SharedSocket::open(socket_config, stop, tracker).map(Some)
}

#[cfg(test)]
pub(super) mod tests;
