//! Moving everything from SQLite into an empty Postgres database.
//!
//! Which tables and columns there are is asked of the databases, so that no later one is forgotten;
//! if the two do not agree, nothing is moved. One transaction there, one snapshot here: all of it
//! arrives, counted and compared, or nothing does. SQLite stays as it is, but knows that its journals go
//! on elsewhere: a gateway that is started on it all the same gives them new epochs.

use std::collections::{BTreeSet, HashSet};

use futures_util::TryStreamExt as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};

use super::error::{OpenError, StoreError};
use super::{Config, Upkeep as _, home, postgres, sqlite};
use crate::domain::secret::Secret;

mod cell;
mod table;

use cell::{Batch, Tally};
use table::Table;

/// Whether it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rehearsal {
    /// Only look what there is to move, and whether it could be.
    Only,
    /// Move it.
    No,
}

/// One table that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its name.
    pub table: String,
    /// How many rows.
    pub rows: u64,
    /// What all of them together come to, in whichever order; the same on both sides.
    pub checksum: String,
}

/// Why nothing was moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// There is no SQLite database.
    #[error("there is no SQLite database {0}: name the right data directory with --data-dir")]
    NoSource(String),
    /// The target is no URL of Postgres.
    #[error("the target is no URL like postgres://user:password@host/database")]
    NoUrl,
    /// The target is not empty.
    #[error(
        "{place} has data already ({table} is not empty): name an empty database, \
         which no gateway has been started on"
    )]
    Occupied {
        /// Which one, without its password.
        place: String,
        /// A table with something in it.
        table: String,
    },
    /// The two schemas do not agree.
    #[error("the table {table} is not the same in both databases: {why}; nothing was moved")]
    Schema {
        /// Which table.
        table: String,
        /// What differs.
        why: String,
    },
    /// What arrived is not what was sent.
    #[error(
        "what arrived in {table} is not what was sent ({sent} and {arrived} rows); nothing was moved"
    )]
    Different {
        /// Which table.
        table: String,
        /// Rows here.
        sent: u64,
        /// Rows there.
        arrived: u64,
    },
    /// One side cannot be read.
    #[error("cannot read {table} here: {source}")]
    Read {
        /// Which table.
        table: String,
        /// Why.
        source: sqlx::Error,
    },
    /// The other does not take it.
    #[error("cannot write {table} there: {source}; nothing was moved")]
    Write {
        /// Which table.
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

/// Rows that are told of while a large table is under way.
const TOLD_EVERY: u64 = 50_000;

/// Copies everything into an empty Postgres database; tells how far it is, by table and rows. No
/// gateway may run on the SQLite database meanwhile: that is for the caller to see to.
pub async fn move_to_postgres(
    config: &Config,
    target: &Secret,
    rehearsal: Rehearsal,
    tell: &mut (dyn FnMut(&str, u64) + Send),
) -> Result<Vec<Moved>, MoveError> {
    let path = config.sqlite_path();
    if !path.exists() {
        return Err(MoveError::NoSource(path.display().to_string()));
    }
    if !postgres::is_url(target.expose()) {
        return Err(MoveError::NoUrl);
    }
    // Up to date, and every event in its journal.
    sqlite::Backend::open(&path).await?.close().await;
    let options = SqliteConnectOptions::new().filename(&path).read_only(true);
    let mut source = SqliteConnection::connect_with(&options).await?;
    let options = postgres::options(target.expose())?;
    let place = postgres::place(&options);
    let mut there = PgConnection::connect_with(&options)
        .await
        .map_err(|source| OpenError::Database {
            place: place.clone(),
            source,
        })?;
    let mut snapshot = source.begin().await?;
    let names = table::names(&mut snapshot).await?;
    // Before the schema is made: a database that is not empty is left alone.
    refuse_data(&mut there, &place, &names).await?;
    if rehearsal == Rehearsal::Only {
        return Ok(count(&mut snapshot, &names).await?);
    }
    postgres::Backend::open(target.expose())
        .await?
        .close()
        .await;
    let mut tx = there.begin().await?;
    let all = names.join(", ");
    sqlx::query(AssertSqlSafe(format!("lock table {all} in exclusive mode")))
        .execute(&mut *tx)
        .await?;
    refuse_data(&mut tx, &place, &names).await?;
    let mut moved = Vec::new();
    for name in &names {
        let table = Table::of(name, &mut snapshot, &mut tx).await?;
        moved.push(carry(&table, &mut snapshot, &mut tx, tell).await?);
    }
    sqlx::query(AssertSqlSafe(format!("analyze {all}")))
        .execute(&mut *tx)
        .await?;
    let known = carry_identity(&mut snapshot, &mut tx).await?;
    snapshot.rollback().await?;
    source.close().await?;
    // Before there are two: whatever happens from here on, one of them has new epochs when it is used.
    sqlite::mark(&path, home::MOVED).await?;
    if let Err(error) = tx.commit().await {
        sqlite::mark(&path, known.as_deref().unwrap_or(sqlite::HERE)).await?;
        return Err(error.into());
    }
    there.close().await?;
    Ok(moved)
}

/// The data directory goes on to belong to it. The epochs go on, too, but only in the first that they are
/// moved to. Says where the source was at home.
async fn carry_identity(
    source: &mut SqliteConnection,
    there: &mut PgConnection,
) -> sqlx::Result<Option<String>> {
    let (known, identity): (Option<String>, Option<String>) =
        sqlx::query_as("select home, store_id from store_home")
            .fetch_one(source)
            .await?;
    let is_first = known.as_deref().is_none_or(|known| known == sqlite::HERE);
    sqlx::query("update store_home set home = $1, store_id = $2")
        .bind((!is_first).then_some(sqlite::COPY))
        .bind(identity)
        .execute(there)
        .await?;
    Ok(known)
}

/// Tables that have a row from the beginning.
const BORN_WITH_A_ROW: [&str; 1] = ["auth_revision"];

async fn refuse_data(
    there: &mut PgConnection,
    place: &str,
    names: &[String],
) -> Result<(), MoveError> {
    for name in names {
        if BORN_WITH_A_ROW.contains(&name.as_str()) {
            continue;
        }
        let exists: bool = sqlx::query_scalar("select to_regclass($1) is not null")
            .bind(name)
            .fetch_one(&mut *there)
            .await?;
        if !exists {
            continue;
        }
        let any = format!("select exists (select 1 from {name})");
        let occupied: bool = sqlx::query_scalar(AssertSqlSafe(any))
            .fetch_one(&mut *there)
            .await?;
        if occupied {
            return Err(MoveError::Occupied {
                place: place.to_owned(),
                table: name.clone(),
            });
        }
    }
    Ok(())
}

async fn count(snapshot: &mut SqliteConnection, names: &[String]) -> sqlx::Result<Vec<Moved>> {
    let mut found = Vec::new();
    for name in names {
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(format!("select count(*) from {name}")))
            .fetch_one(&mut *snapshot)
            .await?;
        found.push(Moved {
            table: name.clone(),
            rows: rows.unsigned_abs(),
            checksum: String::new(),
        });
    }
    Ok(found)
}

/// Copies one table, and reads back what arrived.
async fn carry(
    table: &Table,
    source: &mut SqliteConnection,
    there: &mut PgConnection,
    tell: &mut (dyn FnMut(&str, u64) + Send),
) -> Result<Moved, MoveError> {
    let read = |source| MoveError::Read {
        table: table.name.clone(),
        source,
    };
    let write = |source| MoveError::Write {
        table: table.name.clone(),
        source,
    };
    // What stands there follows from tables before this one, or from the beginning.
    sqlx::query(AssertSqlSafe(format!("delete from {}", table.name)))
        .execute(&mut *there)
        .await
        .map_err(write)?;
    let (select, insert) = (table.select(), table.insert());
    let mut sent = Tally::default();
    let mut batch = Batch::new(&table.columns);
    let mut rows = sqlx::query(AssertSqlSafe(select.clone())).fetch(&mut *source);
    while let Some(row) = rows.try_next().await.map_err(read)? {
        let cells = cell::of_sqlite(&row, &table.columns).map_err(read)?;
        sent.add(&cells);
        batch.push(cells);
        if batch.is_full() {
            batch.insert(&insert, there).await.map_err(write)?;
            if sent.rows / TOLD_EVERY != (sent.rows - batch.taken) / TOLD_EVERY {
                tell(&table.name, sent.rows);
            }
        }
    }
    drop(rows);
    batch.insert(&insert, there).await.map_err(write)?;
    table.continue_numbers(source, there).await?;
    let mut arrived = Tally::default();
    let mut rows = sqlx::query(AssertSqlSafe(select)).fetch(&mut *there);
    while let Some(row) = rows.try_next().await.map_err(write)? {
        arrived.add(&cell::of_postgres(&row, &table.columns).map_err(write)?);
    }
    if sent != arrived {
        return Err(MoveError::Different {
            table: table.name.clone(),
            sent: sent.rows,
            arrived: arrived.rows,
        });
    }
    tell(&table.name, sent.rows);
    Ok(Moved {
        table: table.name.clone(),
        rows: sent.rows,
        checksum: sent.checksum(),
    })
}
