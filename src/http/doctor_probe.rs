//! `/api/probe`: how a request arrives here, for `switchboard doctor --url`.
//!
//! For whoever shows a probe pass, which takes the gateway's signing key to make. For everybody else
//! there is nothing here.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Json as Answer;
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

use super::accept::Line;
use super::attachments;
use super::caller::Peer;
use super::error::ApiError;
use super::origin::Origins;
use super::stream::HEADERS;
use super::{AppState, Config};
use crate::auth::{Auth, bearer};
use crate::limits::{ClientAddress, TrustedProxies};

/// Between the two events of a stream: long enough to tell them apart behind any line.
const BETWEEN: Duration = Duration::from_secs(2);
/// For a body of any size.
const LONGEST: Duration = Duration::from_mins(2);

/// What requests are judged by.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) origins: Origins,
    pub(super) proxies: TrustedProxies,
    pub(super) base_path: String,
}

impl Rules {
    pub(super) fn new(config: &Config, origins: &Origins) -> Arc<Self> {
        Arc::new(Self {
            origins: origins.clone(),
            proxies: config.proxies(),
            base_path: config.base_path.clone(),
        })
    }
}

/// Not in the description of the API: only this program asks.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/api/probe", get(look))
        .route("/api/probe/stream", get(two_events))
        .route("/api/probe/upload", post(swallow))
}

/// Whoever shows a probe pass.
struct Prober;

impl<S: Send + Sync> FromRequestParts<S> for Prober
where
    Auth: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let auth = Auth::from_ref(state);
        let shown = bearer(&parts.headers).is_some_and(|pass| auth.accepts_probe(pass));
        shown.then_some(Self).ok_or_else(super::unknown_path)
    }
}

async fn look(
    _: Prober,
    State(state): State<AppState>,
    Extension(Peer(peer)): Extension<Peer>,
    Extension(address): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Answer<Value> {
    let rules = &state.rules;
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    let hosts = all(HOST.as_str());
    let limits = &state.reception.limits;
    Answer(json!({
        "publicUrl": rules.origins.public(),
        "basePath": rules.base_path,
        "host": hosts.join(", "),
        "hostIsKnown": hosts.len() == 1 && rules.origins.allows_host(&hosts[0]),
        "peer": peer.ip().to_canonical(),
        "peerIsTrusted": rules.proxies.contains(peer.ip()),
        "forwardedFor": all("x-forwarded-for").join(", "),
        "address": address.ip,
        "attachmentBytes": limits.attachment_bytes,
        "pingSecs": state.reception.ping.as_secs(),
    }))
}

/// One event at once, one later, with the headers of every stream.
async fn two_events(_: Prober) -> Response {
    let events = stream::unfold(0, |told| async move {
        match told {
            0 => {}
            1 => tokio::time::sleep(BETWEEN).await,
            _ => return None,
        }
        let event = Bytes::from(format!("data: {told}\n\n"));
        Some((Ok::<_, Infallible>(event), told + 1))
    });
    (HEADERS, Body::from_stream(events)).into_response()
}

/// Takes in a body as an upload would, and keeps nothing of it.
async fn swallow(
    _: Prober,
    State(state): State<AppState>,
    Extension(line): Extension<Line>,
    request: Request,
) -> Result<Answer<Value>, ApiError> {
    line.carry(LONGEST);
    let max = state.reception.limits.attachment_bytes.get();
    let mut pieces = request.into_body().into_data_stream();
    let received = attachments::count(&mut pieces, max).await?;
    Ok(Answer(json!({ "received": received })))
}
