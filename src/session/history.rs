//! Reading what a session was: its journal in pages, forwards and backwards.
//!
//! Whoever asks has checked that it may. Touches `store` and `domain`.

use super::Sessions;
use super::journal::read;
use crate::domain::event::Recorded;
use crate::domain::id::SessionId;
use crate::store::StoreError;

impl Sessions {
    /// The committed events of a session after an offset, in order.
    pub(crate) async fn events(
        &self,
        id: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Recorded>, StoreError> {
        let stored = self.parts.store.events_after(id, after, limit).await?;
        let read = |event| read(id, &event).map(|entry| entry.recorded);
        Ok(stored.into_iter().map_while(read).collect())
    }

    /// The last committed events of a session before an offset, in order. Pieces that were joined
    /// across it come as the one that they are now, so that nothing is missing between two pages.
    pub(crate) async fn events_before(
        &self,
        id: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<Recorded>, StoreError> {
        let store = &self.parts.store;
        let mut stored = store.events_before(id, before, limit).await?;
        if let Some(last) = before.checked_sub(1) {
            stored.extend(store.events_after(id, last, 1).await?);
        }
        let mut events: Vec<Recorded> = stored
            .iter()
            .rev()
            .map_while(|event| read(id, event).map(|entry| entry.recorded))
            .filter(|recorded| recorded.first() < before)
            .take(limit as usize)
            .collect();
        events.reverse();
        Ok(events)
    }
}
