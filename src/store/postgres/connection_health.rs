//! Connection health: finds connections that the network has lost, on both ends.
//!
//! A firewall or a proxy can forget a connection without closing it. The server then holds the locks of
//! its transaction until it notices, by default after two hours; so every connection tells the server to
//! end it soon. On our end a lost connection never answers: it is pinged before it is used again, with a
//! timeout, and after the first one that was lost all older ones are dropped without a ping.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use sqlx::pool::PoolConnectionMetadata;
use sqlx::postgres::PgConnection;

/// How long an idle connection may take to answer a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// A connection that was used this recently is not pinged.
const FRESH: Duration = Duration::from_secs(1);

/// Settings by which the server finds a lost client, and their values. Versions that lack one ignore it.
/// A transaction between two statements is ended first: only there does a lost client hold locks that no
/// statement timeout releases.
const SERVER_SETTINGS: &str = "select set_config(name, wish.value, false)
    from pg_settings join (values
        ('idle_in_transaction_session_timeout', '3s'),
        ('tcp_user_timeout', '5s'),
        ('tcp_keepalives_idle', '10'),
        ('tcp_keepalives_interval', '5'),
        ('tcp_keepalives_count', '3'),
        ('client_connection_check_interval', '2s')) as wish (setting, value)
    on wish.setting = name";

/// Lets the server end this connection and its transaction soon after its client was lost.
pub(super) async fn apply_server_settings(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query(SERVER_SETTINGS).execute(connection).await?;
    Ok(())
}

/// The health of a pool's connections. Clones share it.
#[derive(Clone)]
pub(super) struct ConnectionHealth {
    since: Instant,
    /// Milliseconds after `since` at which a connection was last found lost.
    lost_at_ms: Arc<AtomicU64>,
}

impl ConnectionHealth {
    pub(super) fn new() -> Self {
        Self {
            since: Instant::now(),
            lost_at_ms: Arc::new(AtomicU64::new(0)),
        }
    }

    /// True if the idle connection can be used.
    pub(super) async fn check(
        &self,
        connection: &mut PgConnection,
        metadata: PoolConnectionMetadata,
    ) -> sqlx::Result<bool> {
        if self.is_suspect(metadata.age) {
            return Err(lost());
        }
        if metadata.idle_for < FRESH {
            return Ok(true);
        }
        self.ping(connection).await
    }

    /// True if the connection answers. One with an abandoned statement to a silent server would occupy
    /// the pool until the kernel gives up, a quarter of an hour later.
    pub(super) async fn ping(&self, connection: &mut PgConnection) -> sqlx::Result<bool> {
        if let Ok(answered) = tokio::time::timeout(PING_TIMEOUT, connection.ping()).await {
            return answered.map(|()| true);
        }
        let now = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.lost_at_ms.fetch_max(now, Ordering::Relaxed);
        Err(lost())
    }

    /// True if a connection was lost after this one was made.
    fn is_suspect(&self, age: Duration) -> bool {
        let made = self.since.elapsed().saturating_sub(age);
        made < Duration::from_millis(self.lost_at_ms.load(Ordering::Relaxed))
    }
}

fn lost() -> sqlx::Error {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
