//! Somebody who follows a session by server-sent events, and what was received.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::contract;

const PATIENCE: Duration = Duration::from_secs(20);

/// A stream of one session.
pub(crate) struct Listener {
    response: Response,
    received: String,
    /// The payload of the acknowledgement.
    pub(crate) ack: Value,
    /// Every envelope with an id, in the order received.
    pub(crate) events: Vec<Value>,
    /// The id of the last one.
    pub(crate) last_id: Option<String>,
}

/// What a stream brought.
#[derive(Debug)]
pub(crate) enum Heard {
    Envelope(Value),
    /// The event `close`, with its data.
    Close(Value),
    /// The stream is over; the rest of it broke off if it said no goodbye.
    End,
}

impl Listener {
    /// Opens the stream of a session, after the last event of another one if that is given.
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

    /// Asks for a stream, whatever the answer is.
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

    /// The next event. Comments are passed by.
    pub(crate) async fn hears(&mut self) -> Heard {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.received = rest;
                if let Some(heard) = self.understands(&event) {
                    return heard;
                }
                continue;
            }
            let more = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            match more.expect("something arrives") {
                Ok(Some(bytes)) => self.received += std::str::from_utf8(&bytes).unwrap(),
                Ok(None) | Err(_) => return Heard::End,
            }
        }
    }

    fn understands(&mut self, event: &str) -> Option<Heard> {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let data: Value = serde_json::from_str(field("data: ")?).unwrap();
        if field("event: ") == Some("close") {
            return Some(Heard::Close(data));
        }
        if let Some(id) = field("id: ") {
            self.last_id = Some(id.to_owned());
            self.events.push(data.clone());
        }
        contract::of_gateway(&data);
        Some(Heard::Envelope(data))
    }

    /// Reads until an envelope of that type.
    pub(crate) async fn sees(&mut self, kind: &str) -> Value {
        loop {
            match self.hears().await {
                Heard::Envelope(envelope) if envelope["type"] == kind => return envelope,
                Heard::Envelope(_) => {}
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

    /// Reads until the goodbye, and returns what it says.
    pub(crate) async fn sees_close(&mut self) -> Value {
        loop {
            match self.hears().await {
                Heard::Close(data) => return data,
                Heard::Envelope(_) => {}
                Heard::End => panic!("the stream ended without a goodbye"),
            }
        }
    }

    /// The offsets seen: a joined frame stands for all of its own.
    pub(crate) fn offsets(&self) -> Vec<u64> {
        let all = |event: &Value| {
            let last = event["offset"].as_u64().unwrap();
            event["payload"]["fromOffset"].as_u64().unwrap_or(last)..=last
        };
        self.events.iter().flat_map(all).collect()
    }
}
