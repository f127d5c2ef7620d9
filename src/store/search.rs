//! Finding sessions by what was said in them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::sessions::SessionRow;
use crate::domain::id::{SessionId, UserId};
use crate::domain::search::Words;

/// A text that a session shall be found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchText {
    /// The place of the event that it stands in.
    pub offset: u64,
    /// The text. Of bounded length and without NUL, which not every database can hold.
    pub text: String,
}

/// A session that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The session.
    pub row: SessionRow,
    /// The part of its title, a prompt or an answer that shows most of the words.
    pub snippet: String,
}

/// Looking for sessions.
#[async_trait]
pub trait Search: Send + Sync {
    /// A user's sessions that have not ended and in which each of the words begins some word; in the
    /// order and with the paging of the list of sessions.
    async fn search(
        &self,
        owner: UserId,
        words: &Words,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<Hit>, StoreError>;
}
