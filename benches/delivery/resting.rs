//! Databases full of idle sessions.

use std::fs::File;
use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, Executor as _};
use tempfile::TempDir;

use crate::server::{Kind, Server, empty_dir, new_dir};

const FILE: &str = "switchboard.db";

/// Times in the past and ids that sort before new ones, like those of old sessions.
const SESSIONS: &str = "insert into sessions
        (id, owner_id, agent, epoch, head, compacted, messages, last_prompt, created_at, updated_at)
    with recursive number (n) as (values (1) union all select n + 1 from number where n < $1)
    select printf('ses_0190%08x70008000%012x', n, n), (select id from users), 'demo',
        printf('epo_0190%08x70008000%012x', n, n), 20, 20, 2, 'What did we say?', 1700000000000 + n, 1700000000000 + n
    from number";
const EVENTS: &str = "insert into journal_events (session_id, \"offset\", at, body)
    with recursive number (n) as (values (1) union all select n + 1 from number where n < 20)
    select id, n, created_at + n, cast('{\"kind\":\"title_changed\",\"title\":\"one word\"}' as blob) from sessions, number order by id, n";
const SNAPSHOTS: &str = "insert into session_snapshots (session_id, \"offset\", body)
    select id, 20, zeroblob(300) from sessions order by id";

/// A database with idle sessions, copied for each run.
pub(crate) struct IdleSessions(TempDir);

impl IdleSessions {
    pub(crate) async fn prepare(count: u32) -> Self {
        let dir = new_dir(Kind::Gateway);
        let options = SqliteConnectOptions::new()
            .filename(dir.path().join(FILE))
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off)
            .pragma("cache_size", "-262144");
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let sessions = sqlx::query(SESSIONS).bind(count);
        connection.execute(sessions).await.unwrap();
        connection.execute(EVENTS).await.unwrap();
        connection.execute(SNAPSHOTS).await.unwrap();
        connection.close().await.unwrap();
        Self(dir)
    }

    /// A gateway on a copy of it.
    pub(crate) fn gateway(&self, kind: Kind) -> Server {
        let dir = empty_dir();
        let copy = dir.path().join(FILE);
        std::fs::copy(self.0.path().join(FILE), &copy).unwrap();
        sync(&copy);
        Server::gateway(kind, dir)
    }
}

/// Flushes the copy, so that its write-back does not disturb the measurement.
fn sync(file: &Path) {
    File::open(file).unwrap().sync_all().unwrap();
}
