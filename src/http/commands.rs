//! Commands: `/api/sessions/{id}/commands`, one envelope in, its reply out.
//!
//! The same layers as behind a WebSocket, so limits, parsing, access and idempotency keys are the same
//! by construction; only an error gets an HTTP status besides.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::AppState;
use super::caller::{AnyToken, check_login, no_such_session};
use super::error::{ApiError, Problem, status_of};
use super::extract::{PathParam, Query, RawJson};
use super::sse::join;
use crate::domain::account::Principal;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::{ConnectionId, SessionId};
use crate::domain::shared_text::Text;
use crate::limits::LimitExceeded;
use crate::member::{FrameHandler, Handled};

/// On whose behalf.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct OnBehalfOf {
    /// The `connectionId` of your open stream (or socket) of this session: the command counts as
    /// said there, so that control can be taken and used.
    connection: Option<String>,
}

/// Sends one envelope to a session, as over a WebSocket, and answers with what that would answer.
#[utoipa::path(
    post, path = "/api/sessions/{id}/commands", tag = "sessions", security(("bearer" = [])),
    request_body(content = Object, description = "An envelope: `type`, `payload`, …"),
    params(("id" = String, Path, description = "The session"), OnBehalfOf),
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
    AnyToken(caller): AnyToken,
    PathParam(id): PathParam<SessionId>,
    Query(on_behalf_of): Query<OnBehalfOf>,
    headers: HeaderMap,
    RawJson(text): RawJson,
) -> Result<Response, ApiError> {
    let session = join(&state, &caller.principal, id).await?;
    let connection = connection(&state, &caller.principal, id, on_behalf_of)?;
    let shared = Arc::clone(&state.shared);
    let trace = shared.client_trace(&headers);
    shared.metrics.frames_in.inc();
    let handler = FrameHandler::http(shared, session, connection, caller.address, trace);
    let handler = Arc::new(handler);
    let Ok(handled) = handler.handle(text, caller.principal.clone()).await;
    if let Some(connection) = connection
        && !is_open(&state, &caller.principal, id, connection)
    {
        // The connection closed meanwhile: control taken just now must not outlive it.
        handler.session.release_control(connection).ok();
    }
    check_rights(&state, &caller.principal, &handler)?;
    Ok(match handled {
        Handled::Started(frame) | Handled::Replied(frame) | Handled::TokenRefreshed(_, frame) => {
            envelope(frame)
        }
        Handled::Refused {
            code,
            overdrawn,
            frame,
        } => refused(code, overdrawn, frame),
    })
}

fn connection(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    on_behalf_of: OnBehalfOf,
) -> Result<Option<ConnectionId>, ApiError> {
    let Some(text) = on_behalf_of.connection else {
        return Ok(None);
    };
    let named = text.parse().ok();
    let own = named.filter(|connection| is_open(state, principal, id, *connection));
    own.map(Some).ok_or_else(|| {
        let detail = "`connection` is no open stream or socket of yours in this session.";
        ApiError::invalid(detail).with_details(json!({ "field": "connection" }))
    })
}

/// True if the connection is open, in that session, and this user's.
fn is_open(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    connection: ConnectionId,
) -> bool {
    let members = state.sessions.members();
    members.has(connection, id, principal.user)
}

/// Called after the wait: a reply is not for a user who lost their rights meanwhile.
fn check_rights(
    state: &AppState,
    principal: &Principal,
    handler: &FrameHandler,
) -> Result<(), ApiError> {
    check_login(state, principal)?;
    if handler.session.access(principal).is_some() {
        return Ok(());
    }
    // The grants could not be read: they are read again with the next request.
    if !handler.session.presence().has_grants() {
        let detail = "Who may be in this session cannot be read at the moment; try again.";
        return Err(ApiError::busy(detail));
    }
    Err(no_such_session())
}

fn envelope(frame: Text) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, axum::body::Body::from(bytes::Bytes::from(frame))).into_response()
}

/// The envelope with its HTTP status, and when to try again if that is known.
fn refused(code: ErrorCode, overdrawn: Option<LimitExceeded>, frame: Text) -> Response {
    let mut response = envelope(frame);
    let (status, headers) = (status_of(code), response.headers_mut());
    if let Some(LimitExceeded { budget, refusal }) = overdrawn {
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
