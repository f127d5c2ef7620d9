//! Remote UI extension: the other side of the protocol `remoteui`, written from its specification.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const TIMEOUT: Duration = Duration::from_secs(20);

/// An extension that listens on a Unix socket and does only what the test says.
pub(crate) struct RemoteUiPeer {
    dir: tempfile::TempDir,
    listener: UnixListener,
    connection: Option<(BufReader<OwnedReadHalf>, OwnedWriteHalf)>,
    /// `sessionId` and `clientId` of the session that was initialised last.
    ids: Value,
}

impl RemoteUiPeer {
    pub(crate) fn listens() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("roo.sock")).unwrap();
        Self {
            dir,
            listener,
            connection: None,
            ids: Value::Null,
        }
    }

    /// The configuration of the agent `extension`.
    pub(crate) fn configuration(&self, more: &str) -> String {
        let socket = self.dir.path().join("roo.sock");
        format!(
            "[agents.extension]\nprotocol = \"remoteui\"\nsocket = \"{}\"\n{more}\n",
            socket.display()
        )
    }

    /// Accepts a connection, and answers the first state request with this state.
    pub(crate) async fn greets(&mut self, state: Value) {
        let (stream, _) = tokio::time::timeout(TIMEOUT, self.listener.accept())
            .await
            .expect("the gateway connects")
            .unwrap();
        let (reader, writer) = stream.into_split();
        self.connection = Some((BufReader::new(reader), writer));
        let init = self.receives("RemoteUISessionInit").await;
        assert!(init["data"]["userInfo"]["username"].is_string(), "{init}");
        self.ids = json!({
            "sessionId": init["data"]["sessionId"], "clientId": init["data"]["clientId"],
        });
        self.answers_state(state).await;
    }

    /// Closes the connection.
    pub(crate) fn leaves(&mut self) {
        self.connection = None;
    }

    /// Takes the next state request, answers it with this state, and returns it.
    pub(crate) async fn answers_state(&mut self, state: Value) -> Value {
        let request = self.receives("RemoteUIStateRequest").await;
        assert!(request["data"]["includeHistory"].is_boolean(), "{request}");
        assert!(request["data"]["includeSettings"].is_boolean(), "{request}");
        let id = request["requestId"].as_str().unwrap().to_owned();
        self.answers("RemoteUIStateResponse", json!({ "state": state }), &id)
            .await;
        request
    }

    /// The next message, which must be of this type.
    pub(crate) async fn receives(&mut self, kind: &str) -> Value {
        let (reader, _) = self.connection.as_mut().expect("a connection");
        let mut line = String::new();
        let read = tokio::time::timeout(TIMEOUT, reader.read_line(&mut line));
        let read = read.await.unwrap_or_else(|_| panic!("no {kind}")).unwrap();
        assert_ne!(read, 0, "closed instead of {kind}");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["type"], kind, "{message}");
        message
    }

    /// Sends a message about the session.
    pub(crate) async fn says(&mut self, kind: &str, more: Value) {
        let message = json!({ "type": kind, "data": self.data(more) });
        self.writes(&message).await;
    }

    /// Sends the answer to a request.
    pub(crate) async fn answers(&mut self, kind: &str, more: Value, request: &str) {
        let message = json!({ "type": kind, "data": self.data(more), "requestId": request });
        self.writes(&message).await;
    }

    /// Takes the next task under this id and says that it has started. Returns the request.
    pub(crate) async fn starts_task(&mut self, id: &str) -> Value {
        let request = self.receives("RemoteUITaskRequest").await;
        let started = json!({ "taskId": id, "status": "started" });
        let name = request["requestId"].as_str().unwrap();
        self.answers("RemoteUITaskResponse", started, name).await;
        request
    }

    /// Ends a task with this answer.
    pub(crate) async fn completes_task(&mut self, id: &str, content: &str) {
        let progress = json!({ "taskId": id, "content": content, "isComplete": true });
        self.says("RemoteUITaskProgress", progress).await;
    }

    fn data(&self, more: Value) -> Value {
        let mut data = self.ids.clone();
        if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
            data.extend(more);
        }
        data
    }

    async fn writes(&mut self, message: &Value) {
        let (_, writer) = self.connection.as_mut().expect("a connection");
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
}

/// A state without anything in it, as the specification has it.
pub(crate) fn remoteui_state(settings: &Value) -> Value {
    json!({
        "conversationHistory": [],
        "settings": settings,
        "tokenUsage": { "input": 0, "output": 0, "total": 0 },
        "capabilities": [],
    })
}
