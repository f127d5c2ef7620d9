//! API documents: OpenAPI, AsyncAPI and the public keys.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::AppState;

/// The OpenAPI document without its routes.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Switchboard",
        description = "Puts a team's coding agents behind a login. Errors are application/problem+json with a `code`."
    ),
    modifiers(&Bearer),
    tags(
        (name = "auth", description = "Login, tokens and passwords"),
        (name = "sessions", description = "Your sessions, and the agents they can use"),
        (name = "links", description = "Accounts created with a one-time link"),
        (name = "admin", description = "For administrators"),
        (name = "operation", description = "Health, metrics, documents")
    )
)]
pub(super) struct Description;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.bearer_format = Some("JWT".to_owned());
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(http));
    }
}

/// Shows this document.
#[utoipa::path(
    get, path = "/api/openapi.json", tag = "operation",
    responses((status = 200, description = "The OpenAPI description", body = Object))
)]
pub(super) async fn openapi(
    State(document): State<Arc<utoipa::openapi::OpenApi>>,
) -> Json<Arc<utoipa::openapi::OpenApi>> {
    Json(document)
}

/// Shows the AsyncAPI description of the WebSocket.
#[utoipa::path(
    get, path = "/api/asyncapi.json", tag = "operation",
    responses((status = 200, description = "The AsyncAPI description", body = Object))
)]
pub(super) async fn asyncapi(State(state): State<AppState>) -> Json<Arc<serde_json::Value>> {
    Json(state.asyncapi)
}

/// Shows the public keys that verify access tokens.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "operation",
    responses((status = 200, description = "A JSON Web Key Set", body = Object))
)]
pub(super) async fn jwks(State(state): State<AppState>) -> Json<serde_json::Value> {
    Json(state.auth.jwks())
}
