//! `/api/setup` and `/api/invites`: accounts created with a one-time link.

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::auth::{LoggedInBody, logged_in};
use super::caller::Anonymous;
use super::error::{ApiError, Problem};
use super::extract::Json;
use crate::auth::AdminError;
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

/// Whether the gateway waits for its first administrator.
#[derive(Serialize, ToSchema)]
pub(super) struct SetupBody {
    /// Whether there is no administrator yet.
    needed: bool,
}

/// Tells whether there is an administrator, so that the page can point to the setup link.
#[utoipa::path(
    get, path = "/api/setup", tag = "links",
    responses((status = 200, description = "Whether setup is needed", body = SetupBody))
)]
pub(super) async fn setup_state(
    State(state): State<AppState>,
) -> Result<Json<SetupBody>, ApiError> {
    let needed = state.auth.needs_setup().await?;
    Ok(Json(SetupBody { needed }))
}

/// The invite to show.
#[derive(Deserialize, ToSchema)]
pub(super) struct InvitationRequest {
    /// The token: the part after `#t=` of the invite link.
    token: String,
}

/// An invite, as its holder sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvitationBody {
    #[schema(value_type = String)]
    username: Username,
    /// The administrator who made the link; absent if it was made on the server itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    invited_by: Option<String>,
    /// Whether the account has a password already, which the new one replaces.
    has_password: bool,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

/// Shows an invite before it is accepted.
#[utoipa::path(
    post, path = "/api/invites/show", tag = "links", request_body = InvitationRequest,
    responses(
        (status = 200, description = "The invite", body = InvitationBody),
        (status = 403, description = "FORBIDDEN: the link is not valid", body = Problem)
    )
)]
pub(super) async fn show_invite(
    State(state): State<AppState>,
    Json(request): Json<InvitationRequest>,
) -> Result<Json<InvitationBody>, ApiError> {
    let invitation = state.auth.invitation(&request.token).await?;
    let invitation = invitation.ok_or_else(|| ApiError::from(AdminError::BadLink))?;
    // Names of processes are in parentheses, which no user's name has.
    let is_user = |name: &String| !name.starts_with('(');
    Ok(Json(InvitationBody {
        username: invitation.user.username,
        invited_by: invitation.issuer.filter(is_user),
        has_password: !invitation.user.invited,
        expires_at: invitation.expires_at,
    }))
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
