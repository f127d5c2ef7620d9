//! Postgres server: one test's own server, which can freeze, stop, restart and fail over.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ports::free_port;
use crate::postgres;

/// A running server; killed when dropped.
pub(super) struct PostgresServer {
    dir: TempDir,
    port: u16,
    process: Child,
}

impl PostgresServer {
    pub(super) async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        postgres::make(dir.path());
        let port = free_port();
        let process = postgres::serve(dir.path(), port);
        let server = Self { dir, port, process };
        server.answers().await;
        server
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Stops answering; its connections stay open.
    pub(super) fn freezes(&self) {
        self.signal_all(Signal::STOP);
    }

    pub(super) fn thaws(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Shuts down as for an upgrade: connections are closed, new ones refused.
    pub(super) fn shuts_down(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::INT).unwrap();
        self.process.wait().unwrap();
    }

    pub(super) async fn starts_again(&mut self) {
        self.process = postgres::serve(self.dir.path(), self.port);
        self.answers().await;
    }

    /// A standby with every commit so far. It does not replicate from here on.
    pub(super) fn creates_standby(&self) -> Standby {
        let dir = tempfile::tempdir().unwrap();
        postgres::copy(self.port, dir.path());
        Standby { dir }
    }

    /// Is lost; the standby takes over at its address.
    pub(super) async fn fails_over_to(&mut self, standby: Standby) {
        self.signal_all(Signal::KILL);
        self.process.wait().unwrap();
        self.dir = standby.dir;
        self.process = postgres::serve(self.dir.path(), self.port);
        self.answers().await;
        postgres::promote(self.dir.path());
    }

    async fn answers(&self) {
        drop(postgres::connect(&self.url()).await);
    }

    /// The postmaster is signalled first, so that it forks no process unnoticed.
    fn signal_all(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        for child in self.children() {
            // The process may just have ended.
            kill_process(child, signal).ok();
        }
    }

    fn children(&self) -> Vec<Pid> {
        let parent = self.process.id().to_string();
        let is_ours = |pid: &i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name in parentheses may contain anything; state and parent follow it.
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            after_name.split_whitespace().nth(1) == Some(parent.as_str())
        };
        let names = std::fs::read_dir("/proc").unwrap().flatten();
        names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(is_ours)
            .filter_map(Pid::from_raw)
            .collect()
    }
}

/// The data directory of a standby.
pub(super) struct Standby {
    dir: TempDir,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        for child in self.children() {
            kill_process(child, Signal::KILL).ok();
        }
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
