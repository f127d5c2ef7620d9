//! `/api/sessions/{id}/events`: a part of the journal as NDJSON.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::AppState;
use super::accept_loop::HttpConnection;
use super::caller::Authenticated;
use super::error::{ApiError, Problem};
use super::extract::{PathParam, Query};
use super::journal_reader::{JournalReader, PageWriter};
use super::sse::wait_for_events;
use crate::domain::id::SessionId;
use crate::session::Entry;
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
    Extension(connection): Extension<HttpConnection>,
) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_EVENTS).clamp(1, MAX_EVENTS);
    let mut reader = JournalReader::open(&state, &caller, id).await?;
    match (query.after, query.before) {
        (None, Some(before)) if query.wait.is_none() => reader.last_before(before, limit).await?,
        (_, Some(_)) => {
            let detail = "Ask for events `after` an offset or `before` one, not for both.";
            return Err(ApiError::invalid(detail));
        }
        (after, None) => {
            let after = after.unwrap_or(0);
            reader.first_after(after, limit);
            if let Some(seconds) = query.wait.filter(|_| reader.is_at_end()) {
                let wait = Duration::from_secs(seconds.into());
                wait_for_events(&state, &caller, id, after, wait).await?;
                reader = JournalReader::open(&state, &caller, id).await?;
                reader.first_after(after, limit);
            }
        }
    }
    let body = reader.into_body(Lines(id), &connection).await?;
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// One envelope per line.
pub(super) struct Lines(pub(super) SessionId);

impl PageWriter for Lines {
    fn write(&mut self, page: &[Entry], out: &mut String) {
        for entry in page {
            out.push_str(&outbound::event(self.0, &entry.recorded));
            out.push('\n');
        }
    }

    fn end(self, _out: &mut String) {}
}
