//! Serve lock: lets one gateway at a time serve from a database.
//!
//! A second gateway would take over the sessions of the first one and end their runs. So a gateway holds
//! an advisory lock on a connection of its own for as long as it serves. Before a write the lock is
//! verified, at most once a second; a gateway that has lost it writes nothing until it has it again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Row as _};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connection_health::apply_server_settings;
use super::server_identity::ServerIdentity;

/// An arbitrary number that no other program uses.
const LOCK: i64 = 0x7377_6974_6368_7376;
/// How long a gateway that starts waits for the one before to end.
const START_TIMEOUT: Duration = Duration::from_secs(5);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// A lock that was verified this recently is relied on.
const VERIFIED_FOR: Duration = Duration::from_secs(1);
const VERIFY_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(super) enum ServeLockError {
    #[error(
        "another gateway serves from it, and only one may: stop that one first. If it was on a machine \
         that went away, the server frees its lock within half a minute"
    )]
    Taken,
    #[error(
        "a pooler in front of it shares its connections (PgBouncer with pool_mode = transaction?), so that \
         no lock can be held: connect to the server itself, or use pool_mode = session"
    )]
    SharedConnections,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// The lock of a serving gateway; given back when dropped.
pub(super) struct ServeLock {
    options: PgConnectOptions,
    server: ServerIdentity,
    since: Instant,
    /// Milliseconds after `since` at which the lock was last known to be held.
    verified_ms: AtomicU64,
    holder: Mutex<Holder>,
}

struct Holder {
    /// `None` while the lock is lost, or a verification was interrupted.
    connection: Option<PgConnection>,
    /// The server's process for the last connection.
    process: ServerProcess,
    is_lost: bool,
}

/// A server process, told from a later one with the same id by its start.
#[derive(Clone, Debug)]
struct ServerProcess {
    pid: i32,
    started: String,
}

impl ServeLock {
    /// Takes over a connection that [`acquire`] returned.
    pub(super) fn new(
        acquired: Acquired,
        options: &PgConnectOptions,
        server: &ServerIdentity,
    ) -> Self {
        Self {
            options: options.clone(),
            server: server.clone(),
            since: Instant::now(),
            verified_ms: AtomicU64::new(0),
            holder: Mutex::new(Holder {
                connection: Some(acquired.connection),
                process: acquired.process,
                is_lost: false,
            }),
        }
    }

    /// Fails unless this gateway holds the lock. Tries to get a lost one back.
    pub(super) async fn verify(&self) -> sqlx::Result<()> {
        if self.is_verified() {
            return Ok(());
        }
        let mut holder = self.holder.lock().await;
        if self.is_verified() {
            return Ok(());
        }
        // Taken out: if this future is dropped half-way, the connection cannot be used any more.
        let verified = match holder.connection.take() {
            Some(connection) => answers(connection).await,
            None => None,
        };
        let regained = match verified {
            Some(connection) => Ok((connection, holder.process.clone())),
            None => self.regain(&holder.process).await,
        };
        match regained {
            Ok((connection, process)) => {
                (holder.connection, holder.process) = (Some(connection), process);
                let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.verified_ms.store(now, Ordering::Relaxed);
                if std::mem::take(&mut holder.is_lost) {
                    tracing::info!("the gateway has its lock on the database again and writes");
                }
                Ok(())
            }
            Err(error) => {
                if !std::mem::replace(&mut holder.is_lost, true) {
                    tracing::error!(%error, "the gateway has lost its lock on the database: nothing is written until it has it again");
                }
                Err(std::io::Error::other(format!(
                    "the gateway has lost its lock on the database ({error})"
                ))
                .into())
            }
        }
    }

    fn is_verified(&self) -> bool {
        let verified = Duration::from_millis(self.verified_ms.load(Ordering::Relaxed));
        self.since.elapsed().saturating_sub(verified) < VERIFIED_FOR
    }

    /// Locks again on a new connection. The server may not have noticed that the former one is lost.
    async fn regain(
        &self,
        former: &ServerProcess,
    ) -> Result<(PgConnection, ServerProcess), ServeLockError> {
        let connecting = async {
            let mut connection = connect(&self.options).await?;
            self.server.check(&mut connection).await?;
            // A process takes a moment to end.
            let was_there = end_process(&mut connection, former).await?;
            let mut attempts = if was_there { 4 } else { 1 };
            while !try_lock(&mut connection).await? {
                attempts -= 1;
                if attempts == 0 {
                    return Err(ServeLockError::Taken);
                }
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            let process = server_process(&mut connection).await?;
            Ok((connection, process))
        };
        match timeout(VERIFY_TIMEOUT, connecting).await {
            Ok(regained) => regained,
            Err(_) => {
                Err(sqlx::Error::from(std::io::Error::from(std::io::ErrorKind::TimedOut)).into())
            }
        }
    }

    /// Gives the lock back, so that the next gateway can start at once.
    pub(super) async fn release(&self) {
        if let Some(connection) = self.holder.lock().await.connection.take() {
            drop(timeout(VERIFY_TIMEOUT, connection.close()).await);
        }
    }
}

/// The connection that holds the lock.
pub(super) struct Acquired {
    connection: PgConnection,
    process: ServerProcess,
}

/// Waits a moment for the lock: the gateway before may be about to end.
pub(super) async fn acquire(options: &PgConnectOptions) -> Result<Acquired, ServeLockError> {
    let mut connection = connect(options).await?;
    let give_up = Instant::now() + START_TIMEOUT;
    let mut is_waiting = false;
    while !try_lock(&mut connection).await? {
        if Instant::now() >= give_up {
            return Err(ServeLockError::Taken);
        }
        if !std::mem::replace(&mut is_waiting, true) {
            tracing::info!("another gateway serves from the database: waiting for it to end");
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
    if shares_connections(&mut connection, options).await? {
        // The pooler keeps the server's process, and with it the lock.
        sqlx::query("select pg_advisory_unlock($1)")
            .bind(LOCK)
            .execute(&mut connection)
            .await?;
        return Err(ServeLockError::SharedConnections);
    }
    let process = server_process(&mut connection).await?;
    Ok(Acquired {
        connection,
        process,
    })
}

async fn connect(options: &PgConnectOptions) -> sqlx::Result<PgConnection> {
    let mut connection = PgConnection::connect_with(options).await?;
    apply_server_settings(&mut connection).await?;
    Ok(connection)
}

async fn try_lock(connection: &mut PgConnection) -> sqlx::Result<bool> {
    sqlx::query_scalar("select pg_try_advisory_lock($1)")
        .bind(LOCK)
        .fetch_one(connection)
        .await
}

async fn server_process(connection: &mut PgConnection) -> sqlx::Result<ServerProcess> {
    let row = sqlx::query(
        "select pid, cast(backend_start as text) from pg_stat_activity where pid = pg_backend_pid()",
    )
    .fetch_one(connection)
    .await?;
    Ok(ServerProcess {
        pid: row.try_get(0)?,
        started: row.try_get(1)?,
    })
}

/// Ends a server process; true if it was there.
async fn end_process(connection: &mut PgConnection, process: &ServerProcess) -> sqlx::Result<bool> {
    let ended = sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity
         where pid = $1 and cast(backend_start as text) = $2",
    )
    .bind(process.pid)
    .bind(&process.started)
    .fetch_optional(connection)
    .await?;
    Ok(ended.is_some())
}

/// The connection, if its server still answers: then the lock is still held.
async fn answers(mut connection: PgConnection) -> Option<PgConnection> {
    match timeout(VERIFY_TIMEOUT, connection.ping()).await {
        Ok(Ok(())) => Some(connection),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// True if another connection gets the same server process while this one is open but idle.
async fn shares_connections(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> sqlx::Result<bool> {
    let mut other = PgConnection::connect_with(options).await?;
    let (own, its) = (server_pid(connection).await?, server_pid(&mut other).await?);
    other.close().await?;
    Ok(own == its)
}

/// Without a prepared statement: behind a pooler its name may be taken.
async fn server_pid(connection: &mut PgConnection) -> sqlx::Result<i32> {
    let row = sqlx::raw_sql("select pg_backend_pid()")
        .fetch_one(connection)
        .await?;
    row.try_get(0)
}
