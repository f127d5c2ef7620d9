//! `/api/sessions/{id}/commands`: one envelope in, its answer out.
//!
//! The same stack as behind a WebSocket, so limits, shape, access and keys are the same by
//! construction; only an error gets an HTTP status besides.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::AppState;
use super::caller::Holder;
use super::error::{ApiError, Problem, status_of};
use super::extract::{JsonText, Named};
use super::stream::join;
use crate::desk::{Desk, Frame, Outcome};
use crate::domain::code::Code;
use crate::domain::id::{ConnectionId, SessionId};

/// How every error begins on the wire.
const ERROR: &str = r#"{"type":"ERROR_MESSAGE""#;

/// Sends one envelope to a session, as over a WebSocket, and answers with what that would answer.
#[utoipa::path(
    post, path = "/api/sessions/{id}/commands", tag = "sessions", security(("bearer" = [])),
    request_body(content = Object, description = "An envelope: `type`, `payload`, …"),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "The answer's envelope; `ACK` with its `taskId` to a prompt", body = Object),
        (status = 400, description = "INVALID_MESSAGE, as ERROR_MESSAGE envelope", body = Object),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 413, description = "VALIDATION_ERROR: too large", body = Problem),
        (status = 422, description = "VALIDATION_ERROR, as ERROR_MESSAGE envelope", body = Object),
        (status = 429, description = "RATE_LIMITED, as ERROR_MESSAGE envelope", body = Object)
    )
)]
pub(super) async fn send(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Named(id): Named<SessionId>,
    JsonText(text): JsonText,
) -> Result<Response, ApiError> {
    let session = join(&state, &caller.principal, id).await?;
    let reception = Arc::clone(&state.reception);
    let desk = Arc::new(Desk::new(reception, session, ConnectionId::new()));
    state.reception.metrics.frames_in.inc();
    let frame = Frame {
        text: text.clone(),
        principal: caller.principal,
        desk: Arc::clone(&desk),
    };
    let Ok(outcome) = frame.answering().await;
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
