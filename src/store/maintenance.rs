//! Maintenance: probe, sweep, backup, identity and scrubbing of the whole database.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::id::StoreId;

/// Why a backup failed.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Postgres has its own tools.
    #[error(
        "this gateway stores in Postgres: use pg_dump, which makes a consistent copy while the gateway runs"
    )]
    NotSqlite,
    /// The target exists.
    #[error("{0} exists already: name a new file")]
    Exists(String),
    /// The copy cannot be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The target.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The copy failed its integrity check.
    #[error("the copy does not pass SQLite's integrity check: {0}")]
    Damaged(String),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Result of a scrub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubOutcome {
    /// No deleted data is left in the files.
    Done,
    /// Overwritten in the file, but a reader keeps the WAL: retry later.
    WalInUse,
}

/// Latest times (inclusive) of the rows that a sweep drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepCutoffs {
    /// Links, logins, auth changes, signing keys and released hashes that expired then.
    pub ended: Timestamp,
    /// Refresh tokens exchanged then.
    pub spent: Timestamp,
    /// Recorded commands from then.
    pub commands: Timestamp,
}

/// Operations on the whole database.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Path or URL of the database, without credentials.
    fn location(&self) -> &str;

    /// Version of the schema.
    fn schema_version(&self) -> i64;

    /// Checks that the database answers; SQLite also checks that it can write.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Findings of the database's own integrity check; empty if healthy.
    async fn integrity(&self) -> Result<Vec<String>, StoreError>;

    /// Drops expired rows.
    async fn sweep(&self, cutoffs: SweepCutoffs) -> Result<(), StoreError>;

    /// Writes a consistent copy while the gateway runs.
    async fn backup(&self, target: &Path) -> Result<(), BackupError>;

    /// Id by which data directories know it. `None` after a restore or move until a gateway serves
    /// from it.
    async fn identity(&self) -> Result<Option<StoreId>, StoreError>;

    /// Resolves when the server turns out to be another one (failover, restored dump); all calls
    /// fail from then on. Pending forever otherwise.
    async fn displaced(&self);

    /// Gives every journal a new epoch, so that no client resumes at an offset that may mean
    /// another event now, and the database a new identity; returns the number of journals. Current
    /// writers are fenced.
    async fn renew_epochs(&self) -> Result<u64, StoreError>;

    /// Overwrites data of removed accounts and sessions in the free parts of the database files.
    /// Works in small steps; others write in between.
    async fn scrub(&self) -> Result<ScrubOutcome, StoreError>;

    /// Finishes open transactions and closes.
    async fn close(&self);
}
