//! `/api/sessions`: the caller's own sessions and those shared with the caller.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::caller::{Authenticated, no_such_session, require_access};
use super::error::{ApiError, Problem};
use super::extract::{Json, PathParam, Query};
use super::page_token::{next_token, parse_session_token, session_token};
use crate::domain::account::Username;
use crate::domain::audit::Action;
use crate::domain::grant::ControlMode;
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::domain::search_query::SearchQuery;
use crate::session::{Access, JoinError};
use crate::store::{NewSession, SearchHit, SessionChange, SessionRow};

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 500;
const MAX_HITS: u32 = 50;
const MAX_TITLE_CHARS: usize = 200;

/// A session, as a member sees it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionBody {
    #[schema(value_type = String)]
    id: SessionId,
    title: Option<String>,
    agent: String,
    /// `running`, `waiting` (for an answer), `idle` or `archived`.
    status: &'static str,
    /// What you may do: `viewer`, `editor` or `owner`.
    access: &'static str,
    /// The owner's name.
    #[schema(value_type = String)]
    owner: Username,
    /// Whose commands it accepts: `open` (of all who may edit) or `exclusive` (of the connection that
    /// took control).
    #[schema(value_type = String)]
    control: ControlMode,
    #[schema(value_type = String)]
    epoch: Epoch,
    /// The offset of its last event.
    offset: u64,
    message_count: u64,
    last_user_message: Option<String>,
    /// The first prompt, shortened: the name of a session without a title.
    first_user_message: Option<String>,
    /// The session that it began as a copy of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    branched_from: Option<SessionId>,
    /// Number of users that it is shared with.
    shared_with: u64,
    /// Whether something happened since you last read it.
    unread: bool,
    /// Number of questions that wait for an answer.
    open_questions: u64,
    /// Number of queued prompts.
    queued_prompts: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// The best matching passage of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
    /// The matching passages of a search, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    hits: Vec<PassageBody>,
}

/// A passage that a search found.
#[derive(Serialize, ToSchema)]
pub(super) struct PassageBody {
    /// The offset of its event; 0 for the title.
    offset: u64,
    snippet: String,
}

impl From<SearchHit> for SessionBody {
    fn from(hit: SearchHit) -> Self {
        let hits: Vec<PassageBody> = hit
            .passages
            .into_iter()
            .map(|passage| PassageBody {
                offset: passage.offset,
                snippet: passage.snippet,
            })
            .collect();
        Self {
            snippet: hits.first().map(|hit| hit.snippet.clone()),
            hits,
            ..hit.row.into()
        }
    }
}

impl From<SessionRow> for SessionBody {
    fn from(row: SessionRow) -> Self {
        let status = match (row.archived_at, row.running) {
            (Some(_), _) => "archived",
            (None, true) if row.waiting > 0 => "waiting",
            (None, true) => "running",
            (None, false) => "idle",
        };
        Self {
            id: row.id,
            title: row.title,
            agent: row.agent,
            status,
            access: row.granted.map_or(Access::Owner, Access::from).as_str(),
            owner: row.owner_name,
            control: row.control,
            epoch: row.epoch,
            offset: row.head,
            message_count: row.messages,
            unread: row.read_upto.is_some_and(|upto| row.head > upto),
            last_user_message: row.last_prompt,
            first_user_message: row.first_prompt,
            branched_from: row.branched_from,
            shared_with: row.shared_with,
            open_questions: row.waiting,
            queued_prompts: row.queued,
            created_at: row.created_at,
            updated_at: row.updated_at,
            snippet: None,
            hits: Vec::new(),
        }
    }
}

/// Which sessions to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// `next` of the page before.
    before: Option<String>,
    /// Maximum number of sessions, at most 500; at most 50 of a search.
    limit: Option<u32>,
    /// Search: every word must be in the title, the prompts or the answers, as the beginning of a word;
    /// with three letters and more also as a part of one, in the newest texts.
    q: Option<String>,
}

/// Sessions, the last changed first.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionsBody {
    sessions: Vec<SessionBody>,
    /// `before` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists your sessions and those shared with you, or searches your own.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", security(("bearer" = [])), params(SessionsQuery),
    responses(
        (status = 200, description = "Your sessions and those shared with you, the last changed first", body = SessionsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad `before` or `limit`", body = Problem),
        (status = 503, description = "BUSY: too many searches at the moment", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Authenticated,
    Query(query): Query<SessionsQuery>,
) -> Result<Json<SessionsBody>, ApiError> {
    let owner = caller.principal.user;
    let before = query
        .before
        .as_deref()
        .map(parse_session_token)
        .transpose()?;
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    // An empty search box lists all sessions.
    let search = query.q.filter(|text| !text.trim().is_empty());
    let (sessions, limit): (Vec<SessionBody>, u32) = if let Some(text) = search {
        let limit = limit.clamp(1, MAX_HITS);
        let words = SearchQuery::parse(&text);
        let hits = state.sessions.search(owner, &words, before, limit).await?;
        (hits.into_iter().map(SessionBody::from).collect(), limit)
    } else {
        let limit = limit.clamp(1, MAX_PAGE);
        let rows = state.store.sessions(owner, before, limit).await?;
        (rows.into_iter().map(SessionBody::from).collect(), limit)
    };
    let next = next_token(&sessions, limit, |last| {
        session_token(last.updated_at, last.id)
    });
    Ok(Json(SessionsBody { sessions, next }))
}

/// The session to create.
#[derive(Deserialize, ToSchema)]
pub(super) struct CreateRequest {
    agent: Option<String>,
    title: Option<String>,
}

/// Creates a session.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", security(("bearer" = [])),
    request_body = CreateRequest,
    responses(
        (status = 201, description = "Created", body = SessionBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: no such agent, a bad title, or as many sessions as the account may have", body = Problem)
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Authenticated,
    Json(request): Json<CreateRequest>,
) -> Result<Response, ApiError> {
    let title = request.title.map(check_title).transpose()?;
    let described =
        state
            .sessions
            .new_session(caller.principal.user, request.agent.as_deref(), title);
    let new: NewSession = described.map_err(|error| match error {
        JoinError::Store(error) => error.into(),
        other => ApiError::invalid(other.to_string()),
    })?;
    state.sessions.check_new_session(new.owner).await?;
    state.store.create_session(&new).await?;
    let row = require_access(&state, &caller.principal, new.id, Access::Owner).await?;
    Ok((StatusCode::CREATED, Json(SessionBody::from(row))).into_response())
}

fn check_title(title: String) -> Result<String, ApiError> {
    let is_valid = !title.trim().is_empty()
        && title.chars().count() <= MAX_TITLE_CHARS
        && !title.chars().any(char::is_control);
    is_valid.then_some(title).ok_or_else(|| {
        ApiError::invalid(format!(
            "A title has 1 to {MAX_TITLE_CHARS} characters and no control characters."
        ))
    })
}

/// Shows a session.
#[utoipa::path(
    get, path = "/api/sessions/{id}", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session", body = SessionBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem)
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
) -> Result<Json<SessionBody>, ApiError> {
    let row = require_access(&state, &caller.principal, id, Access::Viewer).await?;
    Ok(Json(row.into()))
}

/// The changes to a session.
#[derive(Deserialize, ToSchema)]
pub(super) struct ChangeRequest {
    title: Option<String>,
    archived: Option<bool>,
    /// `open` or `exclusive`.
    #[schema(value_type = Option<String>, example = "exclusive")]
    control: Option<ControlMode>,
}

/// Renames or archives a session, restores it, or sets whose commands it accepts.
#[utoipa::path(
    patch, path = "/api/sessions/{id}", tag = "sessions", security(("bearer" = [])),
    request_body = ChangeRequest,
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session as it is now", body = SessionBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you are not its owner", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
    Json(request): Json<ChangeRequest>,
) -> Result<Json<SessionBody>, ApiError> {
    require_access(&state, &caller.principal, id, Access::Owner).await?;
    let title = request.title.map(check_title).transpose()?;
    let changes = title
        .map(SessionChange::Title)
        .into_iter()
        .chain(request.archived.map(SessionChange::Archived))
        .chain(request.control.map(SessionChange::Control));
    let (owner, now) = (caller.principal.user, state.clock.wall());
    let store = Arc::clone(&state.store);
    let changing = async move {
        for change in changes {
            if !store.change_session(id, owner, &change, now).await? {
                return Err(no_such_session());
            }
        }
        Ok(())
    };
    if request.control.is_some() {
        state.apply_to_session(id, changing).await?;
    } else {
        changing.await?;
    }
    let row = require_access(&state, &caller.principal, id, Access::Owner).await?;
    Ok(Json(row.into()))
}

/// How far you have read.
#[derive(Deserialize, ToSchema)]
pub(super) struct ReadRequest {
    /// The offset of the last event that you saw.
    offset: u64,
}

/// Remembers how far you have read a session, for all your devices.
#[utoipa::path(
    put, path = "/api/sessions/{id}/read", tag = "sessions", security(("bearer" = [])),
    request_body = ReadRequest,
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "Remembered"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem)
    )
)]
pub(super) async fn mark_read(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
    Json(request): Json<ReadRequest>,
) -> Result<StatusCode, ApiError> {
    let row = require_access(&state, &caller.principal, id, Access::Viewer).await?;
    let upto = request.offset.min(row.head);
    let (user, store) = (caller.principal.user, &state.store);
    if store.mark_read(id, user, upto).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_session())
    }
}

/// Ends a session permanently: its run stops and its members are notified.
#[utoipa::path(
    delete, path = "/api/sessions/{id}", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "Ended"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you are not its owner", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem)
    )
)]
pub(super) async fn end(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
) -> Result<StatusCode, ApiError> {
    if let Err(refused) = require_access(&state, &caller.principal, id, Access::Owner).await {
        if refused.is_not_found() {
            // An earlier attempt may have ended it without notifying its members.
            state.sessions.grants_changed(id).await;
        }
        return Err(refused);
    }
    end_session(&state, &caller, id, caller.principal.user).await
}

/// Ends a session of that owner. The caller's rights are already checked.
pub(super) async fn end_session(
    state: &AppState,
    caller: &Authenticated,
    id: SessionId,
    owner: UserId,
) -> Result<StatusCode, ApiError> {
    let by = state.auth.audit_context(&caller.principal, caller.address);
    let record = by.did(Action::SessionEnded, id.to_string());
    let (sessions, store) = (state.sessions.clone(), Arc::clone(&state.store));
    let ending = async move {
        sessions.end_run(id).await;
        if !store.end_session(id, owner, &record).await? {
            return Err(no_such_session());
        }
        sessions.mark_ended(id);
        Ok(StatusCode::NO_CONTENT)
    };
    state.apply_to_session(id, ending).await
}
