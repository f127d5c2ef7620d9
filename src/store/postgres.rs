//! Postgres: by URL, shared by every node.

use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{Connection as _, Postgres, Transaction};

use super::error::{OpenError, StoreError};
use super::home::{Purpose, Renewed};
use super::journals::StoredEvent;
use super::schema;
use super::upkeep::{AuditRow, BackupError, Outlived, Scrubbed, Upkeep};
use crate::domain::act::Act;
use crate::domain::id::{SessionId, StoreId};

mod home;
#[path = "sql.rs"]
mod sql;
mod turn;

use home::Home;
use turn::Turn;

type Connection = PgConnection;
type Row = PgRow;
/// What this database calls bytes.
const BYTES: &str = "bytea";
/// How a read holds its rows until the end of the transaction.
const HOLD: &str = " for share of sessions";

/// The words of a question, from a JSON array.
const WISHED_WORDS: &str = "select value as word from json_array_elements_text(cast($1 as json))";
/// The texts of an owner in which such a word is. What is no word to this database (a symbol such as
/// a half) is an empty question, which would be left out and then found everywhere.
const MATCHING: &str = "join session_texts
    on numnode(to_tsquery('simple', wish.word)) > 0
    and session_texts.words @@ (cast($2 as tsquery) && to_tsquery('simple', wish.word))";

/// The beginning of a search in one owner's texts.
fn owned_by(owner: &str) -> String {
    format!("'={owner}'")
}

/// A search for a word and what it begins. In quotes it is nothing but a word.
fn word_beginning(word: &str) -> String {
    format!("'{word}':*")
}

/// A parameter by its place.
fn parameter(number: usize) -> String {
    format!("${number}")
}

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("migrations/postgres");

/// How long a request waits for a connection before it is told that storage is unavailable.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a connection that comes back may take to say that it is well.
const RECOVERY: Duration = Duration::from_secs(1);
const CONNECTIONS: u32 = 8;

pub(super) struct Backend {
    pool: PgPool,
    place: String,
    home: Home,
}

impl Backend {
    /// For a command.
    pub(super) async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_for(url, Purpose::Command).await
    }

    /// For a gateway.
    pub(super) async fn open_to_serve(url: &str) -> Result<Self, OpenError> {
        Self::open_for(url, Purpose::Serve).await
    }

    async fn open_for(url: &str, purpose: Purpose) -> Result<Self, OpenError> {
        let failed = |place: &str, source| OpenError::Database {
            place: place.to_owned(),
            source,
        };
        let options = options(url)
            .map_err(|source| failed("(data.database_url)", source))?
            .options([("statement_timeout", "2500ms")]);
        let place = place(&options);
        let mut connection = PgConnection::connect_with(&options)
            .await
            .map_err(|source| failed(&place, source))?;
        schema::bring_up_to_date(&MIGRATIONS, &mut connection, &place).await?;
        let home = Home::find(&mut connection)
            .await
            .map_err(|source| failed(&place, source))?;
        if purpose == Purpose::Serve {
            let renewed = home.settle(&mut connection).await;
            super::home::tell(&place, renewed.map_err(|source| failed(&place, source))?);
        }
        connection
            .close()
            .await
            .map_err(|source| failed(&place, source))?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .after_connect({
                let home = home.clone();
                move |connection, _| {
                    let home = home.clone();
                    Box::pin(async move { home.check(connection).await })
                }
            })
            .after_release(|connection, _| Box::pin(is_well(connection)))
            .connect_lazy_with(options);
        Ok(Self { pool, place, home })
    }

    /// A transaction that changes accounts or logins. All of these queue at one row, so each sees
    /// what the one before has changed, and none waits for another in a circle.
    async fn begin_act(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        let mut tx = self.begin().await?;
        sqlx::query("select revision from auth_revision for update")
            .fetch_one(&mut *tx)
            .await?;
        Ok(tx)
    }

    async fn begin(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        self.pool.begin().await
    }

    /// A transaction with statements that may take long, as nobody waits for what they hold.
    async fn begin_long(&self) -> sqlx::Result<Transaction<'static, Postgres>> {
        let mut tx = self.begin().await?;
        sqlx::query("set local statement_timeout = '18s'")
            .execute(&mut *tx)
            .await?;
        Ok(tx)
    }

    /// The turn to change journals: here many can at once.
    #[allow(clippy::unused_async, reason = "the same call as for SQLite")]
    async fn turn(&self) -> sqlx::Result<Turn> {
        Ok(Turn)
    }

    /// Events that are committed and not in their journal yet: none.
    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn waiting_after(
        &self,
        _session: SessionId,
        _offset: u64,
        _most: u32,
        _most_bytes: usize,
    ) -> Vec<StoredEvent> {
        Vec::new()
    }

    /// The last of those before an offset.
    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn waiting_before(&self, _session: SessionId, _offset: u64, _most: u32) -> Vec<StoredEvent> {
        Vec::new()
    }

    /// The last offset among them.
    #[allow(clippy::unused_self, reason = "the same call as for SQLite")]
    fn waiting_head(&self, _session: SessionId) -> Option<u64> {
        None
    }

    fn reader(&self) -> &PgPool {
        &self.pool
    }

    /// Whom to ask for words; every statement has its timeout.
    fn searcher(&self) -> &PgPool {
        &self.pool
    }
}

/// How to connect.
pub(super) fn options(url: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?
        .application_name("switchboard")
        .options([("client_min_messages", "warning")]))
}

/// A connection whose statement was given up, to a server that says nothing, would keep its place in
/// the pool until the kernel loses its patience, a quarter of an hour later.
async fn is_well(connection: &mut PgConnection) -> sqlx::Result<bool> {
    match tokio::time::timeout(RECOVERY, connection.ping()).await {
        Ok(answered) => answered.map(|()| true),
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    }
}

/// Can this be a URL of Postgres?
pub(super) fn is_url(text: &str) -> bool {
    PgConnectOptions::from_str(text).is_ok()
}

/// What a person needs to recognise the database, without user or password.
pub(super) fn place(options: &PgConnectOptions) -> String {
    format!(
        "postgres://{}:{}/{}",
        options.get_host(),
        options.get_port(),
        options.get_database().unwrap_or_default()
    )
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
        sqlx::query("select revision from auth_revision")
            .fetch_one(&self.pool)
            .await?;
        Ok(())
    }

    async fn integrity(&self) -> Result<Vec<String>, StoreError> {
        // Postgres checks its pages itself; there is no cheap whole-database check.
        Ok(Vec::new())
    }

    async fn sweep(&self, outlived: Outlived) -> Result<(), StoreError> {
        let mut tx = self.begin_act().await?;
        sql::sweep(&mut tx, outlived).await?;
        Ok(tx.commit().await?)
    }

    async fn backup(&self, _target: &Path) -> Result<(), BackupError> {
        Err(BackupError::NotSqlite)
    }

    async fn identity(&self) -> Result<Option<StoreId>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::from)?;
        Ok(sql::home::identity(&mut connection, self.home.here()).await?)
    }

    async fn displaced(&self) {
        self.home.displaced().await;
        // From here on nobody gets a connection, also not one that still leads to the old place. Those
        // that are in use are not waited for.
        drop(self.pool.close());
    }

    async fn renew_epochs(&self) -> Result<u64, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::from)?;
        let renewed = sql::home::renew_epochs(&mut connection).await?;
        sql::home::settle(&mut connection, self.home.here()).await?;
        Ok(renewed)
    }

    async fn scrub(&self) -> Result<Scrubbed, StoreError> {
        // Rows that are gone are for the server's own vacuum.
        sqlx::query("update store_home set scrub_due = 0 where scrub_due > 0")
            .execute(&self.pool)
            .await?;
        Ok(Scrubbed::Done)
    }

    async fn record(&self, act: &Act) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sql::audit(&mut tx, act).await?;
        Ok(tx.commit().await?)
    }

    async fn recent_acts(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(StoreError::from)?;
        Ok(sql::recent_acts(&mut connection, limit).await?)
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
