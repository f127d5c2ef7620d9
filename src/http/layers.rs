//! Layers: the middleware stack around the routes, outermost first.

use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Response;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::timeout::{RequestBodyDeadlineLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;

use super::host_and_origin::Origins;
use super::security_headers::SecurityHeaders;
use super::{
    AppState, Config, caller, cors, error, host_and_origin, metrics, request_id, security_headers,
};
use crate::domain::id;

const MAX_JSON_BYTES: usize = 64 * 1024;

pub(super) fn around_all(
    router: Router,
    config: &Config,
    state: &AppState,
    origins: Origins,
) -> Router {
    let security_headers = SecurityHeaders::new(origins.public().is_https());
    router.layer(
        ServiceBuilder::new()
            .layer(from_fn_with_state(
                config.proxies(),
                caller::resolve_address,
            ))
            .layer(SetRequestIdLayer::x_request_id(NewRequestId))
            .layer(PropagateRequestIdLayer::x_request_id())
            .layer(
                TraceLayer::new_for_http()
                    .make_span_with(request_span)
                    .on_response(log_response)
                    // Failures are logged where they are handled.
                    .on_failure(()),
            )
            .layer(from_fn_with_state(state.metrics.clone(), metrics::measure))
            .layer(from_fn_with_state(
                security_headers,
                security_headers::add_headers,
            ))
            .layer(from_fn(error::render))
            .layer(CatchPanicLayer::custom(error::panicked))
            .layer(from_fn_with_state(origins, host_and_origin::check))
            .layer(cors::layer(&config.allowed_origins))
            .layer(state.limits.request_layer(error::rate_limited)),
    )
}

pub(super) fn with_deadlines(router: Router, config: &Config) -> Router {
    with_body_limits(router, config).layer(TimeoutLayer::with_status_code(
        StatusCode::REQUEST_TIMEOUT,
        config.request_timeout(),
    ))
}

/// Body deadline and size; the response may take as long as it needs.
pub(super) fn with_body_limits(router: Router, config: &Config) -> Router {
    router.layer(
        ServiceBuilder::new()
            .layer(RequestBodyDeadlineLayer::new(config.body_timeout()))
            .layer(DefaultBodyLimit::max(MAX_JSON_BYTES)),
    )
}

#[derive(Clone)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        let id = HeaderValue::from_str(&id::RequestId::new().to_string()).ok()?;
        Some(RequestId::new(id))
    }
}

fn request_span(request: &Request) -> tracing::Span {
    // An unknown path may hold anything that was typed or pasted, even a secret: it is not logged.
    let is_known = request.extensions().get::<MatchedPath>().is_some();
    let path = if is_known {
        request.uri().path()
    } else {
        "(none)"
    };
    tracing::info_span!(
        "request",
        request.id = request_id(request),
        method = metrics::known_method(request.method()),
        path,
    )
}

fn log_response(response: &Response, took: Duration, _span: &tracing::Span) {
    tracing::debug!(
        status = response.status().as_u16(),
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "a request was answered"
    );
}
