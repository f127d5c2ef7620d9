//! `/api/admin/sessions`: lists the sessions of all users without their content, and ends one.

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::account::Username;
use crate::domain::id::{SessionId, UserId};
use crate::http::AppState;
use crate::http::caller::{Administrator, no_such_session};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Json, PathParam, Query};
use crate::http::page_token::{next_token, parse_session_token, session_token};
use crate::http::sessions::end_session;
use crate::store::{SessionFacts, SessionFilter, SessionStatus};

const DEFAULT_PAGE: u32 = 100;
const MAX_PAGE: u32 = 500;

/// A session without its content.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct AnySessionBody {
    #[schema(value_type = String)]
    id: SessionId,
    owner: OwnerBody,
    agent: String,
    /// `running`, `idle` or `archived`.
    status: &'static str,
    message_count: u64,
    /// Its sockets and event streams on this node.
    connections: usize,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// The owner of a session.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct OwnerBody {
    #[schema(value_type = String)]
    id: UserId,
    #[schema(value_type = String)]
    username: Username,
}

impl AnySessionBody {
    fn new(facts: SessionFacts, connections: usize) -> Self {
        Self {
            id: facts.id,
            owner: OwnerBody {
                id: facts.owner,
                username: facts.owner_name,
            },
            agent: facts.agent,
            status: facts.status.as_str(),
            message_count: facts.messages,
            connections,
            created_at: facts.created_at,
            updated_at: facts.updated_at,
        }
    }
}

/// Which sessions to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct AdminSessionsQuery {
    /// Of this user, by name or id.
    user: Option<String>,
    /// With this agent.
    agent: Option<String>,
    /// `running`, `idle` or `archived`.
    status: Option<String>,
    /// `next` of the page before.
    before: Option<String>,
    /// Maximum number of sessions, at most 500.
    limit: Option<u32>,
}

/// The sessions of all users, the last changed first.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct AnySessionsBody {
    sessions: Vec<AnySessionBody>,
    /// `before` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the sessions of all users without their content.
#[utoipa::path(
    get, path = "/api/admin/sessions", tag = "admin", security(("bearer" = [])), params(AdminSessionsQuery),
    responses(
        (status = 200, description = "The sessions, the last changed first", body = AnySessionsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(query): Query<AdminSessionsQuery>,
) -> Result<Json<AnySessionsBody>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, MAX_PAGE);
    let filter = SessionFilter {
        user: query.user,
        agent: query.agent,
        status: query.status.as_deref().map(parse_status).transpose()?,
        before: query
            .before
            .as_deref()
            .map(parse_session_token)
            .transpose()?,
    };
    let found = state.store.all_sessions(&filter, limit).await?;
    let next = next_token(&found, limit, |last| {
        session_token(last.updated_at, last.id)
    });
    let connections = state.sessions.members().count_by_session();
    let sessions = found
        .into_iter()
        .map(|facts| {
            let here = connections.get(&facts.id).copied().unwrap_or_default();
            AnySessionBody::new(facts, here)
        })
        .collect();
    Ok(Json(AnySessionsBody { sessions, next }))
}

fn parse_status(text: &str) -> Result<SessionStatus, ApiError> {
    [
        SessionStatus::Running,
        SessionStatus::Idle,
        SessionStatus::Archived,
    ]
    .into_iter()
    .find(|status| status.as_str() == text)
    .ok_or_else(|| ApiError::invalid("`status` is `running`, `idle` or `archived`."))
}

/// Ends a session of any user permanently: its run stops and its members are notified.
#[utoipa::path(
    delete, path = "/api/admin/sessions/{id}", tag = "admin", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "Ended"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 404, description = "NOT_FOUND", body = Problem)
    )
)]
pub(in crate::http) async fn end(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    PathParam(id): PathParam<SessionId>,
) -> Result<StatusCode, ApiError> {
    let row = state.store.session(id).await?;
    let Some(row) = row.filter(|row| row.ended_at.is_none()) else {
        // An earlier attempt may have ended it without notifying its members.
        state.sessions.grants_changed(id).await;
        return Err(no_such_session());
    };
    end_session(&state, &caller, id, row.owner).await
}
