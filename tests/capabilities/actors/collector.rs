//! A collector of traces: takes what a gateway exports and keeps it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(20);

/// A collector that listens until dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    _listening: JoinSet<()>,
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<(String, Value)>>>::default();
        let mut listening = JoinSet::new();
        let kept = Arc::clone(&requests);
        listening.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let request = take(stream).await;
                kept.lock().unwrap().extend(request);
            }
        });
        Self {
            address,
            requests,
            _listening: listening,
        }
    }

    /// Where a gateway is told to export to.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The heads and bodies of everything that came.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        self.requests.lock().unwrap().clone()
    }

    /// Every span that came.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let requests = self.requests();
        let spans = requests
            .iter()
            .flat_map(|(_, body)| body["resourceSpans"].as_array().unwrap())
            .flat_map(|resource| resource["scopeSpans"].as_array().unwrap())
            .flat_map(|scope| scope["spans"].as_array().unwrap());
        spans.cloned().collect()
    }

    /// Waits until there is a span of each of these names.
    pub(crate) async fn has(&self, names: &[&str]) -> Vec<Value> {
        let arrived = async {
            loop {
                let spans = self.spans();
                if names
                    .iter()
                    .all(|name| spans.iter().any(|span| span["name"] == *name))
                {
                    return spans;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let arrived = tokio::time::timeout(PATIENCE, arrived).await;
        arrived.unwrap_or_else(|_| panic!("{names:?} in {:?}", self.spans()))
    }
}

/// Reads one request and answers it.
async fn take(mut stream: TcpStream) -> Option<(String, Value)> {
    let mut received = Vec::new();
    let end = loop {
        let read = stream.read_buf(&mut received).await.ok()?;
        let end = received.windows(4).position(|four| four == b"\r\n\r\n");
        match end {
            Some(end) => break end,
            None if read == 0 => return None,
            None => {}
        }
    };
    let head = String::from_utf8(received[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap();
    let mut body = received.split_off(end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let answer =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(answer).await.ok()?;
    Some((head, serde_json::from_slice(&body).unwrap()))
}
