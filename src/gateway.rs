//! Composition root: builds the modules, binds the listeners, owns the order of shutdown.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod background;
mod changed_accounts;
mod instance_lock;
mod systemd;

pub use instance_lock::{InstanceError, InstanceLock, Running};
pub use systemd::ServiceManager;

use crate::auth::{AdminError, Auth, IssuedLink, OpenAuthError};
use crate::bus::Notices;
use crate::clock::Clock;
use crate::config::Config;
use crate::domain::audit::AuditContext;
use crate::http::{self, Listener, Urls};
use crate::limits::{ConnectionCaps, Limits};
use crate::member::{self, Shared};
use crate::runtime::{Catalog, Launcher, LauncherConfig};
use crate::session::{Instruments, QuotaConfig, Sessions, ShutdownTokens};
use crate::shutdown::Shutdown;
use crate::store::{self, BlobOwner, Blobs, Failures, OpenError, Store, StoreError};
use crate::telemetry::{self, Destination, Process, Traces};
use crate::ws;
use background::BlobSweep;

/// After the grace: time for runs to be recorded as ended and for agents to exit.
const FORCED_STOP_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for the last spans to reach the collector.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// This program, even after its file was replaced.
const OWN_BINARY: &str = "/proc/self/exe";

/// Why the gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another gateway uses the data directory.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Keys or revocations cannot be loaded.
    #[error(transparent)]
    Auth(#[from] OpenAuthError),
    /// The configured administrator cannot be created.
    #[error("cannot create the administrator of the [admin] section: {0}")]
    Admin(#[from] AdminError),
    /// The address is in use, or not prefixed.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The configured address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
    /// The database failed.
    #[error(transparent)]
    Query(#[from] StoreError),
    /// Agents cannot be started here.
    #[error("cannot prepare for agents: {0}")]
    Agents(#[from] std::io::Error),
}

/// The database was replaced: a standby took over, or a dump was restored. The latest commits may be
/// missing there, so the gateway stops; the next start gives the journals new epochs.
#[derive(Debug, thiserror::Error)]
#[error(
    "{place} is not the database any more that it was at the start (did a standby take over?): \
     start again, and journals get a new epoch"
)]
pub struct Displaced {
    /// Its URL without the password, or its path.
    place: String,
}

/// A gateway that is built and bound, but not serving yet.
pub struct Gateway {
    config: Config,
    store: Arc<dyn Store>,
    blobs: Arc<Blobs>,
    auth: Auth,
    limits: Limits,
    clock: Clock,
    listener: TcpListener,
    listening: SocketAddr,
    metrics_listener: Option<TcpListener>,
    catalog: Catalog,
    traces: Traces,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Held for the life of the gateway.
    lock: InstanceLock,
}

impl Gateway {
    /// Opens storage, loads or creates keys, creates the configured administrator, binds the listeners.
    pub async fn build(config: Config, clock: Clock) -> Result<Self, StartError> {
        store::make_directory(&config.data)?;
        let lock = InstanceLock::claim(&config.data.dir).await?;
        let store = store::open_to_serve(&config.data).await?;
        let blobs = Arc::new(Blobs::open(&config.data.dir)?);
        check_blob_owner(&config, store.as_ref()).await;
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
            tracing::info!("created the first administrator from the [admin] section");
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
        let dir = &config.data.dir;
        let launcher = Launcher::open(LauncherConfig {
            data: dir,
            binary: OWN_BINARY.into(),
            blobs: Some(Arc::clone(&blobs)),
            sandbox: config.runtime.sandbox,
            protected: config.protected_files.clone(),
        })?;
        let mut catalog = Catalog::new(&config.agents, &config.runtime, launcher, clock.clone());
        catalog.open(dir, &stop, &tasks).await?;
        let gateway = Self {
            config,
            store,
            blobs,
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
            lock,
        };
        gateway.lock.announce(gateway.urls().base(), listening);
        Ok(gateway)
    }

    /// Sends traces to a collector.
    #[must_use]
    pub fn traced(mut self, destination: Option<Destination>) -> Self {
        self.traces = Traces::start(destination, &self.clock);
        self
    }

    /// The bound address.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// The URLs that users are given.
    pub fn urls(&self) -> Urls {
        Urls::new(&self.config.server, self.listening)
    }

    /// A setup link while there is no administrator.
    pub async fn issue_setup_link(&self) -> Result<Option<IssuedLink>, StoreError> {
        let audit = AuditContext::gateway(self.clock.wall());
        self.auth.issue_setup_link(audit).await
    }

    /// Serves until asked to drain; then accepts nothing new and gives running work its grace.
    pub async fn run(mut self, shutdown: Shutdown) -> Result<(), Displaced> {
        let mut grace = Duration::from_secs(self.config.server.shutdown_grace_secs.into());
        let store = Arc::clone(&self.store);
        let (traces, failures) = (std::mem::take(&mut self.traces), Failures::default());
        let instruments = (&traces, failures);
        let (tasks, connections) = (self.tasks.clone(), TaskTracker::new());
        let stopping = ShutdownTokens {
            drain: shutdown.drain.clone(),
            stop: self.stop.clone(),
        };
        let (lock, sessions) = self.start(&shutdown, &stopping, &tasks, &connections, instruments);
        let outcome = tokio::select! {
            biased;
            () = shutdown.drain.cancelled() => Ok(()),
            () = store.displaced() => {
                let displaced = Displaced { place: store.location().to_owned() };
                tracing::error!(error = %displaced, "the database was replaced: stopping without grace");
                // Running work cannot be stored any more.
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
            // No session talks to an agent any more: the listeners for agents end too.
            stopping.stop.cancel();
            tasks.wait().await;
        });
        tokio::select! {
            biased;
            // Second signal: exit at once.
            () = shutdown.stop.cancelled() => return outcome,
            () = &mut drained => tracing::info!("drained: every connection, session and task has ended"),
            () = tokio::time::sleep(grace) => {
                tracing::info!("shutdown grace is over: ending the remaining runs");
                stopping.stop.cancel();
                if tokio::time::timeout(FORCED_STOP_TIMEOUT, drained).await.is_err() {
                    tracing::warn!(connections = connections.len(), "shutdown timed out: exiting with connections open");
                }
            }
        }
        traces.finish(TRACE_FLUSH_TIMEOUT).await;
        store.close().await;
        drop(lock);
        outcome
    }

    /// Starts the listeners and the background tasks; all of them end when draining begins.
    fn start(
        self,
        shutdown: &Shutdown,
        stopping: &ShutdownTokens,
        tasks: &TaskTracker,
        connections: &TaskTracker,
        (traces, failures): (&Traces, Failures),
    ) -> (InstanceLock, Sessions) {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Process {
            started: self.clock.wall().as_duration().as_secs_f64(),
        }));
        let prefixed = registry.sub_registry_with_prefix("switchboard");
        let database = self.config.data.database();
        telemetry::build_info(prefixed, self.store.schema_version(), database);
        traces.register_metrics(prefixed);
        store::register_metrics(&failures, &self.config.data, prefixed);
        let metrics = http::Metrics::new(prefixed, failures.clone());
        self.auth.register_metrics(prefixed);
        self.limits.register_metrics(prefixed);
        let member_metrics = member::Metrics::new(prefixed, failures.clone());
        let notices = Notices::new();
        let (sessions, commits) = Sessions::new(
            Arc::clone(&self.store),
            self.clock.clone(),
            self.catalog.clone(),
            (
                &self.config.sessions,
                &self.config.journal,
                quotas(&self.config),
            ),
            stopping.clone(),
            Instruments {
                tracer: traces.tracer().clone(),
                failures,
            },
        );
        sessions.register_metrics(prefixed);
        let server = &self.config.server;
        let caps = ConnectionCaps::new(
            server.max_connections,
            server.max_connections_per_address,
            &self.config.limits.exempt_addresses,
            &server.proxies(),
        );
        caps.register_metrics(prefixed);
        let registry = Arc::new(registry);
        let shared = Arc::new(Shared::new(member::Parts {
            auth: self.auth.clone(),
            sessions: sessions.clone(),
            notices: notices.clone(),
            clock: self.clock.clone(),
            budgets: Arc::clone(&self.limits.sessions),
            limits: self.config.limits.clone(),
            ping_interval: Duration::from_secs(self.config.server.ping_secs.into()),
            metrics: member_metrics,
            tracer: traces.tracer().clone(),
            drain: shutdown.drain.clone(),
            connections: connections.clone(),
        }));
        let sockets = ws::routes(Arc::clone(&shared));
        tasks.spawn(commits.run());
        self.spawn_background(&sessions, tasks, &shutdown.drain);
        let dependencies = http::Dependencies {
            auth: self.auth.clone(),
            store: self.store,
            blobs: self.blobs,
            clock: self.clock,
            sessions: sessions.clone(),
            notices,
            shared,
            limits: self.limits.clone(),
            registry: Arc::clone(&registry),
            metrics: metrics.clone(),
            metrics_token: self.config.metrics.token.clone(),
            listening: self.listening,
            draining: shutdown.drain.clone(),
        };
        let listener_of = |listener, router| Listener {
            tcp: listener,
            router,
            caps: caps.clone(),
            header_timeout: Duration::from_millis(server.header_timeout_ms.get().into()),
            metrics: metrics.clone(),
        };
        let drain = &shutdown.drain;
        let main = listener_of(self.listener, http::router(server, dependencies, sockets));
        tasks.spawn(main.run(drain.clone(), connections.clone()));
        if let Some(listener) = self.metrics_listener {
            let own = listener_of(
                listener,
                http::metrics_router(registry, &self.config.metrics),
            );
            tasks.spawn(own.run(drain.clone(), connections.clone()));
        }
        (self.lock, sessions)
    }

    /// Starts what goes on beside requests: revocations, sweeps, retention.
    fn spawn_background(
        &self,
        sessions: &Sessions,
        tasks: &TaskTracker,
        drain: &CancellationToken,
    ) {
        let (auth, until) = (self.auth.clone(), drain.clone());
        tasks.spawn(async move { auth.follow_changes(until).await });
        let account_removed = Arc::new(Notify::new());
        tasks.spawn(changed_accounts::follow(
            self.auth.changes(),
            Arc::clone(&self.store),
            sessions.clone(),
            Arc::clone(&account_removed),
            drain.clone(),
        ));
        tasks.spawn(background::sweep_expired(
            self.auth.clone(),
            self.limits.clone(),
            sessions.clone(),
            drain.clone(),
        ));
        let config = &self.config;
        let retention = sessions.retention_task(&config.sessions, &config.journal, &config.audit);
        let blob_sweep = BlobSweep {
            blobs: Arc::clone(&self.blobs),
            store: Arc::clone(&self.store),
            clock: self.clock.clone(),
        };
        tasks.spawn(background::apply_retention(
            retention,
            blob_sweep,
            account_removed,
            drain.clone(),
        ));
    }
}

fn quotas(config: &Config) -> QuotaConfig {
    QuotaConfig {
        user_sessions: config.limits.user_sessions.get().into(),
        user_journal_bytes: config.limits.user_journal_bytes.get(),
        min_free_bytes: config.limits.min_free_bytes,
        dir: config.data.dir.clone(),
    }
}

/// Uploaded files unknown to the database may belong to another database: then nothing is removed.
async fn check_blob_owner(config: &Config, store: &dyn Store) {
    let dir = &config.data.dir;
    match BlobOwner::claim(dir, store).await {
        Ok(BlobOwner::ThisDatabase) => {}
        Ok(BlobOwner::Other { unknown }) => tracing::warn!(
            files = unknown,
            directory = %dir.display(),
            database = store.location(),
            "the data directory holds uploaded files that this database does not know; they may belong to \
             another database, so none is removed. Check data.dir and data.database_url; if both are right, \
             `switchboard migrate --adopt-files` lets the gateway remove them"
        ),
        Err(error) => {
            tracing::warn!(%error, "cannot tell which database the uploaded files belong to: none is removed");
        }
    }
}

/// Opens authentication for a command that works without a gateway.
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
