//! Postgres: a real server, started by the first test that needs one and shared by all.
//!
//! Tests run in processes of their own, so the server belongs to none of them: each holds a shared
//! lock while it uses the server, and a small watcher stops the server once the lock was free for a few
//! seconds, however the tests ended. Every test gets a database of its own.

use std::fs::Permissions;
use std::fs::{File, OpenOptions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};

use crate::ports::free_port;

const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A database of one test; the server stays up at least until this is dropped.
pub(crate) struct Database {
    pub(crate) url: String,
    _in_use: File,
}

impl Database {
    /// Creates an empty database.
    pub(crate) async fn create() -> Self {
        let (port, in_use) = tokio::task::spawn_blocking(server)
            .await
            .expect("starting Postgres does not panic");
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        let server = format!("postgres://postgres@127.0.0.1:{port}");
        let mut connection = connect(&format!("{server}/postgres")).await;
        sqlx::query(sqlx::AssertSqlSafe(format!("create database {name}")))
            .execute(&mut connection)
            .await
            .expect("a database can be made");
        Self {
            url: format!("{server}/{name}"),
            _in_use: in_use,
        }
    }
}

/// A server that listens may still be starting up.
pub(crate) async fn connect(url: &str) -> PgConnection {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        match PgConnection::connect(url).await {
            Ok(connection) => return connection,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The port of the running server, and the lock that keeps it running.
fn server() -> (u16, File) {
    let dir = std::env::temp_dir().join(format!("switchboard-postgres-{}", user_id()));
    std::fs::create_dir_all(&dir).expect("a directory for Postgres");
    std::fs::set_permissions(&dir, Permissions::from_mode(0o777)).ok();
    let in_use = lock_file(&dir, "in-use.lock");
    let starting = lock_file(&dir, "starting.lock");
    starting.lock().expect("one test at a time starts Postgres");
    in_use.lock_shared().expect("the server is in use");
    let port = running(&dir).unwrap_or_else(|| start(&dir));
    (port, in_use)
}

fn lock_file(dir: &Path, name: &str) -> File {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(dir.join(name))
        .expect("a lock file")
}

fn running(dir: &Path) -> Option<u16> {
    let port = std::fs::read_to_string(dir.join("port"))
        .ok()?
        .parse()
        .ok()?;
    TcpStream::connect(("127.0.0.1", port)).ok().map(|_| port)
}

fn start(dir: &Path) -> u16 {
    make(dir);
    let port = free_port();
    #[expect(
        clippy::zombie_processes,
        reason = "the server outlives this process; the watcher ends it"
    )]
    let server = serve(dir, port);
    watch(dir, server.id());
    std::fs::write(dir.join("port"), port.to_string()).expect("the port is written down");
    port
}

/// Initialises a data directory that `postgres` may enter.
pub(crate) fn make(dir: &Path) {
    std::fs::set_permissions(dir, Permissions::from_mode(0o777)).ok();
    let data = dir.join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data).expect("the old data can be removed");
    }
    succeeds(
        as_postgres("initdb")
            .args([
                "--auth=trust",
                "--username=postgres",
                "--encoding=UTF8",
                "--no-sync",
                "-D",
            ])
            .arg(&data),
    );
}

/// Copies a running server's data directory for a standby.
#[allow(dead_code, reason = "not every test program loses a server")]
pub(crate) fn copy(port: u16, dir: &Path) {
    std::fs::set_permissions(dir, Permissions::from_mode(0o777)).ok();
    let port = port.to_string();
    succeeds(
        as_postgres("pg_basebackup")
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port])
            .args([
                "--write-recovery-conf",
                "--checkpoint=fast",
                "--no-sync",
                "-D",
            ])
            .arg(dir.join("data")),
    );
}

/// Promotes a standby, and waits until it is writable.
#[allow(dead_code, reason = "not every test program loses a server")]
pub(crate) fn promote(dir: &Path) {
    succeeds(
        as_postgres("pg_ctl")
            .args(["promote", "--wait", "-D"])
            .arg(dir.join("data")),
    );
}

fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Starts a server on a data directory, and waits until it listens.
pub(crate) fn serve(dir: &Path, port: u16) -> Child {
    let log = File::create(dir.join("log")).expect("a log file");
    let server = as_postgres("postgres")
        .arg("-D")
        .arg(dir.join("data"))
        .args(["-p", &port.to_string()])
        .args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
        ])
        .args(["-c", "max_connections=400", "-c", "fsync=off"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .spawn()
        .expect("postgres starts");
    let deadline = Instant::now() + START_TIMEOUT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            Instant::now() < deadline,
            "Postgres does not listen; see {}/log",
            dir.display()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    server
}

/// Stops the server once it was unused for a while.
fn watch(dir: &Path, pid: u32) {
    let script = format!(
        "while sleep 5; do flock -xn in-use.lock -c \
         'kill -INT {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.1; done' && exit; done"
    );
    #[expect(
        clippy::zombie_processes,
        reason = "the watcher outlives this process and ends by itself"
    )]
    let _watcher = Command::new("setsid")
        .args(["sh", "-c", &script])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the watcher starts");
}

fn as_postgres(program: &str) -> Command {
    as_server_user(&bin_dir().join(program))
}

/// Postgres and its poolers refuse to run as root.
pub(crate) fn as_server_user(program: &Path) -> Command {
    if user_id() != 0 {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program)
        .current_dir("/tmp");
    command
}

/// Debian keeps one directory per major version.
pub(crate) fn bin_dir() -> PathBuf {
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| {
            entries
                .flatten()
                .map(|entry| entry.path().join("bin"))
                .collect()
        })
        .unwrap_or_default();
    versions.retain(|dir| dir.join("initdb").exists());
    versions.sort();
    versions.pop().expect(
        "Postgres is not installed: ./scripts/test installs it (apt-get install postgresql)",
    )
}

fn user_id() -> u32 {
    rustix::process::getuid().as_raw()
}
