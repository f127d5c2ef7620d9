//! `/api/sessions/{id}/attachments`: files for a session.
//!
//! An upload goes to disk while it arrives. What it is, is decided by its content; nothing that could
//! hold a script is shown in place.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::time::Duration;

use axum::Extension;
use axum::Json as Answer;
use axum::body::{Body, Bytes};
use axum::extract::multipart::Field;
use axum::extract::{FromRequest as _, Multipart, Path, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, EXPECT, IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::accept::Line;
use super::arrival::{Arrival, FOREWORD_BYTES, Progress};
use super::caller::{Holder, check_token};
use super::error::{ApiError, Problem};
use super::extract::{Named, Query};
use super::metrics::Uploading;
use super::sessions::find;
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::{AttachmentId, SessionId};
use crate::domain::media::Media;
use crate::domain::name::{NAME_RULE, base_name};
use crate::session::Access;
use crate::store::{AddError, AttachmentRow, Content, KeepError, Quotas, hex};

/// Who may bring files, and who may have them.
const UPLOAD: Access = Access::Editor;
const DOWNLOAD: Access = Access::Viewer;

const FORM: &str = "multipart/form-data";
const SESSION_FILES: u64 = 1_000;
/// Between two pieces of an upload.
const QUIET: Duration = Duration::from_secs(10);
/// For a file, in or out.
pub(super) const LONGEST: Duration = Duration::from_mins(10);
/// For an upload to be told why it was given up.
const LAST_WORD: Duration = Duration::from_secs(5);
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

/// How a file is called.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Called {
    /// For display only; 1 to 255 characters after the last slash. Outranks the name in a form.
    name: Option<String>,
}

/// Uploads a file: its bytes are the body, or the one file of a form.
#[utoipa::path(
    post, path = "/api/sessions/{id}/attachments", tag = "sessions", security(("bearer" = [])),
    request_body(content = String, content_type = "application/octet-stream"),
    params(("id" = String, Path, description = "The session"), Called),
    responses(
        (status = 201, description = "Stored", body = AttachmentBody),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you may only look at this session", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 408, description = "INVALID_MESSAGE: it did not arrive completely", body = Problem),
        (status = 413, description = "VALIDATION_ERROR: too large", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad name, or too much together", body = Problem),
        (status = 503, description = "BUSY: too many uploads under way; STORAGE_UNAVAILABLE", body = Problem)
    )
)]
pub(super) async fn upload(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Named(id): Named<SessionId>,
    Query(wish): Query<Called>,
    Extension(line): Extension<Line>,
    request: Request,
) -> Result<Response, ApiError> {
    // Counted also if whoever uploads hangs up.
    let _counted = Uploading::new(&state.metrics);
    let stored = store(&state, caller.principal, id, &wish, &line, request).await;
    let size = stored.as_ref().map(|row| row.size_bytes);
    state.metrics.upload(size.ok());
    Ok((StatusCode::CREATED, Answer(AttachmentBody::from(stored?))).into_response())
}

async fn store(
    state: &AppState,
    principal: Principal,
    id: SessionId,
    wish: &Called,
    line: &Line,
    request: Request,
) -> Result<AttachmentRow, ApiError> {
    let wished = wish.name.as_deref().map(check_name).transpose()?;
    state.sessions.keep_draft(&principal, id).await?;
    find(state, &principal, id, UPLOAD).await?;
    let _place = state.uploads.take(principal.user)?;
    line.carry(LONGEST + LAST_WORD);
    let receiving = receive(state, &principal, id, request);
    let arrived = tokio::time::timeout(LONGEST, receiving).await;
    let (content, given) = arrived.unwrap_or_else(|_| Err(broken_off()))?;
    let name = match (wished, given) {
        (Some(name), _) => name,
        (None, Some(name)) => check_name(&name)?,
        (None, None) => "file".to_owned(),
    };
    let keeping = keep(state.clone(), principal, id, name, content);
    state.sees_through(keeping).await
}

/// Keeps what has arrived. That may have taken long: it is asked again whether it may.
async fn keep(
    state: AppState,
    principal: Principal,
    id: SessionId,
    name: String,
    content: Content,
) -> Result<AttachmentRow, ApiError> {
    check_token(&state, &principal)?;
    find(&state, &principal, id, UPLOAD).await?;
    let now = state.clock.wall();
    let row = AttachmentRow {
        id: AttachmentId::new(),
        session: id,
        owner: principal.user,
        hash: content.hash,
        name,
        media_type: content.media.as_str().to_owned(),
        size_bytes: content.size_bytes,
        // As it will be read: the store keeps no more of it.
        created_at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now),
    };
    let (store, quotas) = (state.store.as_ref(), quotas(&state));
    state.contents.keep(content, &row, quotas, store).await?;
    Ok(row)
}

fn quotas(state: &AppState) -> Quotas {
    let limits = &state.reception.limits;
    Quotas {
        session_files: SESSION_FILES,
        session_bytes: limits.session_attachment_bytes.get(),
        user_bytes: limits.user_attachment_bytes.get(),
    }
}

fn check_name(given: &str) -> Result<String, ApiError> {
    base_name(given).map(str::to_owned).ok_or_else(|| {
        let detail = format!("`name` {NAME_RULE}.");
        ApiError::invalid(detail).with_details(json!({ "field": "name" }))
    })
}

/// What is read of a form at most, whatever is in it.
pub(super) fn most_bytes(state: &AppState) -> usize {
    let twice = state
        .reception
        .limits
        .attachment_bytes
        .get()
        .saturating_mul(2);
    usize::try_from(twice)
        .unwrap_or(usize::MAX)
        .saturating_add(PIECE_BYTES)
}

/// Takes in what a request brings, and how that is called if it says so itself.
async fn receive(
    state: &AppState,
    principal: &Principal,
    id: SessionId,
    request: Request,
) -> Result<(Content, Option<String>), ApiError> {
    let max = state.reception.limits.attachment_bytes.get();
    let (is_form, declared) = announced(request.headers());
    // What is too large is told so; how large the file in a form is, nobody knows yet.
    let size = declared.filter(|size| !is_form && *size <= max);
    let (store, quotas) = (&state.store, quotas(state));
    let room = store.check_quotas(id, principal.user, size.unwrap_or(0), quotas);
    if let Err(refused) = room.await {
        if !request.headers().contains_key(EXPECT) {
            let mut body = Arrival::of_file(request.into_body().into_data_stream());
            read_on(&mut body, 0, max).await?;
        }
        return Err(KeepError::from(refused).into());
    }
    if !is_form {
        let body = Arrival::of_file(request.into_body().into_data_stream());
        return Ok((take_in(state, body, declared).await?, None));
    }
    let progress = Progress::default();
    let watched = progress.clone();
    let request = request.map(|body| {
        let arrival = Arrival::of_form(body.into_data_stream(), watched);
        Body::from_stream(arrival)
    });
    let no_file = || ApiError::invalid("A form needs one file in it.");
    let form = Multipart::from_request(request, state).await;
    let mut form = form.map_err(|_| no_file())?;
    while let Some(field) = next_field(&mut form, &progress).await? {
        if let Some(name) = field.file_name() {
            progress.enter_file();
            let name = name.to_owned();
            return Ok((take_in(state, field, None).await?, Some(name)));
        }
    }
    Err(no_file())
}

/// Is it a form, and how long is it?
fn announced(headers: &HeaderMap) -> (bool, Option<u64>) {
    let header = |name| headers.get(name)?.to_str().ok();
    let is_form = header(CONTENT_TYPE).is_some_and(|kind: &str| kind.starts_with(FORM));
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    (is_form, length)
}

async fn next_field<'a>(
    form: &'a mut Multipart,
    progress: &Progress,
) -> Result<Option<Field<'a>>, ApiError> {
    match tokio::time::timeout(QUIET, form.next_field()).await {
        Ok(Ok(field)) => Ok(field),
        Ok(Err(_)) if progress.is_too_long() => Err(ApiError::invalid(format!(
            "A form has at most {FOREWORD_BYTES} bytes before its file."
        ))),
        Ok(Err(_)) | Err(_) => Err(broken_off()),
    }
}

/// Takes in a file up to the largest there may be.
async fn take_in<E>(
    state: &AppState,
    mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    declared: Option<u64>,
) -> Result<Content, ApiError> {
    let max = state.reception.limits.attachment_bytes.get();
    // Much too large: not even read.
    if let Some(actual) = declared.filter(|actual| *actual / 2 > max) {
        return Err(too_large(max, actual));
    }
    let mut arriving = state.contents.receive().await.map_err(KeepError::from)?;
    let mut size = 0;
    while let Some(piece) = next(&mut pieces).await? {
        size += piece.len() as u64;
        if size > max {
            drop(arriving);
            let size = read_on(&mut pieces, size, max).await?;
            return Err(too_large(max, declared.unwrap_or(size)));
        }
        arriving.write(piece).await.map_err(KeepError::from)?;
    }
    Ok(arriving.finish().await.map_err(KeepError::from)?)
}

/// Counts the bytes that come, up to the largest file there may be.
pub(super) async fn count<E>(
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    max: u64,
) -> Result<u64, ApiError> {
    match read_on(pieces, 0, max).await? {
        size if size > max => Err(too_large(max, size)),
        size => Ok(size),
    }
}

/// Reads on for a while: who is cut off while sending does not read why. Says how much there was.
async fn read_on<E>(
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    mut size: u64,
    max: u64,
) -> Result<u64, ApiError> {
    while size / 2 <= max
        && let Some(piece) = next(pieces).await?
    {
        size += piece.len() as u64;
    }
    Ok(size)
}

async fn next<E>(
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Result<Option<Bytes>, ApiError> {
    match tokio::time::timeout(QUIET, pieces.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
        Ok(Some(Err(_))) | Err(_) => Err(broken_off()),
    }
}

fn broken_off() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        Code::InvalidMessage,
        "The file did not arrive completely or not in time; nothing was stored.",
    )
}

fn too_large(max: u64, actual: u64) -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        Code::ValidationError,
        format!("A file has at most {max} bytes; nothing was stored."),
    )
    .with_details(json!({ "limit": "attachmentBytes", "max": max, "actual": actual }))
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

/// Downloads a file.
#[utoipa::path(
    get, path = "/api/sessions/{id}/attachments/{attachment}", tag = "sessions",
    security(("bearer" = [])),
    params(
        ("id" = String, Path, description = "The session"),
        ("attachment" = String, Path, description = "The file")
    ),
    responses(
        (status = 200, description = "Its bytes", body = String, content_type = "application/octet-stream"),
        (status = 304, description = "The client has it: its hash is in `If-None-Match`"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem)
    )
)]
pub(super) async fn download(
    State(state): State<AppState>,
    Holder(caller): Holder,
    Path((id, attachment)): Path<(String, String)>,
    Extension(line): Extension<Line>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let nothing = || ApiError::not_found("There is no such file.");
    let id: SessionId = id.parse().map_err(|_| nothing())?;
    let attachment: AttachmentId = attachment.parse().map_err(|_| nothing())?;
    find(&state, &caller.principal, id, DOWNLOAD).await?;
    let rows = state.sessions.attachments(id).await?;
    let row = rows.into_iter().find(|row| row.id == attachment);
    let row = row.ok_or_else(nothing)?;
    let tag = format!("\"{}\"", hex(&row.hash));
    if headers
        .get(IF_NONE_MATCH)
        .is_some_and(|known| known == tag.as_str())
    {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    let file = state.contents.read(&row.hash).await;
    let Some(file) = file.map_err(KeepError::from)? else {
        tracing::error!(session.id = %id, attachment.id = %attachment, "the content of a file is missing");
        return Err(nothing());
    };
    line.carry(LONGEST);
    let mut response = body(file).into_response();
    let headers = response.headers_mut();
    let mut set = |name, value: &str| {
        let value = HeaderValue::from_str(value).expect("only what headers may hold is put there");
        headers.insert(name, value);
    };
    set(CONTENT_TYPE, content_type(&row.media_type));
    set(CONTENT_LENGTH, &row.size_bytes.to_string());
    set(CONTENT_DISPOSITION, &disposition(&row));
    set(ETAG, &tag);
    set(CACHE_CONTROL, "private, no-cache");
    set(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
    Ok(response)
}

fn content_type(media_type: &str) -> &str {
    if media_type == Media::Text.as_str() {
        "text/plain; charset=utf-8"
    } else {
        media_type
    }
}

/// Shown in place or saved, and under which name (RFC 6266).
fn disposition(row: &AttachmentRow) -> String {
    let way = if Media::is_image(&row.media_type) {
        "inline"
    } else {
        "attachment"
    };
    let mut name = String::new();
    for byte in row.name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(byte.into());
        } else {
            write!(name, "%{byte:02X}").expect("a string takes it");
        }
    }
    format!("{way}; filename*=UTF-8''{name}")
}

/// Reads on only as fast as the other end takes it.
fn body(file: File) -> Body {
    let pieces = futures_util::stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE_BYTES];
            let length = file.read(&mut piece)?;
            piece.truncate(length);
            Ok::<_, io::Error>((piece, file))
        });
        match read.await {
            Ok(Ok((piece, _))) if piece.is_empty() => None,
            Ok(Ok((piece, file))) => Some((Ok(Bytes::from(piece)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    Body::from_stream(pieces)
}
