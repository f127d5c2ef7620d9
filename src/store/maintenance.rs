//! Keeping the database healthy: probing, sweeping, copying, and reading its audit log.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::act::Act;
use crate::domain::id::StoreId;

/// A row of the audit log, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its place: later rows have larger ones.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// From where.
    pub address: Option<String>,
    /// What.
    pub action: String,
    /// To whom or what.
    pub target: String,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// This database is not copied by us.
    #[error(
        "this gateway stores in Postgres: use pg_dump, which makes a consistent copy while the gateway runs"
    )]
    NotSqlite,
    /// Something is there already.
    #[error("{0} exists already: name a new file")]
    Exists(String),
    /// The copy cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// Where to.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The copy was made and does not read back well.
    #[error("the copy does not pass SQLite's integrity check: {0}")]
    Damaged(String),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What became of what was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubbed {
    /// Nothing of it is left in the database's files.
    Done,
    /// It is written over, but the log still holds it and is being read from: ask again later.
    LogIsRead,
}

/// Up to which moment, itself included, what is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlived {
    /// Links, logins, changes, signing keys and releases of contents that ended then.
    pub ended: Timestamp,
    /// Refresh tokens that were exchanged then.
    pub spent: Timestamp,
    /// Keys of commands that took effect then.
    pub commands: Timestamp,
}

/// Operations about the database as a whole.
#[async_trait]
pub trait Upkeep: Send + Sync {
    /// Which database it is, without its password.
    fn place(&self) -> &str;

    /// The version of the schema.
    fn schema_version(&self) -> i64;

    /// Does it answer?
    async fn ping(&self) -> Result<(), StoreError>;

    /// What the database's own check of itself says; empty if all is well.
    async fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// Drops what nobody can use any more.
    async fn sweep(&self, outlived: Outlived) -> Result<(), StoreError>;

    /// Makes a consistent copy while everything goes on.
    async fn backup(&self, target: &Path) -> Result<(), BackupError>;

    /// What data directories know it by. `None` while it is a database that was put here from elsewhere,
    /// and nobody has begun to serve from it: it does not know yet what it is.
    async fn identity(&self) -> Result<Option<StoreId>, StoreError>;

    /// Returns when the database has become another one under this program (a standby took over, a dump
    /// was restored); nothing can be read or written from then on. Else never.
    async fn displaced(&self);

    /// Gives every journal a new epoch, so that no client goes on from an offset that may mean something
    /// else now, and the database a new identity; says how many journals there are. Whoever writes a
    /// journal meanwhile is kept out.
    async fn renew_epochs(&self) -> Result<u64, StoreError>;

    /// If accounts or sessions were removed since the last time: makes that nothing of them is left in
    /// the free parts of the database's files. A little at a time; others write in between.
    async fn scrub(&self) -> Result<Scrubbed, StoreError>;

    /// Writes an audit row for something that changed nothing else.
    async fn record(&self, act: &Act) -> Result<(), StoreError>;

    /// The newest rows of the audit log, newest first.
    async fn recent_acts(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError>;

    /// Finishes what is under way and closes.
    async fn close(&self);
}
