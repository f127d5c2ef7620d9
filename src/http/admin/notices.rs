//! `/api/admin/notices`: sends a notice to every connection.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::bus::Notice;
use crate::domain::audit::Action;
use crate::domain::event::Level;
use crate::http::AppState;
use crate::http::caller::Administrator;
use crate::http::error::{ApiError, Problem};
use crate::http::extract::Json;

const MAX_MESSAGE_CHARS: usize = 2_000;

/// The notice to send.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NoticeRequest {
    /// `info`, `warn` or `error`.
    #[serde(default = "info")]
    #[schema(value_type = Option<String>, example = "info")]
    level: Level,
    message: String,
}

fn info() -> Level {
    Level::Info
}

/// How many connections got the notice.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct SentBody {
    /// Connections of this node that get it.
    connections: usize,
}

/// Sends a notice to every connection, in every session.
#[utoipa::path(
    post, path = "/api/admin/notices", tag = "admin", security(("bearer" = [])),
    request_body = NoticeRequest,
    responses(
        (status = 200, description = "Sent", body = SentBody),
        (status = 403, description = "FORBIDDEN", body = Problem),
        (status = 422, description = "VALIDATION_ERROR", body = Problem)
    )
)]
pub(in crate::http) async fn send(
    State(state): State<AppState>,
    Administrator(caller): Administrator,
    Json(request): Json<NoticeRequest>,
) -> Result<Json<SentBody>, ApiError> {
    let is_control = |letter: char| letter.is_control() && !"\t\n\r".contains(letter);
    let message = request.message;
    if message.trim().is_empty()
        || message.chars().count() > MAX_MESSAGE_CHARS
        || message.contains(is_control)
    {
        return Err(ApiError::invalid(format!(
            "A notice has 1 to {MAX_MESSAGE_CHARS} characters and no control characters."
        )));
    }
    let by = state.auth.audit_context(&caller.principal, caller.address);
    state
        .store
        .record(&by.did(Action::NoticeSent, "everybody"))
        .await?;
    let connections = state.notices.send(Notice {
        level: request.level,
        message,
    });
    Ok(Json(SentBody { connections }))
}
