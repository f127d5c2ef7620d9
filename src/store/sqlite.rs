//! SQLite backend: one file in the data directory.
//!
//! One connection writes, a few read; WAL lets them run side by side. `synchronous = full`: commits
//! survive a power cut. Other processes (the command line) wait for the write lock.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteRow, SqliteSynchronous,
};
use sqlx::{Connection as _, Sqlite, Transaction};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::{OpenError, StoreError};
use super::journals::StoredEvent;
use super::maintenance::{BackupError, Maintenance, ScrubOutcome, SweepCutoffs};
use super::restore::is_unfinished;
use super::restore_detection::{self, Purpose, RenewedEpochs};
use super::schema;
use crate::domain::id::{SessionId, StoreId};

mod backup;
mod commit_log;
mod secure_delete;
#[path = "sql.rs"]
mod sql;

pub(super) use backup::{COPIED, IN_PLACE, examine, fold_wal_in, stage};
use commit_log::{CommitLog, JournalTx};

type Connection = SqliteConnection;
type Row = SqliteRow;
/// Type of a byte column.
const BYTES: &str = "blob";
/// Needs no row locks: there is one writer.
const SHARE_LOCK: &str = "";

/// The words of a query, from a JSON array.
const QUERY_WORDS: &str = "select json_extract(value, '$.word') as word,
    json_extract(value, '$.part') as part, json_extract(value, '$.upper') as upper
    from json_each($1)";
/// Whether a lower-case text contains a part of a word. `lower` knows ASCII only, so that other letters
/// are compared in both cases.
const CONTAINS_PART: &str =
    "(instr(recent.text, wish.part) > 0 or instr(recent.text, wish.upper) > 0)";
/// Texts of an owner that match a word. `cross join` fixes the order: word by word, never text by text.
const JOIN_MATCHING: &str = "cross join session_words on session_words match ($2 || wish.word)
    join session_texts on session_texts.id = session_words.rowid";

fn owner_filter(owner: &str) -> String {
    format!("owner : \"{owner}\" AND text : ")
}

/// Matches a word as a prefix. Quoted, so that it is never an operator.
fn prefix_term(word: &str) -> String {
    format!("\"{word}\" *")
}

/// Not numbered: SQLite searches numbered parameters linearly, which takes longer than the
/// statement if there are thousands.
fn placeholder(_number: usize) -> String {
    "?".to_owned()
}

static MIGRATIONS: LazyLock<sqlx::migrate::Migrator> =
    LazyLock::new(|| schema::migrator(schema::SQLITE));

/// How long a caller waits for the writer, and the writer for another process: together below the
/// three seconds after which storage counts as unavailable.
const BUSY_TIMEOUT: Duration = Duration::from_millis(1_200);
const READERS: u32 = 4;
const SEARCHERS: u32 = 2;
/// How long a caller waits for a reader; readers themselves wait for nobody.
const READER_TIMEOUT: Duration = Duration::from_millis(2_400);
/// A successful probe is reused this long.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Negative means KiB. Allocated only when needed.
const WRITER_CACHE_SIZE: &str = "-65536";
/// Of 4 KiB each: a checkpoint after 32 MiB of WAL.
const CHECKPOINT_PAGES: &str = "8192";

pub(super) struct Backend {
    writer: SqlitePool,
    reader: SqlitePool,
    searcher: SqlitePool,
    /// For the poll of revocations alone, which must not wait behind readers.
    poller: SqlitePool,
    log: CommitLog,
    location: String,
    last_probe: Mutex<Option<Instant>>,
    /// Value of `scrub_due` up to which the file's pages are overwritten.
    scrubbed_upto: AtomicI64,
}

impl Backend {
    pub(super) async fn open(path: &Path, purpose: Purpose) -> Result<Self, OpenError> {
        let location = path.display().to_string();
        let failed = |source| OpenError::Database {
            location: location.clone(),
            source,
        };
        let lock = lock_database(path)
            .await
            .map_err(|error| failed(error.into()))?;
        if path.parent().is_some_and(is_unfinished) {
            return Err(OpenError::Unfinished { location });
        }
        make_private_file(path).map_err(|error| failed(error.into()))?;
        let options = options(path);
        let mut connection = SqliteConnection::connect_with(&options)
            .await
            .map_err(failed)?;
        schema::migrate(&MIGRATIONS, &mut connection, &location).await?;
        let mut tx = connection
            .begin_with("begin immediate")
            .await
            .map_err(failed)?;
        commit_log::flush(&mut tx).await.map_err(failed)?;
        let renewed = match purpose {
            Purpose::Serve => claim(&mut tx).await.map_err(failed)?,
            Purpose::Command => None,
        };
        tx.commit().await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        drop(lock);
        restore_detection::log_renewal(&location, renewed);
        Ok(Self {
            writer: pool(1)
                .after_release(|connection, _| Box::pin(is_healthy(connection)))
                .connect_lazy_with(writing(options.clone())),
            reader: pool(READERS)
                .acquire_timeout(READER_TIMEOUT)
                .connect_lazy_with(options.clone().read_only(true)),
            searcher: pool(SEARCHERS)
                .acquire_timeout(READER_TIMEOUT)
                .connect_lazy_with(options.clone().read_only(true)),
            poller: pool(1)
                .acquire_timeout(READER_TIMEOUT)
                .connect_lazy_with(options.read_only(true)),
            log: CommitLog::default(),
            location,
            last_probe: Mutex::default(),
            scrubbed_upto: AtomicI64::new(0),
        })
    }

    /// A transaction that changes accounts or logins. With one writer it sees every earlier change.
    async fn begin_auth_change(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    /// A write transaction; holds the write lock from the first statement.
    async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.writer.begin_with("begin immediate").await
    }

    async fn begin_long(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    fn poller(&self) -> &SqlitePool {
        &self.poller
    }

    fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// Connections for searches only: SQLite finishes a search even when its caller is gone.
    fn searcher(&self) -> &SqlitePool {
        &self.searcher
    }

    /// A journal transaction, once no other one runs.
    async fn journal_tx(&self) -> sqlx::Result<JournalTx> {
        tokio::time::timeout(BUSY_TIMEOUT, self.log.begin())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)
    }

    /// Events after an offset, committed but not yet in their journal.
    fn pending_after(
        &self,
        session: SessionId,
        offset: u64,
        most: u32,
        most_bytes: usize,
    ) -> Vec<StoredEvent> {
        self.log.after(session, offset, most as usize, most_bytes)
    }

    fn pending_offsets_before(&self, session: SessionId, offset: u64) -> Vec<u64> {
        self.log.offsets_before(session, offset)
    }

    fn pending_head(&self, session: SessionId) -> Option<u64> {
        self.log.head(session)
    }
}

/// Gives a restored copy, or a database that was moved away, new epochs. There is no other writer.
async fn claim(connection: &mut SqliteConnection) -> sqlx::Result<Option<RenewedEpochs>> {
    let previous = sql::restore_detection::recorded_fingerprint(connection).await?;
    let renewed = match previous {
        Some(previous) if previous != IN_PLACE => Some(RenewedEpochs {
            previous,
            sessions: sql::restore_detection::renew_epochs(connection).await?,
        }),
        _ => None,
    };
    sql::restore_detection::record_fingerprint(connection, IN_PLACE).await?;
    Ok(renewed)
}

/// Records that the journals continue in another database, so that a gateway on this one renews
/// their epochs; `IN_PLACE` takes that back.
pub(super) async fn set_fingerprint(path: &Path, fingerprint: &str) -> sqlx::Result<()> {
    let mut connection = SqliteConnection::connect_with(&options(path)).await?;
    sql::restore_detection::record_fingerprint(&mut connection, fingerprint).await?;
    connection.close().await
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY_TIMEOUT)
        .idle_timeout(None)
        .max_lifetime(None)
}

/// On a full disk SQLite rolls back by itself while the driver believes the transaction is open:
/// such a connection would refuse all others, even when there is space again.
async fn is_healthy(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // Waits for the last statement.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .optimize_on_close(true, None)
}

/// Commits touch the last page of many journals: keep them cached, and checkpoint many commits at a
/// time.
fn writing(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .pragma("cache_size", WRITER_CACHE_SIZE)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        // Overwrites deleted data in pages that are written anyway; `scrub` does the rest.
        .pragma("secure_delete", "fast")
        .pragma("temp_store", "memory")
}

/// File lock that lets one process at a time migrate or replace the database; released when the
/// handle is dropped. Waits on a blocking thread.
pub(super) async fn lock_database(path: &Path) -> std::io::Result<File> {
    let lock_path = path.with_extension("lock");
    let locked = tokio::task::spawn_blocking(move || {
        let lock = make_private_file(&lock_path)?;
        lock.lock()?;
        Ok(lock)
    });
    locked.await.expect("taking a lock does not panic")
}

/// Creates a file readable by its owner only, before anything is written.
fn make_private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

#[async_trait]
impl Maintenance for Backend {
    fn location(&self) -> &str {
        &self.location
    }

    fn schema_version(&self) -> i64 {
        schema::latest_version(&MIGRATIONS)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // One probe at a time; the others reuse its result, so that frequent probes do not load the
        // disk.
        let mut last = self.last_probe.lock().await;
        if last.is_some_and(|last| last.elapsed() < PROBE_INTERVAL) && !self.writer.is_closed() {
            return Ok(());
        }
        // A committed write: only that detects a full or read-only disk. Uses an otherwise unused
        // value, because an unchanged row is not written at all.
        let mut tx = self.begin().await?;
        sqlx::query("pragma user_version = 0")
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        *last = Some(Instant::now());
        Ok(())
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let lines: Vec<String> = sqlx::query_scalar("pragma quick_check")
            .fetch_all(&self.reader)
            .await?;
        Ok(lines.into_iter().filter(|line| line != "ok").collect())
    }

    async fn sweep(&self, cutoffs: SweepCutoffs) -> Result<(), StoreError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin_auth_change().await?;
        journal_tx.flush(&mut tx).await?;
        sql::sweep(&mut tx, cutoffs).await?;
        Ok(journal_tx.commit(tx).await?)
    }

    async fn backup(&self, target: &Path) -> Result<(), BackupError> {
        backup::make(&self.reader, target).await
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        let mut tx = self.begin().await?;
        let identity = sql::restore_detection::identity(&mut tx, IN_PLACE).await?;
        tx.commit().await?;
        Ok(identity)
    }

    /// An open file is never replaced under the process.
    async fn displaced(&self) {
        std::future::pending::<()>().await;
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let renewed = sql::restore_detection::renew_epochs(&mut tx).await?;
        sql::restore_detection::record_fingerprint(&mut tx, IN_PLACE).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    async fn scrub(&self) -> Result<ScrubOutcome, StoreError> {
        Ok(self.scrub_deleted().await?)
    }

    async fn close(&self) {
        self.reader.close().await;
        self.searcher.close().await;
        self.poller.close().await;
        self.writer.close().await;
    }
}
