//! All SQL, and nothing but storage.
//!
//! One [`Store`] trait; behind it SQLite (a file in the data directory) or Postgres (by URL). Each
//! method is one whole act in one transaction, its audit row included. The statements are written
//! once, in `sql/`, and compiled for each database; what differs stands in `sqlite.rs` and
//! `postgres.rs`. Touches `domain` only.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::secret::Secret;

mod attachments;
mod audit;
mod belonging;
mod branches;
mod changes;
mod contents;
mod deadline;
mod error;
mod grants;
mod home;
mod journals;
mod keys;
mod links;
mod logins;
mod metrics;
mod moving;
mod overview;
mod postgres;
mod removal;
mod restore;
mod retention;
mod schema;
mod search;
mod sessions;
mod sqlite;
mod upkeep;
mod users;

use deadline::Deadline;

pub use attachments::{AddError, AttachmentRow, Attachments, ContentHash, Quotas};
pub use audit::{ActFilter, Audit, AuditConfig};
pub use belonging::{Belonging, adopt};
pub use branches::{BranchError, Branches, NewBranch};
pub use changes::{Change, Changes, Subject};
pub use contents::{Arriving, Content, Contents, KeepError, SweepError, hex};
pub use error::{OpenError, StoreError};
pub use grants::{GrantRow, Grants, ShareError};
pub use journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, NewEvent, PAGE_BYTES,
    Snapshot, StoredEvent, Summary,
};
pub use keys::{Keys, OldKeys, StoredKey};
pub use links::{LinkKind, Links, NewLink, Redeemed, SetUpError};
pub use logins::{
    LoginKind, LoginRow, Logins, NewLogin, RefreshError, Refreshed, Rotation, StartLoginError,
};
pub(crate) use metrics::{Failures, Wanted, register as register_metrics};
pub use moving::{MoveError, Moved, Rehearsal, move_to_postgres};
pub use overview::{Counts, Overview, SessionFacts, SessionFilter, SessionStatus};
pub use removal::Removal;
pub use restore::{Existing, RestoreError, Restored, beside, restore};
pub use retention::{JournalFacts, Retention};
pub use search::{Hit, Search, SearchText};
pub use sessions::{NewSession, SessionChange, SessionRow, Sessions};
pub use upkeep::{AuditRow, BackupError, Outlived, Scrubbed, Upkeep};
pub use users::{ChangeUserError, CreateUserError, Credentials, KeepLogin, NewUser, Users};

/// Everything that can be stored and found again.
pub trait Store:
    Users
    + Logins
    + Links
    + Keys
    + Changes
    + Sessions
    + Grants
    + Search
    + Journals
    + Branches
    + Attachments
    + Removal
    + Retention
    + Overview
    + Audit
    + Upkeep
{
}

/// The `[data]` section.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where the database and everything else that must survive lives.
    pub dir: PathBuf,
    /// A Postgres database to use instead of SQLite.
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

    /// What kind of database it is, in a word.
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

/// Opens the configured database and brings its schema up to date, for a command: a gateway may serve
/// from it, so its epochs stay as they are.
pub async fn open(config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    make_directory(config)?;
    Ok(match &config.database_url {
        Some(url) => Arc::new(Deadline(postgres::Backend::open(url.expose()).await?)),
        None => Arc::new(sqlite::Backend::open(&config.sqlite_path()).await?),
    })
}

/// The same for a gateway that is about to serve: a database that was put here from elsewhere gets new
/// epochs first.
pub async fn open_to_serve(config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    make_directory(config)?;
    Ok(match &config.database_url {
        Some(url) => Arc::new(Deadline(
            postgres::Backend::open_to_serve(url.expose()).await?,
        )),
        None => Arc::new(sqlite::Backend::open_to_serve(&config.sqlite_path()).await?),
    })
}

/// The data directory holds keys and password hashes: it is its owner's alone from the first moment.
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
