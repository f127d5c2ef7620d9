//! The HTTP door: the table of routes and the stack of layers, each on one screen.
//!
//! One file per resource (`auth`, `sessions`, `links`, `users`, …); `error` makes every error
//! response; `accept` is the loop that owns connections. Touches `desk`, `web`, `wire`, `auth`,
//! `session`, `limits`, `runtime`, `bus`, `store`, `domain`, `clock`.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, MatchedPath, Request};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{Redirect, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::timeout::{RequestBodyDeadlineLayer, TimeoutLayer};
use tower_http::trace::TraceLayer;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

mod accept;
mod acts;
mod addresses;
mod admin;
mod arrival;
mod attachments;
mod auth;
mod caller;
mod commands;
mod connections;
mod cookie;
mod cors;
mod documents;
mod error;
mod export;
mod extract;
mod grants;
mod headers;
mod health;
mod links;
mod metrics;
mod notices;
mod origin;
mod pages;
mod places;
mod probe;
mod reports;
mod sessions;
mod stream;
mod users;

pub(crate) use accept::Door;
pub use addresses::Addresses;
pub(crate) use metrics::Metrics;
pub use origin::{BadOrigin, Origin};

use crate::auth::Auth;
use crate::bus::Notices;
use crate::clock::Clock;
use crate::desk::Reception;
use crate::domain::id;
use crate::domain::secret::Secret;
use crate::limits::{Limits, Network, TrustedProxies};
use crate::session::Sessions;
use crate::store::{Contents, Store};
use crate::{web, wire};
use cookie::CookieJar;
use origin::Origins;
use places::Places;

/// The largest JSON body.
const BODY_BYTES: usize = 64 * 1024;

/// The `[server]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where people find the gateway, if not at the address it listens on.
    pub public_url: Option<Origin>,
    /// The path in front of every route, for a proxy that serves more than this.
    pub base_path: String,
    /// Which pages are served.
    pub pages: web::Pages,
    /// After how much silence a socket or a stream is given a sign of life.
    pub ping_secs: u32,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// Further pages that may call.
    pub allowed_origins: Vec<Origin>,
    /// TCP connections in all.
    pub max_connections: NonZeroU32,
    /// TCP connections from one address.
    pub max_connections_per_address: NonZeroU32,
    /// How long the head of a request may take, and how long a connection may stay idle.
    pub header_timeout_ms: NonZeroU32,
    /// How long the body of a request may take.
    pub body_timeout_ms: NonZeroU32,
    /// How long an answer may take.
    pub request_timeout_ms: NonZeroU32,
    /// How long requests may go on once the gateway was told to stop.
    pub shutdown_grace_secs: u32,
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./~".contains(&byte);
        let good = self.base_path.is_empty()
            || (self.base_path.starts_with('/')
                && !self.base_path.ends_with('/')
                && !self.base_path.contains("//")
                && !self
                    .base_path
                    .split('/')
                    .any(|step| step == "." || step == "..")
                && self.base_path.bytes().all(plain));
        if !good {
            complaints.push((
                "server.base_path",
                "expected nothing, or a path like /agents that does not end with a slash".into(),
            ));
        }
        if self.max_connections_per_address > self.max_connections {
            complaints.push((
                "server.max_connections_per_address",
                "is larger than server.max_connections".into(),
            ));
        }
        if !(2..=25).contains(&self.ping_secs) {
            complaints.push((
                "server.ping_secs",
                format!("expected a number from 2 to 25, found {}", self.ping_secs),
            ));
        }
        complaints
    }

    /// The proxies whose word is taken.
    pub(crate) fn proxies(&self) -> TrustedProxies {
        TrustedProxies(self.trusted_proxies.clone())
    }
}

/// The `[metrics]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MetricsConfig {
    /// A listener of its own for `/metrics`, without authentication.
    pub listen: Option<SocketAddr>,
    /// What Prometheus shows as bearer token on the main listener.
    pub token: Option<Secret>,
}

impl MetricsConfig {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let short = |token: &Secret| token.expose().len() < 16;
        self.token
            .as_ref()
            .filter(|token| short(token))
            .map(|_| {
                (
                    "metrics.token",
                    "expected at least 16 characters".to_owned(),
                )
            })
            .into_iter()
            .collect()
    }
}

/// What handlers need. Cheap to clone: handles only.
#[derive(Clone)]
pub(crate) struct AppState {
    auth: Auth,
    store: Arc<dyn Store>,
    contents: Arc<Contents>,
    clock: Clock,
    cookies: CookieJar,
    addresses: Addresses,
    registry: Arc<Registry>,
    metrics_token: Arc<Option<Secret>>,
    metrics: Metrics,
    openapi: Arc<utoipa::openapi::OpenApi>,
    asyncapi: Arc<serde_json::Value>,
    sessions: Sessions,
    notices: Notices,
    uploads: Places,
    limits: Limits,
    /// When this gateway started, on the clock that only goes forward.
    started: Duration,
    reception: Arc<Reception>,
    draining: CancellationToken,
    request_timeout: Duration,
    rules: Arc<probe::Rules>,
}

/// What the gateway brings along to build the door.
pub(crate) struct Parts {
    pub(crate) auth: Auth,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) contents: Arc<Contents>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Metrics,
    pub(crate) metrics_token: Option<Secret>,
    pub(crate) listening: SocketAddr,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    /// What desks need, for the streams of this door.
    pub(crate) reception: Arc<Reception>,
    /// The other door, behind the same layers.
    pub(crate) sockets: Router,
    pub(crate) draining: CancellationToken,
}

impl FromRef<AppState> for Auth {
    fn from_ref(state: &AppState) -> Self {
        state.auth.clone()
    }
}

impl FromRef<AppState> for Arc<utoipa::openapi::OpenApi> {
    fn from_ref(state: &AppState) -> Self {
        Arc::clone(&state.openapi)
    }
}

/// The routes that have limits of their own.
fn login_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(auth::login))
}

fn password_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(auth::change_password))
}

fn command_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(commands::send))
}

fn upload_routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(attachments::upload::upload))
}

/// All other routes: the table of contents of the API.
fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(documents::Description::openapi())
        .routes(routes!(auth::refresh))
        .routes(routes!(auth::logout))
        .routes(routes!(auth::ticket))
        .routes(routes!(auth::me))
        .routes(routes!(auth::list_logins))
        .routes(routes!(auth::revoke_login))
        .routes(routes!(links::set_up))
        .routes(routes!(links::accept_invite))
        .routes(routes!(sessions::events))
        .routes(routes!(export::export))
        .routes(routes!(stream::stream))
        .routes(routes!(attachments::list))
        .routes(routes!(attachments::download::download))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::show, sessions::change, sessions::end))
        .routes(routes!(grants::list))
        .routes(routes!(grants::share, grants::unshare))
        .routes(routes!(sessions::agents))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::version))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(reports::count))
        .routes(routes!(documents::openapi))
        .routes(routes!(documents::asyncapi))
        .routes(routes!(documents::jwks))
        .merge(admin::routes())
}

/// The OpenAPI description of every route.
pub fn openapi(base_path: &str) -> utoipa::openapi::OpenApi {
    let mut document = routes()
        .merge(login_routes())
        .merge(password_routes())
        .merge(command_routes())
        .merge(upload_routes())
        .merge(admin::slow_routes())
        .into_openapi();
    if !base_path.is_empty() {
        document.servers = Some(vec![utoipa::openapi::Server::new(base_path)]);
    }
    document
}

/// The description of the WebSocket, as an AsyncAPI document.
pub fn asyncapi(base_path: &str) -> serde_json::Value {
    wire::asyncapi::document(base_path)
}

/// Everything a request passes through, outermost first.
pub(crate) fn router(config: &Config, parts: Parts) -> Router {
    let origins = Origins::new(
        config.public_url.as_ref(),
        &config.allowed_origins,
        parts.listening,
    )
    .under(&config.base_path);
    let https = origins.public().is_https();
    let millis = |timeout: NonZeroU32| Duration::from_millis(timeout.get().into());
    let state = AppState {
        auth: parts.auth,
        store: parts.store,
        started: parts.clock.monotonic(),
        contents: parts.contents,
        clock: parts.clock,
        cookies: CookieJar::new(&config.base_path, https),
        addresses: Addresses::new(config, parts.listening),
        registry: parts.registry,
        metrics_token: Arc::new(parts.metrics_token),
        metrics: parts.metrics.clone(),
        openapi: Arc::new(openapi(&config.base_path)),
        asyncapi: Arc::new(asyncapi(&config.base_path)),
        sessions: parts.sessions,
        notices: parts.notices,
        uploads: Places::default(),
        limits: parts.limits.clone(),
        reception: parts.reception,
        draining: parts.draining,
        request_timeout: millis(config.request_timeout_ms),
        rules: probe::Rules::new(config, &origins),
    };
    let login = Router::from(login_routes()).layer(parts.limits.login_layer(error::rate_limited));
    let password =
        Router::from(password_routes()).layer(parts.limits.password_layer(error::rate_limited));
    let message_bytes = state.reception.limits.message_bytes.get() as usize;
    let commands = Router::from(command_routes()).layer(DefaultBodyLimit::max(message_bytes));
    let api = Router::from(routes())
        .merge(login)
        .merge(password)
        .merge(commands)
        .with_state(state.clone());
    let stack = ServiceBuilder::new()
        .layer(from_fn_with_state(
            config.proxies(),
            caller::resolve_address,
        ))
        .layer(SetRequestIdLayer::x_request_id(NewRequestId))
        .layer(PropagateRequestIdLayer::x_request_id())
        .layer(
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_response(log_response)
                // What failed is logged where it was handled.
                .on_failure(()),
        )
        .layer(from_fn_with_state(parts.metrics, metrics::measure))
        .layer(from_fn_with_state(
            headers::Headers::new(https),
            headers::harden,
        ))
        .layer(from_fn(error::render))
        .layer(CatchPanicLayer::custom(error::panicked))
        .layer(from_fn_with_state(origins, origin::check))
        .layer(cors::layer(&config.allowed_origins))
        .layer(parts.limits.request_layer(error::rate_limited));
    let deadlines = ServiceBuilder::new()
        .layer(TimeoutLayer::with_status_code(
            StatusCode::REQUEST_TIMEOUT,
            millis(config.request_timeout_ms),
        ))
        .layer(RequestBodyDeadlineLayer::new(millis(
            config.body_timeout_ms,
        )))
        .layer(DefaultBodyLimit::max(BODY_BYTES));
    // A file takes as long as it does: its route has a patience of its own.
    let uploads = Router::from(upload_routes())
        .layer(DefaultBodyLimit::max(attachments::most_bytes(&state)))
        .with_state(state.clone());
    // To try an agent out takes as long as the agent does.
    let slow = Router::from(admin::slow_routes())
        .layer(RequestBodyDeadlineLayer::new(millis(
            config.body_timeout_ms,
        )))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(state.clone());
    let probe = probe::routes().with_state(state.clone());
    let timed = api.merge(web::routes(config.pages)).merge(parts.sockets);
    at_base(
        config,
        timed
            .layer(deadlines)
            .merge(uploads)
            .merge(slow)
            .merge(probe),
        state,
    )
    .fallback(nothing_here)
    .method_not_allowed_fallback(other_method)
    .layer(stack)
}

/// Puts everything under the base path; probes also answer at the root.
fn at_base(config: &Config, router: Router, state: AppState) -> Router {
    let (base_path, index) = (&config.base_path, get(web::index).with_state(config.pages));
    if base_path.is_empty() {
        return router.route("/", index);
    }
    let page = format!("{base_path}/");
    let to_page = Redirect::permanent(&page);
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .with_state(state)
        .route(&page, index)
        .route(base_path, get(async move || to_page))
        .nest(base_path, router)
}

/// The listener that only Prometheus reaches.
pub(crate) fn metrics_router(registry: Arc<Registry>) -> Router {
    Router::new()
        .route("/metrics", get(metrics::get_metrics_openly))
        .with_state(registry)
}

async fn nothing_here() -> error::ApiError {
    unknown_path()
}

fn unknown_path() -> error::ApiError {
    error::ApiError::not_found("There is nothing here. The routes are in /api/openapi.json.")
}

async fn other_method() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

#[derive(Clone)]
struct NewRequestId;

impl MakeRequestId for NewRequestId {
    fn make_request_id<B>(&mut self, _request: &axum::http::Request<B>) -> Option<RequestId> {
        let id = HeaderValue::from_str(&id::RequestId::new().to_string()).ok()?;
        Some(RequestId::new(id))
    }
}

fn span(request: &Request) -> tracing::Span {
    let id = request
        .extensions()
        .get::<RequestId>()
        .and_then(|id| id.header_value().to_str().ok())
        .unwrap_or_default();
    // What leads nowhere may be anything that somebody has typed or pasted.
    let is_known = request.extensions().get::<MatchedPath>().is_some();
    let path = if is_known {
        request.uri().path()
    } else {
        "(none)"
    };
    tracing::info_span!(
        "request",
        request.id = id,
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
