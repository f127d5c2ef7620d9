//! Headers that every response carries to make browsers careful.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

/// No inline script or style, nothing from elsewhere, nobody may frame us. `blob:` is a picture that
/// the page has fetched itself. All pages stand side by side, so the address for reports is right for each.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     report-uri api/csp-reports";

/// The headers of this gateway.
#[derive(Clone, Debug)]
pub(super) struct Headers(HeaderMap);

impl Headers {
    pub(super) fn new(https: bool) -> Self {
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, value: &'static str| {
            headers.insert(name, HeaderValue::from_static(value));
        };
        set(CONTENT_SECURITY_POLICY, POLICY);
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

/// Adds them; what a handler says stays. What says nothing about caching is not to be kept.
pub(super) async fn harden(
    State(Headers(headers)): State<Headers>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in &headers {
        let said = response.headers_mut().entry(name);
        said.or_insert_with(|| value.clone());
    }
    response
        .headers_mut()
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}
