//! Server identity: checks at start and on every new connection that the server is still the same.
//!
//! A server can be replaced under a running gateway: a standby without the last commits takes over,
//! or a dump is restored. Offsets would then be used twice. So each connection is checked before it
//! enters the pool.

use sqlx::postgres::PgConnection;
use tokio_util::sync::CancellationToken;

use super::{RenewedEpochs, sql};

/// Fingerprint of a database: the server, its timeline (a new one begins with a point-in-time
/// recovery or a failover), the database, and the table's oid.
const FINGERPRINT: &str = "select concat_ws('/',
    (select system_identifier from pg_control_system()),
    left(pg_walfile_name(pg_current_wal_lsn()), 8),
    (select oid from pg_database where datname = current_database()),
    cast('sessions' as regclass)::oid)";
/// The part of it that every role may read.
const FINGERPRINT_WITHOUT_SERVER: &str = "select concat_ws('/',
    (select oid from pg_database where datname = current_database()),
    cast('sessions' as regclass)::oid)";
/// Advisory lock held while epochs are renewed; an arbitrary unique number.
const CLAIM_LOCK: i64 = 0x7377_6974_6368_686f;

#[derive(Clone, Debug)]
pub(super) struct ServerIdentity {
    query: &'static str,
    fingerprint: String,
    /// Cancelled when a connection reached another database.
    displaced: CancellationToken,
}

impl ServerIdentity {
    pub(super) async fn find(connection: &mut PgConnection) -> sqlx::Result<Self> {
        let (query, fingerprint) = match fetch(connection, FINGERPRINT).await {
            Err(sqlx::Error::Database(error)) if is_permission_error(error.code().as_deref()) => (
                FINGERPRINT_WITHOUT_SERVER,
                fetch(connection, FINGERPRINT_WITHOUT_SERVER).await?,
            ),
            fingerprint => (FINGERPRINT, fingerprint?),
        };
        Ok(Self {
            query,
            fingerprint,
            displaced: CancellationToken::new(),
        })
    }

    /// Gives a restored or failed-over database new epochs before a gateway serves from it.
    pub(super) async fn claim(
        &self,
        connection: &mut PgConnection,
    ) -> sqlx::Result<Option<RenewedEpochs>> {
        // Two gateways starting at once must not both renew the epochs. An advisory lock, so that
        // only starting gateways wait.
        sqlx::query("set statement_timeout = '60s'")
            .execute(&mut *connection)
            .await?;
        sqlx::query("select pg_advisory_lock($1)")
            .bind(CLAIM_LOCK)
            .execute(&mut *connection)
            .await?;
        sqlx::query("reset statement_timeout")
            .execute(&mut *connection)
            .await?;
        let renewed = match sql::restore_detection::recorded_fingerprint(connection).await? {
            Some(previous) if previous == self.fingerprint => return Ok(None),
            Some(previous) => Some(RenewedEpochs {
                previous,
                sessions: sql::restore_detection::renew_epochs(connection).await?,
            }),
            // No gateway has served from it yet.
            None => None,
        };
        // Last: an interrupted renewal is repeated.
        sql::restore_detection::record_fingerprint(connection, &self.fingerprint).await?;
        Ok(renewed)
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Fails if a new connection leads to another database than at start.
    pub(super) async fn check(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        let other = || sqlx::Error::Protocol("this is another database than at the start".into());
        if self.displaced.is_cancelled() {
            return Err(other());
        }
        // Fails on a standby, so none is used.
        let found = fetch(connection, self.query).await?;
        if found == self.fingerprint {
            return Ok(());
        }
        tracing::debug!(
            found,
            expected = self.fingerprint,
            "a new connection leads to another database"
        );
        self.displaced.cancel();
        Err(other())
    }

    /// Resolves when a connection reached another database.
    pub(super) async fn displaced(&self) {
        self.displaced.cancelled().await;
    }
}

async fn fetch(connection: &mut PgConnection, query: &'static str) -> sqlx::Result<String> {
    sqlx::query_scalar(query).fetch_one(connection).await
}

/// A missing permission or function, not a transient failure.
fn is_permission_error(code: Option<&str>) -> bool {
    matches!(code, Some("42501" | "42883" | "0A000"))
}
