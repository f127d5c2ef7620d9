//! Restore detection: detects a database that was restored, copied or failed over, and gives it new
//! epochs.
//!
//! A database records a fingerprint of where a gateway last served from it. If the fingerprint
//! differs, the database was restored or moved: its journals get new epochs, because offsets may
//! now mean other events than clients have seen, and it gets a new
//! [`StoreId`](crate::domain::id::StoreId), so that no data directory takes it for the former one.
//! Only a gateway that starts to serve does that; commands just read.

/// Fingerprint of an SQLite database whose journals continue in Postgres.
pub(super) const MOVED: &str = "moved";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Serve,
    /// A command, possibly beside a running gateway.
    Command,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct RenewedEpochs {
    pub(super) previous: String,
    /// Number of journals.
    pub(super) sessions: u64,
}

pub(super) fn log_renewal(location: &str, renewed: Option<RenewedEpochs>) {
    let Some(RenewedEpochs { previous, sessions }) = renewed else {
        return;
    };
    if previous == MOVED {
        tracing::warn!(
            database = location,
            sessions,
            "this database was moved to Postgres and lacks later events: journals have a new epoch, \
             returning clients get the full state. Is data.database_url missing?"
        );
    } else {
        tracing::warn!(
            database = location,
            sessions,
            "this database was restored, or a standby took over: journals have a new epoch, \
             returning clients get the full state"
        );
    }
}
