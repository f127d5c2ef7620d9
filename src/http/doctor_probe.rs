//! `/api/probe`: reports to `switchboard doctor --url` how its requests arrive.
//!
//! Needs a doctor pass, which only the gateway's signing key can make. Without one the response is
//! that of an unknown path.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{FromRef, FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};

use super::accept_loop::HttpConnection;
use super::attachments;
use super::caller::Peer;
use super::error::ApiError;
use super::extract::Json;
use super::host_and_origin::Origins;
use super::sse::HEADERS;
use super::{AppState, Config};
use crate::auth::{Auth, bearer};
use crate::limits::{ClientAddress, TrustedProxies};

/// Between the two events of the stream: long enough to notice a proxy that buffers.
const EVENT_INTERVAL: Duration = Duration::from_secs(2);
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Clone)]
pub(super) struct Context {
    pub(super) origins: Origins,
    pub(super) proxies: TrustedProxies,
    pub(super) base_path: String,
}

impl Context {
    pub(super) fn new(config: &Config, origins: &Origins) -> Arc<Self> {
        Arc::new(Self {
            origins: origins.clone(),
            proxies: config.proxies(),
            base_path: config.base_path.clone(),
        })
    }
}

/// Not in the OpenAPI document: only the doctor uses them.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/probe", get(report_request))
        .route("/api/probe/stream", get(stream_two_events))
        .route("/api/probe/upload", post(discard_upload))
}

struct ProbePass;

impl<S: Send + Sync> FromRequestParts<S> for ProbePass
where
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = Auth::from_ref(state);
        let is_valid = bearer(&parts.headers).is_some_and(|pass| auth.accepts_doctor_pass(pass));
        is_valid.then_some(Self).ok_or_else(ApiError::no_such_path)
    }
}

async fn report_request(
    _: ProbePass,
    State(state): State<AppState>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(address): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Json<Value> {
    let expected = &state.probe;
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    let hosts = all(HOST.as_str());
    let limits = &state.shared.limits;
    Json(json!({
        "publicUrl": expected.origins.public(),
        "basePath": expected.base_path,
        "host": hosts.join(", "),
        "hostIsKnown": hosts.len() == 1 && expected.origins.allows_host(&hosts[0]),
        "peer": peer.ip().to_canonical(),
        "peerIsTrusted": expected.proxies.contains(peer.ip()),
        "forwardedFor": all("x-forwarded-for").join(", "),
        "address": address.ip,
        "attachmentBytes": limits.attachment_bytes,
        "pingSecs": state.shared.ping_interval.as_secs(),
    }))
}

/// One event at once and one later, with the headers of every event stream.
async fn stream_two_events(_: ProbePass) -> Response {
    let events = stream::unfold(0, |sent| async move {
        match sent {
            0 => {}
            1 => tokio::time::sleep(EVENT_INTERVAL).await,
            _ => return None,
        }
        let event = Bytes::from(format!("data: {sent}\n\n"));
        Some((Ok::<_, Infallible>(event), sent + 1))
    });
    (HEADERS, Body::from_stream(events)).into_response()
}

/// Receives a body as an upload would, and keeps nothing.
async fn discard_upload(
    _: ProbePass,
    State(state): State<AppState>,
    Extension(connection): Extension<HttpConnection>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    connection.start_transfer(UPLOAD_TIMEOUT);
    let max = state.shared.limits.attachment_bytes.get();
    let mut chunks = request.into_body().into_data_stream();
    let received = attachments::count_bytes(&mut chunks, max).await?;
    Ok(Json(json!({ "received": received })))
}
