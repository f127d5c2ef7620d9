//! What a service manager is told: ready, stopping, still alive.
//!
//! The protocol of systemd's `Type=notify`: datagrams to the socket that `NOTIFY_SOCKET` names.
//! Without that variable nobody is told anything.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::shutdown::Shutdown;

/// Whoever started this process and wants to know how it is.
pub struct Supervisor {
    line: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that we are alive.
    every: Option<Duration>,
}

impl Supervisor {
    /// The one that the environment names, if it names one.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let line = variable("NOTIFY_SOCKET").and_then(|place| match open(&place) {
            Ok(line) => Some(line),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: the service manager is told nothing");
                None
            }
        });
        let own = u64::from(std::process::id());
        let is_meant = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(own);
        let limit = number("WATCHDOG_USEC").filter(|limit| is_meant && *limit > 0);
        Self {
            line,
            // Twice as often as it must be, as systemd advises.
            every: limit.map(|limit| Duration::from_micros(limit / 2)),
        }
    }

    /// Requests are served from now on.
    pub fn ready(&self, at: &str) {
        self.tell(&format!("READY=1\nSTATUS=Serving {at}"));
    }

    /// Tells of stopping when it begins, and of being alive as often as asked; returns never.
    pub async fn attend(&self, shutdown: &Shutdown) {
        let life = async {
            let Some(every) = self.every else {
                return std::future::pending::<()>().await;
            };
            loop {
                // Not from here: that the threads which serve take on work is the sign of life.
                let mut work = JoinSet::new();
                work.spawn(std::future::ready(()));
                work.join_next().await;
                self.tell("WATCHDOG=1");
                tokio::time::sleep(every).await;
            }
        };
        let stop = async {
            shutdown.drain.cancelled().await;
            self.tell("STOPPING=1\nSTATUS=Finishing what is under way");
        };
        tokio::join!(life, stop);
    }

    fn tell(&self, word: &str) {
        if let Some((socket, place)) = &self.line
            && let Err(error) = socket.send_to_addr(word.as_bytes(), place)
        {
            tracing::warn!(%error, "the service manager cannot be told how it is going");
        }
    }
}

/// A path, or with an `@` in front a name in the abstract namespace.
fn open(place: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let place = match place.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(place)?,
        _ => return Err(io::Error::other("expected a path or @name")),
    };
    let socket = UnixDatagram::unbound()?;
    // The manager's queue may be full: a word is rather lost than waited for.
    socket.set_nonblocking(true)?;
    Ok((socket, place))
}
