//! Copies of the database: making one while everything goes on, and looking at one before it is used.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _};

use super::{MIGRATIONS, log, schema, sql};
use crate::domain::act::Act;
use crate::store::attachments::ContentHash;
use crate::store::error::{OpenError, StoreError};
use crate::store::restore::RestoreError;
use crate::store::upkeep::BackupError;

/// The home of a database that was opened where it is, and of one that was copied.
pub(in super::super) const HERE: &str = "here";
pub(in super::super) const COPY: &str = "copy";

/// How every database begins that is not empty.
const SQLITE_HEAD: &[u8; 16] = b"SQLite format 3\0";

/// What is in a copy.
#[derive(Debug)]
pub(in super::super) struct Found {
    pub(in super::super) users: u64,
    pub(in super::super) sessions: u64,
    /// When something last happened in it.
    pub(in super::super) newest: Option<Timestamp>,
    /// The uploaded files that it refers to.
    pub(in super::super) contents: Vec<ContentHash>,
}

/// Makes a checked copy that knows that it is one.
pub(super) async fn make(reader: &SqlitePool, target: &Path) -> Result<(), BackupError> {
    let path = target.display().to_string();
    let write = |source| BackupError::Write {
        path: path.clone(),
        source,
    };
    match new_file(target) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Exists(path));
        }
        Err(error) => return Err(write(error)),
    }
    let copied = copy_into(reader, target, &path).await;
    if copied.is_err()
        && let Err(error) = std::fs::remove_file(target)
    {
        tracing::warn!(%error, "a backup that failed could not be removed");
    }
    copied?;
    File::open(target)
        .and_then(|file| file.sync_all())
        .map_err(write)
}

fn new_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// SQLite itself writes the copy from one snapshot, into the empty file made for it.
async fn copy_into(reader: &SqlitePool, target: &Path, path: &str) -> Result<(), BackupError> {
    sqlx::query("vacuum into $1")
        .bind(path)
        .execute(reader)
        .await
        .map_err(StoreError::from)?;
    // Whoever opens it where it does not belong gives its journals new epochs.
    let mut copy = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(target))
        .await
        .map_err(StoreError::from)?;
    let verdict = async {
        sqlx::query("update store_home set home = $1")
            .bind(COPY)
            .execute(&mut copy)
            .await?;
        integrity(&mut copy).await
    };
    let verdict = verdict.await.map_err(StoreError::from)?;
    copy.close().await.map_err(StoreError::from)?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(BackupError::Damaged(verdict)),
    }
}

async fn integrity(connection: &mut SqliteConnection) -> sqlx::Result<String> {
    sqlx::query_scalar("pragma integrity_check")
        .fetch_one(connection)
        .await
}

/// Looks at a copy without changing it: is it one of ours, is it whole, can this program use it?
pub(in super::super) async fn examine(file: &Path) -> Result<Found, RestoreError> {
    let place = file.display().to_string();
    let not_ours = |source: sqlx::Error| RestoreError::NotABackup {
        path: place.clone(),
        why: source.to_string(),
    };
    let mut copy = read_only(file).await.map_err(not_ours)?;
    let version: Option<i64> = sqlx::query_scalar("select max(version) from _sqlx_migrations")
        .fetch_one(&mut copy)
        .await
        .map_err(not_ours)?;
    let known = schema::newest(&MIGRATIONS);
    if let Some(found) = version.filter(|found| *found > known) {
        return Err(RestoreError::Open(OpenError::Newer {
            place,
            found,
            known,
        }));
    }
    let verdict = integrity(&mut copy).await.map_err(not_ours)?;
    if verdict != "ok" {
        return Err(RestoreError::Damaged {
            path: place,
            why: verdict,
        });
    }
    let astray = sqlx::query("pragma foreign_key_check")
        .fetch_all(&mut copy)
        .await
        .map_err(not_ours)?;
    if let Some(row) = astray.first() {
        let table: String = row.try_get(0).map_err(not_ours)?;
        return Err(RestoreError::Damaged {
            path: place,
            why: format!("rows of {table} refer to what is not there"),
        });
    }
    let found = look(&mut copy).await.map_err(not_ours)?;
    copy.close().await.map_err(not_ours)?;
    Ok(found)
}

async fn read_only(file: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    SqliteConnection::connect_with(&options).await
}

async fn look(copy: &mut SqliteConnection) -> sqlx::Result<Found> {
    let row = sqlx::query(
        "select (select count(*) from users) as users, (select count(*) from sessions) as sessions,
             (select max(updated_at) from sessions) as newest",
    )
    .fetch_one(&mut *copy)
    .await?;
    let count = |column| row.try_get(column).map(|count: i64| count.unsigned_abs());
    let newest: Option<i64> = row.try_get("newest")?;
    let (users, sessions) = (count("users")?, count("sessions")?);
    let hashes: Vec<Vec<u8>> =
        sqlx::query_scalar("select distinct content_hash from attachments order by content_hash")
            .fetch_all(copy)
            .await?;
    Ok(Found {
        users,
        sessions,
        newest: newest.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        contents: hashes
            .into_iter()
            .filter_map(|hash| hash.try_into().ok())
            .collect(),
    })
}

/// Writes a copy of a copy, which stays as it is, and makes it what a gateway opens: up to date, at
/// home, with new epochs also if it did not know that it is a copy, and with the act in its audit log;
/// says why not that. One file: nothing stands in a log beside it.
pub(in super::super) async fn make_ready(
    file: &Path,
    target: &Path,
    act: &Act,
) -> Result<Option<StoreError>, RestoreError> {
    copy_of(file, target).await?;
    let place = target.display().to_string();
    let options = super::options(target).journal_mode(SqliteJournalMode::Delete);
    let stored = |source: sqlx::Error| RestoreError::Store(source.into());
    let mut ready = SqliteConnection::connect_with(&options)
        .await
        .map_err(stored)?;
    schema::bring_up_to_date(&MIGRATIONS, &mut ready, &place).await?;
    let settled = async {
        let mut tx = ready.begin_with("begin immediate").await?;
        log::carry_over(&mut tx).await?;
        sql::home::settle(&mut tx, HERE).await?;
        sql::home::renew_epochs(&mut tx).await?;
        tx.commit().await
    };
    settled.await.map_err(stored)?;
    let recorded = async {
        let mut tx = ready.begin_with("begin immediate").await?;
        sql::audit(&mut tx, act).await?;
        tx.commit().await
    };
    let unrecorded = recorded.await.err();
    ready.close().await.map_err(stored)?;
    File::open(target)
        .and_then(|file| file.sync_all())
        .map_err(|source| RestoreError::Write {
            path: place,
            source,
        })?;
    Ok(unrecorded.map(StoreError::from))
}

/// SQLite does it: what may stand in a log beside the file comes along.
async fn copy_of(file: &Path, target: &Path) -> Result<(), RestoreError> {
    new_file(target).map_err(|source| RestoreError::Write {
        path: target.display().to_string(),
        source,
    })?;
    let copied = async {
        let mut copy = read_only(file).await?;
        sqlx::query("vacuum into $1")
            .bind(target.display().to_string())
            .execute(&mut copy)
            .await?;
        copy.close().await
    };
    Ok(copied.await.map_err(StoreError::from)?)
}

/// Does a file begin like a database, or is it one that has everything in its log yet?
fn may_be_a_database(path: &Path) -> bool {
    let mut head = [0; SQLITE_HEAD.len()];
    let read = File::open(path).and_then(|mut file| match file.metadata()?.len() {
        0 => Ok(true),
        _ => file.read_exact(&mut head).map(|()| head == *SQLITE_HEAD),
    });
    read.unwrap_or(false)
}

/// Makes a database that is to leave its place one file, with all of its log in it. One that cannot be
/// read is no reason to stay: it leaves as it is, and its log with it.
pub(in super::super) async fn take_log_in(path: &Path) -> Result<(), RestoreError> {
    // SQLite would throw the log of such a file away.
    if !may_be_a_database(path) {
        tracing::warn!("what is there is not a database; it is moved aside as it is");
        return Ok(());
    }
    let taken = async {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(super::BUSY);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let mode: String = sqlx::query_scalar("pragma journal_mode = delete")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        sqlx::Result::Ok(mode)
    };
    match taken.await {
        Ok(mode) if mode == "delete" => Ok(()),
        Err(error) if !is_locked(&error) => {
            tracing::warn!(%error, "what is there cannot be read; it is moved aside as it is");
            Ok(())
        }
        _ => Err(RestoreError::InUse(path.display().to_string())),
    }
}

/// `SQLITE_BUSY` and `SQLITE_LOCKED`, with whatever stands above their lowest byte.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    let code = code.and_then(|code| code.parse::<i64>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}
