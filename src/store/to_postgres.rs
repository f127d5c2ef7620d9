//! Move to Postgres: copies everything from SQLite into an empty Postgres database.
//!
//! Tables and columns are read from the databases, so that a new one is never forgotten; if the two
//! differ, nothing is moved. One transaction on one snapshot: everything arrives, counted and compared,
//! or nothing. SQLite keeps its data but is marked as moved: a gateway started on it renews the epochs.

use std::collections::{BTreeSet, HashSet};

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use super::error::{OpenError, StoreError};
use super::restore_detection::{MOVED, Purpose};
use super::{Config, Maintenance as _, postgres, sqlite};
use crate::domain::secret::Secret;

mod rows;
mod table;

use rows::{Batch, TableChecksum};
use table::Table;

/// Move the data, or only check that it could be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveMode {
    /// Only check and count.
    DryRun,
    /// Move the data.
    Move,
}

/// A moved table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedTable {
    /// Its name.
    pub table: String,
    /// Number of rows.
    pub rows: u64,
    /// Order-independent checksum of the rows, equal on both sides.
    pub checksum: String,
}

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// There is no SQLite database.
    #[error("there is no SQLite database {0}: name the right data directory with --data-dir")]
    NoSource(String),
    /// The target is no Postgres URL.
    #[error("the target is no URL like postgres://user:password@host/database")]
    NoUrl,
    /// The target is not empty.
    #[error(
        "{location} has data already ({table} is not empty): name an empty database, \
         which no gateway has been started on"
    )]
    Occupied {
        /// The database, without its password.
        location: String,
        /// A table that has rows.
        table: String,
    },
    /// The two schemas do not agree.
    #[error("the table {table} is not the same in both databases: {why}; nothing was moved")]
    Schema {
        /// The table.
        table: String,
        /// The difference.
        why: String,
    },
    /// The copy differs from the source.
    #[error(
        "what arrived in {table} is not what was sent ({sent} and {arrived} rows); nothing was moved"
    )]
    Different {
        /// The table.
        table: String,
        /// Rows in SQLite.
        sent: u64,
        /// Rows in Postgres.
        arrived: u64,
    },
    /// SQLite cannot be read.
    #[error("cannot read {table} here: {source}")]
    Read {
        /// The table.
        table: String,
        /// Why.
        source: sqlx::Error,
    },
    /// Postgres refused the rows.
    #[error("cannot write {table} there: {source}; nothing was moved")]
    Write {
        /// The table.
        table: String,
        /// Why.
        source: sqlx::Error,
    },
    /// One of them cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for MoveError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

const PROGRESS_ROWS: u64 = 50_000;

/// Copies everything into an empty Postgres database and reports progress by table and rows. The
/// caller must make sure that no gateway runs on the SQLite database.
pub async fn move_to_postgres(
    config: &Config,
    url: &Secret,
    mode: MoveMode,
    report_progress: &mut (dyn FnMut(&str, u64) + Send),
) -> Result<Vec<MovedTable>, MoveError> {
    let path = config.sqlite_path();
    if !path.exists() {
        return Err(MoveError::NoSource(path.display().to_string()));
    }
    if !postgres::is_url(url.expose()) {
        return Err(MoveError::NoUrl);
    }
    // Migrates it and flushes the commit log.
    sqlite::Backend::open(&path, Purpose::Command)
        .await?
        .close()
        .await;
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let mut source = SqliteConnection::connect_with(&options).await?;
    let options = postgres::options(url.expose())?;
    let location = postgres::location(&options);
    let mut target = PgConnection::connect_with(&options)
        .await
        .map_err(|source| OpenError::Database {
            location: location.clone(),
            source,
        })?;
    let mut snapshot = source.begin().await?;
    let names = table::names(&mut snapshot).await?;
    // Before the schema is created: a database with data is left untouched.
    check_empty(&mut target, &location, &names).await?;
    if mode == MoveMode::DryRun {
        return Ok(count(&mut snapshot, &names).await?);
    }
    postgres::Backend::open(url.expose(), Purpose::Command)
        .await?
        .close()
        .await;
    let mut tx = target.begin().await?;
    let all = names.join(", ");
    sqlx::query(AssertSqlSafe(format!("lock table {all} in exclusive mode")))
        .execute(&mut *tx)
        .await?;
    check_empty(&mut tx, &location, &names).await?;
    let mut moved = Vec::new();
    for name in &names {
        let table = Table::of(name, &mut snapshot, &mut tx).await?;
        moved.push(copy_table(&table, &mut snapshot, &mut tx, report_progress).await?);
    }
    sqlx::query(AssertSqlSafe(format!("analyze {all}")))
        .execute(&mut *tx)
        .await?;
    let previous = copy_identity(&mut snapshot, &mut tx).await?;
    snapshot.rollback().await?;
    source.close().await?;
    // Before the commit: from here on, at most one of the two keeps its epochs.
    sqlite::set_fingerprint(&path, MOVED).await?;
    if let Err(error) = tx.commit().await {
        sqlite::set_fingerprint(&path, previous.as_deref().unwrap_or(sqlite::IN_PLACE)).await?;
        return Err(error.into());
    }
    target.close().await?;
    Ok(moved)
}

/// Keeps the identity, so that the data directory still belongs to it. Epochs continue only in the
/// first database they are moved to. Returns the source's fingerprint.
async fn copy_identity(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
) -> sqlx::Result<Option<String>> {
    let (previous, identity): (Option<String>, Option<String>) =
        sqlx::query_as("select home, store_id from store_home")
            .fetch_one(source)
            .await?;
    let is_first = previous
        .as_deref()
        .is_none_or(|previous| previous == sqlite::IN_PLACE);
    sqlx::query("update store_home set home = $1, store_id = $2")
        .bind((!is_first).then_some(sqlite::COPIED))
        .bind(identity)
        .execute(target)
        .await?;
    Ok(previous)
}

const SEEDED_TABLES: [&str; 1] = ["auth_revision"];

async fn check_empty(
    target: &mut PgConnection,
    location: &str,
    names: &[String],
) -> Result<(), MoveError> {
    for name in names {
        if SEEDED_TABLES.contains(&name.as_str()) {
            continue;
        }
        let exists: bool = sqlx::query_scalar("select to_regclass($1) is not null")
            .bind(name)
            .fetch_one(&mut *target)
            .await?;
        if !exists {
            continue;
        }
        let any = format!("select exists (select 1 from {name})");
        let occupied: bool = sqlx::query_scalar(AssertSqlSafe(any))
            .fetch_one(&mut *target)
            .await?;
        if occupied {
            return Err(MoveError::Occupied {
                location: location.to_owned(),
                table: name.clone(),
            });
        }
    }
    Ok(())
}

async fn count(snapshot: &mut SqliteConnection, names: &[String]) -> sqlx::Result<Vec<MovedTable>> {
    let mut found = Vec::new();
    for name in names {
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {name}")))
            .fetch_one(&mut *snapshot)
            .await?;
        found.push(MovedTable {
            table: name.clone(),
            rows: rows.unsigned_abs(),
            checksum: String::new(),
        });
    }
    Ok(found)
}

/// Copies one table and compares what arrived.
async fn copy_table(
    table: &Table,
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    report_progress: &mut (dyn FnMut(&str, u64) + Send),
) -> Result<MovedTable, MoveError> {
    let read = |source| MoveError::Read {
        table: table.name.clone(),
        source,
    };
    let write = |source| MoveError::Write {
        table: table.name.clone(),
        source,
    };
    // Rows that migrations or triggers of earlier tables inserted.
    sqlx::query(AssertSqlSafe(format!("delete from {}", table.name)))
        .execute(&mut *target)
        .await
        .map_err(write)?;
    let (select, insert) = (table.select(), table.insert());
    let mut sent = TableChecksum::default();
    let mut batch = Batch::new(&table.columns);
    let mut rows = sqlx::query(AssertSqlSafe(select.clone())).fetch(&mut *source);
    while let Some(row) = rows.try_next().await.map_err(read)? {
        let cells = rows::from_sqlite(&row, &table.columns).map_err(read)?;
        sent.add(&cells);
        batch.push(cells);
        if batch.is_full() {
            batch.insert(&insert, target).await.map_err(write)?;
            if sent.rows / PROGRESS_ROWS != (sent.rows - batch.inserted) / PROGRESS_ROWS {
                report_progress(&table.name, sent.rows);
            }
        }
    }
    drop(rows);
    batch.insert(&insert, target).await.map_err(write)?;
    table.advance_sequence(source, target).await?;
    let mut arrived = TableChecksum::default();
    let mut rows = sqlx::query(AssertSqlSafe(select)).fetch(&mut *target);
    while let Some(row) = rows.try_next().await.map_err(write)? {
        arrived.add(&rows::from_postgres(&row, &table.columns).map_err(write)?);
    }
    if sent != arrived {
        return Err(MoveError::Different {
            table: table.name.clone(),
            sent: sent.rows,
            arrived: arrived.rows,
        });
    }
    report_progress(&table.name, sent.rows);
    Ok(MovedTable {
        table: table.name.clone(),
        rows: sent.rows,
        checksum: sent.checksum(),
    })
}
