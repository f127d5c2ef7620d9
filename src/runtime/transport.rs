//! The ways between the gateway and an agent: bytes only, whatever they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::process::Process;
use super::trouble::Trouble;

pub(super) mod hub;
pub(super) mod leases;

/// Between two attempts to reach a socket that is not there yet.
const BETWEEN: Duration = Duration::from_millis(30);
/// How long a process may take to open its socket.
const OPENING: Duration = Duration::from_secs(20);
/// How long a socket that others open may be away.
const AWAY: Duration = Duration::from_secs(2);

/// One way, in both directions.
pub(super) struct Wire {
    /// From the agent.
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    /// To the agent.
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl Wire {
    /// Of two ends.
    pub(super) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }
}

impl Wire {
    /// One that leads nowhere: the other side finds the line closed.
    pub(super) fn closed() -> Self {
        Self::new(tokio::io::empty(), tokio::io::sink())
    }
}

impl From<UnixStream> for Wire {
    fn from(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::new(reader, writer)
    }
}

/// The socket for events beside the one for commands.
pub(super) fn events_socket(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".events");
    path.into()
}

/// Connects to a socket. One that the process is about to open is waited for, unless the process ends.
pub(super) async fn connect(path: &Path, process: &mut Option<Process>) -> Result<Wire, Trouble> {
    let patience = if process.is_some() { OPENING } else { AWAY };
    let until = Instant::now() + patience;
    loop {
        let source = match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream.into()),
            Err(source) => source,
        };
        if Instant::now() >= until {
            let path = path.to_owned();
            return Err(Trouble::Connect { path, source });
        }
        let Some(process) = process.as_mut() else {
            tokio::time::sleep(BETWEEN).await;
            continue;
        };
        tokio::select! {
            ended = process.wait() => {
                let status = ended.map_err(Trouble::Spawn)?;
                process.last_breath().await;
                return Err(Trouble::Ended { status });
            }
            () = tokio::time::sleep(BETWEEN) => {}
        }
    }
}
