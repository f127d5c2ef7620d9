//! Restore: puts a backup in place of the data directory's content.
//!
//! The backup is checked first, staged beside the existing data, and then moved in. Interrupted at
//! any point, either the old data is in place, or a marker keeps everyone from opening the database
//! until the restore is repeated.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::attachments::ContentHash;
use super::blobs::Blobs;
use super::error::{OpenError, StoreError};
use super::{Config, make_directory, sqlite};
use crate::domain::audit::AuditEntry;

mod replacement;

pub(super) use replacement::is_unfinished;
use replacement::{Replacement, staged_database, staged_files, sync};

/// What to do with existing data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Refuse to replace it.
    Refuse,
    /// Move it aside.
    MoveAside,
}

/// Report of a restore.
#[derive(Debug)]
pub struct Restored {
    /// Number of accounts.
    pub users: u64,
    /// Number of sessions, each with a new epoch.
    pub sessions: u64,
    /// Time of the newest change in the backup.
    pub newest: Option<Timestamp>,
    /// Number of uploaded files restored.
    pub files: usize,
    /// Uploaded files that the backup lacks or that are damaged.
    pub missing: Vec<ContentHash>,
    /// Directories with the replaced data; two after an interrupted restore.
    pub asides: Vec<PathBuf>,
    /// Why the audit entry was not written.
    pub unrecorded: Option<StoreError>,
}

/// Why a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The gateway uses Postgres.
    #[error(
        "this gateway stores in Postgres: restore with pg_restore while every gateway is stopped \
         (leave data.database_url out to restore SQLite)"
    )]
    NotSqlite,
    /// Not a backup of this program.
    #[error("{path} is not a backup of Switchboard: {why}")]
    NotABackup {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
    /// The backup is damaged.
    #[error("{path} is damaged: {why}; use another backup")]
    Damaged {
        /// The file.
        path: String,
        /// SQLite's finding.
        why: String,
    },
    /// The data directory is not empty.
    #[error("there is data in {0} already: --replace moves it aside, into a directory beside it")]
    Occupied(String),
    /// The disk failed.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The path.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The existing database is in use.
    #[error("another command uses {0}: wait for it to end, and run this one again")]
    InUse(String),
    /// The disk failed half-way.
    #[error(
        "cannot put the backup in place in {path}: {source}. Nothing is lost, and nothing opens the \
         database until it is finished: run the same command again"
    )]
    Unfinished {
        /// The data directory.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The backup cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Replaces the content of the data directory with a backup and writes the audit entry into it. The
/// caller must make sure that no gateway runs there.
pub async fn restore(
    config: &Config,
    file: &Path,
    existing: Existing,
    entry: &AuditEntry,
) -> Result<Restored, RestoreError> {
    if config.database_url.is_some() {
        return Err(RestoreError::NotSqlite);
    }
    let found = sqlite::examine(file).await?;
    make_directory(config)?;
    let (dir, database) = (&config.dir, config.sqlite_path());
    let failed = |source| unwritable(dir, source);
    let former = Replacement::unfinished(dir).map_err(failed)?;
    if let Some(former) = &former {
        former.abandon(dir).map_err(failed)?;
    }
    let now = entry.context.at;
    let plan = Replacement::plan(dir, now).map_err(failed)?;
    // What an interrupted restore left here is not yet in use.
    if plan.aside(dir).is_some() && former.is_none() && existing == Existing::Refuse {
        return Err(RestoreError::Occupied(dir.display().to_string()));
    }
    replacement::remove_staged(dir).map_err(failed)?;
    let unrecorded = sqlite::stage(file, &staged_database(dir), entry).await?;
    let files = staged_files(dir);
    let missing = Blobs::restore_into(&attachments_beside(file), &files, &found.contents)
        .and_then(|missing| {
            if files.exists() {
                sync(&files)?;
            }
            sync(dir)?;
            Ok(missing)
        })
        .map_err(|source| unwritable(&files, source))?;
    // Held to the end: other programs wait and open the new database.
    let lock = sqlite::lock_database(&database).await.map_err(failed)?;
    if database.exists() {
        sqlite::fold_wal_in(&database).await?;
    }
    // Planned again: the WAL may be gone now.
    let plan = Replacement::plan(dir, now).map_err(failed)?;
    for step in plan.steps() {
        plan.run(&step, dir)
            .map_err(|source| RestoreError::Unfinished {
                path: dir.display().to_string(),
                source,
            })?;
    }
    drop(lock);
    let asides = [former.and_then(|former| former.aside(dir)), plan.aside(dir)];
    Ok(Restored {
        users: found.users,
        sessions: found.sessions,
        newest: found.newest,
        files: found.contents.len() - missing.len(),
        missing,
        asides: asides.into_iter().flatten().collect(),
        unrecorded,
    })
}

/// Directory of a backup's uploaded files.
pub fn attachments_beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".attachments");
    name.into()
}

fn unwritable(path: &Path, source: io::Error) -> RestoreError {
    RestoreError::Write {
        path: path.display().to_string(),
        source,
    }
}
