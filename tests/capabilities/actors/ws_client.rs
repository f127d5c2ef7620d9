//! WebSocket client: a connection in a session, the frames it received, and its position.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::asyncapi;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection that joined a session.
pub(crate) struct WsClient {
    socket: WebSocketStream<TcpStream>,
    /// The payload of the acknowledgement.
    pub(crate) ack: Value,
    /// Every journaled frame, in the order received.
    pub(crate) events: Vec<Value>,
    /// Frames about other connections, not yet read by the test. They may arrive between any two
    /// frames.
    peer_frames: VecDeque<Value>,
}

/// Frames about the other connections of the session; not journaled.
const PEER_FRAMES: [&str; 2] = ["PRESENCE", "CONTROL_UPDATE"];

/// The close frame of a socket; code 1006 if there was none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

impl WsClient {
    /// Opens `/ws` with a token in the header.
    pub(crate) async fn connects(address: SocketAddr, token: &str, query: &str) -> Self {
        let header = ("authorization", format!("Bearer {token}"));
        Self::try_connect(address, query, &[header]).await.unwrap()
    }

    /// Opens `/ws` with a token in the header; tries again while storage is unavailable.
    pub(crate) async fn reconnects(address: SocketAddr, token: &str, query: &str) -> Self {
        let header = [("authorization", format!("Bearer {token}"))];
        loop {
            let mut socket = Self::opens_socket(address, query, &header).await.unwrap();
            let first = next_json(&mut socket).await.expect("the first frame");
            if first["type"] == "CONNECTION_ACK" {
                return Self {
                    socket,
                    ack: first["payload"].clone(),
                    events: Vec::new(),
                    peer_frames: VecDeque::new(),
                };
            }
            assert_eq!(first["payload"]["code"], "STORAGE_UNAVAILABLE", "{first}");
            let closed = next_json(&mut socket).await.unwrap_err();
            assert_eq!(closed.code, 1012, "{closed:?}");
        }
    }

    /// Opens `/ws` with these headers; an HTTP refusal is returned as its status.
    pub(crate) async fn try_connect(
        address: SocketAddr,
        query: &str,
        headers: &[(&'static str, String)],
    ) -> Result<Self, u16> {
        let mut socket = Self::opens_socket(address, query, headers).await?;
        let first = next_json(&mut socket).await.expect("the first frame");
        assert_eq!(first["type"], "CONNECTION_ACK", "{first}");
        Ok(Self {
            socket,
            ack: first["payload"].clone(),
            events: Vec::new(),
            peer_frames: VecDeque::new(),
        })
    }

    /// Opens a socket and reads nothing.
    pub(crate) async fn opens_socket(
        address: SocketAddr,
        query: &str,
        headers: &[(&'static str, String)],
    ) -> Result<WebSocketStream<TcpStream>, u16> {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut request = format!("ws://{address}/ws{query}")
            .into_client_request()
            .unwrap();
        for (name, value) in headers {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(socket),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn session(&self) -> String {
        self.ack["sessionId"].as_str().unwrap().to_owned()
    }

    /// The query that resumes after the last received event.
    pub(crate) fn position(&self) -> String {
        let seen = self.events.last().map_or(0, offset);
        self.position_after(seen)
    }

    pub(crate) fn position_after(&self, after: u64) -> String {
        let epoch = self.ack["epoch"].as_str().unwrap();
        format!("?session={}&after={after}&epoch={epoch}", self.session())
    }

    /// Sends a message that matches its schema, whether the gateway accepts it or not.
    pub(crate) async fn writes(&mut self, text: &str) {
        asyncapi::check_client_message(text);
        self.writes_raw(text).await;
    }

    /// Sends any text, without the schema check.
    pub(crate) async fn writes_raw(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn writes_bytes(&mut self, bytes: &[u8]) {
        self.socket
            .send(Message::binary(bytes.to_vec()))
            .await
            .unwrap();
    }

    pub(crate) async fn sends(&mut self, kind: &str, payload: Value) {
        self.writes(&json!({ "type": kind, "payload": payload }).to_string())
            .await;
    }

    /// Sends a message without the schema check.
    pub(crate) async fn sends_raw(&mut self, kind: &str, payload: Value) {
        self.writes_raw(&json!({ "type": kind, "payload": payload }).to_string())
            .await;
    }

    pub(crate) async fn prompts(&mut self, text: &str) {
        self.sends("SUBMIT_PROMPT", json!({ "text": text, "mode": "act" }))
            .await;
    }

    /// The next frame that is not a peer frame; journaled ones are recorded.
    pub(crate) async fn receives(&mut self) -> Result<Value, Closed> {
        let frame = loop {
            let frame = next_json(&mut self.socket).await?;
            if !PEER_FRAMES.iter().any(|kind| frame["type"] == *kind) {
                break frame;
            }
            self.peer_frames.push_back(frame);
        };
        if frame["offset"].is_u64() && frame["type"] != "FULL_STATE" {
            self.events.push(frame.clone());
        }
        Ok(frame)
    }

    /// Reads until a frame of that type.
    pub(crate) async fn sees(&mut self, kind: &str) -> Value {
        loop {
            let frame = self
                .receives()
                .await
                .unwrap_or_else(|closed| panic!("{closed:?}, no {kind}"));
            if frame["type"] == kind {
                return frame;
            }
            assert!(
                kind == "ERROR_MESSAGE" || frame["type"] != "ERROR_MESSAGE",
                "waiting for {kind}: {frame}"
            );
        }
    }

    /// The payload of the next peer frame of that type.
    pub(crate) async fn sees_peer_frame(&mut self, kind: &str) -> Value {
        assert!(PEER_FRAMES.contains(&kind));
        loop {
            let kept = self
                .peer_frames
                .iter()
                .position(|frame| frame["type"] == kind);
            if let Some(frame) = kept.and_then(|place| self.peer_frames.remove(place)) {
                assert!(frame["offset"].is_null(), "not of the journal: {frame}");
                assert_eq!(frame["sessionId"], self.session(), "{frame}");
                return frame["payload"].clone();
            }
            let frame = next_json(&mut self.socket).await.unwrap();
            let aside = PEER_FRAMES.iter().any(|kind| frame["type"] == *kind);
            assert!(aside, "waiting for {kind}: {frame}");
            self.peer_frames.push_back(frame);
        }
    }

    /// A barrier like [`sees_nothing`](Self::sees_nothing), for peer frames as well.
    pub(crate) async fn sees_nothing_about_peers(&mut self) {
        self.sees_nothing().await;
        assert!(self.peer_frames.is_empty(), "{:?}", self.peer_frames);
    }

    /// Reads until the current run has ended, and returns its last status.
    pub(crate) async fn sees_run_end(&mut self) -> Value {
        loop {
            let update = self.sees("TASK_STATUS_UPDATE").await["payload"].clone();
            if ["completed", "cancelled", "error"].contains(&update["status"].as_str().unwrap()) {
                return update;
            }
        }
    }

    /// The last status of every run that has ended.
    pub(crate) fn ends(&self) -> Vec<String> {
        let status = |event: &Value| event["payload"]["status"].as_str().map(str::to_owned);
        let ended =
            |status: &String| ["completed", "cancelled", "error"].contains(&status.as_str());
        self.events
            .iter()
            .filter(|event| event["type"] == "TASK_STATUS_UPDATE")
            .filter_map(status)
            .filter(ended)
            .collect()
    }

    /// A barrier: everything sent before the heartbeat's reply has arrived, and it was nothing.
    pub(crate) async fn sees_nothing(&mut self) {
        self.sends("HEARTBEAT", json!({})).await;
        let frame = self.receives().await.unwrap();
        assert_eq!(frame["type"], "HEARTBEAT", "{frame}");
    }

    /// Reads until the socket is closed.
    pub(crate) async fn sees_close(&mut self) -> Closed {
        loop {
            if let Err(closed) = self.receives().await {
                return closed;
            }
        }
    }

    /// The text of the answer so far.
    pub(crate) fn text(&self) -> String {
        self.events
            .iter()
            .filter(|event| {
                event["type"] == "TASK_OUTPUT_CHUNK" && event["payload"]["channel"] == "text"
            })
            .map(|event| event["payload"]["content"].as_str().unwrap())
            .collect()
    }

    /// The offsets received: a joined frame covers a range of them.
    pub(crate) fn offsets(&self) -> Vec<u64> {
        let all = |event: &Value| {
            let last = offset(event);
            event["payload"]["fromOffset"].as_u64().unwrap_or(last)..=last
        };
        self.events.iter().flat_map(all).collect()
    }
}

fn offset(event: &Value) -> u64 {
    event["offset"].as_u64().unwrap()
}

/// The next text frame, checked against its schema, or the close.
pub(crate) async fn next_json(socket: &mut WebSocketStream<TcpStream>) -> Result<Value, Closed> {
    loop {
        let frame = tokio::time::timeout(TIMEOUT, socket.next())
            .await
            .expect("a frame arrives");
        match frame {
            Some(Ok(Message::Text(text))) => {
                let frame = serde_json::from_str(&text).unwrap();
                asyncapi::check_gateway_message(&frame);
                return Ok(frame);
            }
            Some(Ok(Message::Close(frame))) => {
                let frame = frame.expect("a close says why");
                return Err(Closed {
                    code: frame.code.into(),
                    reason: frame.reason.to_string(),
                });
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => {
                return Err(Closed {
                    code: 1006,
                    reason: String::new(),
                });
            }
        }
    }
}
