//! Exporter: delivers spans to an OTLP collector; nothing ever waits for it.
//!
//! One task per gateway. A failed batch is retried with backoff; meanwhile the queue fills, and spans that
//! find it full are lost, as are batches that were rejected or retried too often. All losses are counted.
//! An unreachable collector is logged once, and once more when it is back.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::otlp;
use super::otlp_config::Destination;
use super::retry::{Backoff, is_retriable, retry_after};
use super::trace::{Finished, Tracer};
use crate::clock::Clock;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LossLabels {
    reason: &'static str,
}

/// Reasons for lost spans; values of the label `reason`.
const REASONS: [&str; 3] = ["queue_full", "rejected", "not_delivered"];

#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("it does not answer in time")]
    Late,
    #[error("{0}")]
    Line(#[from] std::io::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("it answers with status {status}")]
    Refused {
        status: StatusCode,
        retry_after: Option<Duration>,
    },
    #[error("the request cannot be made")]
    Request(#[from] hyper::http::Error),
}

impl ExportError {
    fn is_retriable(&self) -> bool {
        match self {
            Self::Late | Self::Line(_) | Self::Http(_) => true,
            Self::Refused { status, .. } => is_retriable(*status),
            Self::Request(_) => false,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The traces of one gateway: tracer and exporter. Both do nothing without a destination.
#[derive(Default)]
pub(crate) struct Traces {
    tracer: Tracer,
    exporting: Option<Exporting>,
}

struct Exporting {
    task: JoinHandle<()>,
    finish: CancellationToken,
    exported: Counter,
    lost: Family<LossLabels, Counter>,
}

impl Traces {
    pub(crate) fn start(destination: Option<Destination>, clock: &Clock) -> Self {
        let Some(destination) = destination else {
            return Self::default();
        };
        let connector = match connector(&destination) {
            Ok(connector) => connector,
            Err(error) => {
                tracing::warn!(%error, "traces are off: cannot use the collector's certificate");
                return Self::default();
            }
        };
        let (exported, lost) = (Counter::default(), Family::<LossLabels, Counter>::default());
        let lost_for = |reason| lost.get_or_create_owned(&LossLabels { reason });
        let (queue, waiting) = mpsc::channel(destination.queue);
        let sampler = destination.sampler;
        let tracer = Tracer::new(sampler, clock.clone(), queue, lost_for("queue_full"));
        let finish = CancellationToken::new();
        let exporter = Exporter {
            destination,
            connector,
            waiting,
            clock: clock.clone(),
            backoff: Backoff::DEFAULT,
            exported: exported.clone(),
            rejected: lost_for("rejected"),
            not_delivered: lost_for("not_delivered"),
            is_reachable: true,
        };
        let task = TaskTracker::new().spawn(exporter.run(finish.clone()));
        Self {
            tracer,
            exporting: Some(Exporting {
                task,
                finish,
                exported,
                lost,
            }),
        }
    }

    pub(crate) fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        let none = (Counter::default(), Family::default());
        let (exported, lost) = self.exporting.as_ref().map_or(none, |exporting| {
            (exporting.exported.clone(), exporting.lost.clone())
        });
        for reason in REASONS {
            lost.get_or_create_owned(&LossLabels { reason });
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

    /// Flushes the queue within a timeout; each batch is tried once.
    pub(crate) async fn finish(self, timeout: Duration) {
        let Some(mut exporting) = self.exporting else {
            return;
        };
        exporting.finish.cancel();
        if tokio::time::timeout(timeout, &mut exporting.task)
            .await
            .is_err()
        {
            exporting.task.abort();
            tracing::warn!("the last traces could not be delivered in time");
        }
    }
}

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
            if roots.is_empty() {
                return Err("there is none in the file".to_owned());
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
    clock: Clock,
    backoff: Backoff,
    exported: Counter,
    rejected: Counter,
    not_delivered: Counter,
    is_reachable: bool,
}

impl Exporter {
    /// Runs until told to finish, or every tracer is gone.
    async fn run(mut self, finish: CancellationToken) {
        let most = self.destination.batch;
        let mut batch = Vec::new();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = finish.cancelled() => break,
                () = tokio::time::sleep_until(due), if !batch.is_empty() => {
                    self.export(&mut batch, &finish).await;
                }
                taken = self.waiting.recv_many(&mut batch, most) => match taken {
                    0 => break,
                    // Traces are not urgent: collect a batch for a while.
                    taken if taken == batch.len() => due = Instant::now() + self.destination.delay,
                    _ => {}
                },
            }
            if batch.len() >= most {
                self.export(&mut batch, &finish).await;
            }
        }
        self.waiting.close();
        while self.waiting.recv_many(&mut batch, most).await > 0 {
            self.export(&mut batch, &finish).await;
        }
        if !batch.is_empty() {
            self.export(&mut batch, &finish).await;
        }
    }

    /// Delivers a batch, with retries, or counts it as lost. After `finish` it tries once more, at once.
    async fn export(&mut self, batch: &mut Vec<Finished>, finish: &CancellationToken) {
        let body = Bytes::from(otlp::body(&self.destination.resource, batch));
        let many = batch.len() as u64;
        batch.clear();
        for failures in 1.. {
            let is_last = finish.is_cancelled();
            let sent = tokio::time::timeout(self.destination.timeout, self.send(body.clone()));
            let Err(error) = sent.await.unwrap_or(Err(ExportError::Late)) else {
                self.exported.inc_by(many);
                return self.arrived();
            };
            let wait = self
                .backoff
                .wait(failures, error.retry_after(), jitter())
                .filter(|_| error.is_retriable() && !is_last);
            // A short outage is not logged.
            if wait.is_none() || failures > 1 {
                self.failed(&error);
            }
            let Some(wait) = wait else {
                let lost = match error {
                    ExportError::Refused { status, .. } if !is_retriable(status) => &self.rejected,
                    _ => &self.not_delivered,
                };
                lost.inc_by(many);
                return;
            };
            tokio::select! {
                biased;
                () = finish.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn arrived(&mut self) {
        if !self.is_reachable {
            let collector = self.destination.place();
            tracing::info!(collector, "the trace collector is reachable again");
        }
        self.is_reachable = true;
    }

    fn failed(&mut self, error: &ExportError) {
        if self.is_reachable {
            let collector = self.destination.place();
            tracing::warn!(%error, collector, "cannot deliver traces; retrying, and counting what is lost");
        }
        self.is_reachable = false;
    }

    async fn send(&self, body: Bytes) -> Result<(), ExportError> {
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

    async fn post<L>(&self, line: L, body: Bytes) -> Result<(), ExportError>
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
        let request = request.body(Full::new(body))?;
        let mut answer = pin!(async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            if status.is_success() {
                return Ok(());
            }
            let asked = response.headers().get(RETRY_AFTER);
            let asked = asked.and_then(|text| text.to_str().ok());
            Err(ExportError::Refused {
                status,
                retry_after: asked.and_then(|text| retry_after(text, self.clock.wall())),
            })
        });
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            // A collector may answer and close at the same time: the answer counts.
            _ = talk => answer.await,
        }
    }
}

fn jitter() -> u8 {
    let mut byte = [0];
    aws_lc_rs::rand::fill(&mut byte).expect("the system has randomness");
    byte[0]
}

#[cfg(test)]
mod tests;
