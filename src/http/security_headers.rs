//! Security headers: set on every response.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// No inline script or style, nothing from other origins, no framing, and no markup or script address made
/// from text: the pages need none. `blob:` is for images that the
/// page fetched itself. All pages are in one directory, so the relative `report-uri` fits each.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'; report-uri api/csp-reports";

#[derive(Clone, Debug)]
pub(super) struct SecurityHeaders(HeaderMap);

impl SecurityHeaders {
    pub(super) fn new(https: bool) -> Self {
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        set(CONTENT_SECURITY_POLICY, CONTENT_POLICY);
        set(X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(X_FRAME_OPTIONS, "DENY");
        set(REFERRER_POLICY, "no-referrer");
        set(
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        );
        set(
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        );
        set(
            HeaderName::from_static("permissions-policy"),
            "camera=(), geolocation=(), microphone=()",
        );
        if https {
            set(STRICT_TRANSPORT_SECURITY, "max-age=31536000");
        }
        Self(headers)
    }
}

/// Adds the headers that the handler has not set. Without `Cache-Control`, a response is not cached.
pub(super) async fn add_headers(
    State(SecurityHeaders(headers)): State<SecurityHeaders>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in &headers {
        let entry = response.headers_mut().entry(name);
        entry.or_insert_with(|| value.clone());
    }
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
