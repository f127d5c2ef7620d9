//! Usage: what a user stores and sends, and may, for the user and for administrators.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::AppState;
use super::attachments::upload;
use super::caller::{Administrator, Authenticated};
use super::error::{ApiError, Problem};
use super::extract::{Json, PathParam};
use crate::domain::id::UserId;

/// One figure and its quota.
#[derive(Serialize, ToSchema)]
pub(super) struct Quota {
    used: u64,
    max: u64,
}

/// What an account stores and sends.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageBody {
    /// Sessions that have not ended.
    sessions: Quota,
    /// Bytes of the journals of all sessions, ended ones included until they are removed.
    journal_bytes: Quota,
    /// Bytes of uploaded files.
    attachment_bytes: Quota,
    /// Messages over all sessions in the last 60 seconds.
    messages_per_minute: Quota,
}

async fn usage(state: &AppState, user: UserId) -> Result<Json<UsageBody>, ApiError> {
    let stored = state.store.usage(user).await?;
    let quotas = state.sessions.quotas();
    let messages = state.limits.sessions.users();
    let quota = |used, max| Quota { used, max };
    Ok(Json(UsageBody {
        sessions: quota(stored.sessions, quotas.user_sessions),
        journal_bytes: quota(stored.journal_bytes, quotas.user_journal_bytes),
        attachment_bytes: quota(stored.attachment_bytes, upload::quotas(state).user_bytes),
        messages_per_minute: quota(messages.used(&user).into(), messages.limit().into()),
    }))
}

/// Shows what you store and send, and what you may.
#[utoipa::path(
    get, path = "/api/auth/usage", tag = "auth", security(("bearer" = [])),
    responses(
        (status = 200, description = "Your usage", body = UsageBody),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn own(
    State(state): State<AppState>,
    caller: Authenticated,
) -> Result<Json<UsageBody>, ApiError> {
    usage(&state, caller.principal.user).await
}

/// Shows what an account stores and sends, and what it may.
#[utoipa::path(
    get, path = "/api/admin/users/{id}/usage", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The account")),
    responses(
        (status = 200, description = "Its usage", body = UsageBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(super) async fn of_user(
    State(state): State<AppState>,
    _: Administrator,
    PathParam(user): PathParam<UserId>,
) -> Result<Json<UsageBody>, ApiError> {
    if state.store.user(user).await?.is_none() {
        return Err(ApiError::not_found("There is no such account."));
    }
    usage(&state, user).await
}
