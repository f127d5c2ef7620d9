//! Backups: copies of the running database, and checks of a copy before it is used.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqliteSynchronous,
};
use sqlx::{Connection as _, Row as _};

use super::{MIGRATIONS, commit_log, schema, sql};
use crate::domain::audit::AuditEntry;
use crate::store::attachments::ContentHash;
use crate::store::error::{OpenError, StoreError};
use crate::store::maintenance::BackupError;
use crate::store::restore::RestoreError;

/// Fingerprints: SQLite has no server to identify, so a database carries a mark instead. `IN_PLACE`
/// while it is where a gateway served from it, `COPIED` in a backup.
pub(in super::super) const IN_PLACE: &str = "here";
pub(in super::super) const COPIED: &str = "copy";

/// First bytes of every non-empty database.
const SQLITE_MAGIC: &[u8; 16] = b"SQLite format 3\0";

#[derive(Debug)]
pub(in super::super) struct BackupSummary {
    pub(in super::super) users: u64,
    pub(in super::super) sessions: u64,
    /// Time of the newest change.
    pub(in super::super) newest: Option<Timestamp>,
    /// Hashes of the uploaded files it refers to.
    pub(in super::super) contents: Vec<ContentHash>,
}

/// Writes a checked copy that is marked as a copy.
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
        tracing::warn!(%error, path, "cannot delete the file of a failed backup");
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

/// SQLite copies from one snapshot into the empty file.
async fn copy_into(reader: &SqlitePool, target: &Path, path: &str) -> Result<(), BackupError> {
    sqlx::query("vacuum into $1")
        .bind(path)
        .execute(reader)
        .await?;
    // Marked, so that a gateway that serves from it renews the epochs.
    let mut copy =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(target)).await?;
    let verdict = async {
        sqlx::query("update store_home set home = $1")
            .bind(COPIED)
            .execute(&mut copy)
            .await?;
        integrity(&mut copy).await
    };
    let verdict = verdict.await?;
    copy.close().await?;
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

/// Checks a copy without changing it: is it ours, undamaged, and of a known version?
pub(in super::super) async fn examine(file: &Path) -> Result<BackupSummary, RestoreError> {
    let location = file.display().to_string();
    let not_ours = |source: sqlx::Error| RestoreError::NotABackup {
        path: location.clone(),
        why: source.to_string(),
    };
    let mut copy = read_only(file).await.map_err(not_ours)?;
    let version: Option<i64> = sqlx::query_scalar("select max(version) from _sqlx_migrations")
        .fetch_one(&mut copy)
        .await
        .map_err(not_ours)?;
    let known = schema::latest_version(&MIGRATIONS);
    if let Some(found) = version.filter(|found| *found > known) {
        return Err(RestoreError::Open(OpenError::Newer {
            location,
            found,
            known,
        }));
    }
    let verdict = integrity(&mut copy).await.map_err(not_ours)?;
    if verdict != "ok" {
        return Err(RestoreError::Damaged {
            path: location,
            why: verdict,
        });
    }
    let dangling = sqlx::query("pragma foreign_key_check")
        .fetch_all(&mut copy)
        .await
        .map_err(not_ours)?;
    if let Some(row) = dangling.first() {
        let table: String = row.try_get(0).map_err(not_ours)?;
        return Err(RestoreError::Damaged {
            path: location,
            why: format!("rows of {table} refer to what is not there"),
        });
    }
    let found = summarize(&mut copy).await.map_err(not_ours)?;
    copy.close().await.map_err(not_ours)?;
    Ok(found)
}

async fn read_only(file: &Path) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    SqliteConnection::connect_with(&options).await
}

async fn summarize(copy: &mut SqliteConnection) -> sqlx::Result<BackupSummary> {
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
    Ok(BackupSummary {
        users,
        sessions,
        newest: newest.and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        contents: hashes
            .into_iter()
            .filter_map(|hash| hash.try_into().ok())
            .collect(),
    })
}

/// Copies a backup, which stays unchanged, and prepares the copy for a gateway: migrated, marked in
/// place, with new epochs (even if it was not marked as a copy) and the audit entry; returns why
/// that entry is missing. The result is one file without a WAL.
pub(in super::super) async fn stage(
    file: &Path,
    target: &Path,
    entry: &AuditEntry,
) -> Result<Option<StoreError>, RestoreError> {
    copy_of(file, target).await?;
    let location = target.display().to_string();
    let options = super::options(target).journal_mode(SqliteJournalMode::Delete);
    let stored = |source: sqlx::Error| RestoreError::Store(source.into());
    let mut staged = SqliteConnection::connect_with(&options)
        .await
        .map_err(stored)?;
    schema::migrate(&MIGRATIONS, &mut staged, &location).await?;
    let settled = async {
        let mut tx = staged.begin_with("begin immediate").await?;
        commit_log::flush(&mut tx).await?;
        sql::restore_detection::record_fingerprint(&mut tx, IN_PLACE).await?;
        sql::restore_detection::renew_epochs(&mut tx).await?;
        tx.commit().await
    };
    settled.await.map_err(stored)?;
    let recorded = async {
        let mut tx = staged.begin_with("begin immediate").await?;
        sql::audit(&mut tx, entry).await?;
        tx.commit().await
    };
    let unrecorded = recorded.await.err();
    staged.close().await.map_err(stored)?;
    File::open(target)
        .and_then(|file| file.sync_all())
        .map_err(|source| RestoreError::Write {
            path: location,
            source,
        })?;
    Ok(unrecorded.map(StoreError::from))
}

/// By SQLite, so that a WAL beside the file is included.
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
    Ok(copied.await?)
}

/// Has it SQLite's header, or is it empty with everything still in the WAL?
fn may_be_a_database(path: &Path) -> bool {
    let mut head = [0; SQLITE_MAGIC.len()];
    let read = File::open(path).and_then(|mut file| match file.metadata()?.len() {
        0 => Ok(true),
        _ => file.read_exact(&mut head).map(|()| head == *SQLITE_MAGIC),
    });
    read.unwrap_or(false)
}

/// Folds the WAL into a database that is about to be moved aside. An unreadable one is moved as it
/// is, with its WAL.
pub(in super::super) async fn fold_wal_in(path: &Path) -> Result<(), RestoreError> {
    // SQLite would discard the WAL of such a file.
    if !may_be_a_database(path) {
        tracing::warn!(path = %path.display(), "the existing file is not a database; moving it aside unchanged");
        return Ok(());
    }
    let folded = async {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(super::BUSY_TIMEOUT);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let mode: String = sqlx::query_scalar("pragma journal_mode = delete")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        sqlx::Result::Ok(mode)
    };
    match folded.await {
        Ok(mode) if mode == "delete" => Ok(()),
        Err(error) if !is_locked(&error) => {
            tracing::warn!(%error, path = %path.display(), "the existing database cannot be read; moving it aside unchanged");
            Ok(())
        }
        _ => Err(RestoreError::InUse(path.display().to_string())),
    }
}

/// `SQLITE_BUSY` and `SQLITE_LOCKED`, extended codes included.
pub(super) fn is_locked(error: &sqlx::Error) -> bool {
    let code = error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code);
    let code = code.and_then(|code| code.parse::<i64>().ok());
    code.is_some_and(|code| matches!(code & 0xff, 5 | 6))
}
