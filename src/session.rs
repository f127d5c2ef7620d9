//! The session: its journal, the router that writes it, the state folded from it, and who may join.
//!
//! [`Sessions`] is the registry of live sessions on this node, [`Session`] the handle that a
//! connection holds. A session is woken by whoever joins it and goes to rest when nobody needs it;
//! at rest it costs no memory. Touches `limits`, `runtime`, `store`, `domain`, `clock`,
//! `telemetry`.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod access;
mod agent;
mod ask;
mod attachments;
mod branch;
mod circle;
mod compaction;
mod config;
mod control;
mod count;
mod decision;
mod failure;
mod grants;
mod handle;
mod history;
mod journal;
mod keeper;
mod live;
mod members;
mod metrics;
mod owners;
mod router;
mod scribe;
mod searchable;
pub(crate) mod state;
mod tail;
mod trial;
mod watermark;

pub(crate) use access::{Access, may_join};
pub(crate) use ask::{Effect, Refused, Request, Sent, Wake};
pub(crate) use branch::Branched;
pub(crate) use circle::Circle;
pub use config::{Config, JournalConfig};
pub(crate) use control::{Asker, NotDriving, Wish};
pub(crate) use grants::Driving;
pub(crate) use history::SearchError;
pub(crate) use journal::{CommitLoop, Found, Journal};
pub(crate) use keeper::{EVERY as TIDY_EVERY, Keeper};
pub(crate) use members::{Member, Members};
pub(crate) use tail::Entry;
pub(crate) use trial::Asking;

use crate::clock::Clock;
use crate::domain::account::Principal;
use crate::domain::grant::ControlMode;
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::limits::Turns;
use crate::runtime::{Agents, Catalog, Described};
use crate::store::{ClaimError, Failures, NewSession, SessionRow, Store, StoreError};
use crate::telemetry::Tracer;
use ask::Ask;
use branch::Branching;
use journal::Committer;
use live::Live;
use tail::Tails;

/// Questions that may wait for a router. Full: whoever asks waits.
const ASKS: usize = 64;
/// Sessions that can be woken at the same time.
const TURNS: u64 = 64;
/// How long a session may wait to be woken behind others.
const CROWD: Duration = Duration::from_secs(10);
/// So many unfinished sessions are woken at the start.
const UNFINISHED: u32 = 10_000;
/// After this long, storage counts as unavailable.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// What every router needs.
pub(crate) struct Parts {
    store: Arc<dyn Store>,
    clock: Clock,
    catalog: Catalog,
    committer: Committer,
    tails: Arc<Tails>,
    live: Live,
    idle: Duration,
    /// How long a question waits for its answer.
    question_patience: Option<Duration>,
    /// How long somebody drives without a sign of life.
    lease: Duration,
    stopping: Stopping,
    tracker: TaskTracker,
    branching: Branching,
    /// A search goes through much.
    searching: Turns,
    metrics: Arc<metrics::Metrics>,
    tracer: Tracer,
}

/// The two wishes to stop, one after the other.
#[derive(Clone)]
pub(crate) struct Stopping {
    /// Nothing new begins; runs under way go on.
    pub(crate) drain: CancellationToken,
    /// Runs end now.
    pub(crate) stop: CancellationToken,
}

/// What is used to see what goes on.
#[derive(Default)]
pub(crate) struct Instruments {
    pub(crate) tracer: Tracer,
    pub(crate) failures: Failures,
}

/// A live session, as connections and requests hold it.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    id: SessionId,
    owner: UserId,
    agent: String,
    journal: Journal,
    parts: Arc<Parts>,
    /// The way to the router. A draft has none until something is asked of it: most connections
    /// that are only open cost no router.
    asks: OnceLock<Asks>,
    /// What is stored with the first event, if nothing is stored yet.
    draft: Option<NewSession>,
    /// A draft that nobody is in is forgotten when it is found so a second time.
    left: AtomicBool,
    /// This handle leads nowhere any more.
    over: CancellationToken,
    /// The session was ended for good.
    ended: AtomicBool,
    circle: Circle,
}

/// Boxed: the channel keeps room for many in advance, and most sessions are asked little.
type Asks = mpsc::Sender<Box<Ask>>;

/// Why a session cannot be joined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// There is none such, or it belongs to somebody else: nobody is told which.
    #[error("there is no such session")]
    NotFound,
    /// There is no such agent.
    #[error("there is no agent `{0}` here")]
    NoSuchAgent(String),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The registry of sessions on this node.
#[derive(Clone)]
pub(crate) struct Sessions {
    parts: Arc<Parts>,
    default_agent: String,
    node: String,
    /// Whoever wakes a session holds its turn; sessions share turns, but not all of them one.
    waking: Arc<[Mutex<()>]>,
    members: Members,
}

impl Sessions {
    /// A registry, and the loop that commits what its sessions record.
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        catalog: Catalog,
        config: &Config,
        journal: &JournalConfig,
        stopping: Stopping,
        instruments: Instruments,
    ) -> (Self, CommitLoop) {
        let Instruments { tracer, failures } = instruments;
        let metrics = Arc::new(metrics::Metrics::default());
        let watched = (Arc::clone(&metrics), failures);
        let (committer, commits) = Committer::new(Arc::clone(&store), clock.clone(), watched);
        let live = Live::default();
        let parts = Parts {
            store,
            clock,
            catalog,
            committer,
            tails: Arc::new(Tails::new(journal.tail_bytes as usize)),
            live: live.clone(),
            idle: Duration::from_mins(config.idle_minutes.get().into()),
            question_patience: (config.question_timeout_minutes > 0)
                .then(|| Duration::from_mins(config.question_timeout_minutes.into())),
            lease: Duration::from_secs(config.control_lease_secs.get().into()),
            stopping,
            tracker: TaskTracker::new(),
            branching: Branching::new(journal),
            searching: history::searching(),
            metrics,
            tracer,
        };
        let sessions = Self {
            parts: Arc::new(parts),
            default_agent: config.default_agent.clone(),
            node: format!("node-{}", uuid::Uuid::now_v7().simple()),
            members: Members::new(live),
            waking: (0..TURNS).map(|_| Mutex::default()).collect(),
        };
        (sessions, commits)
    }

    /// What an agent can do.
    pub(crate) fn capabilities(&self, agent: &str) -> Vec<&'static str> {
        self.parts.catalog.capabilities(agent)
    }

    /// The agents that can be talked to.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &str> {
        self.parts.catalog.names()
    }

    /// The agent of a session for which none is named.
    pub(crate) fn default_agent(&self) -> &str {
        &self.default_agent
    }

    /// All agents that are configured, for those who run the gateway.
    pub(crate) fn described_agents(&self) -> Vec<Described> {
        self.parts.catalog.described()
    }

    /// Who is in which session.
    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    /// A session for a newcomer, in memory only until something is recorded in it.
    pub(crate) fn draft(
        &self,
        principal: &Principal,
        agent: Option<&str>,
        title: Option<String>,
    ) -> Result<Session, JoinError> {
        let new = self.describe(principal.user, agent, title)?;
        let journal = Journal::new(new.id, new.epoch, 0, Arc::clone(&self.parts.store));
        let (owner, agent) = (new.owner, new.agent.clone());
        let session = self.handle(owner, agent, ControlMode::Open, journal, Some(new));
        self.parts.live.lock().insert(session.id(), session.clone());
        Ok(session)
    }

    /// What a new session will be.
    pub(crate) fn describe(
        &self,
        owner: UserId,
        agent: Option<&str>,
        title: Option<String>,
    ) -> Result<NewSession, JoinError> {
        let agent = agent.unwrap_or(&self.default_agent);
        if !self.parts.catalog.contains(agent) {
            return Err(JoinError::NoSuchAgent(agent.to_owned()));
        }
        Ok(NewSession {
            id: SessionId::new(),
            owner,
            agent: agent.to_owned(),
            title,
            epoch: Epoch::new(),
            created_at: self.parts.clock.wall(),
        })
    }

    /// The session of that id, if the principal may join it; woken if it was at rest.
    pub(crate) async fn join(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<Session, JoinError> {
        if let Some(session) = self.live(id) {
            return self.admit(principal, session).await;
        }
        let _turn = self.turn_to_wake(id).await?;
        if let Some(session) = self.live(id) {
            return self.admit(principal, session).await;
        }
        // Looked up before it is woken: a stranger must not be able to wake anything.
        let (row, _) = self.look_up(principal, id).await?;
        let session = self.wake(row).await?;
        self.admit(principal, session).await
    }

    /// Wakes a session that is at rest; whoever calls holds the turn to do so.
    async fn wake(&self, row: SessionRow) -> Result<Session, JoinError> {
        let id = row.id;
        let lease = match self.parts.store.claim_journal(id, &self.node).await {
            Ok(lease) => lease,
            Err(ClaimError::NotFound) => return Err(JoinError::NotFound),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        };
        let journal = Journal::new(id, lease.epoch, lease.head, Arc::clone(&self.parts.store));
        let session = self.handle(row.owner, row.agent, row.control, journal, None);
        let (asks, receiver) = mpsc::channel(ASKS);
        let mut router = session.router(lease.term, receiver);
        router.recover().await?;
        session.0.asks.get_or_init(|| asks);
        self.parts.live.lock().insert(id, session.clone());
        session.spawn(router);
        // It may have been ended between the look and the insertion.
        let row = self.parts.store.session(id).await?;
        let Some(row) = row.filter(|row| row.ended_at.is_none()) else {
            self.ended(id);
            return Err(JoinError::NotFound);
        };
        if row.control != session.circle().mode() {
            self.grants_changed(id).await;
        }
        Ok(session)
    }

    /// Wakes the sessions at rest in which something was under way or waits for its turn: after a
    /// restart, or when their router had to give up. A run must have its end and a prompt its turn,
    /// also if nobody comes back.
    pub(crate) async fn wake_unfinished(&self) -> Result<usize, JoinError> {
        let unfinished = self.parts.store.unfinished_sessions(UNFINISHED).await?;
        let mut woken = 0;
        for id in unfinished {
            if self.parts.stopping.drain.is_cancelled() {
                break;
            }
            // One that cannot be woken keeps no other from it.
            match self.wake_if_resting(id).await {
                Ok(is_woken) => woken += usize::from(is_woken),
                Err(error) => {
                    tracing::warn!(%error, session.id = %id, "a session cannot be taken up");
                }
            }
        }
        Ok(woken)
    }

    async fn wake_if_resting(&self, id: SessionId) -> Result<bool, JoinError> {
        if self.live(id).is_some() {
            return Ok(false);
        }
        let _turn = self.turn_to_wake(id).await?;
        if self.live(id).is_some() {
            return Ok(false);
        }
        match self.parts.store.session(id).await? {
            Some(row) if row.ended_at.is_none() => {
                self.wake(row).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Taken before anything is asked of storage: when everybody comes back at once, they wait here
    /// for each other, and not there, where waiting soon counts as a failure.
    async fn turn_to_wake(&self, id: SessionId) -> Result<MutexGuard<'_, ()>, StoreError> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let turn = usize::try_from(hasher.finish() % TURNS).unwrap_or_default();
        tokio::time::timeout(CROWD, self.waking[turn].lock())
            .await
            .map_err(|_| StoreError::no_answer())
    }

    /// Ends the run of a session that is about to be ended, so that it has an end.
    pub(crate) async fn end_run(&self, id: SessionId) {
        if let Some(session) = self.live(id) {
            session.end_run().await;
        }
    }

    /// Tells everybody in a session that it is over.
    pub(crate) fn ended(&self, id: SessionId) {
        if let Some(session) = self.parts.live.lock().remove(&id) {
            session.0.ended.store(true, Ordering::Release);
            session.0.over.cancel();
        }
    }

    /// Waits for every router and agent to finish, and lets the commit loop end; call after the
    /// wish to stop.
    pub(crate) async fn finish(&self) {
        self.parts.tracker.close();
        self.parts.tracker.wait().await;
        self.parts.committer.finish();
        // A live session holds the parts that hold it.
        self.parts.live.lock().clear();
    }

    /// Puts what is held in memory under its name.
    pub(crate) fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        metrics::register(&self.parts, registry);
        registry.register_collector(Box::new(Agents(self.parts.catalog.clone())));
    }

    /// Gives back what sessions at rest held, and drafts that their connections have left.
    pub(crate) fn sweep(&self) {
        self.parts.tails.sweep();
        self.parts.live.forget_drafts();
    }

    fn live(&self, id: SessionId) -> Option<Session> {
        self.parts.live.find(id)
    }

    fn handle(
        &self,
        owner: UserId,
        agent: String,
        mode: ControlMode,
        journal: Journal,
        draft: Option<NewSession>,
    ) -> Session {
        Session(Arc::new(Inner {
            id: journal.session(),
            owner,
            agent,
            journal,
            parts: Arc::clone(&self.parts),
            asks: OnceLock::new(),
            draft,
            left: AtomicBool::new(false),
            over: CancellationToken::new(),
            ended: AtomicBool::new(false),
            circle: Circle::new(mode),
        }))
    }
}

#[cfg(test)]
mod tests;
