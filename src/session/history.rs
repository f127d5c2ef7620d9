//! History: pages of a journal, forwards and backwards, and the search. The caller has checked access.
//! Touches `store` and `domain`.

use std::time::Duration;

use jiff::Timestamp;

use super::Sessions;
use super::journal::read;
use super::tail::Entry;
use crate::domain::id::{SessionId, UserId};
use crate::domain::search_query::SearchQuery;
use crate::limits::Permits;
use crate::store::{SearchHit, StoreError};

const MAX_CONCURRENT_SEARCHES: usize = 2;
const SEARCH_PERMIT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("too many search at the moment")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn search_permits() -> Permits<UserId> {
    Permits::new(MAX_CONCURRENT_SEARCHES, 1)
}

impl Sessions {
    /// A page of the user's sessions that contain these words, in the order of the list.
    pub(crate) async fn search(
        &self,
        owner: UserId,
        words: &SearchQuery,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SearchHit>, SearchError> {
        let permits = &self.parts.search_permits;
        let permit = permits.acquire_within(owner, SEARCH_PERMIT_TIMEOUT);
        let _permit = permit.await.map_err(|_| SearchError::Busy)?;
        Ok(self.parts.store.search(owner, words, before, limit).await?)
    }

    /// The committed events after an offset, in order: at most `limit`, and no more than a page of
    /// storage. Empty only at the end.
    pub(crate) async fn events(
        &self,
        id: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let stored = self.parts.store.events_after(id, after, limit).await?;
        Ok(stored.iter().map_while(read).collect())
    }

    /// The last committed events before an offset, in order and bounded as above. A chunk joined across
    /// the offset is included, so that nothing is missing between two pages.
    pub(crate) async fn events_before(
        &self,
        id: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let store = &self.parts.store;
        let mut stored = store.events_before(id, before, limit).await?;
        if let Some(last) = before.checked_sub(1) {
            stored.extend(store.events_after(id, last, 1).await?);
        }
        let mut events: Vec<Entry> = stored
            .iter()
            .rev()
            .map_while(read)
            .filter(|entry| entry.recorded.first() < before)
            .take(limit as usize)
            .collect();
        events.reverse();
        Ok(events)
    }

    /// The offset after which the last `limit` events before `before` begin.
    pub(crate) async fn offset_before_last(
        &self,
        id: SessionId,
        mut before: u64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut wanted = limit;
        // Only the offset of each page is kept, however large `limit` is.
        loop {
            let page = self.events_before(id, before, wanted).await?;
            let Some(first) = page.first() else { break };
            before = first.recorded.first();
            wanted = wanted.saturating_sub(u32::try_from(page.len()).unwrap_or(u32::MAX));
            if wanted == 0 {
                break;
            }
        }
        Ok(before.saturating_sub(1))
    }
}
