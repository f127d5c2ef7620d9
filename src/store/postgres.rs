//! Postgres backend: a database by URL, shared by every node.

use std::path::Path;
use std::str::FromStr as _;
use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{Connection as _, Postgres, Transaction};

use super::error::{OpenError, StoreError};
use super::journals::StoredEvent;
use super::maintenance::{BackupError, Maintenance, ScrubOutcome, SweepCutoffs};
use super::restore_detection::{Purpose, RenewedEpochs};
use super::schema;
use crate::domain::id::{SessionId, StoreId};

mod connection_health;
mod journal_tx;
mod serve_lock;
mod server_identity;
#[path = "sql.rs"]
mod sql;

use connection_health::ConnectionHealth;
use journal_tx::JournalTx;
use serve_lock::{ServeLock, ServeLockError};
use server_identity::ServerIdentity;

type Connection = PgConnection;
type Row = PgRow;
/// Type of a byte column.
const BYTES: &str = "bytea";
/// Locks the sessions read until the transaction ends.
const SHARE_LOCK: &str = " for share of sessions";

/// The words of a query, from a JSON array.
const QUERY_WORDS: &str = "select value ->> 'word' as word, value ->> 'part' as part,
    value ->> 'upper' as upper from json_array_elements(cast($1 as json))";
/// Whether a lower-case text contains a part of a word. `lower` may know ASCII only, so that other
/// letters are compared in both cases.
const CONTAINS_PART: &str =
    "(position(wish.part in recent.text) > 0 or position(wish.upper in recent.text) > 0)";
/// Texts of an owner that match a word. A symbol that Postgres does not index (½) makes an empty
/// tsquery, which would match everything: it is left out here and so matches nothing.
const JOIN_MATCHING: &str = "join session_texts
    on numnode(to_tsquery('simple', wish.word)) > 0
    and session_texts.words @@ (cast($2 as tsquery) && to_tsquery('simple', wish.word))";

fn owner_filter(owner: &str) -> String {
    format!("'={owner}'")
}

/// Matches a word as a prefix. Quoted, so that it is never an operator.
fn prefix_term(word: &str) -> String {
    format!("'{word}':*")
}

fn placeholder(number: usize) -> String {
    format!("${number}")
}

static MIGRATIONS: LazyLock<sqlx::migrate::Migrator> =
    LazyLock::new(|| schema::migrator(schema::POSTGRES));

/// How long a caller waits for a connection before storage counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the readiness check waits for the lock of account changes.
const PROBE_LOCK_TIMEOUT: &str = "set local lock_timeout = '500ms'";
const MAX_CONNECTIONS: u32 = 8;

pub(super) struct Backend {
    pool: PgPool,
    /// One connection for the poll of revocations, which must not wait behind readers.
    poller: PgPool,
    location: String,
    server: ServerIdentity,
    /// Held while a gateway serves; commands have none.
    serve_lock: Option<ServeLock>,
}

impl Backend {
    pub(super) async fn open(url: &str, purpose: Purpose) -> Result<Self, OpenError> {
        let failed = |location: &str, source| OpenError::Database {
            location: location.to_owned(),
            source,
        };
        let options = options(url)
            .map_err(|source| failed("(data.database_url)", source))?
            .options([("statement_timeout", "2500ms")]);
        let location = location(&options);
        // Before the schema: a gateway that may not serve changes nothing.
        let locked = match purpose {
            Purpose::Serve => Some(acquire_serve_lock(&options, &location).await?),
            Purpose::Command => None,
        };
        let mut connection = PgConnection::connect_with(&options)
            .await
            .map_err(|source| failed(&location, source))?;
        connection_health::apply_server_settings(&mut connection)
            .await
            .map_err(|source| failed(&location, source))?;
        schema::migrate(&MIGRATIONS, &mut connection, &location).await?;
        let server = ServerIdentity::find(&mut connection)
            .await
            .map_err(|source| failed(&location, source))?;
        if purpose == Purpose::Serve {
            let renewed = server.claim(&mut connection).await;
            super::restore_detection::log_renewal(
                &location,
                renewed.map_err(|source| failed(&location, source))?,
            );
        }
        connection
            .close()
            .await
            .map_err(|source| failed(&location, source))?;
        let serve_lock = locked.map(|lock| ServeLock::new(lock, &options, &server));
        let poller = pool(&server, 1).connect_lazy_with(options.clone());
        let pool = pool(&server, MAX_CONNECTIONS).connect_lazy_with(options);
        Ok(Self {
            pool,
            poller,
            location,
            server,
            serve_lock,
        })
    }

    /// A transaction that changes accounts or logins. All of them queue at one row lock: each sees
    /// the changes before it, and none can deadlock.
    async fn begin_auth_change(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        let mut tx = self.begin().await?;
        sqlx::query("select revision from auth_revision for update")
            .fetch_one(&mut *tx)
            .await?;
        Ok(tx)
    }

    /// A transaction that writes. A gateway that has lost its lock may not.
    async fn begin(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        if let Some(lock) = &self.serve_lock {
            lock.verify().await?;
        }
        self.pool.begin().await
    }

    /// A transaction whose statements may run long, because nobody waits for its locks.
    async fn begin_long(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        let mut tx = self.begin().await?;
        sqlx::query("set local statement_timeout = '18s'")
            .execute(&mut *tx)
            .await?;
        Ok(tx)
    }

    /// A journal transaction; many can run at once.
    #[allow(clippy::unused_async, reason = "the same call as for SQLite")]
    async fn journal_tx(&self) -> sqlx::Result<JournalTx> {
        Ok(JournalTx)
    }

    /// Events committed but not yet in their journal: none here.
    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn pending_after(
        &self,
        _session: SessionId,
        _offset: u64,
        _most: u32,
        _most_bytes: usize,
    ) -> Vec<StoredEvent> {
        Vec::new()
    }

    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn pending_offsets_before(&self, _session: SessionId, _offset: u64) -> Vec<u64> {
        Vec::new()
    }

    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn pending_head(&self, _session: SessionId) -> Option<u64> {
        None
    }

    fn poller(&self) -> &PgPool {
        &self.poller
    }

    fn reader(&self) -> &PgPool {
        &self.pool
    }

    /// Connections for searches; the statement timeout bounds them.
    fn searcher(&self) -> &PgPool {
        &self.pool
    }
}

async fn acquire_serve_lock(
    options: &PgConnectOptions,
    location: &str,
) -> Result<serve_lock::Acquired, OpenError> {
    let location = location.to_owned();
    match serve_lock::acquire(options).await {
        Ok(acquired) => Ok(acquired),
        Err(ServeLockError::Database(source)) => Err(OpenError::Database { location, source }),
        Err(refused) => Err(OpenError::NotServed {
            location,
            why: refused.to_string(),
        }),
    }
}

pub(super) fn options(url: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name("switchboard")
        .options([("client_min_messages", "warning")]))
}

/// A pool whose connections lead to this server and are known to answer.
fn pool(server: &ServerIdentity, connections: u32) -> PgPoolOptions {
    let server = server.clone();
    let idle = ConnectionHealth::new();
    let released = idle.clone();
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            let server = server.clone();
            Box::pin(async move {
                connection_health::apply_server_settings(connection).await?;
                server.check(connection).await
            })
        })
        .before_acquire(move |connection, metadata| {
            let health = idle.clone();
            Box::pin(async move { health.check(connection, metadata).await })
        })
        .after_release(move |connection, _| {
            let health = released.clone();
            Box::pin(async move { health.ping(connection).await })
        })
}

pub(super) fn is_url(text: &str) -> bool {
    PgConnectOptions::from_str(text).is_ok()
}

/// Names the database without user or password.
pub(super) fn location(options: &PgConnectOptions) -> String {
    format!(
        "postgres://{}:{}/{}",
        options.get_host(),
        options.get_port(),
        options.get_database().unwrap_or_default()
    )
}

#[async_trait]
impl Maintenance for Backend {
    fn location(&self) -> &str {
        &self.location
    }

    fn schema_version(&self) -> i64 {
        schema::latest_version(&MIGRATIONS)
    }

    /// Takes the lock that every login needs: a lost connection that holds it stops them all.
    async fn ping(&self) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query(PROBE_LOCK_TIMEOUT).execute(&mut *tx).await?;
        sqlx::query("select revision from auth_revision for update")
            .fetch_one(&mut *tx)
            .await?;
        Ok(tx.rollback().await?)
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // Postgres checks its pages itself; there is no cheap whole-database check.
        Ok(Vec::new())
    }

    async fn sweep(&self, cutoffs: SweepCutoffs) -> Result<(), StoreError> {
        let mut tx = self.begin_auth_change().await?;
        sql::sweep(&mut tx, cutoffs).await?;
        Ok(tx.commit().await?)
    }

    async fn backup(&self, _target: &Path) -> Result<(), BackupError> {
        Err(BackupError::NotSqlite)
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        Ok(sql::restore_detection::identity(&mut connection, self.server.fingerprint()).await?)
    }

    async fn displaced(&self) {
        self.server.displaced().await;
        // No more connections, not even pooled ones to the old server. Those in use are not waited for.
        drop((self.pool.close(), self.poller.close()));
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let renewed = sql::restore_detection::renew_epochs(&mut tx).await?;
        sql::restore_detection::record_fingerprint(&mut tx, self.server.fingerprint()).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    async fn scrub(&self) -> Result<ScrubOutcome, StoreError> {
        // Deleted rows are left to the server's vacuum.
        let mut tx = self.begin().await?;
        sqlx::query("update store_home set scrub_due = 0 where scrub_due > 0")
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(ScrubOutcome::Done)
    }

    async fn close(&self) {
        if let Some(lock) = &self.serve_lock {
            lock.release().await;
        }
        self.poller.close().await;
        self.pool.close().await;
    }
}
