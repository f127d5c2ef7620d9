//! HTTP: the route table and the layer stack, each on one screen.
//!
//! One file per resource (`auth`, `sessions`, `grants`, …); `layers` is the stack, `error` makes
//! every error response, `accept_loop` is the loop that owns connections. Touches `member`, `web`,
//! `wire`, `auth`, `session`, `limits`, `runtime`, `bus`, `store`, `domain`, `clock`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRef, Request};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tower_http::request_id::RequestId;
use utoipa::OpenApi as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

mod accept_loop;
mod admin;
mod agents;
mod api_docs;
mod attachments;
mod auth;
mod caller;
mod commands;
mod cookie;
mod cors;
mod csp_reports;
mod dead_peers;
mod detached;
mod doctor_probe;
mod error;
mod export;
mod extract;
mod grants;
mod health;
mod host_and_origin;
mod journal_events;
mod journal_reader;
mod layers;
mod metrics;
mod one_time_links;
mod page_token;
mod public_urls;
mod security_headers;
mod server_config;
mod sessions;
mod sse;
mod storage_usage;

pub(crate) use accept_loop::Listener;
pub use host_and_origin::{BadOrigin, Origin};
pub(crate) use metrics::Metrics;
pub use public_urls::Urls;
pub use server_config::{Config, MetricsConfig};

use crate::auth::Auth;
use crate::bus::Notices;
use crate::clock::Clock;
use crate::domain::secret::Secret;
use crate::limits::Limits;
use crate::member::Shared;
use crate::session::Sessions;
use crate::store::{Blobs, Store};
use crate::{web, wire};
use attachments::upload_permits::UploadPermits;
use cookie::CookieJar;
use error::ApiError;
use host_and_origin::Origins;

/// The handles that the handlers use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AppState {
    auth: Auth,
    store: Arc<dyn Store>,
    blobs: Arc<Blobs>,
    clock: Clock,
    cookies: CookieJar,
    urls: Urls,
    registry: Arc<Registry>,
    metrics_token: Arc<Option<Secret>>,
    metrics: Metrics,
    openapi: Arc<utoipa::openapi::OpenApi>,
    asyncapi: Arc<serde_json::Value>,
    sessions: Sessions,
    notices: Notices,
    uploads: UploadPermits,
    limits: Limits,
    /// When this gateway started, on the monotonic clock.
    started: Duration,
    shared: Arc<Shared>,
    draining: CancellationToken,
    request_timeout: Duration,
    probe: Arc<doctor_probe::Context>,
    last_check: Arc<health::LastCheck>,
}

pub(crate) struct Dependencies {
    pub(crate) auth: Auth,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) blobs: Arc<Blobs>,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) registry: Arc<Registry>,
    pub(crate) metrics: Metrics,
    pub(crate) metrics_token: Option<Secret>,
    /// The address that is listened on, with the port that the system chose.
    pub(crate) listening: SocketAddr,
    pub(crate) sessions: Sessions,
    pub(crate) notices: Notices,
    /// For the members behind event streams and posted commands.
    pub(crate) shared: Arc<Shared>,
    pub(crate) draining: CancellationToken,
}

impl AppState {
    fn new(config: &Config, origins: &Origins, dependencies: Dependencies) -> Self {
        Self {
            auth: dependencies.auth,
            store: dependencies.store,
            blobs: dependencies.blobs,
            started: dependencies.clock.monotonic(),
            clock: dependencies.clock,
            cookies: CookieJar::new(&config.base_path, origins.public().is_https()),
            urls: Urls::new(config, dependencies.listening),
            registry: dependencies.registry,
            metrics_token: Arc::new(dependencies.metrics_token),
            metrics: dependencies.metrics,
            openapi: Arc::new(openapi(&config.base_path)),
            asyncapi: Arc::new(asyncapi(&config.base_path)),
            sessions: dependencies.sessions,
            notices: dependencies.notices,
            uploads: UploadPermits::default(),
            limits: dependencies.limits,
            shared: dependencies.shared,
            draining: dependencies.draining,
            request_timeout: config.request_timeout(),
            probe: doctor_probe::Context::new(config, origins),
            last_check: Arc::default(),
        }
    }
}

impl FromRef<AppState> for Auth {
    fn from_ref(state: &AppState) -> Self {
        state.auth.clone()
    }
}

impl FromRef<AppState> for CookieJar {
    fn from_ref(state: &AppState) -> Self {
        state.cookies.clone()
    }
}

impl FromRef<AppState> for Arc<utoipa::openapi::OpenApi> {
    fn from_ref(state: &AppState) -> Self {
        Arc::clone(&state.openapi)
    }
}

/// The routes of the API, but for those with limits of their own.
fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(api_docs::Description::openapi())
        .routes(routes!(auth::refresh))
        .routes(routes!(auth::logout))
        .routes(routes!(auth::ticket))
        .routes(routes!(auth::me))
        .routes(routes!(auth::list_logins))
        .routes(routes!(storage_usage::own))
        .routes(routes!(storage_usage::of_user))
        .routes(routes!(auth::revoke_login))
        .routes(routes!(one_time_links::setup_state, one_time_links::set_up))
        .routes(routes!(one_time_links::show_invite))
        .routes(routes!(one_time_links::accept_invite))
        .routes(routes!(journal_events::events))
        .routes(routes!(export::export))
        .routes(routes!(sse::stream))
        .routes(routes!(attachments::list))
        .routes(routes!(attachments::download::download))
        .routes(routes!(sessions::list, sessions::create))
        .routes(routes!(sessions::show, sessions::change, sessions::end))
        .routes(routes!(sessions::mark_read))
        .routes(routes!(grants::list))
        .routes(routes!(grants::share, grants::unshare))
        .routes(routes!(agents::agents))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::version))
        .routes(routes!(metrics::get_metrics))
        .routes(routes!(csp_reports::count))
        .routes(routes!(api_docs::openapi))
        .routes(routes!(api_docs::asyncapi))
        .routes(routes!(api_docs::jwks))
        .merge(admin::routes())
}

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

/// The AsyncAPI description of the WebSocket.
pub fn asyncapi(base_path: &str) -> serde_json::Value {
    wire::asyncapi::document(base_path)
}

/// Puts the routes and the layers together. `sockets` is the WebSocket's route, behind the same
/// layers.
pub(crate) fn router(config: &Config, dependencies: Dependencies, sockets: Router) -> Router {
    let origins = Origins::new(
        config.public_url.as_ref(),
        &config.allowed_origins,
        dependencies.listening,
    )
    .with_base_path(&config.base_path);
    let state = AppState::new(config, &origins, dependencies);
    let limits = &state.limits;
    let login = Router::from(login_routes())
        .layer(limits.login_network_layer(error::rate_limited))
        .layer(limits.login_layer(error::rate_limited));
    let password = Router::from(password_routes())
        .layer(limits.password_network_layer(error::rate_limited))
        .layer(limits.password_layer(error::rate_limited));
    let message_bytes = state.shared.limits.message_bytes.get() as usize;
    let commands = Router::from(command_routes()).layer(DefaultBodyLimit::max(message_bytes));
    let api = Router::from(routes())
        .merge(login)
        .merge(password)
        .merge(commands)
        .with_state(state.clone());
    // A large file takes longer than the deadlines allow: its handler has timeouts of its own.
    let uploads = Router::from(upload_routes())
        .layer(DefaultBodyLimit::max(attachments::max_body_bytes(&state)))
        .with_state(state.clone());
    let slow = Router::from(admin::slow_routes()).with_state(state.clone());
    let timed = api.merge(web::routes(config.pages)).merge(sockets);
    let all = layers::with_deadlines(timed, config)
        .merge(uploads)
        .merge(layers::with_body_limits(slow, config))
        .merge(doctor_probe::routes().with_state(state.clone()));
    let mounted = at_base_path(config, all, state.clone())
        .fallback(async || ApiError::no_such_path())
        .method_not_allowed_fallback(async || StatusCode::METHOD_NOT_ALLOWED);
    layers::around_all(mounted, config, &state, origins)
}

/// Nests everything under the base path; the health checks also answer at the root.
fn at_base_path(config: &Config, router: Router, state: AppState) -> Router {
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

/// The router of the metrics' own listener. A page that was made to resolve here must not read them.
pub(crate) fn metrics_router(registry: Arc<Registry>, config: &MetricsConfig) -> Router {
    let allowed: Arc<[String]> = config.allowed_hosts.clone().into();
    Router::new()
        .route("/metrics", get(metrics::get_metrics_openly))
        .with_state(registry)
        .layer(from_fn_with_state(
            allowed,
            host_and_origin::check_private_host,
        ))
}

fn request_id(request: &Request) -> &str {
    let id = request.extensions().get::<RequestId>();
    id.and_then(|id| id.header_value().to_str().ok())
        .unwrap_or_default()
}
