//! Export: `/api/sessions/{id}/export`, a whole journal as a file.

use std::fmt::Write as _;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::accept_loop::HttpConnection;
use super::caller::Authenticated;
use super::error::{ApiError, Problem};
use super::extract::{PathParam, Query};
use super::journal_events::Lines;
use super::journal_reader::{JournalReader, PageWriter};
use crate::domain::id::SessionId;
use crate::session::Entry;
use crate::store::SessionRow;
use crate::wire::markdown_export::Markdown;

const MAX_STEM_CHARS: usize = 60;

/// In which form.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// The envelopes, one per line.
    #[default]
    Ndjson,
    /// A conversation to be read.
    Markdown,
}

/// How to export.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Form {
    /// `ndjson` (the default) or `markdown`.
    #[serde(default)]
    #[param(value_type = Option<Format>)]
    format: Format,
}

/// A session as a file: everything that is kept of it at this moment.
#[utoipa::path(
    get, path = "/api/sessions/{id}/export", tag = "sessions", security(("bearer" = [])),
    params(("id" = String, Path, description = "The session"), Form),
    responses(
        (
            status = 200, description = "The file: envelopes, one per line, or Markdown",
            content((String = "application/x-ndjson"), (String = "text/markdown"))
        ),
        (status = 401, description = "AUTH_FAILED", body = Problem),
        (status = 404, description = "NOT_FOUND: or somebody else's", body = Problem),
        (status = 422, description = "VALIDATION_ERROR: no such format", body = Problem)
    )
)]
pub(super) async fn export(
    State(state): State<AppState>,
    caller: Authenticated,
    PathParam(id): PathParam<SessionId>,
    Query(form): Query<Form>,
    Extension(connection): Extension<HttpConnection>,
) -> Result<Response, ApiError> {
    let reader = JournalReader::open(&state, &caller, id).await?;
    let stem = file_stem(reader.row());
    let (body, media_type, extension) = match form.format {
        Format::Ndjson => {
            let body = reader.into_body(Lines(id), &connection).await?;
            (body, "application/x-ndjson", "ndjson")
        }
        Format::Markdown => {
            let (row, now) = (reader.row(), state.clock.wall());
            let (markdown, header) = Markdown::new(id, row.name(), &row.agent, now);
            let document = Document {
                header: Some(header),
                markdown,
            };
            let body = reader.into_body(document, &connection).await?;
            (body, "text/markdown; charset=utf-8", "md")
        }
    };
    let name = disposition(&stem, extension);
    Ok((
        [
            (CONTENT_TYPE, media_type.to_owned()),
            (CONTENT_DISPOSITION, name),
        ],
        body,
    )
        .into_response())
}

/// The file's name without its extension: after the session, or its id if it has no name.
fn file_stem(row: &SessionRow) -> String {
    let mut stem = String::new();
    for letter in row.name().unwrap_or_default().chars() {
        if letter.is_alphanumeric() {
            stem.push(letter);
        } else if !stem.is_empty() && !stem.ends_with('-') {
            stem.push('-');
        }
        if stem.chars().count() >= MAX_STEM_CHARS {
            break;
        }
    }
    let stem = stem.trim_end_matches('-');
    if stem.is_empty() {
        return row.id.to_string();
    }
    stem.to_owned()
}

/// `Content-Disposition` with the name in ASCII, and as it is for clients that know RFC 6266.
fn disposition(stem: &str, extension: &str) -> String {
    let ascii: String = stem.chars().filter(char::is_ascii).collect();
    let ascii = Some(ascii.trim_matches('-')).filter(|stem| !stem.is_empty());
    let ascii = ascii.unwrap_or("session");
    let mut encoded = String::new();
    for byte in stem.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a string takes everything");
        }
    }
    format!("attachment; filename=\"{ascii}.{extension}\"; filename*=UTF-8''{encoded}.{extension}")
}

/// A conversation as one Markdown document.
struct Document {
    /// `None` once it was written.
    header: Option<String>,
    markdown: Markdown,
}

impl PageWriter for Document {
    fn write(&mut self, page: &[Entry], out: &mut String) {
        out.extend(self.header.take());
        for entry in page {
            self.markdown.write(&entry.recorded, out);
        }
    }

    fn end(self, out: &mut String) {
        self.markdown.end(out);
    }
}

#[cfg(test)]
mod tests {
    use super::disposition;

    #[test]
    fn a_file_is_named_in_ascii_and_as_it_is() {
        assert_eq!(
            disposition("Größe-ändern", "md"),
            "attachment; filename=\"Gre-ndern.md\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe-%C3%A4ndern.md"
        );
        assert_eq!(
            disposition("日本", "ndjson"),
            "attachment; filename=\"session.ndjson\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.ndjson"
        );
    }
}
