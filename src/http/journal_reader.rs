//! A journal on its way out through HTTP, page by page: however much is asked for, little of it is in
//! memory at a time, as some events are long and a reader may be slow.

use std::sync::Arc;

use super::AppState;
use crate::desk::Reception;
use crate::domain::id::SessionId;
use crate::session::{Entry, Sessions};
use crate::store::StoreError;

/// Events of one page; storage gives fewer if they are long.
const PAGE: u32 = 500;

/// The part of a journal that was asked for, as far as it has not been read.
pub(super) struct Pages {
    sessions: Sessions,
    reception: Arc<Reception>,
    session: SessionId,
    after: u64,
    before: u64,
    left: u32,
}

impl Pages {
    /// What is after one offset and begins before another, at most so many events.
    pub(super) fn new(
        state: &AppState,
        session: SessionId,
        after: u64,
        before: u64,
        most: u32,
    ) -> Self {
        Self {
            sessions: state.sessions.clone(),
            reception: Arc::clone(&state.reception),
            session,
            after,
            before,
            left: most,
        }
    }

    /// Whose journal it is.
    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// The next events; none if there are no more, or not yet. Each is looked at before it goes out:
    /// one of another session goes nowhere.
    pub(super) async fn next(&mut self) -> Result<Vec<Entry>, StoreError> {
        loop {
            let most = self.left.min(PAGE);
            if most == 0 {
                return Ok(Vec::new());
            }
            let mut page = self.sessions.events(self.session, self.after, most).await?;
            page.retain(|entry| entry.recorded.first() < self.before);
            let Some(last) = page.last() else {
                return Ok(page);
            };
            self.after = last.recorded.offset;
            let count = u32::try_from(page.len()).unwrap_or(u32::MAX);
            self.left = self.left.saturating_sub(count);
            let own = self.reception.own(self.session, page);
            if !own.is_empty() {
                return Ok(own);
            }
        }
    }
}
