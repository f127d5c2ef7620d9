//! `/api/setup` and `/api/invites`: accounts created with a one-time link.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::AppState;
use super::auth::{LoggedInBody, logged_in};
use super::caller::Anonymous;
use super::error::{ApiError, Problem};
use super::extract::Json;
use crate::domain::account::Username;

/// The first administrator.
#[derive(Deserialize, ToSchema)]
pub(super) struct SetupRequest {
    /// The token: the part after `#t=` of the setup link.
    token: String,
    #[schema(value_type = String)]
    username: Username,
    #[schema(format = Password)]
    password: String,
}

/// Creates the first administrator and logs in.
#[utoipa::path(
    post, path = "/api/setup", tag = "links", request_body = SetupRequest,
    responses(
        (status = 200, description = "Created and logged in; sets the refresh cookie", body = LoggedInBody),
        (status = 403, description = "FORBIDDEN: the link is not valid, or an administrator exists", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn set_up(
    State(state): State<AppState>,
    Anonymous(caller): Anonymous,
    Json(request): Json<SetupRequest>,
) -> Result<Response, ApiError> {
    let grant = state
        .auth
        .set_up(&request.token, request.username, &request.password, &caller)
        .await?;
    Ok(logged_in(&state, grant))
}

/// The password that an invited user chooses.
#[derive(Deserialize, ToSchema)]
pub(super) struct AcceptRequest {
    /// The token: the part after `#t=` of the invite link.
    token: String,
    #[schema(format = Password)]
    password: String,
}

/// Sets the password of an invited user and logs in.
#[utoipa::path(
    post, path = "/api/invites/accept", tag = "links", request_body = AcceptRequest,
    responses(
        (status = 200, description = "Set and logged in; sets the refresh cookie", body = LoggedInBody),
        (status = 403, description = "FORBIDDEN: the link is not valid", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn accept_invite(
    State(state): State<AppState>,
    Anonymous(caller): Anonymous,
    Json(request): Json<AcceptRequest>,
) -> Result<Response, ApiError> {
    let grant = state
        .auth
        .accept_invite(&request.token, &request.password, &caller)
        .await?;
    Ok(logged_in(&state, grant))
}
