//! A file on its way in: to disk while it arrives, and kept once all of it is there.

use std::error::Error;
use std::time::Duration;

use axum::Extension;
use axum::Json as Answer;
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

use super::{AttachmentBody, LONGEST, PIECE_BYTES};
use crate::domain::account::Principal;
use crate::domain::code::Code;
use crate::domain::id::{AttachmentId, SessionId};
use crate::domain::name::{NAME_RULE, base_name};
use crate::http::AppState;
use crate::http::accept::Line;
use crate::http::arrival::{Arrival, FOREWORD_BYTES, Progress, is_late};
use crate::http::caller::{Holder, check_token};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::{Named, Query};
use crate::http::metrics::Uploading;
use crate::http::sessions::find;
use crate::session::Access;
use crate::store::{AttachmentRow, Content, KeepError, Quotas};

/// Who may bring files.
const UPLOAD: Access = Access::Editor;

const FORM: &str = "multipart/form-data";
const SESSION_FILES: u64 = 1_000;
/// Between two pieces of an upload.
const QUIET: Duration = Duration::from_secs(10);
/// For an upload to be told why it was given up.
const LAST_WORD: Duration = Duration::from_secs(5);

/// How a file is called.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Called {
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
        (status = 400, description = "INVALID_MESSAGE: its body is cut short or malformed", body = Problem),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 403, description = "FORBIDDEN: you may only look at this session", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 408, description = "INVALID_MESSAGE: it did not arrive in time", body = Problem),
        (status = 413, description = "VALIDATION_ERROR: too large", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: a bad name, or too much together", body = Problem),
        (status = 503, description = "BUSY: too many uploads under way; STORAGE_UNAVAILABLE", body = Problem)
    )
)]
pub(in crate::http) async fn upload(
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
    let name = base_name(given).map(str::to_owned);
    name.ok_or_else(|| bad_name(NAME_RULE))
}

fn bad_name(fault: &str) -> ApiError {
    ApiError::invalid(format!("`name` {fault}.")).with_details(json!({ "field": "name" }))
}

/// What is read of a form at most, whatever is in it.
pub(in crate::http) fn most_bytes(state: &AppState) -> usize {
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
            let said = field.headers().get(CONTENT_DISPOSITION);
            if said.is_some_and(|said| std::str::from_utf8(said.as_bytes()).is_err()) {
                return Err(bad_name("is not UTF-8"));
            }
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
        Ok(Err(error)) => Err(not_read(&error)),
        Err(_) => Err(broken_off()),
    }
}

/// Takes in a file up to the largest there may be.
async fn take_in<E: Error + 'static>(
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
pub(in crate::http) async fn count<E: Error + 'static>(
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
    max: u64,
) -> Result<u64, ApiError> {
    match read_on(pieces, 0, max).await? {
        size if size > max => Err(too_large(max, size)),
        size => Ok(size),
    }
}

/// Reads on for a while: who is cut off while sending does not read why. Says how much there was.
async fn read_on<E: Error + 'static>(
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

async fn next<E: Error + 'static>(
    pieces: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin),
) -> Result<Option<Bytes>, ApiError> {
    match tokio::time::timeout(QUIET, pieces.next()).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(piece))) => Ok(Some(piece)),
        Ok(Some(Err(error))) => Err(not_read(&error)),
        Err(_) => Err(broken_off()),
    }
}

fn broken_off() -> ApiError {
    ApiError::new(
        StatusCode::REQUEST_TIMEOUT,
        Code::InvalidMessage,
        "The file did not arrive in time; nothing was stored.",
    )
}

/// Why nothing more can be read of a body.
fn not_read(error: &(dyn Error + 'static)) -> ApiError {
    if is_late(error) {
        return broken_off();
    }
    ApiError::new(
        StatusCode::BAD_REQUEST,
        Code::InvalidMessage,
        "The body is cut short or malformed; nothing was stored.",
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
