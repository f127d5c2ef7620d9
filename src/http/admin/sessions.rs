//! `/api/admin/sessions`: everybody's sessions from outside, and ending one.

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::domain::account::Username;
use crate::domain::id::{SessionId, UserId};
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Named, Query};
use crate::http::sessions::{end_as, no_such_session, place};
use crate::store::{SessionFacts, SessionFilter, SessionStatus};

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 500;

/// A session, without anything that is said in it.
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
    /// Sockets and streams of this node that are in it now.
    connections: usize,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
}

/// Whose session it is.
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
pub(in crate::http) struct Which {
    /// Of this user, by name or id.
    user: Option<String>,
    /// With this agent.
    agent: Option<String>,
    /// `running`, `idle` or `archived`.
    status: Option<String>,
    /// What the page before gave as `next`.
    before: Option<String>,
    /// How many, at most 500.
    limit: Option<u32>,
}

/// Everybody's sessions, the newest change first.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct AnySessionsBody {
    sessions: Vec<AnySessionBody>,
    /// What to ask for next as `before`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists everybody's sessions, without what is said in them.
#[utoipa::path(
    get, path = "/api/admin/sessions", tag = "admin", security(("bearer" = [])), params(Which),
    responses(
        (status = 200, description = "The sessions, the newest change first", body = AnySessionsBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn list(
    State(state): State<AppState>,
    _: Administrator,
    Query(which): Query<Which>,
) -> Result<Answer<AnySessionsBody>, ApiError> {
    let limit = which.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let filter = SessionFilter {
        user: which.user,
        agent: which.agent,
        status: which.status.as_deref().map(status).transpose()?,
        before: which.before.as_deref().map(place).transpose()?,
    };
    let found = state.store.all_sessions(&filter, limit).await?;
    let full = found.len() == limit as usize;
    let next = found
        .last()
        .filter(|_| full)
        .map(|last| format!("{}.{}", last.updated_at.as_millisecond(), last.id));
    let connections = state.sessions.members().count_by_session();
    let sessions = found
        .into_iter()
        .map(|facts| {
            let here = connections.get(&facts.id).copied().unwrap_or_default();
            AnySessionBody::new(facts, here)
        })
        .collect();
    Ok(Answer(AnySessionsBody { sessions, next }))
}

fn status(word: &str) -> Result<SessionStatus, ApiError> {
    [
        SessionStatus::Running,
        SessionStatus::Idle,
        SessionStatus::Archived,
    ]
    .into_iter()
    .find(|status| status.as_str() == word)
    .ok_or_else(|| ApiError::invalid("`status` is `running`, `idle` or `archived`."))
}

/// Ends anybody's session for good: its run stops, everybody in it is told.
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
    Named(id): Named<SessionId>,
) -> Result<StatusCode, ApiError> {
    let row = state.store.session(id).await?;
    let Some(row) = row.filter(|row| row.ended_at.is_none()) else {
        // Perhaps it was ended by a try whose answer was lost: then those in it do not know yet.
        state.sessions.grants_changed(id).await;
        return Err(no_such_session());
    };
    let owner = row.owner;
    end_as(&state, &caller, id, owner).await
}
