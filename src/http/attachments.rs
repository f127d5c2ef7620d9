//! `/api/sessions/{id}/attachments`: files for a session.
//!
//! An upload goes to disk while it arrives. What it is, is decided by its content; nothing that could
//! hold a script is shown in place.

pub(super) mod download;
pub(super) mod upload;

use std::time::Duration;

use axum::Json as Answer;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::AppState;
use super::caller::Holder;
use super::error::{ApiError, Problem};
use super::extract::Named;
use super::sessions::find;
use crate::domain::code::Code;
use crate::domain::id::{AttachmentId, SessionId};
use crate::session::Access;
use crate::store::{AddError, AttachmentRow, KeepError, hex};

pub(super) use upload::{count, most_bytes};

/// Who may have files.
const DOWNLOAD: Access = Access::Viewer;

/// For a file, in or out.
pub(super) const LONGEST: Duration = Duration::from_mins(10);
const PIECE_BYTES: usize = 64 * 1024;

/// A file of a session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttachmentBody {
    #[schema(value_type = String)]
    id: AttachmentId,
    /// As it was called by whoever brought it; for display only.
    name: String,
    /// By its content.
    #[serde(rename = "type")]
    media_type: String,
    /// In bytes.
    size: u64,
    sha256: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl From<AttachmentRow> for AttachmentBody {
    fn from(row: AttachmentRow) -> Self {
        Self {
            id: row.id,
            sha256: hex(&row.hash),
            name: row.name,
            media_type: row.media_type,
            size: row.size_bytes,
            created_at: row.created_at,
        }
    }
}

impl From<KeepError> for ApiError {
    fn from(error: KeepError) -> Self {
        match error {
            KeepError::Disk(error) => {
                tracing::error!(%error, "an uploaded file cannot be stored");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    Code::StorageUnavailable,
                    "Files cannot be stored at the moment; nothing was changed.",
                )
            }
            KeepError::Add(AddError::NoSession) => Self::not_found("There is no such session."),
            KeepError::Add(AddError::OverQuota { limit, max, actual }) => {
                Self::invalid("With this file there would be too much; nothing was stored.")
                    .with_details(json!({ "limit": limit, "max": max, "actual": actual }))
            }
            KeepError::Add(AddError::Store(error)) => error.into(),
        }
    }
}

/// The files of a session, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AttachmentsBody {
    attachments: Vec<AttachmentBody>,
}

/// Lists the files of a session.
#[utoipa::path(
    get, path = "/api/sessions/{id}/attachments", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "Its files, the oldest first", body = AttachmentsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Named(id): Named<SessionId>,
) -> Result<Answer<AttachmentsBody>, ApiError> {
    find(&state, &caller.principal, id, DOWNLOAD).await?;
    let rows = state.sessions.attachments(id).await?;
    let attachments = rows.into_iter().map(Into::into).collect();
    Ok(Answer(AttachmentsBody { attachments }))
}
