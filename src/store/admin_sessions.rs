//! Session overview: metadata of all sessions for administrators, never their content.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::id::{SessionId, UserId};

/// A session's metadata, without title and messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Its id.
    pub id: SessionId,
    /// The owner.
    pub owner: UserId,
    /// The owner's name.
    pub owner_name: Username,
    /// Its agent.
    pub agent: String,
    /// Its status.
    pub status: SessionStatus,
    /// Number of messages.
    pub messages: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// A run is active.
    Running,
    /// No run is active.
    Idle,
    /// Archived by its owner.
    Archived,
}

impl SessionStatus {
    /// Name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Archived => "archived",
        }
    }
}

/// Filter for sessions; absent fields match everything.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Owner: a name or an id.
    pub user: Option<String>,
    /// Agent.
    pub agent: Option<String>,
    /// Status.
    pub status: Option<SessionStatus>,
    /// Start after this position.
    pub before: Option<(Timestamp, SessionId)>,
}

/// Totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of accounts.
    pub users: u64,
    /// Sessions that have not ended.
    pub sessions: u64,
    /// Sessions with an active run.
    pub running: u64,
}

/// Listing and counting all sessions.
#[async_trait]
pub trait SessionOverview: Send + Sync {
    /// All sessions that have not ended, last changed first.
    async fn all_sessions(
        &self,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Vec<SessionFacts>, StoreError>;

    /// Counts accounts and sessions.
    async fn counts(&self) -> Result<Counts, StoreError>;
}
