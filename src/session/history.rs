//! Reading what a session was: its journal in pages, forwards and backwards, and its words.
//!
//! Whoever asks has checked that it may. Touches `store` and `domain`.

use super::Sessions;
use super::journal::read;
use super::tail::Entry;
use crate::domain::id::SessionId;
use crate::store::StoreError;

impl Sessions {
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
