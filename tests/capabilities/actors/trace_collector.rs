//! A collector of traces: takes what a gateway exports and keeps it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::Authority;

const PATIENCE: Duration = Duration::from_secs(20);

/// A collector that listens until dropped.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    deliveries: Arc<Mutex<Vec<Delivery>>>,
    _listening: JoinSet<()>,
}

/// What a gateway sent, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) head: String,
    pub(crate) body: Value,
    /// None if it was not answered at all.
    pub(crate) status: Option<u16>,
}

/// How it answers.
#[derive(Clone)]
enum Manner {
    Takes,
    /// Says this so many times, then takes.
    Refuses(usize, &'static str),
    /// Reads and says nothing.
    Hangs,
}

impl Collector {
    /// Takes everything.
    pub(crate) async fn start() -> Self {
        Self::listens(free().await, Manner::Takes, None)
    }

    /// Takes everything, where nobody could be reached until now.
    pub(crate) fn comes_up(socket: tokio::net::TcpSocket) -> Self {
        Self::listens(socket.listen(64).unwrap(), Manner::Takes, None)
    }

    /// Answers so many times with this status and these headers, and takes what comes then.
    pub(crate) async fn refusing(times: usize, answer: &'static str) -> Self {
        Self::listens(free().await, Manner::Refuses(times, answer), None)
    }

    /// Reads, and never says a word.
    pub(crate) async fn hanging() -> Self {
        Self::listens(free().await, Manner::Hangs, None)
    }

    /// Over TLS, as `localhost` with a certificate of this authority.
    pub(crate) async fn vouched_for_by(authority: &Authority) -> Self {
        Self::listens(free().await, Manner::Takes, Some(authority.acceptor()))
    }

    fn listens(listener: TcpListener, manner: Manner, tls: Option<TlsAcceptor>) -> Self {
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let deliveries = Arc::<Mutex<Vec<Delivery>>>::default();
        let mut listening = JoinSet::new();
        let kept = Arc::clone(&deliveries);
        listening.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (manner, kept) = (manner.clone(), Arc::clone(&kept));
                match tls.clone() {
                    None => open.spawn(take(stream, manner, kept)),
                    Some(tls) => open.spawn(async move {
                        take(tls.accept(stream).await.ok()?, manner, kept).await
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

    /// Where a gateway is told to export to.
    pub(crate) fn endpoint(&self) -> String {
        match self.scheme {
            "https" => format!("https://localhost:{}", self.address.port()),
            scheme => format!("{scheme}://{}", self.address),
        }
    }

    /// Everything that came, in its order.
    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.deliveries.lock().unwrap().clone()
    }

    /// The heads and bodies of everything that came.
    pub(crate) fn requests(&self) -> Vec<(String, Value)> {
        let deliveries = self.deliveries().into_iter();
        deliveries.map(|one| (one.head, one.body)).collect()
    }

    /// Every span that was taken.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let deliveries = self.deliveries();
        let taken = deliveries.iter().filter(|one| one.status == Some(200));
        taken.flat_map(|one| spans(&one.body)).collect()
    }

    /// Waits until there is a span of each of these names.
    pub(crate) async fn has(&self, names: &[&str]) -> Vec<Value> {
        let is_there = |spans: &[Value], name: &str| spans.iter().any(|span| span["name"] == name);
        self.sees(|collector| {
            let spans = collector.spans();
            names.iter().all(|name| is_there(&spans, name))
        })
        .await;
        self.spans()
    }

    /// Waits until that is so.
    pub(crate) async fn sees(&self, wanted: impl Fn(&Self) -> bool) {
        let seen = async {
            while !wanted(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, seen).await;
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

/// Reads one request and answers it, in that manner.
async fn take(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    manner: Manner,
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
        let answer = match manner {
            Manner::Refuses(times, answer) if kept.len() < times => Some(answer),
            Manner::Hangs => None,
            Manner::Takes | Manner::Refuses(..) => Some("200 OK"),
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
        // Until the gateway has had enough.
        return stream.read_u8().await.ok().map(drop);
    };
    let answer = format!(
        "HTTP/1.1 {answer}\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
    );
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
