//! `/api/sessions/{id}/attachments`: the files of a session.
//!
//! An upload is written to disk while it arrives. Its media type is detected from its content;
//! nothing that could hold a script is served inline.

pub(super) mod download;
pub(super) mod upload;
pub(super) mod upload_body;
pub(super) mod upload_permits;

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::AppState;
use super::caller::{AnyToken, require_access};
use super::error::{ApiError, Problem};
use super::extract::{Json, PathParam};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::{AttachmentId, SessionId};
use crate::session::Access;
use crate::store::{AddError, AttachmentRow, StoreBlobError, hex};

pub(super) use upload::{count_bytes, max_body_bytes};

const DOWNLOAD_ACCESS: Access = Access::Viewer;

pub(super) const TRANSFER_TIMEOUT: Duration = Duration::from_mins(10);
const CHUNK_BYTES: usize = 64 * 1024;

/// A file of a session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AttachmentBody {
    #[schema(value_type = String)]
    id: AttachmentId,
    /// The name that the uploader gave it; for display only.
    name: String,
    /// The media type, detected from the content.
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

impl From<StoreBlobError> for ApiError {
    fn from(error: StoreBlobError) -> Self {
        match error {
            StoreBlobError::Disk(error) => {
                tracing::error!(%error, "cannot store an uploaded file");
                Self::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    ErrorCode::StorageUnavailable,
                    "Files cannot be stored at the moment; nothing was changed.",
                )
            }
            StoreBlobError::Add(AddError::NoSession) => {
                Self::not_found("There is no such session.")
            }
            StoreBlobError::Add(AddError::OverQuota { limit, max, actual }) => {
                Self::invalid("This file would exceed a quota; nothing was stored.")
                    .with_details(json!({ "limit": limit, "max": max, "actual": actual }))
            }
            StoreBlobError::Add(AddError::Store(error)) => error.into(),
        }
    }
}

/// The files of a session, oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AttachmentsBody {
    attachments: Vec<AttachmentBody>,
}

/// Lists the files of a session.
#[utoipa::path(
    get, path = "/api/sessions/{id}/attachments", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 200, description = "Its files, oldest first", body = AttachmentsBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem)
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
    PathParam(id): PathParam<SessionId>,
) -> Result<Json<AttachmentsBody>, ApiError> {
    require_access(&state, &caller.principal, id, DOWNLOAD_ACCESS).await?;
    let rows = state.sessions.attachments(id).await?;
    let attachments = rows.into_iter().map(Into::into).collect();
    Ok(Json(AttachmentsBody { attachments }))
}
