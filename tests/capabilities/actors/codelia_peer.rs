//! Codelia runtime: the other side of the protocol `codelia`, written from its specification.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const TIMEOUT: Duration = Duration::from_secs(20);

/// A runtime that listens on a Unix socket and does only what the test says. Whatever it receives must
/// be an envelope of the specification.
pub(crate) struct CodeliaPeer {
    dir: tempfile::TempDir,
    listener: UnixListener,
    connection: Option<(BufReader<OwnedReadHalf>, OwnedWriteHalf)>,
    run: String,
    seq: u64,
}

impl CodeliaPeer {
    pub(crate) fn listens() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("codelia.sock")).unwrap();
        Self {
            dir,
            listener,
            connection: None,
            run: String::new(),
            seq: 0,
        }
    }

    /// The configuration of the agent `runtime`.
    pub(crate) fn configuration(&self) -> String {
        let socket = self.dir.path().join("codelia.sock");
        format!(
            "[agents.runtime]\nprotocol = \"codelia\"\ntransport = \"unix\"\nsocket = \"{}\"\n",
            socket.display()
        )
    }

    /// Accepts a connection and answers `initialize`. Returns its parameters.
    pub(crate) async fn greets(&mut self, server_capabilities: Value) -> Value {
        let (stream, _) = tokio::time::timeout(TIMEOUT, self.listener.accept())
            .await
            .expect("the gateway connects")
            .unwrap();
        let (reader, writer) = stream.into_split();
        self.connection = Some((BufReader::new(reader), writer));
        let (id, params) = self.receives_request("initialize").await;
        assert_eq!(params["protocol_version"], "0");
        assert!(params["client"]["name"].is_string(), "{params}");
        assert!(params["client"]["version"].is_string(), "{params}");
        let result = json!({
            "protocol_version": "0",
            "server": { "name": "peer", "version": "0.0.0" },
            "server_capabilities": server_capabilities,
        });
        self.answers(&id, result).await;
        let context = self.receives().await;
        assert_eq!(context["method"], "ui.context.update", "{context}");
        assert_eq!(context.get("id"), None, "a notification");
        params
    }

    /// Closes the connection.
    pub(crate) fn leaves(&mut self) {
        self.connection = None;
    }

    /// Takes the next `run.start` and gives the run this id. Returns the parameters.
    pub(crate) async fn starts_run(&mut self, run: &str) -> Value {
        let (id, params) = self.receives_request("run.start").await;
        assert_eq!(params["input"]["type"], "text", "{params}");
        self.answers(&id, json!({ "run_id": run })).await;
        (self.run, self.seq) = (run.to_owned(), 0);
        if params.get("session_id").is_none() {
            let (id, _) = self.receives_request("session.list").await;
            let known =
                json!({ "session_id": "s1", "updated_at": "2026-01-01T00:00:00Z", "run_id": run });
            self.answers(&id, json!({ "sessions": [known] })).await;
        }
        params
    }

    /// Sends an `AgentEvent` of the run, with `more` beside it in the envelope.
    pub(crate) async fn says(&mut self, event: Value, more: Value) {
        let mut params = json!({ "run_id": self.run, "seq": self.seq, "event": event });
        self.seq += 1;
        if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
            params.extend(more);
        }
        self.notifies("agent.event", params).await;
    }

    /// Sends `run.status` of the run.
    pub(crate) async fn reports(&mut self, status: &str) {
        let params = json!({ "run_id": self.run, "status": status });
        self.notifies("run.status", params).await;
    }

    pub(crate) async fn notifies(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.writes(&message).await;
    }

    pub(crate) async fn asks(&mut self, id: &str, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.writes(&message).await;
    }

    pub(crate) async fn answers(&mut self, id: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.writes(&message).await;
    }

    /// The result that the question with this id gets.
    pub(crate) async fn receives_result(&mut self, id: &str) -> Value {
        let message = self.receives().await;
        assert_eq!(message["id"], id, "{message}");
        assert_eq!(message.get("error"), None, "{message}");
        message["result"].clone()
    }

    /// The next message, which must be this request: its id and its parameters.
    pub(crate) async fn receives_request(&mut self, method: &str) -> (Value, Value) {
        let message = self.receives().await;
        assert_eq!(message["method"], method, "{message}");
        assert!(message["id"].is_string(), "ids are texts: {message}");
        (message["id"].clone(), message["params"].clone())
    }

    async fn receives(&mut self) -> Value {
        let (reader, _) = self.connection.as_mut().expect("a connection");
        let mut line = String::new();
        let read = tokio::time::timeout(TIMEOUT, reader.read_line(&mut line));
        let read = read.await.expect("a message in time").unwrap();
        assert_ne!(read, 0, "closed");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        message
    }

    async fn writes(&mut self, message: &Value) {
        let (_, writer) = self.connection.as_mut().expect("a connection");
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
}
