//! The composition root: builds the rooms, binds the doors, owns the order of shutdown.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod instance;
mod owners;
mod supervisor;

pub use instance::{Instance, InstanceError, Running};
pub use supervisor::Supervisor;

use crate::auth::{AdminError, Auth, Invitation, OpenAuthError};
use crate::bus::Notices;
use crate::clock::Clock;
use crate::config::Config;
use crate::desk::{self, Reception};
use crate::domain::act::By;
use crate::http::{self, Addresses, Door};
use crate::limits::{ConnectionCaps, Limits};
use crate::runtime::{Catalog, Workshop};
use crate::session::{Instruments, Keeper, Sessions, Stopping, TIDY_EVERY};
use crate::shutdown::Shutdown;
use crate::store::{self, Belonging, Contents, Failures, OpenError, Scrubbed, Store, StoreError};
use crate::telemetry::{self, Destination, Process, Traces};
use crate::ws;

/// How often what has expired is dropped.
const SWEEP: Duration = Duration::from_secs(30);

/// How soon another try is made to empty the database's log, if somebody reads from it.
const LOG_IS_READ: Duration = Duration::from_secs(5);
/// After the grace, for runs to be recorded as ended and agents to go.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// For the last traces to be delivered.
const LAST_TRACES: Duration = Duration::from_secs(2);
/// This program, also when its file was replaced meanwhile.
const OWN_BINARY: &str = "/proc/self/exe";

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another one runs here.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Keys or revocations cannot be loaded.
    #[error(transparent)]
    Auth(#[from] OpenAuthError),
    /// The configured administrator cannot be made.
    #[error("cannot make the administrator of the [admin] section: {0}")]
    Admin(#[from] AdminError),
    /// Somebody else has the port.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Query(#[from] StoreError),
    /// Agents cannot be started here.
    #[error("cannot make ready for agents: {0}")]
    Agents(#[from] std::io::Error),
}

/// The database became another one: a standby took over, or a dump was restored. What was committed last
/// may be missing there, so nobody can go on; a new start gives the journals new epochs.
#[derive(Debug, thiserror::Error)]
#[error(
    "{place} is not the database any more that it was at the start (did a standby take over?): \
     start again, and journals get a new epoch"
)]
pub struct Displaced {
    /// Which one, without its password.
    place: String,
}

/// A gateway that is built and bound, and not yet serving.
pub struct Gateway {
    config: Config,
    store: Arc<dyn Store>,
    contents: Arc<Contents>,
    auth: Auth,
    limits: Limits,
    clock: Clock,
    listener: TcpListener,
    listening: SocketAddr,
    metrics_listener: Option<TcpListener>,
    catalog: Catalog,
    /// Where traces go.
    traces: Traces,
    /// What goes on beside the doors, and what ends it at last.
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Held while the gateway lives.
    instance: Instance,
}

impl Gateway {
    /// Opens storage, makes keys and the configured administrator, binds the doors.
    pub async fn build(config: Config, clock: Clock) -> Result<Self, StartError> {
        store::make_directory(&config.data)?;
        let instance = Instance::claim(&config.data.dir).await?;
        let store = store::open_to_serve(&config.data).await?;
        let contents = Arc::new(Contents::open(&config.data.dir)?);
        settle_files(&config, store.as_ref()).await;
        let limits = Limits::new(&config.limits, &clock);
        let delays = Arc::clone(&limits.accounts);
        let auth = Auth::open(
            Arc::clone(&store),
            config.auth.clone(),
            delays,
            clock.clone(),
        )
        .await?;
        if auth.set_up_from_config(&config.admin).await? {
            tracing::info!("made the first administrator from the [admin] section");
        }
        let listener = bind(config.server.listen).await?;
        let listening = listener.local_addr().map_err(|source| StartError::Bind {
            address: config.server.listen,
            source,
        })?;
        let metrics_listener = match config.metrics.listen {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (dir, contents_of_prompts) = (&config.data.dir, Some(Arc::clone(&contents)));
        let workshop = Workshop::open(dir, Some(OWN_BINARY.into()), contents_of_prompts)?;
        let mut catalog = Catalog::new(&config.agents, &config.runtime, workshop, clock.clone());
        catalog.open(dir, &stop, &tasks).await?;
        let gateway = Self {
            config,
            store,
            contents,
            auth,
            limits,
            clock,
            listener,
            listening,
            metrics_listener,
            catalog,
            traces: Traces::default(),
            tasks,
            stop,
            instance,
        };
        gateway
            .instance
            .announce(gateway.addresses().base(), listening);
        Ok(gateway)
    }

    /// The same, with its traces brought to a collector.
    #[must_use]
    pub fn traced(mut self, destination: Option<Destination>) -> Self {
        self.traces = Traces::start(destination, &self.clock);
        self
    }

    /// Where it listens.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// Where people are sent.
    pub fn addresses(&self) -> Addresses {
        Addresses::new(&self.config.server, self.listening)
    }

    /// A setup link while there is no administrator.
    pub async fn issue_setup_link(&self) -> Result<Option<Invitation>, StoreError> {
        let by = By::gateway(self.clock.wall());
        self.auth.issue_setup_link(by).await
    }

    /// Serves until told to stop, then drains: no new connections, a while for what is under way.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), Displaced> {
        let mut grace = Duration::from_secs(self.config.server.shutdown_grace_secs.into());
        let store = Arc::clone(&self.store);
        let (traces, failures) = (std::mem::take(&mut self.traces), Failures::default());
        let instruments = (&traces, failures);
        let (tasks, connections) = (self.tasks.clone(), TaskTracker::new());
        let stopping = Stopping {
            drain: shutdown.drain.clone(),
            stop: self.stop.clone(),
        };
        let (instance, sessions) =
            self.start(&shutdown, &stopping, &tasks, &connections, instruments);
        let outcome = tokio::select! {
            biased;
            () = shutdown.drain.cancelled() => Ok(()),
            () = store.displaced() => {
                let displaced = Displaced { place: store.place().to_owned() };
                tracing::error!(error = %displaced, "stopping at once");
                // Nothing that is under way can be stored.
                grace = Duration::ZERO;
                shutdown.drain.cancel();
                Err(displaced)
            }
        };
        tasks.close();
        connections.close();
        // Connections use sessions, sessions use the committer: each ends after those above it.
        let mut drained = pin!(async {
            connections.wait().await;
            sessions.finish().await;
            // Nobody talks to an agent any more: what listens for agents ends, too.
            stopping.stop.cancel();
            tasks.wait().await;
        });
        tokio::select! {
            biased;
            // Asked twice: nothing is waited for.
            () = shutdown.now.cancelled() => return outcome,
            () = &mut drained => tracing::info!("stopped"),
            () = tokio::time::sleep(grace) => {
                tracing::info!("the grace is over: runs under way are ended");
                stopping.stop.cancel();
                if tokio::time::timeout(LAST_WORDS, drained).await.is_err() {
                    tracing::warn!(connections = connections.len(), "not everything could be finished");
                }
            }
        }
        traces.finish(LAST_TRACES).await;
        store.close().await;
        drop(instance);
        outcome
    }

    /// Starts the doors and what goes on beside them; all of it ends with the wish to drain.
    fn start(
        self,
        shutdown: &Shutdown,
        stopping: &Stopping,
        tasks: &TaskTracker,
        connections: &TaskTracker,
        (traces, failures): (&Traces, Failures),
    ) -> (Instance, Sessions) {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process {
            started: self.clock.wall().as_duration().as_secs_f64(),
        }));
        let ours = registry.sub_registry_with_prefix("switchboard");
        let database = self.config.data.database();
        telemetry::build_info(ours, self.store.schema_version(), database);
        traces.register_metrics(ours);
        store::register_metrics(&failures, &self.config.data, ours);
        let metrics = http::Metrics::new(ours, failures.clone());
        self.auth.register_metrics(ours);
        self.limits.register_metrics(ours);
        let socket_metrics = desk::Metrics::new(ours, failures.clone());
        let notices = Notices::new();
        let (sessions, commits) = Sessions::new(
            Arc::clone(&self.store),
            self.clock.clone(),
            self.catalog,
            &self.config.sessions,
            &self.config.journal,
            stopping.clone(),
            Instruments {
                tracer: traces.tracer().clone(),
                failures,
            },
        );
        sessions.register_metrics(ours);
        let server = &self.config.server;
        let caps = ConnectionCaps::new(
            server.max_connections,
            server.max_connections_per_address,
            &self.config.limits.exempt_addresses,
            &server.proxies(),
        );
        caps.register_metrics(ours);
        let registry = Arc::new(registry);
        let reception = Arc::new(Reception::new(desk::Parts {
            auth: self.auth.clone(),
            sessions: sessions.clone(),
            notices: notices.clone(),
            clock: self.clock.clone(),
            budgets: Arc::clone(&self.limits.sessions),
            limits: self.config.limits.clone(),
            ping: Duration::from_secs(self.config.server.ping_secs.into()),
            metrics: socket_metrics,
            tracer: traces.tracer().clone(),
            stop: shutdown.drain.clone(),
            connections: connections.clone(),
        }));
        let sockets = ws::routes(Arc::clone(&reception));
        tasks.spawn(commits.run());
        let kept = Kept {
            contents: Arc::clone(&self.contents),
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
        };
        let store = Arc::clone(&self.store);
        let parts = http::Parts {
            auth: self.auth.clone(),
            store: self.store,
            contents: self.contents,
            clock: self.clock,
            sessions: sessions.clone(),
            notices,
            sockets,
            reception,
            limits: self.limits.clone(),
            registry: Arc::clone(&registry),
            metrics: metrics.clone(),
            metrics_token: self.config.metrics.token.clone(),
            listening: self.listening,
            draining: shutdown.drain.clone(),
        };
        let door = |listener, router| Door {
            listener,
            router,
            caps: caps.clone(),
            header_timeout: Duration::from_millis(server.header_timeout_ms.get().into()),
            metrics: metrics.clone(),
        };
        let stop = &shutdown.drain;
        let main = door(self.listener, http::router(server, parts));
        tasks.spawn(main.run(stop.clone(), connections.clone()));
        if let Some(listener) = self.metrics_listener {
            let own = door(listener, http::metrics_router(registry));
            tasks.spawn(own.run(stop.clone(), connections.clone()));
        }
        let (auth, following) = (self.auth.clone(), stop.clone());
        tasks.spawn(async move { auth.follow_changes(following).await });
        let somebody_left = Arc::new(Notify::new());
        tasks.spawn(owners::follow(
            self.auth.changes(),
            Arc::clone(&store),
            sessions.clone(),
            Arc::clone(&somebody_left),
            stop.clone(),
        ));
        tasks.spawn(sweep(
            self.auth,
            self.limits,
            sessions.clone(),
            stop.clone(),
        ));
        let keeper = sessions.keeper(
            &self.config.sessions,
            &self.config.journal,
            &self.config.audit,
        );
        tasks.spawn(tidy(keeper, kept, somebody_left, stop.clone()));
        (self.instance, sessions)
    }
}

/// Files that the database does not know may be all that somebody has uploaded, and the database a wrong
/// one.
async fn settle_files(config: &Config, store: &dyn Store) {
    let dir = &config.data.dir;
    match Belonging::settle(dir, store).await {
        Ok(Belonging::AtHome) => {}
        Ok(Belonging::Strange { unknown }) => tracing::warn!(
            files = unknown,
            directory = %dir.display(),
            database = store.place(),
            "there are uploaded files here that this database does not know, and they may belong to \
             another one: nothing is removed. Check data.dir and data.database_url; if both are right, \
             `switchboard migrate --adopt-files` lets go of what nobody needs"
        ),
        Err(error) => tracing::warn!(%error, "cannot see whose the uploaded files are: they stay"),
    }
}

/// Loads what authentication needs, for a command that works without a gateway.
pub async fn open_auth(
    config: &Config,
    store: Arc<dyn Store>,
    clock: &Clock,
) -> Result<Auth, OpenAuthError> {
    let delays = Arc::clone(&Limits::new(&config.limits, clock).accounts);
    Auth::open(store, config.auth.clone(), delays, clock.clone()).await
}

async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Bind { address, source })
}

async fn sweep(auth: Auth, limits: Limits, sessions: Sessions, stop: CancellationToken) {
    let mut tick = tokio::time::interval(SWEEP);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        limits.sweep();
        sessions.sweep();
        sessions.count_stored().await;
        take_up(&sessions).await;
        if let Err(error) = auth.sweep().await {
            tracing::warn!(%error, "what has expired could not be dropped; trying again later");
        }
    }
}

/// Takes up what was under way and is at rest.
async fn take_up(sessions: &Sessions) {
    match sessions.wake_unfinished().await {
        Ok(0) => {}
        Ok(woken) => tracing::info!(woken, "took up sessions that were not done"),
        // Whoever comes back wakes them.
        Err(error) => tracing::warn!(%error, "not every unfinished session could be taken up"),
    }
}

/// The uploaded files, and who says which of them are needed.
struct Kept {
    contents: Arc<Contents>,
    store: Arc<dyn Store>,
    clock: Clock,
}

/// Makes room in the journals and among the files until told to stop.
async fn tidy(
    keeper: Keeper,
    Kept {
        contents,
        store,
        clock,
    }: Kept,
    somebody_left: Arc<Notify>,
    stop: CancellationToken,
) {
    // Says whether it is worth another try soon.
    let sweep = async || {
        match contents.sweep(store.as_ref(), clock.wall()).await {
            Ok(None) => tracing::debug!("files stay, because they may belong to another database"),
            Ok(Some(removed)) => tracing::debug!(removed, "looked through all files"),
            Err(error) => tracing::warn!(%error, "files that nobody needs could not be removed"),
        }
        let scrubbed = store.scrub().await;
        if let Err(error) = &scrubbed {
            tracing::warn!(%error, "what was removed is not overwritten yet; trying again later");
        }
        matches!(scrubbed, Ok(Scrubbed::LogIsRead))
    };
    // The journals not at once: whoever comes back after a restart comes first.
    let mut tick = tokio::time::interval_at(Instant::now() + SWEEP, TIDY_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            let log_is_read = sweep().await;
            tokio::select! {
                biased;
                // Their files do not wait for the next round.
                () = somebody_left.notified() => continue,
                // Neither do their words, once the one who reads is done.
                () = tokio::time::sleep(LOG_IS_READ), if log_is_read => continue,
                _ = tick.tick() => {}
            }
            match keeper.round().await {
                Ok(tidied) => tracing::debug!(?tidied, "looked through all journals"),
                Err(error) => tracing::warn!(%error, "journals could not be looked through"),
            }
        }
    };
    stop.run_until_cancelled(rounds).await;
}
