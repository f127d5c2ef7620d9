//! What can go wrong with storage as such.

use std::path::PathBuf;

/// A statement could not be carried out; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is away, full or too busy: worth another try.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// The database answered something that should not be possible.
    #[error("the database refused: {0}")]
    Fault(#[source] sqlx::Error),
}

impl StoreError {
    /// The database said nothing for longer than anybody can wait.
    pub(crate) fn no_answer() -> Self {
        let silent = std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
        Self::Unavailable(silent.into())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let away = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => true,
            sqlx::Error::Database(database) => {
                database.code().is_some_and(|code| is_passing(&code))
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
fn is_passing(code: &str) -> bool {
    match code.parse::<u32>() {
        Ok(extended) if code.len() < 5 => matches!(extended & 0xff, 5 | 6 | 8 | 10 | 13 | 14),
        _ => ["08", "40", "53", "55", "57"]
            .iter()
            .any(|class| code.starts_with(class)),
    }
}

/// A column holds a word that this program does not know.
#[derive(Debug, thiserror::Error)]
#[error("an unknown word")]
pub struct StoredWord;

/// The database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be made or entered.
    #[error("cannot use the data directory {path}: {source}", path = path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The database cannot be reached or read.
    #[error("cannot open the database {place}: {source}")]
    Database {
        /// Which one, without its password.
        place: String,
        /// Why.
        source: sqlx::Error,
    },
    /// Another database was about to take its place.
    #[error(
        "a restore was interrupted here, so {place} is not opened: run `switchboard restore FILE \
         --replace` again, with this or another backup (what was there is kept in `replaced-…`)"
    )]
    Unfinished {
        /// Which one.
        place: String,
    },
    /// The database was used by a newer program.
    #[error(
        "the database {place} has schema version {found}, this program knows versions up to {known}: \
         start the newer program that made it, or restore a backup from before the upgrade"
    )]
    Newer {
        /// Which one, without its password.
        place: String,
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// A migration failed; the schema is as it was before it.
    #[error("cannot bring the schema of {place} up to date: {source}")]
    Migration {
        /// Which one, without its password.
        place: String,
        /// Why.
        source: sqlx::migrate::MigrateError,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_and_a_lost_server_are_worth_another_try() {
        for code in [
            "5", "13", "778", "08006", "57P01", "53300", "40P01", "55P03", "57014",
        ] {
            assert!(is_passing(code), "{code}");
        }
        for code in ["1", "19", "2067", "23505", "42601"] {
            assert!(!is_passing(code), "{code}");
        }
    }
}
