//! `/api/admin/notices`: a word to everybody who is connected.

use axum::Json as Answer;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AppState;
use super::caller::Administrator;
use super::error::{ApiError, Problem};
use super::extract::Json;
use crate::bus::Notice;
use crate::domain::act::Action;
use crate::domain::event::Level;

const MESSAGE_CHARS: usize = 2_000;

/// What everybody shall read.
#[derive(Deserialize, ToSchema)]
pub(super) struct NoticeRequest {
    /// `info`, `warn` or `error`.
    #[serde(default = "info")]
    #[schema(value_type = Option<String>, example = "info")]
    level: Level,
    message: String,
}

fn info() -> Level {
    Level::Info
}

/// How far it went.
#[derive(Serialize, ToSchema)]
pub(super) struct SentBody {
    /// Sockets of this node that hear it.
    connections: usize,
}

/// Sends a notice to every socket, whichever session it is in.
#[utoipa::path(
    post, path = "/api/admin/notices", tag = "admin", security(("bearer" = [])),
    request_body = NoticeRequest,
    responses(
        (status = 200, description = "Sent", body = SentBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(super) async fn send(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Json(request): Json<NoticeRequest>,
) -> Result<Answer<SentBody>, ApiError> {
    let odd = |letter: char| letter.is_control() && !"\t\n\r".contains(letter);
    let message = request.message;
    if message.trim().is_empty() || message.chars().count() > MESSAGE_CHARS || message.contains(odd)
    {
        return Err(ApiError::invalid(format!(
            "A notice has 1 to {MESSAGE_CHARS} characters and no control characters."
        )));
    }
    let by = state.auth.by(&caller.principal, caller.address);
    state
        .store
        .record(&by.did(Action::NoticeSent, "everybody"))
        .await?;
    let connections = state.notices.send(Notice {
        level: request.level,
        message,
    });
    Ok(Answer(SentBody { connections }))
}
