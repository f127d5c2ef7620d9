//! Journal reader: streams a range of a journal as a response. Touches `session` and `member`.
//!
//! Only one page is in memory, as events may be long and a reader slow. The reader's token and access are
//! checked after each page is read and before it is sent. The range ends at the newest event of the moment
//! at which it was opened, so nothing is sent that was recorded later.

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::AppState;
use super::accept_loop::HttpConnection;
use super::attachments::TRANSFER_TIMEOUT;
use super::caller::{Authenticated, check_token};
use super::error::ApiError;
use crate::domain::account::Principal;
use crate::domain::id::SessionId;
use crate::session::Entry;
use crate::store::SessionRow;

/// The store returns fewer if they are long.
const MAX_PAGE_EVENTS: u32 = 500;

/// How pages become the text of a response.
pub(super) trait PageWriter: Send + 'static {
    fn write(&mut self, page: &[Entry], out: &mut String);
    /// Called once, after the last page.
    fn end(self, out: &mut String);
}

/// The rest of a range of a journal, for one reader.
pub(super) struct JournalReader {
    state: AppState,
    reader: Principal,
    session: SessionId,
    /// The session as it was when the range was opened.
    row: SessionRow,
    after: u64,
    /// Events that begin here or later are not read.
    before: u64,
    left: u32,
}

impl JournalReader {
    /// The whole journal up to its newest event, if the caller may read it.
    pub(super) async fn open(
        state: &AppState,
        caller: &Authenticated,
        session: SessionId,
    ) -> Result<Self, ApiError> {
        let (state, reader) = (state.clone(), caller.principal.clone());
        let row = state.sessions.open_journal(&reader, session).await?;
        let before = row.head.saturating_add(1);
        Ok(Self {
            state,
            reader,
            session,
            row,
            after: 0,
            before,
            left: u32::MAX,
        })
    }

    pub(super) fn row(&self) -> &SessionRow {
        &self.row
    }

    /// The first `limit` events after an offset.
    pub(super) fn first_after(&mut self, after: u64, limit: u32) {
        (self.after, self.left) = (after, limit);
    }

    /// The last `limit` events before an offset.
    pub(super) async fn last_before(&mut self, before: u64, limit: u32) -> Result<(), ApiError> {
        let (sessions, reader) = (&self.state.sessions, &self.reader);
        self.before = self.before.min(before);
        let after = sessions.offset_before_last(reader, self.session, self.before, limit);
        (self.after, self.left) = (after.await?, limit);
        Ok(())
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left == 0 || self.after.saturating_add(1) >= self.before
    }

    /// Streams the range. Its first page is read before the response begins: an error can still become
    /// a status. A reader that does not take it in time is cut off.
    pub(super) async fn into_body(
        mut self,
        writer: impl PageWriter,
        connection: &HttpConnection,
    ) -> Result<Body, ApiError> {
        let mut writer = Some(writer);
        let first = self.next_part(&mut writer).await?.unwrap_or_default();
        let rest = stream::try_unfold((self, writer), async |(mut pages, mut writer)| {
            let part = pages.next_part(&mut writer).await?;
            Ok::<_, ApiError>(part.map(|part| (part, (pages, writer))))
        });
        connection.start_transfer(TRANSFER_TIMEOUT);
        let rest = rest.map_err(|_| std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        Ok(Body::from_stream(stream::iter([Ok(first)]).chain(rest)))
    }

    /// The text of the next page; takes the writer with the last one.
    async fn next_part(
        &mut self,
        writer: &mut Option<impl PageWriter>,
    ) -> Result<Option<Bytes>, ApiError> {
        let Some(open) = writer else {
            return Ok(None);
        };
        let page = self.next_page().await?;
        let mut part = String::new();
        open.write(&page, &mut part);
        if (self.is_at_end() || page.is_empty())
            && let Some(last) = writer.take()
        {
            last.end(&mut part);
        }
        Ok(Some(part.into()))
    }

    /// The next events; empty at the end. Events of other sessions are dropped and counted.
    async fn next_page(&mut self) -> Result<Vec<Entry>, ApiError> {
        loop {
            let limit = self.left.min(MAX_PAGE_EVENTS);
            if self.is_at_end() {
                return Ok(Vec::new());
            }
            let sessions = &self.state.sessions;
            let page = sessions.events(&self.reader, self.session, self.after, limit);
            let mut page = page.await?;
            check_token(&self.state, &self.reader)?;
            page.retain(|entry| entry.recorded.first() < self.before);
            let Some(last) = page.last() else {
                return Ok(page);
            };
            self.after = last.recorded.offset;
            let count = u32::try_from(page.len()).unwrap_or(u32::MAX);
            self.left = self.left.saturating_sub(count);
            let own = self.state.shared.retain_session(self.session, page);
            if !own.is_empty() {
                return Ok(own);
            }
        }
    }
}
