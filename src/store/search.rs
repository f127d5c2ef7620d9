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
    /// Excerpt of the text that matches most words.
    pub snippet: String,
}

/// Searching sessions.
#[async_trait]
pub trait Search: Send + Sync {
    /// A user's active sessions that contain a word starting with each of the query's words;
    /// ordered and paged like the session list.
    async fn search(
        &self,
        owner: UserId,
        words: &SearchQuery,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SearchHit>, StoreError>;
}
