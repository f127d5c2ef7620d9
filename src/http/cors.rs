//! CORS: which other origins may call the API.

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, Method};
use tower_http::cors::CorsLayer;

use super::Origin;

/// Allows exactly the configured origins; without any, no CORS header is ever sent.
pub(super) fn layer(origins: &[Origin]) -> CorsLayer {
    let allowed: Vec<HeaderValue> = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(&origin.to_string()).ok())
        .collect();
    if allowed.is_empty() {
        return CorsLayer::new();
    }
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PATCH,
            Method::PUT,
            Method::DELETE,
        ])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            IF_NONE_MATCH,
            HeaderName::from_static("last-event-id"),
        ])
        .expose_headers([ETAG, RETRY_AFTER])
}
