//! Upload: writes a file to disk while it arrives, and adds it to the session once it is complete.

use std::error::Error;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest as _, Multipart, Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::upload_body::{FormProgress, MAX_BYTES_BEFORE_FILE, UploadBody, is_timeout};
use super::{AttachmentBody, CHUNK_BYTES, TRANSFER_TIMEOUT};
use crate::domain::account::Principal;
use crate::domain::error_code::ErrorCode;
use crate::domain::file_name::{NAME_RULE, base_name};
use crate::domain::id::{AttachmentId, SessionId};
use crate::http::AppState;
use crate::http::accept_loop::HttpConnection;
use crate::http::caller::{AnyToken, check_token, require_access};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Json, PathParam, Query};
use crate::http::metrics::Uploading;
use crate::session::Access;
use crate::store::{AttachmentRow, Quotas, StoreBlobError, UploadedBlob};

const UPLOAD_ACCESS: Access = Access::Editor;

const FORM: &str = "multipart/form-data";
const MAX_SESSION_FILES: u64 = 1_000;
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time to send the error of an upload that timed out.
const ERROR_RESPONSE_GRACE: Duration = Duration::from_secs(5);

/// The name of the file.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct UploadQuery {
    /// For display only; 1 to 255 characters after the last slash. Overrides the name in a form.
    name: Option<String>,
}

/// Uploads a file: the body itself, or the one file of a form.
#[utoipa::path(
    post, path = "/api/sessions/{id}/attachments", tag = "sessions", security(("bearer" = [])),
    request_body(content = String, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "The session"), UploadQuery),
    responses(
        (status = 201, description = "Stored", body = AttachmentBody),
        (status = 400, description = "INVALID_MESSAGE: its body is cut short or malformed", body = Problem),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you may only view this session", body = Problem),
        (status = 404, description = "NOT_FOUND: no such session, or no access", body = Problem),
        (status = 408, description = "INVALID_MESSAGE: it did not arrive in time", body = Problem),
        (status = 413, description = "VALIDATION_ERROR: too large", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad name, or over a quota", body = Problem),
        (status = 503, description = "BUSY: too many uploads at the moment; STORAGE_UNAVAILABLE", body = Problem)
    )
)]
pub(in crate::http) async fn upload(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
    PathParam(id): PathParam<SessionId>,
    Query(query): Query<UploadQuery>,
    Extension(connection): Extension<HttpConnection>,
    request: Request,
) -> Result<Response, ApiError> {
    // A guard: the gauge goes down also if the client disconnects.
    let _counted = Uploading::new(&state.metrics);
    let stored = store(&state, caller.principal, id, query, &connection, request).await;
    let size = stored.as_ref().map(|row| row.size_bytes);
    state.metrics.count_upload(size.ok());
    Ok((StatusCode::CREATED, Json(AttachmentBody::from(stored?))).into_response())
}

async fn store(
    state: &AppState,
    principal: Principal,
    id: SessionId,
    query: UploadQuery,
    connection: &HttpConnection,
    request: Request,
) -> Result<AttachmentRow, ApiError> {
    let requested = query.name.as_deref().map(check_name).transpose()?;
    state.sessions.keep_draft(&principal, id).await?;
    require_access(state, &principal, id, UPLOAD_ACCESS).await?;
    let _permit = state.uploads.acquire(principal.user)?;
    connection.start_transfer(TRANSFER_TIMEOUT + ERROR_RESPONSE_GRACE);
    let receiving = receive(state, &principal, id, request);
    let received = tokio::time::timeout(TRANSFER_TIMEOUT, receiving).await;
    let (content, form_name) = received.unwrap_or_else(|_| Err(timed_out()))?;
    let name = match (requested, form_name) {
        (Some(name), _) => name,
        (None, Some(name)) => check_name(&name)?,
        (None, None) => "file".to_owned(),
    };
    let adding = add(state.clone(), principal, id, name, content);
    state.run_detached(adding).await
}

/// Adds the file to the session. Receiving it may have taken minutes: the rights are checked again.
async fn add(
    state: AppState,
    principal: Principal,
    id: SessionId,
    name: String,
    content: UploadedBlob,
) -> Result<AttachmentRow, ApiError> {
    check_token(&state, &principal)?;
    require_access(&state, &principal, id, UPLOAD_ACCESS).await?;
    let now = state.clock.wall();
    let row = AttachmentRow {
        id: AttachmentId::new(),
        session: id,
        owner: principal.user,
        hash: content.hash,
        name,
        media_type: content.media_type.as_str().to_owned(),
        size_bytes: content.size_bytes,
        // In milliseconds, as the store keeps it.
        created_at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now),
    };
    let (store, quotas) = (state.store.as_ref(), quotas(&state));
    state.blobs.store(content, &row, quotas, store).await?;
    Ok(row)
}

pub(in crate::http) fn quotas(state: &AppState) -> Quotas {
    let limits = &state.shared.limits;
    Quotas {
        session_files: MAX_SESSION_FILES,
        session_bytes: limits.session_attachment_bytes.get(),
        user_bytes: limits.user_attachment_bytes.get(),
    }
}

fn check_name(given: &str) -> Result<String, ApiError> {
    let name = base_name(given).map(str::to_owned);
    name.ok_or_else(|| bad_name(NAME_RULE))
}

fn bad_name(fault: &str) -> ApiError {
    ApiError::invalid(format!("`name` {fault}.")).with_details(json!({ "field": "name" }))
}

/// Maximum size of an upload's body. Twice the maximum of a file, so that a file that is too large
/// gets its own error.
pub(in crate::http) fn max_body_bytes(state: &AppState) -> usize {
    let twice = state.shared.limits.attachment_bytes.get().saturating_mul(2);
    usize::try_from(twice)
        .unwrap_or(usize::MAX)
        .saturating_add(CHUNK_BYTES)
}

/// Receives the file of a request, and the name that a form gives it.
async fn receive(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    request: Request,
) -> Result<(UploadedBlob, Option<String>), ApiError> {
    let max = state.shared.limits.attachment_bytes.get();
    let (is_form, declared) = declared(request.headers());
    // A file that is too large is refused as such further on; the size of a file in a form is not
    // known yet.
    let size = declared.filter(|size| !is_form && *size <= max);
    let (store, quotas) = (&state.store, quotas(state));
    let check = store.check_quotas(id, principal.user, size.unwrap_or(0), quotas);
    if let Err(refused) = check.await {
        if !request.headers().contains_key(EXPECT) {
            let mut body = UploadBody::of_file(request.into_body().into_data_stream());
            discard(&mut body, 0, max).await?;
        }
        return Err(StoreBlobError::from(refused).into());
    }
    if is_form {
        return receive_form(state, request).await;
    }
    let body = UploadBody::of_file(request.into_body().into_data_stream());
    Ok((receive_file(state, body, declared).await?, None))
}

async fn receive_form(
    state: &AppState,
    request: Request,
) -> Result<(UploadedBlob, Option<String>), ApiError> {
    let progress = FormProgress::default();
    let shared = progress.clone();
    let request = request.map(|body| {
        let body = UploadBody::of_form(body.into_data_stream(), shared);
        Body::from_stream(body)
    });
    let no_file = || ApiError::invalid("A form needs one file in it.");
    let form = Multipart::from_request(request, state).await;
    let mut form = form.map_err(|_| no_file())?;
    while let Some(field) = next_field(&mut form, &progress).await? {
        let Some(name) = field.file_name() else {
            continue;
        };
        let disposition = field.headers().get(CONTENT_DISPOSITION);
        // The parser replaces such bytes silently.
        if disposition.is_some_and(|value| std::str::from_utf8(value.as_bytes()).is_err()) {
            return Err(bad_name("is not UTF-8"));
        }
        progress.enter_file();
        let name = name.to_owned();
        return Ok((receive_file(state, field, None).await?, Some(name)));
    }
    Err(no_file())
}

/// From the headers: whether the body is a form, and its length.
fn declared(headers: &HeaderMap) -> (bool, Option<u64>) {
    let header = |name| headers.get(name)?.to_str().ok();
    let is_form = header(CONTENT_TYPE).is_some_and(|kind: &str| kind.starts_with(FORM));
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    (is_form, length)
}

async fn next_field<'a>(
    form: &'a mut Multipart,
    progress: &FormProgress,
) -> Result<Option<Field<'a>>, ApiError> {
    match tokio::time::timeout(IDLE_TIMEOUT, form.next_field()).await {
        Ok(Ok(field)) => Ok(field),
        Ok(Err(_)) if progress.is_too_long_before_file() => Err(ApiError::invalid(format!(
            "A form has at most {MAX_BYTES_BEFORE_FILE} bytes before its file."
        ))),
        Ok(Err(error)) => Err(read_error(&error)),
        Err(_) => Err(timed_out()),
    }
}

/// Writes a file to disk, up to the maximum size.
async fn receive_file<E: Error + 'static>(
    state: &AppState,
    mut chunks: impl Stream<Item = Result<Bytes, E>> + Unpin,
    declared: Option<u64>,
) -> Result<UploadedBlob, ApiError> {
    let max = state.shared.limits.attachment_bytes.get();
    // Far too large: refused unread.
    if let Some(actual) = declared.filter(|actual| *actual / 2 > max) {
        return Err(too_large(max, actual));
    }
    let mut arriving = state.blobs.receive().await.map_err(StoreBlobError::from)?;
    let mut size = 0;
    while let Some(chunk) = next_chunk(&mut chunks).await? {
        size += chunk.len() as u64;
        if size > max {
            drop(arriving);
            let size = discard(&mut chunks, size, max).await?;
            return Err(too_large(max, declared.unwrap_or(size)));
        }
        arriving.write(chunk).await.map_err(StoreBlobError::from)?;
    }
    Ok(arriving.finish().await.map_err(StoreBlobError::from)?)
}

/// Counts the bytes of a body, up to the maximum size of a file.
pub(in crate::http) async fn count_bytes<E: Error + 'static>(
    chunks: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    max: u64,
) -> Result<u64, ApiError> {
    match discard(chunks, 0, max).await? {
        size if size > max => Err(too_large(max, size)),
        size => Ok(size),
    }
}

/// Reads the rest of a refused body, up to twice the maximum: a client that is cut off while it sends
/// does not read the response. Returns the size so far.
async fn discard<E: Error + 'static>(
    chunks: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    mut size: u64,
    max: u64,
) -> Result<u64, ApiError> {
    while size / 2 <= max
        && let Some(chunk) = next_chunk(chunks).await?
    {
        size += chunk.len() as u64;
    }
    Ok(size)
}

async fn next_chunk<E: Error + 'static>(
    chunks: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Result<Option<Bytes>, ApiError> {
    match tokio::time::timeout(IDLE_TIMEOUT, chunks.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
        Ok(Some(Err(error))) => Err(read_error(&error)),
        Err(_) => Err(timed_out()),
    }
}

fn timed_out() -> ApiError {
    ApiError::body_timeout("The file did not arrive in time; nothing was stored.")
}

fn read_error(error: &(dyn Error + 'static)) -> ApiError {
    if is_timeout(error) {
        return timed_out();
    }
    ApiError::malformed("The body is cut short or malformed; nothing was stored.")
}

fn too_large(max: u64, actual: u64) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::ValidationError,
        format!("A file has at most {max} bytes; nothing was stored."),
    )
    .with_details(json!({ "limit": "attachmentBytes", "max": max, "actual": actual }))
}
