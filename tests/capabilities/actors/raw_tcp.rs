//! Raw TCP: a connection for bytes that no well-behaved client would send.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection and when it was opened.
pub(crate) struct RawTcp {
    stream: TcpStream,
    opened: Instant,
}

impl RawTcp {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            opened: Instant::now(),
        }
    }

    pub(crate) async fn writes(&mut self, text: &str) -> &mut Self {
        self.stream.write_all(text.as_bytes()).await.unwrap();
        self
    }

    /// Like `writes`, to a peer that may have closed.
    pub(crate) async fn tries_to_write(&mut self, text: &str) -> bool {
        self.stream.write_all(text.as_bytes()).await.is_ok()
    }

    /// Everything until the peer closes, and the time since opening.
    pub(crate) async fn reads_to_end(&mut self) -> (String, Duration) {
        let mut bytes = Vec::new();
        let read = self.stream.read_to_end(&mut bytes);
        match tokio::time::timeout(TIMEOUT, read).await {
            // A reset counts as a close.
            Ok(_) => {}
            Err(tokio::time::error::Elapsed { .. }) => panic!(
                "not closed after {TIMEOUT:?}: {}",
                String::from_utf8_lossy(&bytes)
            ),
        }
        (
            String::from_utf8_lossy(&bytes).into_owned(),
            self.opened.elapsed(),
        )
    }

    /// The next bytes that arrive.
    pub(crate) async fn reads_some(&mut self) -> String {
        let mut bytes = [0; 8192];
        let read = tokio::time::timeout(TIMEOUT, self.stream.read(&mut bytes))
            .await
            .expect("something arrives")
            .unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }
}
