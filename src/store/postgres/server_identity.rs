//! Which database this is, at start and with every new connection.
//!
//! A server can become another one under a running program: a standby takes over that lacks the last
//! commits, a dump is restored. Offsets would be given twice then. So every connection is asked, before
//! anybody gets it, whether it leads to the database that was there at the start.

use sqlx::postgres::PgConnection;
use tokio_util::sync::CancellationToken;

use super::{Renewed, sql};

/// What a database is known by: the server, its time line (a new one begins when it is set back to an
/// earlier moment, or when a standby takes over), the database in it, and the table as it was made there.
const HERE: &str = "select concat_ws('/',
    (select system_identifier from pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (select oid from pg_database where datname = current_database()),
    cast('sessions' as regclass)::oid)";
/// The same where a role may not ask for all of it.
const HERE_AT_LEAST: &str = "select concat_ws('/',
    (select oid from pg_database where datname = current_database()),
    cast('sessions' as regclass)::oid)";
/// Whoever begins to serve has this lock while epochs are renewed; any number that nobody else uses.
const TURN: i64 = 0x7377_6974_6368_686f;

/// What was found at the start.
#[derive(Clone, Debug)]
pub(super) struct Home {
    question: &'static str,
    here: String,
    /// It is not what is found now.
    displaced: CancellationToken,
}

impl Home {
    /// Looks where a connection leads.
    pub(super) async fn find(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let (question, here) = match ask(connection, HERE).await {
            Err(sqlx::Error::Database(error)) if may_not_ask(error.code().as_deref()) => {
                (HERE_AT_LEAST, ask(connection, HERE_AT_LEAST).await?)
            }
            here => (HERE, here?),
        };
        Ok(Self {
            question,
            here,
            displaced: CancellationToken::new(),
        })
    }

    /// A database that was put here from elsewhere gets new epochs, before anybody serves from it.
    pub(super) async fn settle(
        &self,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Option<Renewed>> {
        // One after the other: two that open it at once must not both begin the journals anew. A lock on
        // no row, so that only those wait who begin to serve.
        sqlx::query("set statement_timeout = '60s'")
            .execute(&mut *connection)
            .await?;
        sqlx::query("select pg_advisory_lock($1)")
            .bind(TURN)
            .execute(&mut *connection)
            .await?;
        sqlx::query("reset statement_timeout")
            .execute(&mut *connection)
            .await?;
        let renewed = match sql::home::known(connection).await? {
            Some(from) if from == self.here => return Ok(None),
            Some(from) => Some(Renewed {
                from,
                sessions: sql::home::renew_epochs(connection).await?,
            }),
            // Nobody has served from it since there is this table.
            None => None,
        };
        // Last: what is broken off before is begun again.
        sql::home::settle(connection, &self.here).await?;
        Ok(renewed)
    }

    /// Where it is at home.
    pub(super) fn here(&self) -> &str {
        &self.here
    }

    /// Does a new connection lead to the database that was there at the start?
    pub(super) async fn check(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let other = || sqlx::Error::Protocol("this is another database than at the start".into());
        if self.displaced.is_cancelled() {
            return Err(other());
        }
        // A standby does not answer this, and so is not used.
        let found = ask(connection, self.question).await?;
        if found == self.here {
            return Ok(());
        }
        tracing::debug!(found, expected = self.here, "the database is another one");
        self.displaced.cancel();
        Err(other())
    }

    /// Returns when some connection has led elsewhere.
    pub(super) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }
}

async fn ask(connection: &mut PgConnection, question: &'static str) -> sqlx::Result<String> {
    sqlx::query_scalar(question).fetch_one(connection).await
}

/// Is it for want of a right or of a function, and not something that passes?
fn may_not_ask(code: Option<&str>) -> bool {
    matches!(code, Some("42501" | "42883" | "0A000"))
}
