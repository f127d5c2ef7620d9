//! Brings spans to a collector, and lets nobody wait for it.
//!
//! One task per gateway. What does not arrive is lost and counted; that the collector cannot be
//! reached is logged once, and once more when it can.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::destination::Destination;
use super::otlp;
use super::trace::{Finished, Tracer};
use crate::clock::Clock;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Losing {
    reason: &'static str,
}

/// Why a batch did not arrive.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("it does not answer in time")]
    Late,
    #[error("{0}")]
    Line(#[from] std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("it answers with status {0}")]
    Refused(StatusCode),
    #[error("the request cannot be made")]
    Request(#[from] hyper::http::Error),
}

/// The traces of one gateway: where they are made, and what brings them away. Nothing, without a
/// destination.
#[derive(Default)]
pub(crate) struct Traces {
    tracer: Tracer,
    exporting: Option<Exporting>,
}

struct Exporting {
    tracker: TaskTracker,
    finish: CancellationToken,
    exported: Counter,
    lost: Family<Losing, Counter>,
}

impl Traces {
    /// Starts to export.
    pub(crate) fn start(destination: Option<Destination>, clock: &Clock) -> Self {
        let Some(destination) = destination else {
            return Self::default();
        };
        let connector = match connector(&destination) {
            Ok(connector) => connector,
            Err(error) => {
                tracing::warn!(%error, "traces are off: the certificate for their collector cannot be used");
                return Self::default();
            }
        };
        let (exported, lost) = (Counter::default(), Family::<Losing, Counter>::default());
        let lost_for = |reason| lost.get_or_create_owned(&Losing { reason });
        let (queue, waiting) = mpsc::channel(destination.queue);
        let sampler = destination.sampler;
        let tracer = Tracer::new(sampler, clock.clone(), queue, lost_for("queue_full"));
        let (tracker, finish) = (TaskTracker::new(), CancellationToken::new());
        let exporter = Exporter {
            destination,
            connector,
            waiting,
            exported: exported.clone(),
            lost: lost_for("not_delivered"),
            is_reachable: true,
        };
        tracker.spawn(exporter.run(finish.clone()));
        tracker.close();
        Self {
            tracer,
            exporting: Some(Exporting {
                tracker,
                finish,
                exported,
                lost,
            }),
        }
    }

    pub(crate) fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Puts its counters under their names.
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        let none = (Counter::default(), Family::default());
        let (exported, lost) = self.exporting.as_ref().map_or(none, |exporting| {
            (exporting.exported.clone(), exporting.lost.clone())
        });
        for reason in ["queue_full", "not_delivered"] {
            lost.get_or_create_owned(&Losing { reason });
        }
        registry.register(
            "trace_spans_exported",
            "Spans that a collector has taken",
            exported,
        );
        registry.register(
            "trace_spans_lost",
            "Spans that no collector has taken",
            lost,
        );
    }

    /// Brings away what is left, within a while.
    pub(crate) async fn finish(self, patience: Duration) {
        let Some(exporting) = self.exporting else {
            return;
        };
        exporting.finish.cancel();
        if tokio::time::timeout(patience, exporting.tracker.wait())
            .await
            .is_err()
        {
            tracing::warn!("the last traces were not delivered in time");
        }
    }
}

/// What vouches for a collector over TLS.
fn connector(destination: &Destination) -> Result<Option<TlsConnector>, String> {
    if !destination.is_https() {
        return Ok(None);
    }
    let mut roots = RootCertStore::empty();
    match &destination.certificate {
        Some(path) => {
            let read = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
            for certificate in read {
                let certificate = certificate.map_err(|error| error.to_string())?;
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = tokio_rustls::rustls::crypto::aws_lc_rs::default_provider();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(TlsConnector::from(Arc::new(config))))
}

struct Exporter {
    destination: Destination,
    connector: Option<TlsConnector>,
    waiting: mpsc::Receiver<Finished>,
    exported: Counter,
    lost: Counter,
    is_reachable: bool,
}

impl Exporter {
    /// Runs until told to finish, or nobody makes spans any more.
    async fn run(mut self, finish: CancellationToken) {
        let most = self.destination.batch;
        let mut batch = Vec::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = finish.cancelled() => break,
                () = tokio::time::sleep_until(due), if !batch.is_empty() => {
                    self.export(&mut batch).await;
                }
                taken = self.waiting.recv_many(&mut batch, most) => match taken {
                    0 => break,
                    // Nobody looks at a trace at once: what comes soon goes along.
                    taken if taken == batch.len() => due = Instant::now() + self.destination.delay,
                    _ => {}
                },
            }
            if batch.len() >= most {
                self.export(&mut batch).await;
            }
        }
        self.waiting.close();
        while self.waiting.recv_many(&mut batch, most).await > 0 {
            self.export(&mut batch).await;
        }
        if !batch.is_empty() {
            self.export(&mut batch).await;
        }
    }

    async fn export(&mut self, batch: &mut Vec<Finished>) {
        let (body, many) = (otlp::body(&self.destination.resource, batch), batch.len());
        batch.clear();
        let sent = tokio::time::timeout(self.destination.timeout, self.send(body)).await;
        match sent.unwrap_or(Err(ExportError::Late)) {
            Ok(()) => {
                self.exported.inc_by(many as u64);
                if !self.is_reachable {
                    tracing::info!(
                        collector = self.destination.place(),
                        "traces are delivered again"
                    );
                }
                self.is_reachable = true;
            }
            Err(error) => {
                self.lost.inc_by(many as u64);
                if self.is_reachable {
                    tracing::warn!(%error, collector = self.destination.place(), "traces cannot be delivered; said once, counted from now on");
                }
                self.is_reachable = false;
            }
        }
    }

    async fn send(&self, body: Vec<u8>) -> Result<(), ExportError> {
        let (host, port) = self.destination.host_and_port();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let line = TcpStream::connect((bare, port)).await?;
        match &self.connector {
            None => self.post(line, body).await,
            Some(connector) => {
                let name = ServerName::try_from(bare.to_owned()).map_err(std::io::Error::other)?;
                self.post(connector.connect(name, line).await?, body).await
            }
        }
    }

    async fn post<L>(&self, line: L, body: Vec<u8>) -> Result<(), ExportError>
    where
        L: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, talk) = http1::handshake(TokioIo::new(line)).await?;
        let url = &self.destination.url;
        let path = url.path_and_query().map_or("/", |path| path.as_str());
        let place = url.authority().map_or("", |place| place.as_str());
        let mut request = Request::post(path)
            .header(HOST, place)
            .header(CONTENT_TYPE, "application/json")
            .header(
                USER_AGENT,
                concat!("switchboard/", env!("CARGO_PKG_VERSION")),
            );
        for (name, value) in &self.destination.headers.0 {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        let mut answer = pin!(async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            if status.is_success() {
                Ok(())
            } else {
                Err(ExportError::Refused(status))
            }
        });
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // A collector may answer and hang up in one breath: the answer counts.
            _ = talk => answer.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_collector_that_answers_and_hangs_up_at_once_has_taken_the_spans() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), endpoint)];
        let exporter = Exporter {
            destination: Destination::from_variables(variables).unwrap().unwrap(),
            connector: None,
            waiting: mpsc::channel(1).1,
            exported: Counter::default(),
            lost: Counter::default(),
            is_reachable: true,
        };
        let collector = async {
            let (mut line, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"{}") {
                assert_ne!(line.read_buf(&mut asked).await.unwrap(), 0);
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            line.write_all(answer).await.unwrap();
        };
        let (sent, ()) = tokio::join!(exporter.send(b"{}".to_vec()), collector);
        sent.unwrap();
    }
}
