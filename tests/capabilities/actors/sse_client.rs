//! SSE client: follows a session by server-sent events and records them.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::asyncapi;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A stream of one session.
pub(crate) struct SseClient {
    response: Response,
    received: String,
    /// The payload of the acknowledgement.
    pub(crate) ack: Value,
    /// Every envelope with an id, in the order received.
    pub(crate) events: Vec<Value>,
    /// The id of the last one.
    pub(crate) last_id: Option<String>,
}

/// One item of a stream.
#[derive(Debug)]
pub(crate) enum SseEvent {
    Envelope(Value),
    /// The event `close`, with its data.
    Close(Value),
    /// The stream ended; without a `close` event before it, it broke off.
    End,
}

impl SseClient {
    /// Opens the stream of a session, resuming after `last_id` if given.
    pub(crate) async fn follows(
        address: SocketAddr,
        token: &str,
        session: &str,
        last_id: Option<&str>,
    ) -> Self {
        let response = Self::opens(address, token, session, "", last_id).await;
        assert_eq!(response.status(), 200);
        Self::reads(response).await
    }

    /// Requests a stream and returns the response, success or not.
    pub(crate) async fn opens(
        address: SocketAddr,
        token: &str,
        session: &str,
        query: &str,
        last_id: Option<&str>,
    ) -> Response {
        let url = format!("http://{address}/api/sessions/{session}/stream{query}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut request = client.get(url).bearer_auth(token);
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        request.send().await.unwrap()
    }

    /// Reads the acknowledgement of a stream.
    pub(crate) async fn reads(response: Response) -> Self {
        let mut listener = Self {
            response,
            received: String::new(),
            ack: Value::Null,
            events: Vec::new(),
            last_id: None,
        };
        let first = listener.sees("CONNECTION_ACK").await;
        listener.ack = first["payload"].clone();
        listener
    }

    /// The next event; comments are skipped.
    pub(crate) async fn next_event(&mut self) -> SseEvent {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.received = rest;
                if let Some(received_frame) = self.parses(&event) {
                    return received_frame;
                }
                continue;
            }
            let more = tokio::time::timeout(TIMEOUT, self.response.chunk()).await;
            match more.expect("something arrives") {
                Ok(Some(bytes)) => self.received += std::str::from_utf8(&bytes).unwrap(),
                Ok(None) | Err(_) => return SseEvent::End,
            }
        }
    }

    fn parses(&mut self, event: &str) -> Option<SseEvent> {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let data: Value = serde_json::from_str(field("data: ")?).unwrap();
        if field("event: ") == Some("close") {
            return Some(SseEvent::Close(data));
        }
        if let Some(id) = field("id: ") {
            self.last_id = Some(id.to_owned());
            self.events.push(data.clone());
        }
        asyncapi::check_gateway_message(&data);
        Some(SseEvent::Envelope(data))
    }

    /// Reads until an envelope of that type.
    pub(crate) async fn sees(&mut self, kind: &str) -> Value {
        loop {
            match self.next_event().await {
                SseEvent::Envelope(envelope) if envelope["type"] == kind => return envelope,
                SseEvent::Envelope(_) => {}
                other => panic!("{other:?}, no {kind}"),
            }
        }
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

    /// Reads until the `close` event, and returns its data.
    pub(crate) async fn sees_close(&mut self) -> Value {
        loop {
            match self.next_event().await {
                SseEvent::Close(data) => return data,
                SseEvent::Envelope(_) => {}
                SseEvent::End => panic!("the stream ended without a goodbye"),
            }
        }
    }

    /// The offsets received: a joined frame covers a range of them.
    pub(crate) fn offsets(&self) -> Vec<u64> {
        let all = |event: &Value| {
            let last = event["offset"].as_u64().unwrap();
            event["payload"]["fromOffset"].as_u64().unwrap_or(last)..=last
        };
        self.events.iter().flat_map(all).collect()
    }
}
