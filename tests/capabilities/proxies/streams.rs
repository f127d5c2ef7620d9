//! Streams through proxies: every event arrives at once, and none is missed after a disconnect.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{behind, logs_in, tls_connection};
use crate::actors::{Caddy, Nginx, PASSWORD, Ports, asyncapi};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Words of the answer, and the pause between them in ms.
const WORDS: usize = 6;
const PACE_MS: u64 = 500;

async fn arrives<T>(coming: impl Future<Output = T>) -> T {
    let arrived = tokio::time::timeout(TIMEOUT, coming).await;
    arrived.expect("something arrives")
}

/// A client behind the proxy.
struct ProxiedClient<'a> {
    ports: &'a Ports,
    base_path: &'a str,
    token: String,
    session: String,
}

impl<'a> ProxiedClient<'a> {
    fn enters(ports: &'a Ports, base_path: &'a str) -> Self {
        let (_, printed) = logs_in(ports, "127.0.0.1", base_path, PASSWORD, &[]);
        let mut visitor = Self {
            ports,
            base_path,
            token: printed["token"].as_str().unwrap().to_owned(),
            session: String::new(),
        };
        let session = visitor.posts("/api/sessions", &json!({}), 201);
        let id = session["id"].as_str().unwrap();
        id.clone_into(&mut visitor.session);
        visitor
    }

    fn posts(&self, path: &str, body: &Value, expected: u16) -> Value {
        let token = format!("Authorization: Bearer {}", self.token);
        let (path, body) = (format!("{}{path}", self.base_path), body.to_string());
        let arguments = ["--header", &token, "--json", &body];
        let (status, printed) = self.ports.curl("127.0.0.1", &path, &arguments);
        assert_eq!(status, expected, "{printed}");
        serde_json::from_str(&printed).unwrap()
    }

    fn prompts(&self, text: &str) {
        let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } });
        self.posts(
            &format!("/api/sessions/{}/commands", self.session),
            &prompt,
            200,
        );
    }

    /// Opens the stream, resuming after `last_id` if given.
    async fn follows(&self, last_id: Option<&str>) -> Stream {
        let line = TokioIo::new(tls_connection(self.ports).await);
        let (mut sender, talk) = hyper::client::conn::http1::handshake(line).await.unwrap();
        let mut talking = JoinSet::new();
        talking.spawn(async move { talk.await.ok() });
        let path = format!("{}/api/sessions/{}/stream", self.base_path, self.session);
        let mut request = Request::get(path)
            .header("host", format!("localhost:{}", self.ports.https))
            .header("authorization", format!("Bearer {}", self.token));
        if let Some(id) = last_id {
            request = request.header("last-event-id", id);
        }
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = arrives(sender.send_request(request)).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Stream {
            body: response.into_body(),
            received: String::new(),
            last_id: None,
            talking,
        }
    }
}

/// An open stream.
struct Stream {
    body: Incoming,
    received: String,
    last_id: Option<String>,
    talking: JoinSet<Option<()>>,
}

/// A journal event, and when it arrived.
struct Event {
    envelope: Value,
    arrived: Timestamp,
}

impl Event {
    fn offset(&self) -> u64 {
        self.envelope["offset"].as_u64().unwrap()
    }

    fn shown(&self) -> Timestamp {
        self.envelope["timestamp"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    }

    fn is_word(&self) -> bool {
        let payload = &self.envelope["payload"];
        self.envelope["type"] == "TASK_OUTPUT_CHUNK" && payload["content"] != ""
    }

    fn is_end(&self) -> bool {
        self.envelope["type"] == "TASK_STATUS_UPDATE"
            && self.envelope["payload"]["status"] == "completed"
    }
}

impl Stream {
    /// Closes the connection; a proxy would wait for that before it ends.
    async fn disconnects(mut self) {
        self.talking.shutdown().await;
    }

    /// The next envelope.
    async fn envelope(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.received.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.received = rest;
                let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
                // A comment is a keepalive.
                let Some(data) = field("data: ") else {
                    continue;
                };
                assert_eq!(field("event: "), None, "{event}");
                self.last_id = field("id: ").map(str::to_owned).or(self.last_id.take());
                let envelope = serde_json::from_str(data).unwrap();
                asyncapi::check_gateway_message(&envelope);
                return envelope;
            }
            let more = arrives(self.body.frame()).await;
            let more = more.expect("it is open").unwrap();
            let bytes = more.into_data().unwrap();
            self.received += std::str::from_utf8(&bytes).unwrap();
        }
    }

    /// The next journal event.
    async fn event(&mut self) -> Event {
        loop {
            let envelope = self.envelope().await;
            if envelope["offset"].is_u64() && envelope["type"] != "FULL_STATE" {
                let arrived = Timestamp::now();
                return Event { envelope, arrived };
            }
        }
    }
}

/// Follows a slow run through the proxy, with a disconnect in its middle and a second stream.
async fn a_slow_run_is_seen_word_by_word(ports: &Ports, base_path: &str) {
    let visitor = ProxiedClient::enters(ports, base_path);
    let mut stream = visitor.follows(None).await;
    assert_eq!(stream.envelope().await["type"], "CONNECTION_ACK");
    visitor.prompts(&format!("/stream {WORDS} {PACE_MS}"));
    let mut events = Vec::new();
    while events
        .iter()
        .filter(|event: &&Event| event.is_word())
        .count()
        < WORDS / 2
    {
        events.push(stream.event().await);
    }
    let last_id = stream.last_id.clone().unwrap();
    stream.disconnects().await;

    let mut stream = visitor.follows(Some(&last_id)).await;
    let ack = stream.envelope().await;
    assert_eq!(ack["payload"]["resume"], "replayed", "{ack}");
    while !events.last().is_some_and(Event::is_end) {
        events.push(stream.event().await);
    }
    stream.disconnects().await;
    let offsets: Vec<u64> = events.iter().map(Event::offset).collect();
    let all: Vec<u64> = (1..=offsets.len() as u64).collect();
    assert_eq!(offsets, all, "each once, none missed");

    let words: Vec<&Event> = events.iter().filter(|event| event.is_word()).collect();
    assert_eq!(words.len(), WORDS);
    for pair in words.windows(2) {
        // A proxy that buffers delivers events together with later ones.
        assert!(
            pair[0].arrived < pair[1].shown(),
            "{} arrived only at {}, after {} had been said",
            pair[0].envelope,
            pair[0].arrived,
            pair[1].envelope
        );
    }
}

// Several threads: the connection closes while the proxy's end is awaited.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_run_streams_word_by_word_through_nginx() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let _nginx = Nginx::start(&ports, gateway.address(), &[]);
    a_slow_run_is_seen_word_by_word(&ports, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_run_streams_word_by_word_through_caddy() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    let _caddy = Caddy::start(&ports, gateway.address(), "");
    a_slow_run_is_seen_word_by_word(&ports, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_run_streams_word_by_word_under_a_base_path_through_both() {
    let ports = Ports::new();
    let settings = behind(&ports).with("SERVER__BASE_PATH", "/agents");
    let gateway = settings.start().await;
    {
        let change = [("    location / {", "    location /agents/ {")];
        let _nginx = Nginx::start(&ports, gateway.address(), &change);
        a_slow_run_is_seen_word_by_word(&ports, "/agents").await;
    }
    let _caddy = Caddy::start(&ports, gateway.address(), "/agents");
    a_slow_run_is_seen_word_by_word(&ports, "/agents").await;
}

#[tokio::test(flavor = "multi_thread")]
#[should_panic(expected = "something arrives")]
async fn a_proxy_that_buffers_events_is_detected() {
    let ports = Ports::new();
    let gateway = behind(&ports).start().await;
    // The gateway's `X-Accel-Buffering` must go as well.
    let change = [(
        "proxy_buffering off;",
        "proxy_ignore_headers X-Accel-Buffering;",
    )];
    let _nginx = Nginx::start(&ports, gateway.address(), &change);
    a_slow_run_is_seen_word_by_word(&ports, "").await;
}
