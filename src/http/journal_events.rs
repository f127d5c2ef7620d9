//! `/api/sessions/{id}/events`: a part of the journal as NDJSON.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use utoipa::IntoParams;

use super::AppState;
use super::caller::{Authenticated, require_access};
use super::error::{ApiError, Problem};
use super::extract::{PathParam, Query};
use super::journal_reader::JournalPages;
use super::sse::wait_for_events;
use crate::domain::id::SessionId;
use crate::session::{Access, Entry};
use crate::store::StoreError;
use crate::wire::outbound;

const DEFAULT_EVENTS: u32 = 500;
const MAX_EVENTS: u32 = 1_000;

/// Which part of the journal to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// The offset of the last event that the client has.
    after: Option<u64>,
    /// The offset of the first event that the client has: the response holds the events right
    /// before it. Not together with `after`.
    before: Option<u64>,
    /// Maximum number of events, at most 1000.
    limit: Option<u32>,
    /// Seconds to wait for an event if there is none yet, at most 30.
    wait: Option<u32>,
}

/// Reads the journal of a session: one envelope per line, as a socket would send them.
#[utoipa::path(
    get, path = "/api/sessions/{id}/events", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session"), EventsQuery),
    responses(
        (status = 200, description = "Envelopes, one per line", body = String, content_type = "application/x-ndjson"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: both `after` and `before`", body = Problem)
    )
)]
pub(super) async fn events(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
    Query(query): Query<EventsQuery>,
) -> Result<Response, ApiError> {
    require_access(&state, &caller.principal, id, Access::Viewer).await?;
    let mut pages = pages(&state, id, &query).await?;
    // Read the first page before the response begins: a database error can still become a status.
    let mut first = pages.next().await?;
    if let Some(seconds) = query.wait.filter(|_| first.is_empty()) {
        let (after, wait) = (
            query.after.unwrap_or(0),
            Duration::from_secs(seconds.into()),
        );
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

async fn pages(
    state: &AppState,
    id: SessionId,
    query: &EventsQuery,
) -> Result<JournalPages, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_EVENTS).clamp(1, MAX_EVENTS);
    let Some(before) = query.before else {
        let after = query.after.unwrap_or(0);
        return Ok(JournalPages::new(state, id, after, u64::MAX, limit));
    };
    if query.after.is_some() || query.wait.is_some() {
        let detail = "Ask for events `after` an offset or `before` one, not for both.";
        return Err(ApiError::invalid(detail));
    }
    let after = state.sessions.offset_before_last(id, before, limit).await?;
    Ok(JournalPages::new(state, id, after, before, limit))
}

fn lines(session: SessionId, page: &[Entry]) -> Bytes {
    let mut lines = String::new();
    for entry in page {
        lines.push_str(&outbound::event(session, &entry.recorded));
        lines.push('\n');
    }
    lines.into()
}
