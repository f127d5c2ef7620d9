//! Search: finds sessions by their titles, prompts and answers.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::sessions::SessionRow;
use crate::domain::id::{SessionId, UserId};
use crate::domain::search_query::SearchQuery;

/// A searchable text of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchText {
    /// Offset of its event.
    pub offset: u64,
    /// The text: bounded, and without NUL, which Postgres cannot store.
    pub text: String,
}

/// A matching session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The session.
    pub row: SessionRow,
    /// Its texts that match most words, the best first; at least one.
    pub passages: Vec<Passage>,
}

/// A matching text of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Offset of its event; 0 for the title.
    pub offset: u64,
    /// Excerpt around the first match.
    pub snippet: String,
}

/// Searching sessions.
#[async_trait]
pub trait Search: Send + Sync {
    /// A user's active sessions that contain each of the query's words: as the beginning of a word
    /// anywhere, or within a word in the newest texts. Ordered and paged like the session list.
    async fn search(
        &self,
        owner: UserId,
        words: &SearchQuery,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError>;
}
