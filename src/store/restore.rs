//! Putting a backup in place.
//!
//! Checked before anything is touched, made ready beside what is there, and then moved in: broken off
//! at any point, either what was there is there, or nothing is and it can be asked for again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::attachments::ContentHash;
use super::contents::Contents;
use super::error::{OpenError, StoreError};
use super::{Config, Upkeep as _, make_directory, sqlite};

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
    /// Where that is which was there before.
    pub aside: Option<PathBuf>,
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
    #[error("{path} is no backup of Switchboard: {why}")]
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
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files of the database, which belong together.
const DATABASE: [&str; 3] = ["switchboard.db", "switchboard.db-wal", "switchboard.db-shm"];
const ATTACHMENTS: &str = "attachments";
/// What is made ready beside its place.
const READY: &str = ".restoring";

/// Puts a backup in place of what is in the data directory. No gateway may run there meanwhile: that is
/// for the caller to see to.
pub async fn restore(
    config: &Config,
    file: &Path,
    existing: Existing,
    now: Timestamp,
) -> Result<Restored, RestoreError> {
    if config.database_url.is_some() {
        return Err(RestoreError::NotSqlite);
    }
    let found = sqlite::examine(file).await?;
    make_directory(config)?;
    let dir = &config.dir;
    let there = what_is_there(dir).map_err(|source| unwritable(dir, source))?;
    if !there.is_empty() && existing == Existing::Refuse {
        return Err(RestoreError::Occupied(dir.display().to_string()));
    }
    let ready = dir.join(format!("{}{READY}", DATABASE[0]));
    let ready_files = dir.join(format!("{ATTACHMENTS}{READY}"));
    clear(&ready, &ready_files).map_err(|source| unwritable(dir, source))?;
    sqlite::copy_of(file, &ready).await?;
    let missing = Contents::bring(&beside(file), &ready_files, &found.contents)
        .map_err(|source| unwritable(&ready_files, source))?;
    let aside = dir.join(format!("replaced-{}", now.strftime("%Y%m%dT%H%M%S%3fZ")));
    let moved = || {
        for name in &there {
            fs::create_dir_all(&aside)?;
            fs::rename(dir.join(name), aside.join(name))?;
        }
        if ready_files.exists() {
            fs::rename(&ready_files, dir.join(ATTACHMENTS))?;
        }
        // Last: without the database there is nothing yet.
        fs::rename(&ready, dir.join(DATABASE[0]))?;
        File::open(dir)?.sync_all()
    };
    moved().map_err(|source| unwritable(dir, source))?;
    let opened = sqlite::Backend::open(&config.sqlite_path()).await?;
    // Also of a copy that does not know that it is one.
    let renewed = opened.renew_epochs().await;
    opened.close().await;
    renewed?;
    Ok(Restored {
        users: found.users,
        sessions: found.sessions,
        newest: found.newest,
        files: found.contents.len() - missing.len(),
        missing,
        aside: (!there.is_empty()).then_some(aside),
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

/// Those of our names that exist. A directory without a file in it is nothing.
fn what_is_there(dir: &Path) -> io::Result<Vec<&'static str>> {
    let mut there: Vec<&str> = DATABASE
        .into_iter()
        .filter(|name| dir.join(name).exists())
        .collect();
    let attachments = dir.join(ATTACHMENTS);
    if attachments.exists() {
        if Contents::is_empty(&attachments)? && there.is_empty() {
            fs::remove_dir_all(attachments)?;
        } else {
            there.push(ATTACHMENTS);
        }
    }
    Ok(there)
}

/// Takes away what a restore that was broken off has left.
fn clear(file: &Path, dir: &Path) -> io::Result<()> {
    if file.exists() {
        fs::remove_file(file)?;
    }
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    Ok(())
}
