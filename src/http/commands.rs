//! `/api/sessions/{id}/commands`: one envelope in, its answer out.
//!
//! The same stack as behind a WebSocket, so limits, shape, access and keys are the same by
//! construction; only an error gets an HTTP status besides.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use utoipa::IntoParams;

use super::AppState;
use super::caller::{Holder, check_login};
use super::error::{ApiError, Problem, status_of};
use super::extract::{JsonText, Named, Query};
use super::sessions::no_such_session;
use super::stream::join;
use crate::desk::{Desk, Frame, Outcome};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::{ConnectionId, SessionId};
use crate::limits::Overdrawn;

/// On whose behalf.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Beside {
    /// The `connectionId` of your open stream (or socket) of this session: the command counts as
    /// said there, so that control can be taken and used.
    connection: Option<String>,
}

/// Sends one envelope to a session, as over a WebSocket, and answers with what that would answer.
#[utoipa::path(
    post, path = "/api/sessions/{id}/commands", tag = "sessions", security(("bearer" = [])),
    request_body(content = Object, description = "An envelope: `type`, `payload`, …"),
    params(("id" = String, Path, description = "The session"), Beside),
    responses(
        (status = 200, description = "The answer's envelope; `ACK` with its `taskId` to a prompt", body = Object),
        (status = 400, description = "INVALID_MESSAGE, as ERROR_MESSAGE envelope", body = Object),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN, as ERROR_MESSAGE envelope", body = Object),
        (status = 404, description = "NOT_FOUND: no such session, or somebody else's; what a command names, as ERROR_MESSAGE envelope", body = Problem),
        (status = 409, description = "BUSY: the session has something else to do, as ERROR_MESSAGE envelope", body = Object),
        (status = 413, description = "VALIDATION_ERROR: too large", body = Problem),
        (status = 415, description = "INVALID_MESSAGE: not JSON by its content type", body = Problem),
        (status = 422, description = "VALIDATION_ERROR, as ERROR_MESSAGE envelope", body = Object),
        (status = 429, description = "RATE_LIMITED, as ERROR_MESSAGE envelope", body = Object),
        (status = 502, description = "CONNECTION_LOST: the agent did not answer, as ERROR_MESSAGE envelope", body = Object),
        (status = 503, description = "STORAGE_UNAVAILABLE, as ERROR_MESSAGE envelope or as problem", body = Object)
    )
)]
pub(super) async fn send(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Named(id): Named<SessionId>,
    Query(beside): Query<Beside>,
    headers: HeaderMap,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let session = join(&state, &caller.principal, id).await?;
    let connection = connection(&state, &caller.principal, id, beside)?;
    let reception = Arc::clone(&state.reception);
    let mut desk = Desk::beside(reception, session, connection, caller.address);
    desk.remote = state.reception.remote(&headers);
    let desk = Arc::new(desk);
    state.reception.metrics.frames_in.inc();
    let frame = Frame {
        text,
        principal: caller.principal.clone(),
        desk: Arc::clone(&desk),
    };
    let Ok(outcome) = frame.answering().await;
    if let Some(connection) = connection
        && !is_there(&state, &caller.principal, id, connection)
    {
        // It left meanwhile, and would have left control behind had it been given that before.
        desk.session.release_control(connection).ok();
    }
    check_rights(&state, &caller.principal, &desk)?;
    Ok(match outcome {
        Outcome::Begun(frame) | Outcome::Answer(frame) | Outcome::Refreshed(_, frame) => {
            envelope(frame)
        }
        Outcome::Refused {
            code,
            overdrawn,
            frame,
        } => refused(code, overdrawn, frame),
    })
}

/// The connection that a request names, if it does.
fn connection(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    beside: Beside,
) -> Result<Option<ConnectionId>, ApiError> {
    let Some(text) = beside.connection else {
        return Ok(None);
    };
    let named = text.parse().ok();
    let own = named.filter(|connection| is_there(state, principal, id, *connection));
    own.map(Some).ok_or_else(|| {
        let detail = "`connection` is no open stream or socket of yours in this session.";
        ApiError::invalid(detail).with_details(json!({ "field": "connection" }))
    })
}

/// Is this connection open, in that session, and this user's?
fn is_there(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    connection: ConnectionId,
) -> bool {
    let members = state.sessions.members();
    members.has(connection, id, principal.user)
}

/// Asked after the wait: an answer is not for somebody who lost their rights meanwhile.
fn check_rights(state: &AppState, principal: &Principal, desk: &Desk) -> Result<(), ApiError> {
    check_login(state, principal)?;
    if desk.session.access(principal).is_some() {
        return Ok(());
    }
    // Storage could not be asked: it is asked when they come back.
    if !desk.session.circle().knows_grants() {
        let detail = "Who may be in this session cannot be read at the moment; try again.";
        return Err(ApiError::busy(detail));
    }
    Err(no_such_session())
}

/// The envelope as it is.
fn envelope(frame: Utf8Bytes) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, axum::body::Body::from(bytes::Bytes::from(frame))).into_response()
}

/// The envelope with the status that fits, and when to come back if that is known.
fn refused(code: Code, overdrawn: Option<Overdrawn>, frame: Utf8Bytes) -> Response {
    let mut response = envelope(frame);
    let (status, headers) = (status_of(code), response.headers_mut());
    if let Some(Overdrawn { budget, refusal }) = overdrawn {
        headers.insert(RETRY_AFTER, refusal.retry_after_secs().into());
        headers.extend(refusal.headers(budget.counted()));
    } else if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, 1.into());
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    *response.status_mut() = status;
    response
}
