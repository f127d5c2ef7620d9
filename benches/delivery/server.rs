//! A server under measurement: the gateway or the bare one, in a process of its own.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::bare;

/// Which of the two is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Gateway,
    Bare,
}

/// A running server; dropping it ends it and removes what it stored.
pub(crate) struct Server {
    child: Child,
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    /// What proves to the gateway who connects; the bare server asks nobody.
    pub(crate) token: Option<String>,
    _dir: Option<TempDir>,
}

impl Server {
    pub(crate) fn start(kind: Kind) -> Self {
        match kind {
            Kind::Gateway => Self::gateway(new_dir()),
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

    /// A gateway with what a directory holds.
    pub(crate) fn gateway(dir: TempDir) -> Self {
        let (child, address) =
            spawn(command(dir.path()).args(["serve", "--listen", "127.0.0.1:0"]));
        let created = command(dir.path())
            .args(["token", "create", "--user", "root", "--ttl", "1h"])
            .output()
            .unwrap();
        let token = String::from_utf8(created.stdout).unwrap();
        Self {
            child,
            kind: Kind::Gateway,
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

    /// What all its threads have used so far, in the kernel too.
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

/// On the disk that the build is on: a file system in memory would make durability free.
pub(crate) fn empty_dir() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A directory with a database and an account. Not made by the server itself: what hashing a
/// password leaves behind in its memory would be used for the first connections, and not be counted.
pub(crate) fn new_dir() -> TempDir {
    let dir = empty_dir();
    let made = command(dir.path()).args(["user", "add", "root"]).output();
    assert!(made.unwrap().status.success(), "no account was made");
    dir
}

/// The gateway's program, working in a directory.
fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
    command
        .env("SWITCHBOARD__DATA__DIR", dir)
        .env("SWITCHBOARD__LIMITS__MESSAGES_PER_MINUTE", "100000")
        .env("SWITCHBOARD__LOG__LEVEL", "warn");
    command
}

/// Starts a server and waits for the line that says where it listens.
fn spawn(command: &mut Command) -> (Child, SocketAddr) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut greeting = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    while !greeting.contains("  open ") {
        let read = lines.read_line(&mut greeting).unwrap();
        assert!(read > 0, "a server did not start");
    }
    let page = greeting.rsplit("http://").next().unwrap();
    let address = page.split(['/', '\n']).next().unwrap().parse().unwrap();
    (child, address)
}
