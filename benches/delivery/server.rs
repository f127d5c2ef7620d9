//! A server under measurement, in a process of its own: the gateway, another build of it, or the bare one.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::bare;

/// Which server is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gateway,
    /// The gateway binary that `SWITCHBOARD_BENCH_BASELINE` names.
    Baseline,
    Bare,
}

/// The other gateway binary, if there is one to compare with.
pub(crate) fn baseline() -> Option<PathBuf> {
    std::env::var_os("SWITCHBOARD_BENCH_BASELINE").map(PathBuf::from)
}

/// A running server; dropping it ends it and removes what it stored.
pub(crate) struct Server {
    child: Child,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// Access token; the bare server needs none.
    pub(crate) token: Option<String>,
    _dir: Option<TempDir>,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        match kind {
            Kind::Gateway | Kind::Baseline => Self::gateway(kind, new_dir(kind)),
            Kind::Bare => {
                let this = std::env::current_exe().unwrap();
                let (child, address) = spawn(Command::new(this).arg(bare::ARGUMENT));
                Self {
                    child,
                    kind,
                    address,
                    token: None,
                    _dir: None,
                }
            }
        }
    }

    /// A gateway on an existing data directory.
    pub(crate) fn gateway(kind: Kind, dir: TempDir) -> Self {
        let (child, address) =
            spawn(command(kind, dir.path()).args(["serve", "--listen", "127.0.0.1:0"]));
        let created = command(kind, dir.path())
            .args(["token", "create", "--user", "root", "--ttl", "1h"])
            .output()
            .unwrap();
        let token = String::from_utf8(created.stdout).unwrap();
        Self {
            child,
            kind,
            address,
            token: Some(token.trim().to_owned()),
            _dir: Some(dir),
        }
    }

    pub(crate) fn resident_kib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// CPU time of all its threads, user and system.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// On the disk of the build: an in-memory file system would make durability free.
pub(crate) fn empty_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A directory with a database and an account. Not created by the measured server: memory freed after
/// hashing a password would serve the first connections and not be counted.
pub(crate) fn new_dir(kind: Kind) -> TempDir {
    let dir = empty_dir();
    let made = command(kind, dir.path())
        .args(["user", "add", "root"])
        .output();
    assert!(made.unwrap().status.success(), "no account was created");
    dir
}

/// The gateway's program on a data directory.
fn command(kind: Kind, dir: &Path) -> Command {
    let current = PathBuf::from(env!("CARGO_BIN_EXE_switchboard"));
    let program = baseline().filter(|_| kind == Kind::Baseline);
    let mut command = Command::new(program.unwrap_or(current));
    command
        .env("SWITCHBOARD__DATA__DIR", dir)
        .env("SWITCHBOARD__LIMITS__MESSAGES_PER_MINUTE", "100000")
        .env("SWITCHBOARD__LOG__LEVEL", "warn");
    command
}

/// Starts a server and waits for the line with its address.
fn spawn(command: &mut Command) -> (Child, SocketAddr) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut banner = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !banner.contains("  open ") {
        let read = lines.read_line(&mut banner).unwrap();
        assert!(read > 0, "a server did not start");
    }
    let page = banner.rsplit("http://").next().unwrap();
    let address = page.split(['/', '\n']).next().unwrap().parse().unwrap();
    (child, address)
}
