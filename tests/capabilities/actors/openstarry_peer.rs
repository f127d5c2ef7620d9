//! A core of `OpenStarry`: the other side of its interface document, written from it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A core that listens on a Unix socket and does only what the test says.
pub(crate) struct OpenStarryPeer {
    dir: tempfile::TempDir,
    listener: UnixListener,
    connection: Option<(BufReader<OwnedReadHalf>, OwnedWriteHalf)>,
}

impl OpenStarryPeer {
    pub(crate) fn listens() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("core.sock")).unwrap();
        Self {
            dir,
            listener,
            connection: None,
        }
    }

    /// The configuration of the agent `core`.
    pub(crate) fn configuration(&self) -> String {
        let socket = self.dir.path().join("core.sock");
        format!(
            "[agents.core]\nprotocol = \"openstarry\"\nsocket = \"{}\"\n\
             options = {{ wire = \"document\" }}\n",
            socket.display()
        )
    }

    pub(crate) async fn accepts(&mut self) {
        let (stream, _) = tokio::time::timeout(TIMEOUT, self.listener.accept())
            .await
            .expect("the gateway connects")
            .unwrap();
        let (reader, writer) = stream.into_split();
        self.connection = Some((BufReader::new(reader), writer));
    }

    /// The payload of the next command, which must be this one.
    pub(crate) async fn receives(&mut self, command: &str) -> Value {
        let (reader, _) = self.connection.as_mut().expect("a connection");
        let mut line = String::new();
        let read = tokio::time::timeout(TIMEOUT, reader.read_line(&mut line));
        let read = read
            .await
            .unwrap_or_else(|_| panic!("no {command}"))
            .unwrap();
        assert_ne!(read, 0, "closed instead of {command}");
        let mut message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["type"], command, "{message}");
        message["payload"].take()
    }

    /// Tells an event.
    pub(crate) async fn tells(&mut self, event: &str, payload: Value) {
        let (_, writer) = self.connection.as_mut().expect("a connection");
        let line = format!("{}\n", json!({ "type": event, "payload": payload }));
        writer.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn is(&mut self, state: &str) {
        self.tells("onAgentStateChange", json!(state)).await;
    }
}
