//! The agents that can be started, as configured.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::config::{AgentConfig, Config, DEMO, Limits};
use super::dialect::{Transport, Utterance};
use super::record::Record;
use super::room::Room;
use super::seats::{Full, Seats};
use super::shift::Shift;
use super::transport::hub::{Hub, Terms};
use super::workshop::{Place, Workshop};
use super::{FromAgent, Link, demo};
use crate::clock::Clock;
use crate::domain::code::Code;
use crate::domain::command::SettingsChange;
use crate::domain::event::Author;
use crate::domain::id::{SessionId, UserId};

/// An agent as it is configured, and what has become of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) config: AgentConfig,
    pub(super) record: Record,
}

/// An agent for those who run the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) enabled: bool,
    /// How many run.
    pub(crate) live: usize,
    /// How many were started, crashed, said something for others, said something odd.
    pub(crate) starts: u64,
    pub(crate) crashes: u64,
    pub(crate) strays: u64,
    pub(crate) odd: u64,
    /// The process groups of those that run.
    pub(crate) groups: BTreeSet<i32>,
    /// What was wrong last, and when.
    pub(crate) last_error: Option<(Timestamp, String)>,
    /// What the last one that ended wrote to its standard error.
    pub(crate) last_words: Vec<String>,
}

/// The session that an agent is started for.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Which.
    pub(crate) session: SessionId,
    /// Its owner.
    pub(crate) user: UserId,
    /// The owner's name.
    pub(crate) user_name: String,
    /// The agent's own name for the conversation, to go on with.
    pub(crate) thread: Option<String>,
    /// What was said before, oldest first.
    pub(crate) history: Vec<(Author, String)>,
}

impl Start {
    /// For an agent that needs to know nothing more.
    pub(crate) fn of(session: SessionId, user: UserId) -> Self {
        Self {
            session,
            user,
            user_name: user.to_string(),
            thread: None,
            history: Vec::new(),
        }
    }
}

/// The agents that can be started.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    agents: Arc<BTreeMap<String, Arc<Entry>>>,
    hubs: Arc<BTreeMap<String, Arc<Hub>>>,
    seats: Seats,
    workshop: Arc<Workshop>,
    /// Agents are tried out one at a time.
    trials: Arc<tokio::sync::Mutex<()>>,
    clock: Clock,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum StartAgentError {
    /// It is not configured, or disabled.
    #[error("there is no agent `{0}` here")]
    Unknown(String),
    /// All seats are taken.
    #[error("{0} agents run already, as many as may run at once; try again when one has ended")]
    Full(usize),
    /// The user has as many as one may have.
    #[error(
        "{0} of your agents run already, as many as one user may have; end a session or let one rest"
    )]
    UserFull(usize),
    /// It crashes too often.
    #[error("the agent `{name}` has crashed too often in this session; it is started again in {} s", .again_in.as_secs() + 1)]
    Crashing {
        /// Which.
        name: String,
        /// When it may be started again.
        again_in: Duration,
    },
}

impl StartAgentError {
    /// The code for whoever asked.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Full(_) | Self::UserFull(_) => Code::Busy,
            Self::Unknown(_) | Self::Crashing { .. } => Code::ConnectionLost,
        }
    }
}

impl Catalog {
    /// The agents that are configured, and the demo agent.
    pub(crate) fn new(config: &Config, limits: &Limits, workshop: Workshop, clock: Clock) -> Self {
        let agents = config.with_demo().into_iter();
        let entry = |(name, config): (String, AgentConfig)| {
            let entry = Entry {
                name: name.clone(),
                config,
                record: Record::default(),
            };
            (name, Arc::new(entry))
        };
        Self {
            agents: Arc::new(agents.map(entry).collect()),
            hubs: Arc::default(),
            seats: Seats::new(limits),
            workshop: Arc::new(workshop),
            trials: Arc::default(),
            clock,
        }
    }

    /// Where agents are made ready.
    pub(super) fn workshop(&self) -> &Workshop {
        &self.workshop
    }

    /// The turn to try one out, unless somebody else does.
    pub(super) fn begin_trial(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        self.trials.try_lock().ok()
    }

    /// Makes ready: ends what a former life has left behind, and listens where agents connect.
    pub(crate) async fn open(
        &mut self,
        data: &Path,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> std::io::Result<()> {
        let left = self.workshop.clear_leftovers().await;
        if left > 0 {
            tracing::warn!(
                processes = left,
                "ended what agents of a former life had left behind"
            );
        }
        let mut hubs = BTreeMap::new();
        let listening = self
            .agents
            .values()
            .filter(|entry| entry.config.enabled && entry.config.listen);
        for entry in listening {
            if let Some(hub) = hub(entry, data, stop, tracker)? {
                hubs.insert(entry.name.clone(), hub);
            }
        }
        self.hubs = Arc::new(hubs);
        Ok(())
    }

    /// The names of those that are enabled, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let enabled = self.agents.values().filter(|entry| entry.config.enabled);
        enabled.map(|entry| entry.name.as_str())
    }

    /// Is there an agent of this name that is enabled?
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Every agent by name, the disabled ones too.
    pub(crate) fn described(&self) -> Vec<Described> {
        let describe = |entry: &Arc<Entry>| {
            let told = entry.record.told();
            Described {
                name: entry.name.clone(),
                protocol: entry.config.protocol.clone().unwrap_or_else(|| DEMO.into()),
                enabled: entry.config.enabled,
                live: told.live,
                starts: told.starts,
                crashes: told.crashes,
                strays: told.strays,
                odd: told.odd,
                groups: told.groups,
                last_error: told.last_error,
                last_words: told.last_words,
            }
        };
        self.agents.values().map(describe).collect()
    }

    /// How many agents run that need a place, and how many places there are.
    pub(super) fn places(&self) -> (usize, usize) {
        self.seats.count()
    }

    /// What an agent can do, as far as is known; nothing if there is none of this name.
    pub(crate) fn capabilities(&self, name: &str) -> Vec<&'static str> {
        let Some(entry) = self.entry(name) else {
            return Vec::new();
        };
        let Some(protocol) = entry.config.dialect() else {
            return demo::CAPABILITIES.to_vec();
        };
        let lacks = entry.record.lacks();
        let able = protocol.capabilities.iter().copied();
        able.filter(|able| !lacks.contains(able)).collect()
    }

    /// Does its program connect to the gateway, instead of being started?
    pub(super) fn listens(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.config.listen)
    }

    /// Was one of these agents ever ready? The demo agent always is.
    pub(crate) fn was_ready(&self, name: &str) -> bool {
        let entry = self.entry(name);
        entry.is_some_and(|entry| entry.config.is_demo() || entry.record.told().ready > 0)
    }

    /// What an agent has said it cannot do, of what its protocol can.
    pub(crate) fn lacks(&self, name: &str) -> Vec<&'static str> {
        self.entry(name)
            .map(|entry| entry.record.lacks())
            .unwrap_or_default()
    }

    /// Can an agent do this?
    pub(crate) fn is_able(&self, name: &str, capability: &str) -> bool {
        self.capabilities(name).contains(&capability)
    }

    /// Is it a part of the gateway, and no process?
    pub(crate) fn is_built_in(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.config.is_demo())
    }

    /// Can an agent go on with a run that waits for answers, after it was started anew?
    pub(crate) fn can_resume(&self, name: &str) -> bool {
        self.is_built_in(name)
    }

    /// How long an agent may be idle before it is put to rest, if it can go on afterwards.
    pub(crate) fn idle(&self, name: &str) -> Option<Duration> {
        let entry = self.entry(name)?;
        let seconds = entry.config.idle_secs;
        let resumes = entry.config.dialect()?.resumes && !entry.record.lacks().contains(&"resume");
        let rests = resumes && seconds > 0;
        rests.then(|| Duration::from_secs(seconds.into()))
    }

    /// Does it hear what is said to a run under way?
    pub(crate) fn hears_steering(&self, name: &str) -> bool {
        let entry = self.entry(name);
        entry.is_some_and(|entry| !entry.config.is_demo()) && self.is_able(name, "steer")
    }

    /// May a session answer this agent's harmless permissions by itself?
    pub(crate) fn permits_auto_approve(&self, name: &str) -> bool {
        let Some(entry) = self.entry(name) else {
            return false;
        };
        entry.config.auto_approve.unwrap_or(entry.config.is_demo())
    }

    /// What is wrong with a change of settings for this agent: the setting, and what it may be.
    pub(crate) fn complaint(
        &self,
        name: &str,
        change: &SettingsChange,
    ) -> Option<(&'static str, String)> {
        let agent = &self.entry(name)?.config;
        let one_of = |known: &[String]| format!("is not one of: {}", known.join(", "));
        if let Some(model) = &change.model
            && !agent.models.is_empty()
            && !agent.models.contains(model)
        {
            return Some(("model", one_of(&agent.models)));
        }
        if let Some(mode) = &change.mode
            && !agent.modes.contains(mode)
        {
            let fault = if agent.modes.is_empty() {
                format!("cannot be chosen: the agent `{name}` has no modes")
            } else {
                one_of(&agent.modes)
            };
            return Some(("mode", fault));
        }
        let most = agent.max_tokens;
        if let (Some(tokens), Some(most)) = (change.max_tokens, most)
            && tokens > most
        {
            return Some(("maxTokens", format!("is above {most}")));
        }
        let hottest = agent.max_temperature;
        if let (Some(degree), Some(hottest)) = (change.temperature, hottest)
            && degree > hottest
        {
            return Some(("temperature", format!("is above {hottest}")));
        }
        None
    }

    /// Is there room for another agent of this user? An error says why not.
    pub(crate) fn has_room(
        &self,
        name: &str,
        user: UserId,
        session: SessionId,
    ) -> Result<(), StartAgentError> {
        match self.entry(name) {
            Some(entry) if !entry.config.is_demo() => self
                .seats
                .take(user, session)
                .map(drop)
                .map_err(StartAgentError::from),
            _ => Ok(()),
        }
    }

    /// Starts an agent for one session.
    ///
    /// It speaks through `back` and waits while that is full. When it is gone, for whatever reason,
    /// `back` is dropped. It ends with `stop` and with its link; `tracker` awaits its task.
    pub(crate) fn start(
        &self,
        name: &str,
        start: Start,
        back: mpsc::Sender<FromAgent>,
        stop: &CancellationToken,
        tracker: &TaskTracker,
    ) -> Result<Link, StartAgentError> {
        let unknown = || StartAgentError::Unknown(name.to_owned());
        let entry = self.entry(name).ok_or_else(unknown)?;
        if entry.config.is_demo() {
            return Ok(Link::start(stop, tracker, |commands| {
                demo::run(commands, back)
            }));
        }
        let protocol = entry.config.dialect().ok_or_else(unknown)?;
        let most = entry.config.max_crashes.get();
        let rest = entry
            .record
            .rest(start.session, protocol.restart_after, most, Instant::now());
        let rest = rest.map_err(|again_in| StartAgentError::Crashing {
            name: name.to_owned(),
            again_in,
        })?;
        let room = Room::new();
        let said = |(author, text)| Utterance { author, text };
        let shift = Shift {
            entry: Arc::clone(entry),
            protocol,
            workshop: Arc::clone(&self.workshop),
            hub: self.hubs.get(name).cloned(),
            thread: start.thread,
            history: start.history.into_iter().map(said).collect(),
            rest,
            room: room.clone(),
            clock: self.clock.clone(),
            seat: self.seats.take(start.user, start.session)?,
            place: Place {
                session: start.session,
                user: start.user,
                user_name: start.user_name,
            },
        };
        let gateway_stop = stop.clone();
        Ok(Link::launch(stop, tracker, Some(room), |commands, stop| {
            shift.run(commands, back, stop, gateway_stop)
        }))
    }

    fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.agents.get(name).filter(|entry| entry.config.enabled)
    }
}

impl From<Full> for StartAgentError {
    fn from(full: Full) -> Self {
        match full {
            Full::All(most) => Self::Full(most),
            Full::User(most) => Self::UserFull(most),
        }
    }
}

/// The socket where an agent's program connects.
fn hub(
    entry: &Arc<Entry>,
    data: &Path,
    stop: &CancellationToken,
    tracker: &TaskTracker,
) -> std::io::Result<Option<Arc<Hub>>> {
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
    let terms = Terms {
        path: data.join(socket),
        token,
        framing: config.framing(protocol),
        longest: config.max_line_bytes.get() as usize,
        strays: Box::new(move || counted.record.note(|told| told.strays += 1)),
    };
    Hub::open(terms, stop, tracker).map(Some)
}

#[cfg(test)]
pub(super) mod tests;
