//! A file on its way out.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{DOWNLOAD, LONGEST, PIECE_BYTES};
use crate::domain::id::{AttachmentId, SessionId};
use crate::domain::media::Media;
use crate::http::AppState;
use crate::http::accept::Line;
use crate::http::caller::Holder;
use crate::http::error::{ApiError, Problem};
use crate::http::sessions::find;
use crate::store::{AttachmentRow, KeepError, hex};

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
pub(in crate::http) async fn download(
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
    if is_known(&headers, &tag) {
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

/// Does the client say that it has this? (RFC 9110, 13.1.2: a list of tags, compared weakly, or any.)
fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_name_what_it_has_in_every_way() {
        let says = |lines: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(IF_NONE_MATCH, HeaderValue::from_static(line));
            }
            is_known(&headers, "\"abc\"")
        };
        for known in [
            &["\"abc\""][..],
            &["W/\"abc\""],
            &["*"],
            &["\"x\", W/\"y\" ,\"abc\""],
            &["\"x\"", "\"abc\""],
        ] {
            assert!(says(known), "{known:?}");
        }
        for other in [
            &[][..],
            &[""],
            &["abc"],
            &["\"abcd\""],
            &["w/\"abc\""],
            &["W/W/\"abc\""],
        ] {
            assert!(!says(other), "{other:?}");
        }
    }
}
