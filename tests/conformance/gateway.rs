//! Gateway: a process with an echo route.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running gateway; killed when dropped.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
    _dir: TempDir,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_switchboard"))
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir.path().join("data"))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let greeting = BufReader::new(child.stdout.take().unwrap());
        let address = greeting
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.trim().strip_prefix("open")?.trim().to_owned()))
            .expect("it says where it listens");
        let address = address
            .strip_prefix("http://")
            .and_then(|url| url.trim_end_matches('/').parse().ok())
            .expect("an address");
        Self {
            child,
            address,
            _dir: dir,
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
