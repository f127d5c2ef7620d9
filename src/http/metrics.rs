//! Metrics: the counters of the HTTP side, and `/metrics`.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::AppState;
use super::caller::Administrator;
use super::error::ApiError;
use crate::auth::bearer;
use crate::domain::error_code::ErrorCode;
use crate::domain::secret::Secret;
use crate::store::{Failures, StoreOperation};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const DURATION_BUCKETS_SECS: [f64; 10] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    /// The pattern of the route, not the path: the number of series stays bounded.
    route: String,
    status: u16,
}

/// Counters of the HTTP side. Clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    durations: Histogram,
    pub(super) open_connections: Gauge,
    pub(super) refused_connections: Counter,
    pub(super) policy_reports: Counter,
    uploading: Gauge,
    uploads: Family<UploadLabels, Counter>,
    uploaded_bytes: Counter,
    pub(super) failures: Failures,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct UploadLabels {
    outcome: &'static str,
}

impl Metrics {
    /// Registers the counters, all at zero.
    pub(crate) fn new(registry: &mut Registry, failures: Failures) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Histogram::new(DURATION_BUCKETS_SECS),
            open_connections: Gauge::default(),
            refused_connections: Counter::default(),
            policy_reports: Counter::default(),
            uploading: Gauge::default(),
            uploads: Family::default(),
            uploaded_bytes: Counter::default(),
            failures,
        };
        registry.register(
            "http_requests",
            "Requests answered",
            metrics.requests.clone(),
        );
        registry.register(
            "http_request_duration_seconds",
            "Time from the request's head to the response's head",
            metrics.durations.clone(),
        );
        registry.register(
            "http_connections_open",
            "TCP connections open now",
            metrics.open_connections.clone(),
        );
        registry.register(
            "http_connections_refused",
            "TCP connections closed at once because a cap was reached",
            metrics.refused_connections.clone(),
        );
        registry.register(
            "csp_reports",
            "Things that browsers have blocked on the pages",
            metrics.policy_reports.clone(),
        );
        registry.register(
            "uploads_running",
            "Files that are being uploaded",
            metrics.uploading.clone(),
        );
        for outcome in ["stored", "refused"] {
            drop(
                metrics
                    .uploads
                    .get_or_create_owned(&UploadLabels { outcome }),
            );
        }
        registry.register(
            "uploads",
            "Uploads of files: stored or refused",
            metrics.uploads.clone(),
        );
        registry.register(
            "uploaded_bytes",
            "Bytes of files that were stored",
            metrics.uploaded_bytes.clone(),
        );
        metrics
    }

    /// Counts an upload: stored with this size, or refused.
    pub(super) fn count_upload(&self, stored_bytes: Option<u64>) {
        let outcome = if stored_bytes.is_some() {
            "stored"
        } else {
            "refused"
        };
        self.uploads.get_or_create(&UploadLabels { outcome }).inc();
        self.uploaded_bytes.inc_by(stored_bytes.unwrap_or_default());
    }
}

/// Counts an upload as running until dropped.
pub(super) struct Uploading(Gauge);

impl Uploading {
    pub(super) fn new(metrics: &Metrics) -> Self {
        metrics.uploading.inc();
        Self(metrics.uploading.clone())
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.0.dec();
    }
}

pub(super) async fn measure(
    State(metrics): State<Metrics>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = known_method(request.method());
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("(none)", MatchedPath::as_str)
        .to_owned();
    let response = next.run(request).await;
    let labels = RequestLabels {
        method,
        route,
        status: response.status().as_u16(),
    };
    let code = response.extensions().get::<ErrorCode>();
    if code == Some(&ErrorCode::StorageUnavailable) {
        metrics.failures.count(StoreOperation::Request);
    }
    metrics.requests.get_or_create(&labels).inc();
    metrics.durations.observe(started.elapsed().as_secs_f64());
    response
}

/// Bounds the label: a client can invent methods.
pub(super) fn known_method(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "(other)",
    }
}

/// Shows the metrics for Prometheus, to the scrape token or an administrator.
#[utoipa::path(
    get, path = "/metrics", tag = "operation",
    security(("bearer" = [])),
    responses((status = 200, description = "Metrics in the OpenMetrics format", body = String, content_type = "text/plain"))
)]
pub(super) async fn get_metrics(
    State(state): State<AppState>,
    request: Request,
) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let presented = bearer(&parts.headers).unwrap_or_default();
    if !state
        .metrics_token
        .as_ref()
        .as_ref()
        .is_some_and(|token| is_same(token, presented))
    {
        <Administrator as axum::extract::FromRequestParts<AppState>>::from_request_parts(
            &mut parts, &state,
        )
        .await?;
    }
    Ok(encode_metrics(Arc::clone(&state.registry)).await)
}

/// Without authentication, for the separate listener.
pub(super) async fn get_metrics_openly(State(registry): State<Arc<Registry>>) -> Response {
    encode_metrics(registry).await
}

/// Some collectors read files: not on an async thread.
async fn encode_metrics(registry: Arc<Registry>) -> Response {
    let written = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        encode(&mut text, &registry).map(|()| text)
    });
    match written.await.unwrap_or(Err(std::fmt::Error)) {
        Ok(text) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot encode the metrics");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// In constant time.
fn is_same(token: &Secret, presented: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(
        token.expose().as_bytes(),
        presented.as_bytes(),
    )
    .is_ok()
}
