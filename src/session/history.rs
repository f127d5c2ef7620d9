//! History: pages of a journal, forwards and backwards, and the search. Touches `store` and `domain`.
//!
//! The only way to read a journal for a request: the reader's access is checked before a page is read and
//! again before it is handed over, because storage may be slow and rights may end meanwhile.

use std::time::Duration;

use jiff::Timestamp;

use super::journal::read;
use super::read_permits::Busy;
use super::tail::Entry;
use super::{JoinError, Sessions};
use crate::domain::account::Principal;
use crate::domain::id::{SessionId, UserId};
use crate::domain::search_query::SearchQuery;
use crate::limits::Permits;
use crate::store::{SearchHit, SessionRow, StoreError};

const MAX_CONCURRENT_SEARCHES: usize = 2;
const SEARCH_PERMIT_TIMEOUT: Duration = Duration::from_millis(500);

#[derive(Debug, thiserror::Error)]
pub(crate) enum SearchError {
    #[error("too many search at the moment")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A journal, or a page of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// Not there, or not for this principal.
    #[error("there is no such session")]
    NotFound,
    #[error(transparent)]
    Busy(#[from] Busy),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<JoinError> for ReadError {
    fn from(error: JoinError) -> Self {
        match error {
            JoinError::Store(error) => Self::Store(error),
            JoinError::NotFound | JoinError::NoSuchAgent(_) => Self::NotFound,
        }
    }
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

    /// A session that the principal may read, with its head.
    pub(crate) async fn open_journal(
        &self,
        reader: &Principal,
        id: SessionId,
    ) -> Result<SessionRow, ReadError> {
        let _permit = self.parts.read_permits.for_request(reader.user).await?;
        let (row, _) = self.look_up(reader, id).await?;
        Ok(row)
    }

    /// The committed events after an offset, in order: at most `limit`, and no more than a page of
    /// storage. Empty only at the end.
    pub(crate) async fn events(
        &self,
        reader: &Principal,
        id: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        let _permit = self.parts.read_permits.for_request(reader.user).await?;
        let stored = self.parts.store.events_after(id, after, limit).await?;
        // Any access lets its holder read.
        self.look_up(reader, id).await?;
        Ok(stored.iter().map_while(read).collect())
    }

    /// The offset after which the last `limit` events before `before` begin. A chunk joined across the
    /// offset is one of them, so that nothing is missing between two pages.
    pub(crate) async fn offset_before_last(
        &self,
        reader: &Principal,
        id: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<u64, ReadError> {
        let _permit = self.parts.read_permits.for_request(reader.user).await?;
        let store = &self.parts.store;
        let across = store.events_after(id, before.saturating_sub(1), 1).await?;
        let across = across.first().and_then(read);
        let across = across.filter(|entry| entry.recorded.first() < before);
        match across {
            Some(joined) if limit <= 1 => Ok(joined.recorded.first() - 1),
            Some(_) => Ok(store.offset_before(id, before, limit - 1).await?),
            None => Ok(store.offset_before(id, before, limit).await?),
        }
    }
}
