//! Sessions: metadata of each session, without its journal.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::audit::AuditEntry;
use crate::domain::grant::{ControlMode, GrantRole};
use crate::domain::id::{Epoch, SessionId, UserId};

impl SessionRow {
    /// What to call it: its title, or the first line of its first prompt.
    pub fn name(&self) -> Option<&str> {
        let prompt = self.first_prompt.as_ref().or(self.last_prompt.as_ref());
        let line = prompt.and_then(|prompt| prompt.lines().find(|line| !line.trim().is_empty()));
        self.title.as_deref().or(line)
    }
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The owner.
    pub owner: UserId,
    /// Its agent.
    pub agent: String,
    /// Its title.
    pub title: Option<String>,
    /// Epoch of its offsets.
    pub epoch: Epoch,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id.
    pub id: SessionId,
    /// The owner.
    pub owner: UserId,
    /// The owner's name.
    pub owner_name: Username,
    /// Role granted to the user it was looked up for.
    pub granted: Option<GrantRole>,
    /// Who may send commands.
    pub control: ControlMode,
    /// Its agent.
    pub agent: String,
    /// Its title.
    pub title: Option<String>,
    /// Epoch of its offsets.
    pub epoch: Epoch,
    /// Offset of its last event.
    pub head: u64,
    /// Number of messages.
    pub messages: u64,
    /// The newest prompt, shortened.
    pub last_prompt: Option<String>,
    /// The first prompt, shortened.
    pub first_prompt: Option<String>,
    /// The session that it began as a copy of.
    pub branched_from: Option<SessionId>,
    /// Number of users that it is shared with.
    pub shared_with: u64,
    /// How far the user it was looked up for has read it.
    pub read_upto: Option<u64>,
    /// Is a run active?
    pub running: bool,
    /// Open questions.
    pub waiting: u64,
    /// Queued prompts.
    pub queued: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A change by the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// New title.
    Title(String),
    /// Archive or unarchive.
    Archived(bool),
    /// New control mode.
    Control(ControlMode),
}

/// Finding and changing sessions.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Stores a session.
    async fn create_session(&self, new: &NewSession) -> Result<(), StoreError>;

    /// The session of that id, ended ones included.
    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError>;

    /// The same, with the role granted to a user.
    async fn session_for(
        &self,
        id: SessionId,
        user: UserId,
    ) -> Result<Option<SessionRow>, StoreError>;

    /// Active sessions that a user owns or that are shared with them, last changed first: at most
    /// `limit` after the position `before`.
    async fn sessions(
        &self,
        user: UserId,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError>;

    /// Sessions with an active run or queued prompts, to be resumed or ended after a restart.
    async fn unfinished_sessions(&self, limit: u32) -> Result<Vec<SessionId>, StoreError>;

    /// The agent's own id for the conversation, if it reported one.
    async fn thread(&self, id: SessionId) -> Result<Option<String>, StoreError>;

    /// Stores that id, unless the journal was claimed by another node since `term`.
    async fn keep_thread(&self, id: SessionId, term: i64, thread: &str) -> Result<(), StoreError>;

    /// Changes a session of that owner; false if there is none.
    async fn change_session(
        &self,
        id: SessionId,
        owner: UserId,
        change: &SessionChange,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Remembers how far a user has read; never goes back. False if there is no such session.
    async fn mark_read(&self, id: SessionId, user: UserId, upto: u64) -> Result<bool, StoreError>;

    /// Ends a session of that owner for good; false if there is none.
    async fn end_session(
        &self,
        id: SessionId,
        owner: UserId,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;
}
