//! Where a database is at home.
//!
//! A database remembers where a gateway was last started on it. One that finds itself elsewhere was put
//! there: its journals get new epochs, because their offsets may come to mean something else than clients
//! have seen, and it gets a new identity, so that no data directory takes it for the one it was. Only
//! whoever begins to serve does that; a command just looks.

/// The home of an SQLite database that was moved to Postgres: the other one goes on from there.
pub(super) const MOVED: &str = "moved";

/// What a database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A gateway begins to serve from it.
    Serve,
    /// A command looks or changes something, perhaps beside a gateway.
    Command,
}

/// Journals got new epochs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Renewed {
    /// Where the database was at home before.
    pub(super) from: String,
    /// How many journals.
    pub(super) sessions: u64,
}

/// Tells an operator once, when it happens.
pub(super) fn tell(place: &str, renewed: Option<Renewed>) {
    let Some(Renewed { from, sessions }) = renewed else {
        return;
    };
    if from == MOVED {
        tracing::warn!(
            database = place,
            sessions,
            "this database was moved to Postgres and what happened there since is not in it: journals \
             have a new epoch, clients that come back get the state. Is data.database_url missing?"
        );
    } else {
        tracing::warn!(
            database = place,
            sessions,
            "this database was restored, or a standby took over: journals have a new epoch, clients \
             that come back get the state"
        );
    }
}
