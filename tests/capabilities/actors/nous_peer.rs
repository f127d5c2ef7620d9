//! Nous core: the other side of the protocol `nous`, written from its specification.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use super::nous_contract;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A core that listens on its two Unix sockets and does only what the test says. What it receives and
/// what it sends must have the shape of the frozen protocol.
pub(crate) struct NousPeer {
    dir: tempfile::TempDir,
    commands: UnixListener,
    events: UnixListener,
    connection: Option<(BufReader<OwnedReadHalf>, OwnedWriteHalf)>,
    subscriber: Option<UnixStream>,
    /// `id` and `type` of the command that is to be answered.
    asked: (String, String),
    /// The type of every command that was received.
    pub(crate) received: Vec<String>,
    sent: u64,
}

/// The payload of `state` for a core without anything queued.
pub(crate) fn nous_state(run: &str, session: &str) -> Value {
    json!({
        "run_state": if run.is_empty() { "idle" } else { "running" },
        "run_id": run, "session_id": session,
        "steering_mode": "one-at-a-time", "follow_up_mode": "one-at-a-time",
        "pending_counts": { "steer": 0, "follow_up": 0 },
    })
}

impl NousPeer {
    pub(crate) fn listens() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bind = |name: &str| UnixListener::bind(dir.path().join(name)).unwrap();
        let (commands, events) = (bind("core.sock"), bind("core.sock.events"));
        Self {
            dir,
            commands,
            events,
            connection: None,
            subscriber: None,
            asked: Default::default(),
            received: Vec::new(),
            sent: 0,
        }
    }

    /// The configuration of the agent `core`.
    pub(crate) fn configuration(&self, more: &str) -> String {
        let socket = self.dir.path().join("core.sock");
        format!(
            "[agents.core]\nprotocol = \"nous\"\nsocket = \"{}\"\n{more}\n",
            socket.display()
        )
    }

    /// Accepts both connections.
    pub(crate) async fn accepts(&mut self) {
        let command = tokio::time::timeout(TIMEOUT, self.commands.accept()).await;
        let (reader, writer) = command.expect("commands").unwrap().0.into_split();
        self.connection = Some((BufReader::new(reader), writer));
        let events = tokio::time::timeout(TIMEOUT, self.events.accept()).await;
        self.subscriber = Some(events.expect("events").unwrap().0);
    }

    /// Accepts both connections and begins the conversation `session`.
    pub(crate) async fn greets(&mut self, session: &str) {
        self.accepts().await;
        self.receives("get_state").await;
        self.answers("state", nous_state("", "")).await;
        self.receives("new_session").await;
        let opened = json!({ "session_id": session, "active": true });
        self.answers("session", opened).await;
    }

    /// Accepts the next prompt as this run. Returns its text.
    pub(crate) async fn starts_run(&mut self, run: &str) -> String {
        let prompt = self.receives("prompt").await;
        assert_eq!(prompt["wait"], false, "{prompt}");
        self.accepts_command(run).await;
        self.says("agent_start", json!({ "run_id": run })).await;
        prompt["text"].as_str().unwrap().to_owned()
    }

    /// Starts a turn of a run, and says the beginning of its answer.
    pub(crate) async fn starts_turn(&mut self, run: &str, turn: &str, text: &str) {
        let turn_of = json!({ "run_id": run, "turn_id": turn });
        self.says("turn_start", turn_of).await;
        let message = json!({
            "run_id": run, "turn_id": turn, "message_id": format!("m{turn}"), "role": "assistant",
        });
        self.says("message_start", message).await;
        self.streams(run, turn, text).await;
    }

    pub(crate) async fn streams(&mut self, run: &str, turn: &str, text: &str) {
        let update = json!({
            "run_id": run, "turn_id": turn, "message_id": format!("m{turn}"), "delta": text,
        });
        self.says("message_update", update).await;
    }

    pub(crate) async fn ends_turn(&mut self, run: &str, turn: &str) {
        let message = json!({ "run_id": run, "turn_id": turn, "message_id": format!("m{turn}") });
        self.says("message_end", message).await;
        self.says("turn_end", json!({ "run_id": run, "turn_id": turn }))
            .await;
    }

    pub(crate) async fn ends_run(&mut self, run: &str) {
        self.says("agent_end", json!({ "run_id": run })).await;
    }

    /// Waits until the gateway has closed the command socket.
    pub(crate) async fn sees_close(&mut self) {
        let (reader, _) = self.connection.as_mut().expect("a connection");
        let mut line = String::new();
        let read = tokio::time::timeout(TIMEOUT, reader.read_line(&mut line));
        assert_eq!(read.await.expect("a close").unwrap(), 0, "{line}");
        self.drops_sockets();
    }

    /// Closes both sockets.
    pub(crate) fn drops_sockets(&mut self) {
        (self.connection, self.subscriber) = (None, None);
    }

    /// Closes the event socket, as for a subscriber that is too far behind.
    pub(crate) fn drops_subscriber(&mut self) {
        self.subscriber = None;
    }

    /// The payload of the next command, which must be this one. A ping may come before it.
    pub(crate) async fn receives(&mut self, kind: &str) -> Value {
        loop {
            let payload = self.receives_any().await;
            if self.asked.1 == "ping" && kind != "ping" {
                self.answers("pong", json!({ "message": "pong" })).await;
                continue;
            }
            assert_eq!(self.asked.1, kind, "{payload}");
            return payload;
        }
    }

    async fn receives_any(&mut self) -> Value {
        let (reader, _) = self.connection.as_mut().expect("a connection");
        let mut line = String::new();
        let read = tokio::time::timeout(TIMEOUT, reader.read_line(&mut line));
        assert_ne!(read.await.expect("a command").unwrap(), 0, "closed");
        let command: Value = serde_json::from_str(&line).unwrap();
        nous_contract::check_command(&command);
        let text = |name: &str| command[name].as_str().unwrap().to_owned();
        self.asked = (text("id"), text("type"));
        self.received.push(text("type"));
        command["payload"].clone()
    }

    /// Answers the last command.
    pub(crate) async fn answers(&mut self, kind: &str, payload: Value) {
        let response = json!({
            "v": "1", "id": self.asked.0, "type": kind, "payload": payload, "ok": true,
        });
        nous_contract::check_response(&response, &self.asked.1);
        self.writes(&response).await;
    }

    /// Answers the last command with `accepted`.
    pub(crate) async fn accepts_command(&mut self, run: &str) {
        let payload = json!({ "command": self.asked.1, "run_id": run });
        self.answers("accepted", payload).await;
    }

    /// Accepts the last command, which sets this mode.
    pub(crate) async fn accepts_mode(&mut self, mode: &Value) {
        let payload = json!({ "command": self.asked.1, "mode": mode });
        self.answers("accepted", payload).await;
    }

    /// Answers the last command with an error.
    pub(crate) async fn refuses(&mut self, error: Value) {
        let response = json!({
            "v": "1", "id": self.asked.0, "type": "error", "payload": {}, "ok": false,
            "error": error,
        });
        nous_contract::check_response(&response, &self.asked.1);
        self.writes(&response).await;
    }

    /// Sends an event.
    pub(crate) async fn says(&mut self, kind: &str, payload: Value) {
        self.sent += 1;
        let event = json!({
            "v": "1", "id": format!("evt-{}", self.sent), "type": kind, "payload": payload,
        });
        nous_contract::check_event(&event);
        let subscriber = self.subscriber.as_mut().expect("a subscriber");
        subscriber
            .write_all(format!("{event}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn writes(&mut self, response: &Value) {
        let (_, writer) = self.connection.as_mut().expect("a connection");
        writer
            .write_all(format!("{response}\n").as_bytes())
            .await
            .unwrap();
    }
}
