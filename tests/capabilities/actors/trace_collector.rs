//! Trace collector: accepts or refuses what a gateway exports, and records it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::CertificateAuthority;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A collector that listens until dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    _listening: JoinSet<()>,
}

/// One export request, and the status it got.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) head: String,
    pub(crate) body: Value,
    /// `None` without a response.
    pub(crate) status: Option<u16>,
}

#[derive(Clone)]
enum Behavior {
    Accepts,
    /// Answers this many times with this status line and headers, then accepts.
    Refuses(usize, &'static str),
    /// Reads and never answers.
    Hangs,
}

impl Collector {
    /// Accepts everything.
    pub(crate) async fn start() -> Self {
        Self::listens(free().await, Behavior::Accepts, None)
    }

    /// Accepts everything on a socket that was bound but not listening.
    pub(crate) fn start_on(socket: tokio::net::TcpSocket) -> Self {
        Self::listens(socket.listen(64).unwrap(), Behavior::Accepts, None)
    }

    /// Refuses `times` requests with this status and these headers, then accepts.
    pub(crate) async fn refusing(times: usize, answer: &'static str) -> Self {
        Self::listens(free().await, Behavior::Refuses(times, answer), None)
    }

    /// Reads and never answers.
    pub(crate) async fn hanging() -> Self {
        Self::listens(free().await, Behavior::Hangs, None)
    }

    /// Over TLS as `localhost`, with a certificate of this CA.
    pub(crate) async fn with_tls(authority: &CertificateAuthority) -> Self {
        Self::listens(free().await, Behavior::Accepts, Some(authority.acceptor()))
    }

    fn listens(listener: TcpListener, behavior: Behavior, tls: Option<TlsAcceptor>) -> Self {
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let deliveries = Arc::<Mutex<Vec<Delivery>>>::default();
        let mut listening = JoinSet::new();
        let kept = Arc::clone(&deliveries);
        listening.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (behavior, kept) = (behavior.clone(), Arc::clone(&kept));
                match tls.clone() {
                    None => open.spawn(take(stream, behavior, kept)),
                    Some(tls) => open.spawn(async move {
                        take(tls.accept(stream).await.ok()?, behavior, kept).await
                    }),
                };
            }
        });
        Self {
            address,
            scheme,
            deliveries,
            _listening: listening,
        }
    }

    /// The endpoint to configure in a gateway.
    pub(crate) fn endpoint(&self) -> String {
        match self.scheme {
            "https" => format!("https://localhost:{}", self.address.port()),
            scheme => format!("{scheme}://{}", self.address),
        }
    }

    /// Every request, oldest first.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    /// Head and body of every request.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        let deliveries = self.deliveries().into_iter();
        deliveries.map(|one| (one.head, one.body)).collect()
    }

    /// Every accepted span.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let deliveries = self.deliveries();
        let taken = deliveries.iter().filter(|one| one.status == Some(200));
        taken.flat_map(|one| spans(&one.body)).collect()
    }

    /// Waits for a span of each of these names.
    pub(crate) async fn receives_spans(&self, names: &[&str]) -> Vec<Value> {
        let is_there = |spans: &[Value], name: &str| spans.iter().any(|span| span["name"] == name);
        self.waits_until(|collector| {
            let spans = collector.spans();
            names.iter().all(|name| is_there(&spans, name))
        })
        .await;
        self.spans()
    }

    pub(crate) async fn waits_until(&self, wanted: impl Fn(&Self) -> bool) {
        let seen = async {
            while !wanted(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seen = tokio::time::timeout(TIMEOUT, seen).await;
        seen.unwrap_or_else(|_| panic!("only {:?}", self.deliveries()));
    }
}

async fn free() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// The spans of one request.
pub(crate) fn spans(body: &Value) -> Vec<Value> {
    let resources = body["resourceSpans"].as_array().unwrap().iter();
    let scopes = resources.flat_map(|resource| resource["scopeSpans"].as_array().unwrap());
    let spans = scopes.flat_map(|scope| scope["spans"].as_array().unwrap());
    spans.cloned().collect()
}

/// Reads one request and answers it by its behavior.
async fn take(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    behavior: Behavior,
    kept: Arc<Mutex<Vec<Delivery>>>,
) -> Option<()> {
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
    let body = serde_json::from_slice(&body).unwrap();
    let answer = {
        let mut kept = kept.lock().unwrap();
        let answer = match behavior {
            Behavior::Refuses(times, answer) if kept.len() < times => Some(answer),
            Behavior::Hangs => None,
            Behavior::Accepts | Behavior::Refuses(..) => Some("200 OK"),
        };
        kept.push(Delivery {
            at: Instant::now(),
            head,
            body,
            status: answer.map(|answer| answer[..3].parse().unwrap()),
        });
        answer
    };
    let Some(answer) = answer else {
        // Until the gateway closes.
        return stream.read_u8().await.ok().map(drop);
    };
    let answer = format!(
        "HTTP/1.1 {answer}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
