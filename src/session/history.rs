//! Reading what a session was: its journal in pages, forwards and backwards, and its words.
//!
//! Whoever asks has checked that it may. Touches `store` and `domain`.

use std::time::Duration;

use jiff::Timestamp;

use super::Sessions;
use super::journal::read;
use super::tail::Entry;
use crate::domain::id::{SessionId, UserId};
use crate::domain::search::Words;
use crate::limits::Turns;
use crate::store::{Hit, StoreError};

/// Searches at the same time, and how long the next one waits for its turn.
const SEARCHES: usize = 2;
const SEARCH_PATIENCE: Duration = Duration::from_millis(500);

/// Why nothing was looked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    /// Too many search at the moment.
    #[error("too many search at the moment")]
    Busy,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub(super) fn searching() -> Turns {
    Turns::new(SEARCHES, SEARCH_PATIENCE)
}

impl Sessions {
    /// A user's sessions in which these words were said, a page in the order of the list.
    pub(crate) async fn search(
        &self,
        owner: UserId,
        words: &Words,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<Hit>, SearchError> {
        let turn = self.parts.searching.take(owner).await;
        let _turn = turn.ok_or(SearchError::Busy)?;
        Ok(self.parts.store.search(owner, words, before, limit).await?)
    }

    /// The committed events of a session after an offset, in order: at most so many, and no more than
    /// a page of storage holds. Nothing comes only at the end.
    pub(crate) async fn events(
        &self,
        id: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let stored = self.parts.store.events_after(id, after, limit).await?;
        Ok(stored.iter().map_while(read).collect())
    }

    /// The last committed events of a session before an offset, in order and bounded as above. Pieces
    /// that were joined across it come as the one that they are now, so that nothing is missing
    /// between two pages.
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

    /// Where to begin so that what follows are the last so many events before an offset: the offset
    /// behind which the first of them is.
    pub(crate) async fn beginning_of(
        &self,
        id: SessionId,
        mut before: u64,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let mut wanted = limit;
        // Only the place is kept of each page, however much is wanted.
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
