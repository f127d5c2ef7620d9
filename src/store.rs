//! Store: all SQL, and nothing but storage.
//!
//! One [`Store`] trait; behind it SQLite (a file in the data directory) or Postgres (by URL). Each
//! method is one transaction, its audit entry included. The statements are written once, in `sql/`, and
//! compiled for each database; what differs is in `sqlite.rs` and `postgres.rs`. Touches `domain` only.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::secret::Secret;

mod account_removal;
mod admin_sessions;
mod attachments;
mod audit;
mod auth_changes;
mod blobs;
mod branches;
mod deadline;
mod error;
mod grants;
mod journals;
mod logins;
mod maintenance;
mod metrics;
mod one_time_links;
mod owning_database;
mod postgres;
mod restore;
mod restore_detection;
mod retention;
mod schema;
mod search;
mod sessions;
mod signing_keys;
mod sqlite;
mod storage_usage;
mod to_postgres;
mod users;

use deadline::Deadline;
use restore_detection::Purpose;

pub use account_removal::AccountRemoval;
pub use admin_sessions::{Counts, SessionFacts, SessionFilter, SessionOverview, SessionStatus};
pub use attachments::{AddError, AttachmentRow, Attachments, ContentHash, Quotas};
pub use audit::{Audit, AuditConfig, AuditFilter, AuditRow};
pub use auth_changes::{AuthChange, AuthChanges, Subject};
pub use blobs::{Blobs, StoreBlobError, SweepError, Upload, UploadedBlob, hex};
pub use branches::{BranchError, Branches, NewBranch};
pub use error::{OpenError, StoreError};
pub use grants::{GrantRow, Grants, ShareError};
pub use journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, NewEvent, PAGE_BYTES,
    SessionSummary, Snapshot, StoredEvent,
};
pub use logins::{
    LoginKind, LoginRow, Logins, NewLogin, RefreshError, Refreshed, Rotation, StartLoginError,
};
pub use maintenance::{BackupError, Maintenance, ScrubOutcome, SweepCutoffs};
pub(crate) use metrics::{Failures, StoreOperation, register as register_metrics};
pub use one_time_links::{Invitation, LinkKind, NewLink, OneTimeLinks, Redeemed, SetUpError};
pub use owning_database::{BlobOwner, adopt};
pub use restore::{Existing, RestoreError, Restored, attachments_beside, restore};
pub use retention::{JournalFacts, Retention};
pub use search::{Passage, Search, SearchHit, SearchText};
pub use sessions::{NewSession, SessionChange, SessionRow, Sessions};
pub use signing_keys::{OldKeys, SigningKeys, StoredKey};
pub use storage_usage::{Usage, UserUsage};
pub use to_postgres::{MoveError, MoveMode, MovedTable, move_to_postgres};
pub use users::{ChangeUserError, CreateUserError, Credentials, KeepLogin, NewUser, Users};

/// Every storage operation.
pub trait Store:
    Users
    + Logins
    + OneTimeLinks
    + SigningKeys
    + AuthChanges
    + Sessions
    + Grants
    + Search
    + Journals
    + Branches
    + Attachments
    + AccountRemoval
    + Retention
    + SessionOverview
    + Usage
    + Audit
    + Maintenance
{
}

/// The `[data]` section.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Holds the database and all other persistent files.
    pub dir: PathBuf,
    /// URL of a Postgres database to use instead of SQLite.
    pub database_url: Option<Secret>,
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        if let Some(url) = &self.database_url
            && !(is_postgres(url.expose()) && postgres::is_url(url.expose()))
        {
            complaints.push((
                "data.database_url",
                "expected a URL like postgres://user:password@host/database (leave it out to use SQLite)".into(),
            ));
        }
        complaints
    }

    pub(crate) fn database(&self) -> &'static str {
        match self.database_url {
            Some(_) => "postgres",
            None => "sqlite",
        }
    }

    /// The file of the SQLite database.
    pub fn sqlite_path(&self) -> PathBuf {
        self.dir.join("switchboard.db")
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Opens the configured database for a command and migrates its schema. A gateway may be serving
/// from it, so epochs stay as they are.
pub async fn open(config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    open_for(config, Purpose::Command).await
}

/// Opens the configured database for a gateway. A database that was restored or moved gets new
/// epochs first.
pub async fn open_to_serve(config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    open_for(config, Purpose::Serve).await
}

async fn open_for(config: &Config, purpose: Purpose) -> Result<Arc<dyn Store>, OpenError> {
    make_directory(config)?;
    Ok(match &config.database_url {
        Some(url) => {
            let backend = postgres::Backend::open(url.expose(), purpose).await?;
            Arc::new(Deadline(backend))
        }
        None => Arc::new(sqlite::Backend::open(&config.sqlite_path(), purpose).await?),
    })
}

/// Creates the data directory, private from the start: it holds keys and password hashes.
pub fn make_directory(config: &Config) -> Result<(), OpenError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let dir = &config.dir;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| OpenError::Directory {
            path: dir.to_owned(),
            source,
        })
}
