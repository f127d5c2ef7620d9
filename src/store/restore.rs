//! Putting a backup in place.
//!
//! Checked before anything is touched, made ready to the end beside what is there, and then moved in:
//! broken off at any point, either what was there is there, or a marker keeps everybody out until it is
//! asked for again.

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::attachments::ContentHash;
use super::contents::Contents;
use super::error::{OpenError, StoreError};
use super::{Config, make_directory, sqlite};
use crate::domain::act::Act;

mod replacement;

pub(super) use replacement::is_unfinished;
use replacement::{Replacement, ready_database, ready_files, sync};

/// What becomes of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Nothing may be there.
    Refuse,
    /// It is moved aside.
    MoveAside,
}

/// What was put in place.
#[derive(Debug)]
pub struct Restored {
    /// Accounts.
    pub users: u64,
    /// Sessions, each with a new epoch.
    pub sessions: u64,
    /// When something last happened before the backup.
    pub newest: Option<Timestamp>,
    /// Uploaded files that are there again.
    pub files: usize,
    /// Uploaded files that the backup refers to and does not have, or not whole.
    pub missing: Vec<ContentHash>,
    /// Where that is which was there before; after one that was broken off, perhaps two places.
    pub asides: Vec<PathBuf>,
    /// Why the audit log does not tell of it.
    pub unrecorded: Option<StoreError>,
}

/// Why nothing was put in place.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The gateway stores elsewhere.
    #[error(
        "this gateway stores in Postgres: restore with pg_restore while every gateway is stopped \
         (leave data.database_url out to restore SQLite)"
    )]
    NotSqlite,
    /// The file is none of ours.
    #[error("{path} is not a backup of Switchboard: {why}")]
    NotABackup {
        /// Which file.
        path: String,
        /// Why.
        why: String,
    },
    /// The file is not whole.
    #[error("{path} is damaged: {why}; use another backup")]
    Damaged {
        /// Which file.
        path: String,
        /// What SQLite says.
        why: String,
    },
    /// There is something already.
    #[error("there is data in {0} already: --replace moves it aside, into a directory beside it")]
    Occupied(String),
    /// The disk does not take it.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Where to.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Somebody reads or writes what is there.
    #[error("another command uses {0}: wait for it to end, and run this one again")]
    InUse(String),
    /// The disk does not take it, and some of it is done.
    #[error(
        "cannot put the backup in place in {path}: {source}. Nothing is lost, and nothing opens the \
         database until it is finished: run the same command again"
    )]
    Unfinished {
        /// Where.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Puts a backup in place of what is in the data directory, and the act into its audit log. No gateway
/// may run there meanwhile: that is for the caller to see to.
pub async fn restore(
    config: &Config,
    file: &Path,
    existing: Existing,
    act: &Act,
) -> Result<Restored, RestoreError> {
    if config.database_url.is_some() {
        return Err(RestoreError::NotSqlite);
    }
    let found = sqlite::examine(file).await?;
    make_directory(config)?;
    let (dir, database) = (&config.dir, config.sqlite_path());
    let here = |source| unwritable(dir, source);
    let former = Replacement::unfinished(dir).map_err(here)?;
    if let Some(former) = &former {
        former.break_off(dir).map_err(here)?;
    }
    let now = act.by.at;
    let plan = Replacement::plan(dir, now).map_err(here)?;
    // What one that was broken off has put here is nobody's yet.
    if plan.aside(dir).is_some() && former.is_none() && existing == Existing::Refuse {
        return Err(RestoreError::Occupied(dir.display().to_string()));
    }
    replacement::clear(dir).map_err(here)?;
    let unrecorded = sqlite::make_ready(file, &ready_database(dir), act).await?;
    let files = ready_files(dir);
    let missing = Contents::bring(&beside(file), &files, &found.contents)
        .and_then(|missing| {
            if files.exists() {
                sync(&files)?;
            }
            sync(dir)?;
            Ok(missing)
        })
        .map_err(|source| unwritable(&files, source))?;
    // Until the end: whoever comes to open the database waits, and finds the new one.
    let turn = sqlite::take_turn(&database).await.map_err(here)?;
    if database.exists() {
        sqlite::take_log_in(&database).await?;
    }
    // Once more: the log may be gone now.
    let plan = Replacement::plan(dir, now).map_err(here)?;
    for step in plan.steps() {
        plan.take(&step, dir)
            .map_err(|source| RestoreError::Unfinished {
                path: dir.display().to_string(),
                source,
            })?;
    }
    drop(turn);
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

/// Where the uploaded files of a backup are.
pub fn beside(file: &Path) -> PathBuf {
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
