//! What the doors count, and `/metrics`.

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
use crate::domain::secret::Secret;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const DURATION_BUCKETS_SECS: [f64; 10] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    method: &'static str,
    /// The route's pattern, never the path itself: its values are bounded.
    route: String,
    status: u16,
}

/// Counters of the HTTP doors. Clones share their counts.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<Labels, Counter>,
    durations: Histogram,
    /// Connections open now.
    pub(super) open_connections: Gauge,
    /// Connections closed at once because a cap was reached.
    pub(super) refused_connections: Counter,
    /// Reports of browsers about the content security policy.
    pub(super) policy_reports: Counter,
}

impl Metrics {
    /// Counts from zero, under these names.
    pub(crate) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            requests: Family::default(),
            durations: Histogram::new(DURATION_BUCKETS_SECS),
            open_connections: Gauge::default(),
            refused_connections: Counter::default(),
            policy_reports: Counter::default(),
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
        metrics
    }
}

/// Counts a request and how long it took.
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
    let labels = Labels {
        method,
        route,
        status: response.status().as_u16(),
    };
    metrics.requests.get_or_create(&labels).inc();
    metrics.durations.observe(started.elapsed().as_secs_f64());
    response
}

/// A client can invent methods; labels must stay few.
fn known_method(method: &axum::http::Method) -> &'static str {
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

/// Metrics for Prometheus: for whoever has the scrape token, or an administrator.
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
    Ok(exposition(&state.registry))
}

/// The same without asking who it is, for a listener of its own.
pub(super) async fn get_metrics_openly(State(registry): State<Arc<Registry>>) -> Response {
    exposition(&registry)
}

fn exposition(registry: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written down");
            axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// In time that does not depend on where they differ.
fn is_same(token: &Secret, presented: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(
        token.expose().as_bytes(),
        presented.as_bytes(),
    )
    .is_ok()
}
