//! One gateway: a second one on the same Postgres database is kept from serving.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::postgres_server::PostgresServer;
use super::{is_refused, is_served_again};
use crate::actors::{Gateway, Settings, Storage, program};
use crate::ports::free_port;
use crate::postgres;

async fn gateway_on(server: &PostgresServer) -> Gateway {
    let storage = Storage::Postgres(server.url());
    Settings::new().with_storage(storage).start().await
}

/// Tries to serve from a database, in a directory of its own; returns its exit code and its words.
fn serves(url: &str) -> (Option<i32>, String) {
    let dir = tempfile::tempdir().unwrap();
    let variables = [
        ("SWITCHBOARD__DATA__DATABASE_URL", url),
        ("SWITCHBOARD__SERVER__LISTEN", "127.0.0.1:0"),
    ];
    let output = program(dir.path(), &["serve"], &variables);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gateway_on_one_database_does_not_start_and_the_first_ones_runs_go_on() {
    let server = PostgresServer::start().await;
    let gateway = gateway_on(&server).await;
    let page = gateway.logged_in("root").await;
    let mut member = page.enters("").await;
    member.prompts("/stream 1000000 10").await;
    while member.events.len() < 20 {
        member.receives().await.unwrap();
    }
    let url = server.url();
    let second = tokio::task::spawn_blocking(move || serves(&url));
    let (code, words) = second.await.unwrap();
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("another gateway serves from it"), "{words}");
    let seen = member.events.len();
    while member.events.len() < seen + 20 {
        member.receives().await.unwrap();
    }
    member.sends("CANCEL_TASK", json!({})).await;
    assert_eq!(member.sees_run_end().await["status"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_can_follow_the_one_before_at_once() {
    let server = PostgresServer::start().await;
    let mut gateway = gateway_on(&server).await;
    for signal in ["-KILL", "-TERM"] {
        gateway.signal(signal);
        let started = Instant::now();
        gateway.restart();
        assert!(
            started.elapsed() < Duration::from_secs(3),
            "{signal}: {:?}",
            started.elapsed()
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_lost_its_lock_writes_nothing_until_it_has_it_again() {
    let server = PostgresServer::start().await;
    let gateway = gateway_on(&server).await;
    let page = gateway.logged_in("root").await;
    let mut member = page.enters("").await;
    member.prompts("/echo before").await;
    member.sees_run_end().await;
    let mut other = PgConnection::connect(&server.url()).await.unwrap();
    // Another holder of the same lock, as a second gateway would be.
    let (classid, objid, pid): (i64, i64, i32) = sqlx::query_as(
        "select classid::bigint, objid::bigint, pid from pg_locks where locktype = 'advisory'",
    )
    .fetch_one(&mut other)
    .await
    .unwrap();
    let lock = (classid << 32) | objid;
    let taken = "select pg_terminate_backend($1), pg_advisory_lock($2)";
    sqlx::query(taken)
        .bind(pid)
        .bind(lock)
        .execute(&mut other)
        .await
        .unwrap();
    let lost = Instant::now();
    while page.gets("/readyz").await.status == 200 {
        assert!(lost.elapsed() < Duration::from_secs(2), "it still writes");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    is_refused(&mut member, &["STORAGE_UNAVAILABLE"]).await;
    let mut visitor = gateway.anonymous();
    let refused = visitor.logs_in("root", crate::actors::PASSWORD).await;
    refused.refuses(503, "STORAGE_UNAVAILABLE");
    let released = sqlx::query("select pg_advisory_unlock($1)").bind(lock);
    released.execute(&mut other).await.unwrap();
    is_served_again(&mut member, Instant::now()).await;
    let log = gateway.log();
    assert!(log.contains("lost its lock on the database"), "{log}");
    assert!(log.contains("has its lock on the database again"), "{log}");
}

/// A running `PgBouncer`; ended when dropped.
struct PgBouncer {
    port: u16,
    process: Child,
    _dir: TempDir,
}

impl PgBouncer {
    async fn before(server: &PostgresServer, pool_mode: &str) -> Self {
        let (port, dir) = (free_port(), tempfile::tempdir().unwrap());
        let file = dir.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {pool_mode}\n\
             ignore_startup_parameters = options,extra_float_digits\n",
            server.port()
        );
        std::fs::write(&file, text).unwrap();
        // Readable for the user that it runs as.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let process = postgres::as_server_user(Path::new("/usr/sbin/pgbouncer"))
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self {
            port,
            process,
            _dir: dir,
        }
    }

    fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_shares_connections_is_refused_and_one_that_does_not_is_used() {
    let server = PostgresServer::start().await;
    let shared = PgBouncer::before(&server, "transaction").await;
    let url = shared.url();
    let refused = tokio::task::spawn_blocking(move || serves(&url));
    let (code, words) = refused.await.unwrap();
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("pool_mode = session"), "{words}");
    drop(shared);
    let own = PgBouncer::before(&server, "session").await;
    let settings = Settings::new().with_storage(Storage::Postgres(own.url()));
    let gateway = settings.start().await;
    let mut member = gateway.logged_in("root").await.enters("").await;
    member.prompts("/echo through a pooler").await;
    assert_eq!(member.sees_run_end().await["status"], "completed");
}
