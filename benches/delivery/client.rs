//! WebSocket client of the benchmark: the same for all servers.

use futures_util::{SinkExt as _, StreamExt as _};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use crate::server::Server;

/// Read buffers. The library clears the whole buffer before every read: many readers use a small one,
/// a single fast reader a large one.
pub(crate) const SMALL_BUFFER: usize = 4 * 1024;
pub(crate) const LARGE_BUFFER: usize = 128 * 1024;

/// A joined connection.
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    pub(crate) session: String,
}

impl Client {
    pub(crate) async fn join(server: &Server, query: &str, read_bytes: usize) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let url = format!("ws://{}/ws{query}", server.address);
        let mut request = url.into_client_request().unwrap();
        if let Some(token) = &server.token {
            let bearer = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", bearer);
        }
        let config = WebSocketConfig::default().read_buffer_size(read_bytes);
        let (socket, _) =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config))
                .await
                .unwrap();
        let mut client = Self {
            socket,
            session: String::new(),
        };
        let ack: Value = serde_json::from_str(&client.next().await).unwrap();
        ack["payload"]["sessionId"]
            .as_str()
            .unwrap()
            .clone_into(&mut client.session);
        client
    }

    pub(crate) async fn prompt(&mut self, text: &str) {
        let frame = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } });
        let frame = Message::text(frame.to_string());
        self.socket.send(frame).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Utf8Bytes {
        loop {
            if let Message::Text(text) = self.socket.next().await.unwrap().unwrap() {
                return text;
            }
        }
    }

    /// Reads to the end of a run; returns the number of frames and the last offset.
    pub(crate) async fn drain(&mut self) -> (u64, u64) {
        let mut frames = 0;
        loop {
            let frame = self.next().await;
            frames += 1;
            if frame.contains("\"status\":\"completed\"") || frame.contains("\"status\":\"error\"")
            {
                return (frames, offset(&frame).unwrap());
            }
        }
    }
}

/// The offset of a frame's event: the last field, read without parsing the frame.
pub(crate) fn offset(frame: &str) -> Option<u64> {
    let (_, rest) = frame.rsplit_once("\"offset\":")?;
    rest.strip_suffix('}')?.parse().ok()
}

/// When a frame's event was recorded, to the millisecond.
pub(crate) fn recorded_at(frame: &str) -> Option<Timestamp> {
    let (_, rest) = frame.rsplit_once("\"timestamp\":\"")?;
    rest.split_once('"')?.0.parse().ok()
}
