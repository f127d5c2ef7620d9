//! Export: `/api/sessions/{id}/export`, a whole journal as a file.

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::AppState;
use super::accept::HttpConnection;
use super::attachments::TRANSFER_TIMEOUT;
use super::caller::{Authenticated, check_token, require_access};
use super::error::{ApiError, Problem};
use super::extract::{PathParam, Query};
use super::journal_reader::JournalPages;
use crate::domain::event::Recorded;
use crate::domain::id::SessionId;
use crate::session::Access;
use crate::store::StoreError;
use crate::wire::markdown_export::Markdown;
use crate::wire::outbound;

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
    Extension(line): Extension<HttpConnection>,
) -> Result<Response, ApiError> {
    let row = require_access(&state, &caller.principal, id, Access::Viewer).await?;
    let now = state.clock.wall();
    let (writer, header, media_type, extension) = match form.format {
        Format::Ndjson => (
            Writer::Ndjson,
            String::new(),
            "application/x-ndjson",
            "ndjson",
        ),
        Format::Markdown => {
            let (document, header) = Markdown::new(id, row.title.as_deref(), &row.agent, now);
            let writer = Writer::Markdown(Box::new(document));
            (writer, header, "text/markdown; charset=utf-8", "md")
        }
    };
    let mut export = Export {
        // Up to the present head: a run under way would never let the export end.
        pages: JournalPages::new(&state, id, 0, row.head.saturating_add(1), u32::MAX),
        writer: Some(writer),
    };
    // The first part is read before the answer starts: a failing database is still an error then.
    let first = export.next().await?.unwrap_or_default();
    let principal = caller.principal;
    let rest = stream::try_unfold(export, move |mut export| {
        let (state, principal) = (state.clone(), principal.clone());
        async move {
            let part = export.next().await.map_err(ApiError::from)?;
            // The user may have lost their rights while they took the part before.
            check_token(&state, &principal)?;
            require_access(&state, &principal, id, Access::Viewer).await?;
            Ok::<_, ApiError>(part.map(|part| (Bytes::from(part), export)))
        }
    });
    line.start_transfer(TRANSFER_TIMEOUT);
    let rest = rest.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe));
    let first = stream::iter([Ok(Bytes::from(header + &first))]);
    let name = format!("attachment; filename=\"{id}.{extension}\"");
    Ok((
        [
            (CONTENT_TYPE, media_type.to_owned()),
            (CONTENT_DISPOSITION, name),
        ],
        Body::from_stream(first.chain(rest)),
    )
        .into_response())
}

struct Export {
    pages: JournalPages,
    /// `None` once the end was written.
    writer: Option<Writer>,
}

enum Writer {
    Ndjson,
    Markdown(Box<Markdown>),
}

impl Export {
    /// The next part; `None` after the last one.
    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let Some(writer) = &mut self.writer else {
            return Ok(None);
        };
        let page = self.pages.next().await?;
        let mut part = String::new();
        for entry in &page {
            writer.write(self.pages.session(), &entry.recorded, &mut part);
        }
        if page.is_empty()
            && let Some(writer) = self.writer.take()
        {
            writer.end(&mut part);
        }
        Ok(Some(part))
    }
}

impl Writer {
    fn write(&mut self, session: SessionId, recorded: &Recorded, out: &mut String) {
        match self {
            Self::Ndjson => {
                out.push_str(&outbound::event(session, recorded));
                out.push('\n');
            }
            Self::Markdown(document) => document.write(recorded, out),
        }
    }

    fn end(self, out: &mut String) {
        if let Self::Markdown(document) = self {
            document.end(out);
        }
    }
}
