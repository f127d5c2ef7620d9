//! `/api/setup` and `/api/invites`: accounts made with a one-time link.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::AppState;
use super::auth::{LoggedInBody, granted};
use super::caller::Anyone;
use super::error::{ApiError, Problem};
use super::extract::Json;
use crate::domain::account::Username;

/// The first administrator.
#[derive(Deserialize, ToSchema)]
pub(super) struct SetupRequest {
    /// What stands behind `#t=` in the setup link.
    token: String,
    #[schema(value_type = String)]
    username: Username,
    #[schema(format = Password)]
    password: String,
}

/// Makes the first administrator and logs them in.
#[utoipa::path(
    post, path = "/api/setup", tag = "links", request_body = SetupRequest,
    responses(
        (status = 200, description = "Made and logged in; sets the refresh cookie", body = LoggedInBody),
        (status = 403, description = "FORBIDDEN: the link is not valid, or there is an administrator", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn set_up(
    State(state): State<AppState>,
    Anyone(caller): Anyone,
    Json(request): Json<SetupRequest>,
) -> Result<Response, ApiError> {
    let grant = state
        .auth
        .set_up(&request.token, request.username, &request.password, &caller)
        .await?;
    Ok(granted(&state, grant))
}

/// The password of somebody who was invited.
#[derive(Deserialize, ToSchema)]
pub(super) struct AcceptRequest {
    /// What stands behind `#t=` in the invite link.
    token: String,
    #[schema(format = Password)]
    password: String,
}

/// Sets the password that an invite asks for and logs the user in.
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
    Anyone(caller): Anyone,
    Json(request): Json<AcceptRequest>,
) -> Result<Response, ApiError> {
    let grant = state
        .auth
        .accept_invite(&request.token, &request.password, &caller)
        .await?;
    Ok(granted(&state, grant))
}
