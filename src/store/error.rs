//! Storage errors: failed statements and failed opens.

use std::path::PathBuf;

/// A failed statement; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Unreachable, full or busy: retry later.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// A bug or a damaged database: retrying does not help.
    #[error("the database refused: {0}")]
    Fault(#[source] sqlx::Error),
}

impl StoreError {
    /// The call timed out.
    pub(crate) fn no_answer() -> Self {
        let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
        Self::Unavailable(silent.into())
    }
}

/// Lets `?` turn a driver error into the error of each operation.
macro_rules! from_sqlx {
    ($($error:path),* $(,)?) => {
        $(impl From<sqlx::Error> for $error {
            fn from(error: sqlx::Error) -> Self {
                StoreError::from(error).into()
            }
        })*
    };
}

from_sqlx!(
    super::AddError,
    super::BackupError,
    super::BranchError,
    super::ChangeUserError,
    super::ClaimError,
    super::CreateUserError,
    super::RefreshError,
    super::RestoreError,
    super::SetUpError,
    super::ShareError,
    super::StartLoginError,
);

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let away = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(database) => {
                database.code().is_some_and(|code| is_transient(&code))
            }
            _ => false,
        };
        if away {
            Self::Unavailable(error)
        } else {
            Self::Fault(error)
        }
    }
}

/// SQLite: busy, locked, read-only, I/O error, full, cannot open. Postgres: connection, conflict between
/// transactions, resources, locks, operator intervention.
fn is_transient(code: &str) -> bool {
    match code.parse::<u32>() {
        Ok(extended) if code.len() < 5 => matches!(extended & 0xff, 5 | 6 | 8 | 10 | 13 | 14),
        _ => ["08", "40", "53", "55", "57"]
            .iter()
            .any(|class| code.starts_with(class)),
    }
}

/// A column holds a value that this version does not know.
#[derive(Debug, thiserror::Error)]
#[error("an unknown word")]
pub struct UnknownValue;

/// The database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be created or read.
    #[error("cannot use the data directory {path}: {source}", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database cannot be reached or read.
    #[error("cannot open the database {location}: {source}")]
    Database {
        /// The database, without its password.
        location: String,
        /// Why.
        source: sqlx::Error,
    },
    /// A gateway cannot serve from it.
    #[error("cannot serve from {location}: {why}")]
    NotServed {
        /// The database, without its password.
        location: String,
        /// Why.
        why: String,
    },
    /// A restore was interrupted and must be repeated.
    #[error(
        "a restore was interrupted here, so {location} is not opened: run `switchboard restore FILE \
         --replace` again, with this or another backup (what was there is kept in `replaced-…`)"
    )]
    Unfinished {
        /// The database.
        location: String,
    },
    /// A newer version migrated the schema.
    #[error(
        "the database {location} has schema version {found}, this program knows versions up to {known}: \
         start the newer program that made it, or restore a backup from before the upgrade"
    )]
    Newer {
        /// The database, without its password.
        location: String,
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// A migration failed and was rolled back.
    #[error("cannot bring the schema of {location} up to date: {source}")]
    Migration {
        /// The database, without its password.
        location: String,
        /// Why.
        source: sqlx::migrate::MigrateError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_lost_server_count_as_unavailable() {
        for code in [
            "5", "13", "778", "08006", "57P01", "53300", "40P01", "55P03", "57014",
        ] {
            assert!(is_transient(code), "{code}");
        }
        for code in ["1", "19", "2067", "23505", "42601"] {
            assert!(!is_transient(code), "{code}");
        }
    }
}
