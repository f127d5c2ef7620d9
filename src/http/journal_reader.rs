//! Journal reader: reads a journal for HTTP page by page. Only one page is in memory, as events may be
//! long and a reader slow.

use std::sync::Arc;

use super::AppState;
use crate::domain::id::SessionId;
use crate::member::Shared;
use crate::session::{Entry, Sessions};
use crate::store::StoreError;

/// The store returns fewer if they are long.
const MAX_PAGE_EVENTS: u32 = 500;

/// The rest of a range of a journal.
pub(super) struct JournalPages {
    sessions: Sessions,
    shared: Arc<Shared>,
    session: SessionId,
    after: u64,
    before: u64,
    left: u32,
}

impl JournalPages {
    /// At most so many events after one offset that begin before another.
    pub(super) fn new(
        state: &AppState,
        session: SessionId,
        after: u64,
        before: u64,
        max_events: u32,
    ) -> Self {
        Self {
            sessions: state.sessions.clone(),
            shared: Arc::clone(&state.shared),
            session,
            after,
            before,
            left: max_events,
        }
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// The next events; empty if there are no more, or not yet. Events of other sessions are dropped
    /// and counted.
    pub(super) async fn next(&mut self) -> Result<Vec<Entry>, StoreError> {
        loop {
            let max_events = self.left.min(MAX_PAGE_EVENTS);
            if max_events == 0 {
                return Ok(Vec::new());
            }
            let mut page = self
                .sessions
                .events(self.session, self.after, max_events)
                .await?;
            page.retain(|entry| entry.recorded.first() < self.before);
            let Some(last) = page.last() else {
                return Ok(page);
            };
            self.after = last.recorded.offset;
            let count = u32::try_from(page.len()).unwrap_or(u32::MAX);
            self.left = self.left.saturating_sub(count);
            let own = self.shared.retain_session(self.session, page);
            if !own.is_empty() {
                return Ok(own);
            }
        }
    }
}
