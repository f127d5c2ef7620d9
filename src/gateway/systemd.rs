//! systemd notifications: ready, stopping, watchdog.
//!
//! The protocol of `Type=notify`: datagrams to the socket named by `NOTIFY_SOCKET`; nothing is sent
//! without that variable. Written by hand because the `sd-notify` crate connects to paths only (service
//! managers of containers use abstract names) and blocks while the manager's queue is full.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::shutdown::Shutdown;

/// The service manager that started this process, if there is one.
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog_interval: Option<Duration>,
}

impl ServiceManager {
    /// The service manager named by the environment.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let socket = variable("NOTIFY_SOCKET").and_then(|address| match open(&address) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(%error, "cannot use NOTIFY_SOCKET: the service manager gets no notifications");
                None
            }
        });
        let own_pid = u64::from(std::process::id());
        let is_ours = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(own_pid);
        let timeout = number("WATCHDOG_USEC").filter(|timeout| is_ours && *timeout > 0);
        Self {
            socket,
            // Half the timeout, as systemd advises.
            watchdog_interval: timeout.map(|timeout| Duration::from_micros(timeout / 2)),
        }
    }

    /// Reports that requests are served.
    pub fn ready(&self, url: &str) {
        self.notify(&format!("READY=1\nSTATUS=Serving {url}"));
    }

    /// Reports the beginning of shutdown, and feeds the watchdog; never returns.
    pub async fn keep_notified(&self, shutdown: &Shutdown) {
        let watchdog = async {
            let Some(interval) = self.watchdog_interval else {
                return std::future::pending::<()>().await;
            };
            loop {
                // The proof of life is that the worker threads still accept tasks.
                let mut work = JoinSet::new();
                work.spawn(std::future::ready(()));
                work.join_next().await;
                self.notify("WATCHDOG=1");
                tokio::time::sleep(interval).await;
            }
        };
        let stopping = async {
            shutdown.drain.cancelled().await;
            self.notify("STOPPING=1\nSTATUS=Finishing what is under way");
        };
        tokio::join!(watchdog, stopping);
    }

    fn notify(&self, state: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(state.as_bytes(), address)
        {
            tracing::warn!(%error, "cannot notify the service manager");
        }
    }
}

/// `address` is a path, or `@` and a name in the abstract namespace.
fn open(address: &OsStr) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(address)?,
        _ => return Err(io::Error::other("expected a path or @name")),
    };
    let socket = UnixDatagram::unbound()?;
    // If the manager's queue is full, the notification is dropped rather than waited for.
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}
