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
use serde_json::{Value, json};
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

/// How every error begins on the wire.
const ERROR: &str = r#"{"type":"ERROR_MESSAGE""#;

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
        text: text.clone(),
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
        Outcome::Begun(answer) | Outcome::Answer(answer) => answered(answer),
        // There is no connection that could live on.
        Outcome::Refreshed(..) => answered(desk.error(
            Code::ValidationError,
            "Here every request brings its token; send the newer one with the next.",
            message_id(&text).as_deref(),
        )),
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

fn message_id(text: &str) -> Option<String> {
    let envelope: Value = serde_json::from_str(text).ok()?;
    Some(envelope["messageId"].as_str()?.to_owned())
}

/// What is read of an error.
#[derive(Deserialize)]
struct Told {
    payload: Problematic,
}

#[derive(Deserialize)]
struct Problematic {
    code: Code,
    #[serde(default)]
    details: Value,
}

/// The envelope as it is, with the status that fits.
fn answered(answer: Utf8Bytes) -> Response {
    let error = answer
        .starts_with(ERROR)
        .then(|| serde_json::from_str::<Told>(&answer).ok())
        .flatten();
    let mut response = axum::body::Body::from(bytes::Bytes::from(answer)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let Some(Told { payload }) = error else {
        return response;
    };
    let status = status_of(payload.code);
    let seconds = match payload.details["retryAfterMs"].as_u64() {
        Some(millis) => Some(millis.div_ceil(1000).max(1)),
        None => (status == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
    };
    if let Some(seconds) = seconds {
        headers.insert(RETRY_AFTER, seconds.into());
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    *response.status_mut() = status;
    response
}
