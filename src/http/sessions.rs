//! `/api/sessions` and `/api/agents`: one's own sessions, those shared with one, and what they can
//! talk to.

use std::sync::Arc;
use std::time::Duration;

use axum::Json as Answer;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::caller::Authenticated;
use super::error::{ApiError, Problem};
use super::extract::{Json, Named, Query};
use super::pages::Pages;
use super::stream::wait_for_events;
use crate::domain::account::{Principal, Username};
use crate::domain::act::Action;
use crate::domain::grant::ControlMode;
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::domain::search::Words;
use crate::session::{Access, Entry, JoinError, SearchError};
use crate::store::{Hit, NewSession, SessionChange, SessionRow, StoreError};
use crate::wire::outbound;

const PAGE: u32 = 50;
const LARGEST_PAGE: u32 = 500;
const EVENTS: u32 = 500;
const MOST_EVENTS: u32 = 1_000;
const TITLE_CHARS: usize = 200;

/// A session, as those see it who may.
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
    /// Whose it is.
    #[schema(value_type = String)]
    owner: Username,
    /// Whose commands it takes: `open` (everybody's who may) or `exclusive` (of the one who took
    /// control).
    #[schema(value_type = String)]
    control: ControlMode,
    #[schema(value_type = String)]
    epoch: Epoch,
    /// The offset of its last event.
    offset: u64,
    message_count: u64,
    last_user_message: Option<String>,
    /// How many questions wait for an answer.
    open_questions: u64,
    /// How many prompts wait for their turn.
    queued_prompts: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Where the words of a search were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
}

impl From<Hit> for SessionBody {
    fn from(hit: Hit) -> Self {
        Self {
            snippet: Some(hit.snippet),
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
            last_user_message: row.last_prompt,
            open_questions: row.waiting,
            queued_prompts: row.queued,
            created_at: row.created_at,
            updated_at: row.updated_at,
            snippet: None,
        }
    }
}

/// Which sessions to list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// What the page before gave as `next`.
    before: Option<String>,
    /// How many, at most 500; at most 50 of a search.
    limit: Option<u32>,
    /// Words that shall all be found in its title, prompts and answers, each at the beginning of
    /// some word.
    q: Option<String>,
}

/// Sessions, the newest change first.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionsBody {
    sessions: Vec<SessionBody>,
    /// What to ask for next as `before`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists one's own sessions and those shared with one, or those of one's own in which some words were
/// said.
#[utoipa::path(
    get, path = "/api/sessions", tag = "sessions", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, description = "Your sessions and those shared with you, the newest change first", body = SessionsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad `before` or `limit`", body = Problem),
        (status = 503, description = "BUSY: too many searches at the moment", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Authenticated,
    Query(page): Query<Page>,
) -> Result<Answer<SessionsBody>, ApiError> {
    let owner = caller.principal.user;
    let before = page.before.as_deref().map(place).transpose()?;
    // A search box with nothing in it is no search.
    let question = page.q.filter(|question| !question.trim().is_empty());
    let largest = if question.is_some() {
        PAGE
    } else {
        LARGEST_PAGE
    };
    let limit = page.limit.unwrap_or(PAGE).clamp(1, largest);
    let sessions: Vec<SessionBody> = if let Some(question) = question {
        let words = Words::of(&question);
        let hits = state.sessions.search(owner, &words, before, limit).await;
        let hits = hits.map_err(|error| match error {
            SearchError::Busy => {
                ApiError::busy("Too many searches at the moment; try again in a moment.")
            }
            SearchError::Store(error) => error.into(),
        })?;
        hits.into_iter().map(SessionBody::from).collect()
    } else {
        let rows = state.store.sessions(owner, before, limit).await?;
        rows.into_iter().map(SessionBody::from).collect()
    };
    let full = sessions.len() == limit as usize;
    let next = sessions
        .last()
        .filter(|_| full)
        .map(|last| format!("{}.{}", last.updated_at.as_millisecond(), last.id));
    Ok(Answer(SessionsBody { sessions, next }))
}

/// A place in the order of sessions: `milliseconds.id`.
pub(super) fn place(text: &str) -> Result<(Timestamp, SessionId), ApiError> {
    let read = || {
        let (millis, id) = text.split_once('.')?;
        let at = Timestamp::from_millisecond(millis.parse().ok()?).ok()?;
        Some((at, id.parse().ok()?))
    };
    read().ok_or_else(|| ApiError::invalid("`before` is what a page before gave as `next`."))
}

/// A session to be made.
#[derive(Deserialize, ToSchema)]
pub(super) struct CreateRequest {
    agent: Option<String>,
    title: Option<String>,
}

/// Makes a session.
#[utoipa::path(
    post, path = "/api/sessions", tag = "sessions", security(("bearer" = [])),
    request_body = CreateRequest,
    responses(
        (status = 201, description = "Made", body = SessionBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: no such agent, or a bad title", body = Problem)
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Authenticated,
    Json(request): Json<CreateRequest>,
) -> Result<Response, ApiError> {
    let title = request.title.map(check_title).transpose()?;
    let described = state
        .sessions
        .describe(caller.principal.user, request.agent.as_deref(), title);
    let new: NewSession = described.map_err(|error| match error {
        JoinError::Store(error) => error.into(),
        other => ApiError::invalid(other.to_string()),
    })?;
    state.store.create_session(&new).await?;
    let row = find(&state, &caller.principal, new.id, Access::Owner).await?;
    Ok((StatusCode::CREATED, Answer(SessionBody::from(row))).into_response())
}

fn check_title(title: String) -> Result<String, ApiError> {
    let good = !title.trim().is_empty()
        && title.chars().count() <= TITLE_CHARS
        && !title.chars().any(char::is_control);
    good.then_some(title).ok_or_else(|| {
        ApiError::invalid(format!(
            "A title has 1 to {TITLE_CHARS} characters and no control characters."
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
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn show(
    State(state): State<AppState>,
    caller: Authenticated,
    Named(id): Named<SessionId>,
) -> Result<Answer<SessionBody>, ApiError> {
    Ok(Answer(
        find(&state, &caller.principal, id, Access::Viewer)
            .await?
            .into(),
    ))
}

/// What to change about a session.
#[derive(Deserialize, ToSchema)]
pub(super) struct ChangeRequest {
    title: Option<String>,
    archived: Option<bool>,
    /// `open` or `exclusive`.
    #[schema(value_type = Option<String>, example = "exclusive")]
    control: Option<ControlMode>,
}

/// Renames a session, puts it away or brings it back, or decides whose commands it takes.
#[utoipa::path(
    patch, path = "/api/sessions/{id}", tag = "sessions", security(("bearer" = [])),
    request_body = ChangeRequest,
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The session as it is now", body = SessionBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: it is only shared with you", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn change(
    State(state): State<AppState>,
    caller: Authenticated,
    Named(id): Named<SessionId>,
    Json(request): Json<ChangeRequest>,
) -> Result<Answer<SessionBody>, ApiError> {
    find(&state, &caller.principal, id, Access::Owner).await?;
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
        state.acts_on(id, changing).await?;
    } else {
        changing.await?;
    }
    Ok(Answer(
        find(&state, &caller.principal, id, Access::Owner)
            .await?
            .into(),
    ))
}

/// Ends a session for good: its run stops, everybody in it is told.
#[utoipa::path(
    delete, path = "/api/sessions/{id}", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "Ended"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: it is only shared with you", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn end(
    State(state): State<AppState>,
    caller: Authenticated,
    Named(id): Named<SessionId>,
) -> Result<StatusCode, ApiError> {
    if let Err(refused) = find(&state, &caller.principal, id, Access::Owner).await {
        if refused.is_not_found() {
            // Perhaps ended by a try whose answer was lost: then those in it do not know yet.
            state.sessions.grants_changed(id).await;
        }
        return Err(refused);
    }
    end_as(&state, &caller, id, caller.principal.user).await
}

/// Ends a session of that owner; whoever asks has checked that the caller may.
pub(super) async fn end_as(
    state: &AppState,
    caller: &Authenticated,
    id: SessionId,
    owner: UserId,
) -> Result<StatusCode, ApiError> {
    let by = state.auth.by(&caller.principal, caller.address);
    let act = by.did(Action::SessionEnded, id.to_string());
    let (sessions, store) = (state.sessions.clone(), Arc::clone(&state.store));
    let ending = async move {
        sessions.end_run(id).await;
        if !store.end_session(id, owner, &act).await? {
            return Err(no_such_session());
        }
        sessions.ended(id);
        Ok(StatusCode::NO_CONTENT)
    };
    state.acts_on(id, ending).await
}

/// Which part of a journal.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// The offset of the last event that is known already.
    after: Option<u64>,
    /// The offset of the first event that is known already: what is wanted are the last ones before
    /// it. Not together with `after`.
    before: Option<u64>,
    /// How many, at most 1000.
    limit: Option<u32>,
    /// If there are none yet: how many seconds to wait for some, at most 30.
    wait: Option<u32>,
}

/// The journal of a session: one envelope per line, as a socket would send them.
#[utoipa::path(
    get, path = "/api/sessions/{id}/events", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session"), Part),
    responses(
        (status = 200, description = "Envelopes, one per line", body = String, content_type = "application/x-ndjson"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: both `after` and `before`", body = Problem)
    )
)]
pub(super) async fn events(
    State(state): State<AppState>,
    caller: Authenticated,
    Named(id): Named<SessionId>,
    Query(part): Query<Part>,
) -> Result<Response, ApiError> {
    find(&state, &caller.principal, id, Access::Viewer).await?;
    let limit = part.limit.unwrap_or(EVENTS).clamp(1, MOST_EVENTS);
    let after = part.after.unwrap_or(0);
    let mut pages = match part.before {
        Some(_) if part.after.is_some() || part.wait.is_some() => {
            let detail = "Ask for events `after` an offset or `before` one, not for both.";
            return Err(ApiError::invalid(detail));
        }
        Some(before) => {
            let after = state.sessions.beginning_of(id, before, limit).await?;
            Pages::new(&state, id, after, before, limit)
        }
        None => Pages::new(&state, id, after, u64::MAX, limit),
    };
    // The first page before the answer begins: a database that is away is still an error then.
    let mut first = pages.next().await?;
    if let Some(seconds) = part.wait.filter(|_| first.is_empty()) {
        let wait = Duration::from_secs(seconds.into());
        wait_for_events(&state, &caller, id, after, wait).await?;
        first = pages.next().await?;
    }
    let rest = stream::try_unfold(pages, async |mut pages| {
        let page = pages.next().await?;
        Ok::<_, StoreError>((!page.is_empty()).then(|| (lines(pages.session(), &page), pages)))
    });
    let first = stream::iter([Ok(lines(id, &first))]);
    let body = Body::from_stream(first.chain(rest));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// One envelope per line.
fn lines(session: SessionId, page: &[Entry]) -> Bytes {
    let mut lines = String::new();
    for entry in page {
        lines.push_str(&outbound::event(session, &entry.recorded));
        lines.push('\n');
    }
    lines.into()
}

/// The session, if the caller may do this with it. A foreign one and none at all are the same.
pub(super) async fn find(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    least: Access,
) -> Result<SessionRow, ApiError> {
    match state.sessions.look_up(principal, id).await {
        Ok((row, access)) if access >= least => Ok(row),
        Ok(_) if least == Access::Owner => Err(ApiError::forbidden(
            "This session is shared with you; only its owner may do this.",
        )),
        Ok(_) => Err(ApiError::forbidden(
            "You may look at this session, not change it.",
        )),
        Err(JoinError::Store(error)) => Err(error.into()),
        Err(_) => Err(no_such_session()),
    }
}

pub(super) fn no_such_session() -> ApiError {
    ApiError::not_found("There is no such session.")
}

/// The agents that a session can talk to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentsBody {
    agents: Vec<AgentBody>,
    /// The one of a session for which none is named.
    default_agent: String,
}

/// One agent.
#[derive(Serialize, ToSchema)]
pub(super) struct AgentBody {
    name: String,
    capabilities: Vec<&'static str>,
}

/// Lists the agents that can be started.
#[utoipa::path(
    get, path = "/api/agents", tag = "sessions", security(("bearer" = [])),
    responses(
        (status = 200, description = "The agents", body = AgentsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem)
    )
)]
pub(super) async fn agents(State(state): State<AppState>, _: Authenticated) -> Answer<AgentsBody> {
    let agent = |name: &str| AgentBody {
        name: name.to_owned(),
        capabilities: state.sessions.capabilities(name),
    };
    let agents = state.sessions.agents().map(agent).collect();
    Answer(AgentsBody {
        agents,
        default_agent: state.sessions.default_agent().to_owned(),
    })
}
