//! Download: sends a file as fast as the client takes it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{CHUNK_BYTES, DOWNLOAD_ACCESS, TRANSFER_TIMEOUT};
use crate::domain::id::{AttachmentId, SessionId};
use crate::domain::media_type::MediaType;
use crate::http::AppState;
use crate::http::accept_loop::HttpConnection;
use crate::http::caller::{AnyToken, require_access};
use crate::http::error::{ApiError, Problem};
use crate::http::extract::PathParams;
use crate::store::{AttachmentRow, StoreBlobError, hex};

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
        (status = 304, description = "Not modified: `If-None-Match` names its hash"),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: no such file, or no access", body = Problem)
    )
)]
pub(in crate::http) async fn download(
    State(state): State<AppState>,
    AnyToken(caller): AnyToken,
    PathParams(id, attachment): PathParams<SessionId, AttachmentId>,
    Extension(connection): Extension<HttpConnection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let no_such_file = || ApiError::not_found("There is no such file.");
    require_access(&state, &caller.principal, id, DOWNLOAD_ACCESS).await?;
    let rows = state.sessions.attachments(id).await?;
    let row = rows.into_iter().find(|row| row.id == attachment);
    let row = row.ok_or_else(no_such_file)?;
    let tag = format!("\"{}\"", hex(&row.hash));
    if has_current(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    let file = state.blobs.read(&row.hash).await;
    let Some(file) = file.map_err(StoreBlobError::from)? else {
        tracing::error!(session.id = %id, attachment.id = %attachment, "the content of an attachment is missing in the blob store");
        return Err(no_such_file());
    };
    connection.start_transfer(TRANSFER_TIMEOUT);
    let mut response = file_body(file).into_response();
    let headers = response.headers_mut();
    let mut set = |name, value: &str| {
        let value = HeaderValue::from_str(value).expect("these values are plain ASCII");
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

/// Does `If-None-Match` name this tag? (RFC 9110, 13.1.2: a list, compared weakly, or `*`.)
fn has_current(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn content_type(media_type: &str) -> &str {
    if media_type == MediaType::Text.as_str() {
        "text/plain; charset=utf-8"
    } else {
        media_type
    }
}

/// `Content-Disposition` (RFC 6266): images inline, the rest as attachment.
fn disposition(row: &AttachmentRow) -> String {
    let kind = if MediaType::is_image(&row.media_type) {
        "inline"
    } else {
        "attachment"
    };
    let mut name = String::new();
    for byte in row.name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(byte.into());
        } else {
            write!(name, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    format!("{kind}; filename*=UTF-8''{name}")
}

/// Reads a chunk only once the client has taken the one before.
fn file_body(file: File) -> Body {
    let chunks = futures_util::stream::unfold(Some(file), |file| async {
        let mut file = file?;
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES];
            let length = file.read(&mut chunk)?;
            chunk.truncate(length);
            Ok::<_, io::Error>((chunk, file))
        });
        match read.await {
            Ok(Ok((chunk, _))) if chunk.is_empty() => None,
            Ok(Ok((chunk, file))) => Some((Ok(Bytes::from(chunk)), Some(file))),
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(io::Error::other(error)), None)),
        }
    });
    Body::from_stream(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_is_read_in_every_form() {
        let matches = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            has_current(&headers, "\"abc\"")
        };
        for known in [
            &["\"abc\""][..],
            &["W/\"abc\""],
            &["*"],
            &["\"x\", W/\"y\" ,\"abc\""],
            &["\"x\"", "\"abc\""],
        ] {
            assert!(matches(known), "{known:?}");
        }
        for other in [
            &[][..],
            &[""],
            &["abc"],
            &["\"abcd\""],
            &["w/\"abc\""],
            &["W/W/\"abc\""],
        ] {
            assert!(!matches(other), "{other:?}");
        }
    }
}
