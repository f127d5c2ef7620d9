//! `/api/sessions/{id}/grants`: who else may come into one's session.

use std::sync::Arc;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::caller::Authenticated;
use super::error::{ApiError, Problem};
use super::extract::{Json, Named, NamedWithin};
use super::sessions::find;
use crate::domain::account::Username;
use crate::domain::act::Action;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};
use crate::session::Access;
use crate::store::{GrantRow, ShareError};

/// What somebody was granted.
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

/// Everybody who was granted something in a session.
#[derive(Serialize, ToSchema)]
pub(super) struct GrantsBody {
    grants: Vec<GrantBody>,
}

/// Lists with whom one's session is shared.
#[utoipa::path(
    get, path = "/api/sessions/{id}/grants", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "By name", body = GrantsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: it is only shared with you", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Authenticated,
    Named(id): Named<SessionId>,
) -> Result<Answer<GrantsBody>, ApiError> {
    find(&state, &caller.principal, id, Access::Owner).await?;
    let grants = state.store.grants(id).await?;
    let grants = grants.into_iter().map(GrantBody::from).collect();
    Ok(Answer(GrantsBody { grants }))
}

/// What to grant.
#[derive(Deserialize, ToSchema)]
pub(super) struct GrantRequest {
    /// `viewer` looks on; `editor` also prompts, answers, cancels and changes settings.
    #[schema(value_type = String, example = "viewer")]
    role: GrantRole,
}

/// Shares one's session with somebody, or changes what they may do in it.
#[utoipa::path(
    put, path = "/api/sessions/{id}/grants/{username}", tag = "sessions", security(("bearer" = [])),
    request_body = GrantRequest,
    params(
        ("id" = String, Path, description = "The session"),
        ("username" = String, Path, description = "With whom")
    ),
    responses(
        (status = 200, description = "Granted", body = GrantBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: it is only shared with you", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session of yours, or no such user", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: the account is disabled, or your own", body = Problem)
    )
)]
pub(super) async fn share(
    State(state): State<AppState>,
    caller: Authenticated,
    NamedWithin(id, username): NamedWithin<SessionId, Username>,
    Json(request): Json<GrantRequest>,
) -> Result<Answer<GrantBody>, ApiError> {
    find(&state, &caller.principal, id, Access::Owner).await?;
    let role = request.role;
    let by = state.auth.by(&caller.principal, caller.address);
    let act = by.did(Action::SessionShared, format!("{id} {username} {role}"));
    let (owner, store) = (caller.principal.user, Arc::clone(&state.store));
    let sharing = async move {
        let shared = store.share_session(id, owner, &username, role, &act).await;
        shared.map_err(|error| refusal(error, &username))
    };
    let granted = state.acts_on(id, sharing).await?;
    Ok(Answer(granted.into()))
}

/// Shuts somebody out of one's session; their sockets there close within a second.
#[utoipa::path(
    delete, path = "/api/sessions/{id}/grants/{username}", tag = "sessions", security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("username" = String, Path, description = "Whom")
    ),
    responses(
        (status = 204, description = "Shut out"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: it is only shared with you", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session of yours, or not shared with them", body = Problem)
    )
)]
pub(super) async fn unshare(
    State(state): State<AppState>,
    caller: Authenticated,
    NamedWithin(id, username): NamedWithin<SessionId, Username>,
) -> Result<StatusCode, ApiError> {
    find(&state, &caller.principal, id, Access::Owner).await?;
    let by = state.auth.by(&caller.principal, caller.address);
    let act = by.did(Action::SessionUnshared, format!("{id} {username}"));
    let (owner, store) = (caller.principal.user, Arc::clone(&state.store));
    let taking = async move {
        if store.unshare_session(id, owner, &username, &act).await? {
            return Ok(StatusCode::NO_CONTENT);
        }
        let message = format!("This session is not shared with {username}.");
        Err(ApiError::not_found(message))
    };
    state.acts_on(id, taking).await
}

fn refusal(error: ShareError, username: &Username) -> ApiError {
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
