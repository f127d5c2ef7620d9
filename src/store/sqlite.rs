//! SQLite: one file in the data directory.
//!
//! One connection writes, a few read; WAL lets them go on side by side. `synchronous = full`: what
//! was committed survives a power cut. Other processes (the command line) wait for their turn.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
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
use super::home::{self, Purpose, Renewed};
use super::journals::StoredEvent;
use super::restore::is_unfinished;
use super::schema;
use super::upkeep::{AuditRow, BackupError, Outlived, Scrubbed, Upkeep};
use crate::domain::act::Act;
use crate::domain::id::{SessionId, StoreId};

mod backup;
mod log;
mod scrub;
#[path = "sql.rs"]
mod sql;

pub(super) use backup::{COPY, HERE, examine, make_ready, take_log_in};
use log::{Log, Turn};

type Connection = SqliteConnection;
type Row = SqliteRow;
/// What this database calls bytes.
const BYTES: &str = "blob";
/// How a read holds its rows until the end of the transaction: here nobody else writes anyway.
const HOLD: &str = "";

/// The words of a question, from a JSON array.
const WISHED_WORDS: &str = "select value as word from json_each($1)";
/// The texts of an owner in which such a word is. Crossed: word by word, never text by text.
const MATCHING: &str = "cross join session_words on session_words match ($2 || wish.word)
    join session_texts on session_texts.id = session_words.rowid";

/// The beginning of a search in one owner's texts.
fn owned_by(owner: &str) -> String {
    format!("owner : \"{owner}\" AND text : ")
}

/// A search for a word and what it begins. In quotes it is nothing but a word.
fn word_beginning(word: &str) -> String {
    format!("\"{word}\" *")
}

/// A parameter by its place. Without a number: SQLite looks for numbered ones by going through all
/// of them, which takes longer than the statement if there are thousands.
fn parameter(_number: usize) -> String {
    "?".to_owned()
}

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/sqlite");

/// How long a caller waits for the connection that writes, and then that connection for another
/// process: together less than the three seconds after which storage counts as unavailable.
const BUSY: Duration = Duration::from_millis(1_200);
const READERS: u32 = 4;
const SEARCHERS: u32 = 2;
/// How long a caller waits for one of those that read, which themselves wait for nobody.
const CROWD: Duration = Duration::from_millis(2_400);
/// How long the word of a probe that went well is good for.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Negative: in KiB, as SQLite wants it. Taken only when needed.
const WRITER_CACHE: &str = "-65536";
/// Of 4 KiB each: 32 MiB of log before it is carried over into the file.
const CHECKPOINT_PAGES: &str = "8192";

pub(super) struct Backend {
    writer: SqlitePool,
    reader: SqlitePool,
    searcher: SqlitePool,
    log: Log,
    place: String,
    /// When a probe last went well.
    probed: Mutex<Option<Instant>>,
    /// The removal up to which the pages of the file are written over.
    written_over: AtomicI64,
}

impl Backend {
    /// For a command.
    pub(super) async fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_for(path, Purpose::Command).await
    }

    /// For a gateway.
    pub(super) async fn open_to_serve(path: &Path) -> Result<Self, OpenError> {
        Self::open_for(path, Purpose::Serve).await
    }

    async fn open_for(path: &Path, purpose: Purpose) -> Result<Self, OpenError> {
        let place = path.display().to_string();
        let failed = |source| OpenError::Database {
            place: place.clone(),
            source,
        };
        let turn = take_turn(path)
            .await
            .map_err(|error| failed(error.into()))?;
        if path.parent().is_some_and(is_unfinished) {
            return Err(OpenError::Unfinished { place });
        }
        make_private_file(path).map_err(|error| failed(error.into()))?;
        let options = options(path);
        let mut connection = SqliteConnection::connect_with(&options)
            .await
            .map_err(failed)?;
        schema::bring_up_to_date(&MIGRATIONS, &mut connection, &place).await?;
        let mut left = connection
            .begin_with("begin immediate")
            .await
            .map_err(failed)?;
        log::carry_over(&mut left).await.map_err(failed)?;
        let renewed = match purpose {
            Purpose::Serve => settle(&mut left).await.map_err(failed)?,
            Purpose::Command => None,
        };
        left.commit().await.map_err(failed)?;
        connection.close().await.map_err(failed)?;
        drop(turn);
        home::tell(&place, renewed);
        Ok(Self {
            writer: pool(1)
                .after_release(|connection, _| Box::pin(is_well(connection)))
                .connect_lazy_with(writing(options.clone())),
            reader: pool(READERS)
                .acquire_timeout(CROWD)
                .connect_lazy_with(options.clone().read_only(true)),
            searcher: pool(SEARCHERS)
                .acquire_timeout(CROWD)
                .connect_lazy_with(options.read_only(true)),
            log: Log::default(),
            place,
            probed: Mutex::default(),
            written_over: AtomicI64::new(0),
        })
    }

    /// A transaction that changes accounts or logins. There is one writer at a time, so it sees
    /// everything that was changed before and nothing changes beside it.
    async fn begin_act(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    /// A transaction that may write; it has its turn from the first statement on.
    async fn begin(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.writer.begin_with("begin immediate").await
    }

    /// A transaction with statements that may take long.
    async fn begin_long(&self) -> sqlx::Result<Transaction<'static, Sqlite>> {
        self.begin().await
    }

    fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// Whom to ask for words. Nobody else waits for these: SQLite goes on with a search that nobody
    /// waits for any more.
    fn searcher(&self) -> &SqlitePool {
        &self.searcher
    }

    /// The turn to change journals.
    async fn turn(&self) -> sqlx::Result<Turn> {
        tokio::time::timeout(BUSY, self.log.turn())
            .await
            .map_err(|_| sqlx::Error::PoolTimedOut)
    }

    /// Events after an offset that are committed and not in their journal yet.
    fn waiting_after(
        &self,
        session: SessionId,
        offset: u64,
        most: u32,
        most_bytes: usize,
    ) -> Vec<StoredEvent> {
        self.log.after(session, offset, most as usize, most_bytes)
    }

    /// The last of those before an offset.
    fn waiting_before(&self, session: SessionId, offset: u64, most: u32) -> Vec<StoredEvent> {
        self.log.before(session, offset, most as usize)
    }

    /// The last offset among them.
    fn waiting_head(&self, session: SessionId) -> Option<u64> {
        self.log.head(session)
    }
}

/// A copy that was put in place, and one that was moved away, get new epochs. Nobody else writes.
async fn settle(connection: &mut SqliteConnection) -> sqlx::Result<Option<Renewed>> {
    let known = sql::home::known(connection).await?;
    let renewed = match known {
        Some(from) if from != HERE => Some(Renewed {
            from,
            sessions: sql::home::renew_epochs(connection).await?,
        }),
        _ => None,
    };
    sql::home::settle(connection, HERE).await?;
    Ok(renewed)
}

/// Says that the journals of a database go on in another one. What opens it to serve gives them new
/// epochs; `HERE` takes that back.
pub(super) async fn mark(path: &Path, home: &str) -> sqlx::Result<()> {
    let mut connection = SqliteConnection::connect_with(&options(path)).await?;
    sql::home::settle(&mut connection, home).await?;
    connection.close().await
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(BUSY)
        .idle_timeout(None)
        .max_lifetime(None)
}

/// On a full disk SQLite ends a transaction by itself, and the driver goes on to believe that it is
/// in one: such a connection would refuse every other, also when there is room again.
async fn is_well(connection: &mut SqliteConnection) -> sqlx::Result<bool> {
    // Behind the end of whatever was under way.
    connection.ping().await?;
    Ok(!connection.is_in_transaction())
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .optimize_on_close(true, None)
}

/// Commits touch the last page of many journals: they stay in memory, and go back to their places
/// many commits at a time.
fn writing(options: SqliteConnectOptions) -> SqliteConnectOptions {
    options
        .pragma("cache_size", WRITER_CACHE)
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        // What is removed is overwritten where its page is written anyway; the rest is for `scrub`.
        .pragma("secure_delete", "fast")
        .pragma("temp_store", "memory")
}

/// The lock on the file beside the database lets one process at a time look at the schema, or put
/// another database in its place; it ends when the handle is dropped. Waits for its turn: not on a
/// thread that others need.
pub(super) async fn take_turn(path: &Path) -> std::io::Result<File> {
    let beside = path.with_extension("lock");
    let turn = tokio::task::spawn_blocking(move || {
        let turn = make_private_file(&beside)?;
        turn.lock()?;
        Ok(turn)
    });
    turn.await.expect("taking a lock does not panic")
}

/// A file that only its owner can read, before anything is written into it.
fn make_private_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

#[async_trait]
impl Upkeep for Backend {
    fn place(&self) -> &str {
        &self.place
    }

    fn schema_version(&self) -> i64 {
        schema::newest(&MIGRATIONS)
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // One at a time, and the others take its word: whoever asks often must not keep the disk busy.
        let mut last = self.probed.lock().await;
        if last.is_some_and(|last| last.elapsed() < PROBE_EVERY) && !self.writer.is_closed() {
            return Ok(());
        }
        // A write to its end: only then a full or read-only disk shows. Of a number that nobody uses:
        // a row that stays the same is not written at all.
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

    async fn sweep(&self, outlived: Outlived) -> Result<(), StoreError> {
        let mut turn = self.turn().await?;
        let mut tx = self.begin_act().await?;
        turn.carry_over(&mut tx).await?;
        sql::sweep(&mut tx, outlived).await?;
        Ok(turn.commit(tx).await?)
    }

    async fn backup(&self, target: &Path) -> Result<(), BackupError> {
        backup::make(&self.reader, target).await
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        let mut tx = self.begin().await?;
        let identity = sql::home::identity(&mut tx, HERE).await?;
        tx.commit().await?;
        Ok(identity)
    }

    /// A file that is open stays the same.
    async fn displaced(&self) {
        std::future::pending::<()>().await;
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        let mut tx = self.begin_act().await?;
        let renewed = sql::home::renew_epochs(&mut tx).await?;
        sql::home::settle(&mut tx, HERE).await?;
        tx.commit().await?;
        Ok(renewed)
    }

    async fn scrub(&self) -> Result<Scrubbed, StoreError> {
        Ok(self.write_over_what_was_removed().await?)
    }

    async fn record(&self, act: &Act) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sql::audit(&mut tx, act).await?;
        Ok(tx.commit().await?)
    }

    async fn recent_acts(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        let mut connection = self.reader.acquire().await.map_err(StoreError::from)?;
        Ok(sql::recent_acts(&mut connection, limit).await?)
    }

    async fn close(&self) {
        self.reader.close().await;
        self.searcher.close().await;
        self.writer.close().await;
    }
}
