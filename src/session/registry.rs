//! Registry: the sessions of this node; drafts, joins, activates and ends them.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::branch::BranchLimits;
use super::journal::Committer;
use super::live_sessions::LiveSessions;
use super::mailbox::MAILBOX_CAPACITY;
use super::quotas::Quotas;
use super::read_permits::ReadPermits;
use super::tail::Tails;
use super::{
    CommitLoop, Config, Connections, Inner, Instruments, JoinError, Journal, JournalConfig, Parts,
    Presence, QuotaConfig, QuotaError, RetentionTask, Session, ShutdownTokens, history, metrics,
};
use crate::clock::Clock;
use crate::domain::account::Principal;
use crate::domain::grant::ControlMode;
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::runtime::{Agents, Catalog, Described};
use crate::store::{
    AttachmentRow, AuditConfig, ClaimError, NewSession, SessionRow, Store, StoreError,
};

/// Sessions that can be activated at the same time.
const ACTIVATION_LOCKS: u64 = 64;
/// How long an activation may wait for others.
const ACTIVATION_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_UNFINISHED_SESSIONS: u32 = 10_000;

#[derive(Clone)]
pub(crate) struct Sessions {
    pub(super) parts: Arc<Parts>,
    default_agent: String,
    node: String,
    /// Activations are serialised per lock; a session's id picks its lock.
    activation_locks: Arc<[Mutex<()>]>,
    members: Connections,
}

impl Sessions {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        catalog: Catalog,
        (config, journal, quotas): (&Config, &JournalConfig, QuotaConfig),
        shutdown: ShutdownTokens,
        instruments: Instruments,
    ) -> (Self, CommitLoop) {
        let Instruments { tracer, failures } = instruments;
        let metrics = Arc::new(metrics::Metrics::default());
        let watched = (Arc::clone(&metrics), failures);
        let (committer, commits) = Committer::new(Arc::clone(&store), clock.clone(), watched);
        let live = LiveSessions::default();
        let parts = Parts {
            store,
            clock,
            catalog,
            committer,
            tails: Arc::new(Tails::new(journal.tail_bytes as usize)),
            live: live.clone(),
            idle_timeout: Duration::from_mins(config.idle_minutes.get().into()),
            question_timeout: (config.question_timeout_minutes > 0)
                .then(|| Duration::from_mins(config.question_timeout_minutes.into())),
            control_lease: Duration::from_secs(config.control_lease_secs.get().into()),
            queue_max: config.queue_max.get() as usize,
            shutdown,
            tracker: TaskTracker::new(),
            branch_limits: BranchLimits::new(journal),
            search_permits: history::search_permits(),
            read_permits: ReadPermits::default(),
            quotas: Quotas::new(quotas),
            metrics,
            tracer,
        };
        let sessions = Self {
            parts: Arc::new(parts),
            default_agent: config.default_agent.clone(),
            node: format!("node-{}", uuid::Uuid::now_v7().simple()),
            members: Connections::new(live),
            activation_locks: (0..ACTIVATION_LOCKS).map(|_| Mutex::default()).collect(),
        };
        (sessions, commits)
    }

    pub(crate) fn capabilities(&self, agent: &str) -> Vec<&'static str> {
        self.parts.catalog.capabilities(agent)
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &str> {
        self.parts.catalog.names()
    }

    /// Agent of a session whose client names none.
    pub(crate) fn default_agent(&self) -> &str {
        &self.default_agent
    }

    pub(crate) fn described_agents(&self) -> Vec<Described> {
        self.parts.catalog.described()
    }

    pub(crate) fn members(&self) -> &Connections {
        &self.members
    }

    fn new_journal(&self, id: SessionId, epoch: Epoch, head: u64) -> Journal {
        let store = Arc::clone(&self.parts.store);
        Journal::new(id, epoch, head, store, self.parts.read_permits.clone())
    }

    /// A new session, in memory only until its first event.
    pub(crate) fn draft(
        &self,
        principal: &Principal,
        agent: Option<&str>,
        title: Option<String>,
    ) -> Result<Session, JoinError> {
        let new = self.new_session(principal.user, agent, title)?;
        let journal = self.new_journal(new.id, new.epoch, 0);
        let (owner, agent) = (new.owner, new.agent.clone());
        let session = self.handle(owner, agent, ControlMode::Open, journal, Some(new));
        self.parts.live.lock().insert(session.id(), session.clone());
        Ok(session)
    }

    /// Fails if the user may have no further session.
    pub(crate) async fn check_new_session(&self, owner: UserId) -> Result<(), QuotaError> {
        let (quotas, store) = (&self.parts.quotas, self.parts.store.as_ref());
        quotas.check_new_session(store, owner).await
    }

    /// What a user may store.
    pub(crate) fn quotas(&self) -> &QuotaConfig {
        self.parts.quotas.limits()
    }

    /// The row of a new session; stores nothing.
    pub(crate) fn new_session(
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

    /// Stores a draft that the principal has joined, because something is about to refer to its row.
    pub(crate) async fn keep_draft(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<(), StoreError> {
        let draft = self
            .live(id)
            .filter(|session| session.access(principal).is_some())
            .and_then(|session| session.0.draft.clone());
        match draft {
            // Does nothing if the row is there.
            Some(new) => self.parts.store.create_session(&new).await,
            None => Ok(()),
        }
    }

    /// The files of a session. The caller has checked access.
    pub(crate) async fn attachments(
        &self,
        id: SessionId,
    ) -> Result<Vec<AttachmentRow>, StoreError> {
        self.parts.store.attachments(id).await
    }

    /// Joins a session if the principal may; activates it if it is idle.
    pub(crate) async fn join(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<Session, JoinError> {
        if let Some(session) = self.live(id) {
            return self.admit(principal, session).await;
        }
        let _lock = self.activation_lock(id).await?;
        if let Some(session) = self.live(id) {
            return self.admit(principal, session).await;
        }
        // Before the activation: a stranger must not be able to activate anything.
        let (row, _) = self.look_up(principal, id).await?;
        let session = self.activate(row).await?;
        self.admit(principal, session).await
    }

    /// Activates an idle session: claims the journal's next term, folds the stored events, starts the
    /// router. The caller holds the activation lock.
    async fn activate(&self, row: SessionRow) -> Result<Session, JoinError> {
        let id = row.id;
        let lease = match self.parts.store.claim_journal(id, &self.node).await {
            Ok(lease) => lease,
            Err(ClaimError::NotFound) => return Err(JoinError::NotFound),
            Err(ClaimError::Store(error)) => return Err(error.into()),
        };
        let journal = self.new_journal(id, lease.epoch, lease.head);
        let session = self.handle(row.owner, row.agent, row.control, journal, None);
        let (mailbox, receiver) = mpsc::channel(MAILBOX_CAPACITY);
        if row.running {
            self.measure_journal(id).await;
        }
        let mut router = session.router(lease.term, receiver);
        router.recover().await?;
        session.0.mailbox.get_or_init(|| mailbox);
        self.parts.live.lock().insert(id, session.clone());
        session.spawn(router);
        // It may have been ended between the lookup and the insertion.
        let row = self.parts.store.session(id).await?;
        let Some(row) = row.filter(|row| row.ended_at.is_none()) else {
            self.mark_ended(id);
            return Err(JoinError::NotFound);
        };
        if row.control != session.presence().mode() {
            self.grants_changed(id).await;
        }
        Ok(session)
    }

    /// A gateway that ended in the middle of a run did not record what the run added.
    async fn measure_journal(&self, id: SessionId) {
        if let Err(error) = self.parts.store.measure_journal(id).await {
            tracing::warn!(%error, session.id = %id, "the size of the session's journal is not known exactly");
        }
    }

    /// Activates idle sessions with a run or queued prompts, after a restart or after their router
    /// ended: a run must have its end and a queued prompt its run, even if no client comes back.
    pub(crate) async fn resume_unfinished(&self) -> Result<usize, JoinError> {
        let store = &self.parts.store;
        let unfinished = store.unfinished_sessions(MAX_UNFINISHED_SESSIONS).await?;
        let mut activated = 0;
        for id in unfinished {
            if self.parts.shutdown.drain.is_cancelled() {
                break;
            }
            // A session that fails must not keep the others from it.
            match self.activate_if_idle(id).await {
                Ok(was_idle) => activated += usize::from(was_idle),
                Err(error) => {
                    tracing::warn!(%error, session.id = %id, "an unfinished session was not resumed");
                }
            }
        }
        Ok(activated)
    }

    async fn activate_if_idle(&self, id: SessionId) -> Result<bool, JoinError> {
        if self.live(id).is_some() {
            return Ok(false);
        }
        let _lock = self.activation_lock(id).await?;
        if self.live(id).is_some() {
            return Ok(false);
        }
        match self.parts.store.session(id).await? {
            Some(row) if row.ended_at.is_none() => {
                self.activate(row).await?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Taken before storage is asked: when all clients reconnect at once, they wait for each other
    /// here, and not in storage, where a long wait counts as a failure.
    async fn activation_lock(&self, id: SessionId) -> Result<MutexGuard<'_, ()>, StoreError> {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % ACTIVATION_LOCKS).unwrap_or_default();
        tokio::time::timeout(ACTIVATION_TIMEOUT, self.activation_locks[index].lock())
            .await
            .map_err(|_| StoreError::no_answer())
    }

    /// Ends the run of a session that is about to end, so that the run has an end.
    pub(crate) async fn end_run(&self, id: SessionId) {
        if let Some(session) = self.live(id) {
            session.end_run().await;
        }
    }

    pub(crate) fn mark_ended(&self, id: SessionId) {
        if let Some(session) = self.parts.live.lock().remove(&id) {
            session.0.ended.store(true, Ordering::Release);
            session.0.closed.cancel();
        }
    }

    /// Ends the live sessions of a removed account, for all their members. Those of a disabled
    /// account stay: the people they are shared with may go on. What the account has sent ends.
    pub(crate) async fn account_changed(&self, owner: UserId) -> Result<(), StoreError> {
        for session in self.parts.live.all() {
            session.senders_changed();
        }
        let owned: Vec<SessionId> = {
            let live = self.parts.live.lock();
            let is_owned = |session: &&Session| session.0.owner == owner;
            live.values().filter(is_owned).map(Session::id).collect()
        };
        if owned.is_empty() {
            return Ok(());
        }
        let is_removed = self.parts.store.user(owner).await?.is_none();
        for id in owned {
            let row = self.parts.store.session(id).await?;
            // A draft has no row and has not ended.
            if is_removed || row.is_some_and(|row| row.ended_at.is_some()) {
                self.mark_ended(id);
            }
        }
        Ok(())
    }

    /// Waits for every router and agent, then lets the commit loop end. Call after `stop`.
    pub(crate) async fn finish(&self) {
        self.parts.tracker.close();
        self.parts.tracker.wait().await;
        self.parts.committer.finish();
        // A live session holds the parts that hold it.
        self.parts.live.lock().clear();
    }

    /// Frees the tails of idle sessions and removes abandoned drafts.
    pub(crate) fn sweep(&self) {
        self.parts.tails.sweep();
        self.parts.live.remove_abandoned_drafts();
    }

    pub(crate) fn retention_task(
        &self,
        config: &Config,
        journal: &JournalConfig,
        audit: &AuditConfig,
    ) -> RetentionTask {
        let Parts {
            store, clock, live, ..
        } = &*self.parts;
        let (store, live) = (Arc::clone(store), live.clone());
        RetentionTask::new(store, clock.clone(), live, config, journal, audit)
    }

    pub(crate) fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        metrics::register(&self.parts, registry);
        registry.register_collector(Box::new(Agents(self.parts.catalog.clone())));
        self.parts.quotas.register_metrics(registry);
    }

    /// Counts the stored sessions for the metrics. Reads all of them: not for every scrape.
    pub(crate) async fn count_stored(&self) {
        let Ok(counts) = self.parts.store.counts().await else {
            return;
        };
        let sessions = i64::try_from(counts.sessions).unwrap_or(i64::MAX);
        self.parts.metrics.stored.store(sessions, Ordering::Relaxed);
    }

    /// Number of live sessions by agent, without drafts that got no message yet.
    pub(crate) fn live_by_agent(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for session in self.parts.live.lock().values() {
            if session.0.mailbox.get().is_some() {
                *counts.entry(session.agent().to_owned()).or_default() += 1;
            }
        }
        counts
    }

    pub(super) fn live(&self, id: SessionId) -> Option<Session> {
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
            mailbox: OnceLock::new(),
            draft,
            abandoned: AtomicBool::new(false),
            closed: CancellationToken::new(),
            ended: AtomicBool::new(false),
            presence: Presence::new(mode),
        }))
    }
}
