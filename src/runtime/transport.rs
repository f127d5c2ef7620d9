//! Transport: byte streams between the gateway and an agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::error::AgentError;
use super::process::Process;

pub(super) mod shared_socket;
pub(super) mod socket_leases;

const RETRY_DELAY: Duration = Duration::from_millis(30);
/// How long our own process may take to open its socket.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a socket of a foreign process may be missing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct ByteStream {
    pub(super) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl ByteStream {
    pub(super) fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }

    /// A stream without a peer; replacing another one with it closes that one.
    pub(super) fn closed() -> Self {
        Self::new(tokio::io::empty(), tokio::io::sink())
    }
}

impl From<UnixStream> for ByteStream {
    fn from(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self::new(reader, writer)
    }
}

pub(super) fn events_socket(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".events");
    path.into()
}

/// Connects to a socket. Waits for our own process to open it, unless the process ends.
pub(super) async fn connect(
    path: &Path,
    process: &mut Option<Process>,
) -> Result<ByteStream, AgentError> {
    let timeout = if process.is_some() {
        OPEN_TIMEOUT
    } else {
        CONNECT_TIMEOUT
    };
    let until = Instant::now() + timeout;
    loop {
        let source = match UnixStream::connect(path).await {
            Ok(stream) => return Ok(stream.into()),
            Err(source) => source,
        };
        if Instant::now() >= until {
            let path = path.to_owned();
            return Err(AgentError::Connect { path, source });
        }
        let Some(process) = process.as_mut() else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        tokio::select! {
            ended = process.wait() => {
                let status = ended.map_err(AgentError::Spawn)?;
                process.drain_stderr().await;
                return Err(AgentError::Ended { status });
            }
            () = tokio::time::sleep(RETRY_DELAY) => {}
        }
    }
}
