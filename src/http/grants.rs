//! `/api/sessions/{id}/grants`: with whom a session is shared.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::caller::{Authenticated, require_access};
use super::error::{ApiError, Problem};
use super::extract::{Json, PathParam, PathParams};
use crate::domain::account::Username;
use crate::domain::audit::Action;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};
use crate::session::Access;
use crate::store::{GrantRow, ShareError};

/// A user's access to a session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GrantBody {
    #[schema(value_type = String)]
    user_id: UserId,
    #[schema(value_type = String)]
    username: Username,
    /// `viewer` or `editor`.
    #[schema(value_type = String, example = "viewer")]
    role: GrantRole,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<GrantRow> for GrantBody {
    fn from(row: GrantRow) -> Self {
        Self {
            user_id: row.user,
            username: row.username,
            role: row.role,
            created_at: row.created_at,
        }
    }
}

/// The grants of a session.
#[derive(Serialize, ToSchema)]
pub(super) struct GrantsBody {
    grants: Vec<GrantBody>,
}

/// Lists with whom your session is shared.
#[utoipa::path(
    get, path = "/api/sessions/{id}/grants", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "By name", body = GrantsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you are not its owner", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
) -> Result<Json<GrantsBody>, ApiError> {
    require_access(&state, &caller.principal, id, Access::Owner).await?;
    let grants = state.store.grants(id).await?;
    let grants = grants.into_iter().map(GrantBody::from).collect();
    Ok(Json(GrantsBody { grants }))
}

/// The access to grant.
#[derive(Deserialize, ToSchema)]
pub(super) struct GrantRequest {
    /// `viewer` can read; `editor` can also prompt, answer, cancel and change settings.
    #[schema(value_type = String, example = "viewer")]
    role: GrantRole,
}

/// Shares your session with a user, or changes the user's role in it.
#[utoipa::path(
    put, path = "/api/sessions/{id}/grants/{username}", tag = "sessions", security(("bearer" = [])),
    request_body = GrantRequest,
    params(
        ("id" = String, Path, description = "The session"),
        ("username" = String, Path, description = "The user to share with")
    ),
    responses(
        (status = 200, description = "Granted", body = GrantBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you are not its owner", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session of yours, or no such user", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: the account is disabled, or your own", body = Problem)
    )
)]
pub(super) async fn share(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParams(id, username): PathParams<SessionId, Username>,
    Json(request): Json<GrantRequest>,
) -> Result<Json<GrantBody>, ApiError> {
    require_access(&state, &caller.principal, id, Access::Owner).await?;
    let role = request.role;
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let record = by.did(Action::SessionShared, format!("{id} {username} {role}"));
    let (owner, store) = (caller.principal.user, Arc::clone(&state.store));
    let sharing = async move {
        let shared = store
            .share_session(id, owner, &username, role, &record)
            .await;
        shared.map_err(|error| share_error(error, &username))
    };
    let granted = state.apply_to_session(id, sharing).await?;
    Ok(Json(granted.into()))
}

/// Stops sharing your session with a user; the user's sockets in it close within a second.
#[utoipa::path(
    delete, path = "/api/sessions/{id}/grants/{username}", tag = "sessions", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("username" = String, Path, description = "The user")
    ),
    responses(
        (status = 204, description = "No longer shared"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you are not its owner", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session of yours, or not shared with that user", body = Problem)
    )
)]
pub(super) async fn unshare(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParams(id, username): PathParams<SessionId, Username>,
) -> Result<StatusCode, ApiError> {
    require_access(&state, &caller.principal, id, Access::Owner).await?;
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let record = by.did(Action::SessionUnshared, format!("{id} {username}"));
    let (owner, store) = (caller.principal.user, Arc::clone(&state.store));
    let unsharing = async move {
        if store.unshare_session(id, owner, &username, &record).await? {
            return Ok(StatusCode::NO_CONTENT);
        }
        let detail = format!("This session is not shared with {username}.");
        Err(ApiError::not_found(detail))
    };
    state.apply_to_session(id, unsharing).await
}

fn share_error(error: ShareError, username: &Username) -> ApiError {
    match error {
        ShareError::NoSuchSession => ApiError::not_found("There is no such session."),
        ShareError::NoSuchUser => {
            ApiError::not_found(format!("There is no user named {username}."))
        }
        ShareError::DisabledUser => ApiError::invalid(format!(
            "The account {username} is disabled; a session can be shared with it once it is enabled."
        )),
        ShareError::OwnSession => ApiError::invalid("This session is your own already."),
        ShareError::Store(error) => error.into(),
    }
}
