//! Sessions, as stored: what is known about one without reading its journal.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::act::Act;
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{Epoch, SessionId, UserId};

/// A session to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: UserId,
    /// Which agent it talks to.
    pub agent: String,
    /// How it is called.
    pub title: Option<String>,
    /// The counting of its offsets.
    pub epoch: Epoch,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What is known about a session without reading its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: UserId,
    /// Their name.
    pub owner_name: Username,
    /// What the user on whose behalf it was looked up was granted in it.
    pub granted: Option<GrantRole>,
    /// Whose commands it takes.
    pub control: ControlMode,
    /// Which agent it talks to.
    pub agent: String,
    /// How it is called.
    pub title: Option<String>,
    /// The counting of its offsets.
    pub epoch: Epoch,
    /// The offset of its last event.
    pub head: u64,
    /// How many utterances it has.
    pub messages: u64,
    /// The newest one of a human, shortened.
    pub last_prompt: Option<String>,
    /// Is a run under way?
    pub running: bool,
    /// How many questions wait for an answer.
    pub waiting: u64,
    /// How many prompts wait for their turn.
    pub queued: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
    /// When it was put away.
    pub archived_at: Option<Timestamp>,
    /// When it was ended.
    pub ended_at: Option<Timestamp>,
}

/// What its owner changes about a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// Another title.
    Title(String),
    /// Put away, or brought back.
    Archived(bool),
    /// Takes other commands than before.
    Control(ControlMode),
}

/// Finding and changing sessions.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Stores a session.
    async fn create_session(&self, new: &NewSession) -> Result<(), StoreError>;

    /// The session of that id, ended ones included.
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError>;

    /// The same, with what a user was granted in it.
    async fn session_for(
        &self,
        id: SessionId,
        user: UserId,
    ) -> Result<Option<SessionRow>, StoreError>;

    /// The sessions that have not ended and belong to a user or are shared with them, the newest
    /// change first, at most `limit` of those that come after `before` in that order.
    async fn sessions(
        &self,
        user: UserId,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError>;

    /// Sessions in which something was under way or waits for its turn: their owners expect that to
    /// go on, or to end, also if nobody comes back.
    async fn unfinished_sessions(&self, limit: u32) -> Result<Vec<SessionId>, StoreError>;

    /// The agent's own name for the conversation of a session, if it has told one.
    async fn thread(&self, id: SessionId) -> Result<Option<String>, StoreError>;

    /// Keeps it, unless the journal is another node's since `term`.
    async fn keep_thread(&self, id: SessionId, term: i64, thread: &str) -> Result<(), StoreError>;

    /// Changes a session of that owner; false if there is none such.
    async fn change_session(
        &self,
        id: SessionId,
        owner: UserId,
        change: &SessionChange,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Ends a session of that owner for good; false if there is none such.
    async fn end_session(
        &self,
        id: SessionId,
        owner: UserId,
        act: &Act,
    ) -> Result<bool, StoreError>;
}
