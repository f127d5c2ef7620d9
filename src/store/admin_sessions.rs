//! What those who run the gateway may know about everybody's sessions: never what is said in them.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use crate::domain::account::Username;
use crate::domain::id::{SessionId, UserId};

/// A session, without its title and without anything that was said in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub owner: UserId,
    /// Their name.
    pub owner_name: Username,
    /// Which agent it talks to.
    pub agent: String,
    /// What it does.
    pub status: SessionStatus,
    /// How many utterances it has.
    pub messages: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something last happened.
    pub updated_at: Timestamp,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatus {
    /// A run is under way.
    Running,
    /// Nothing at the moment.
    Idle,
    /// It was put away.
    Archived,
}

impl SessionStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Archived => "archived",
        }
    }
}

/// Which sessions; what is absent does not matter.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Whose: a name or an id.
    pub user: Option<String>,
    /// With which agent.
    pub agent: Option<String>,
    /// Doing what.
    pub status: Option<SessionStatus>,
    /// After this place in the order.
    pub before: Option<(Timestamp, SessionId)>,
}

/// How many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Accounts.
    pub users: u64,
    /// Sessions that have not ended.
    pub sessions: u64,
    /// Those of them in which a run is under way.
    pub running: u64,
}

/// Looking at all of it from above.
#[async_trait]
pub trait Overview: Send + Sync {
    /// Everybody's sessions that have not ended, the newest change first.
    async fn all_sessions(
        &self,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Vec<SessionFacts>, StoreError>;

    /// How many accounts and sessions there are.
    async fn counts(&self) -> Result<Counts, StoreError>;
}
