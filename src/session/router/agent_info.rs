//! Agent info: what a session knows of its agent, running or not.

use tokio::time::Instant;

use super::Router;
use crate::domain::event::Author;
use crate::domain::id::SessionId;
use crate::domain::id::UserId;
use crate::runtime::{Origin, Start};
use crate::store::{Store, StoreError};

/// Messages of the conversation that an agent without a memory of its own gets.
const MAX_HISTORY_MESSAGES: usize = 40;

pub(in crate::session) struct AgentInfo {
    pub(super) name: String,
    pub(super) owner: UserId,
    /// Read from storage when the agent is first started.
    owner_name: Option<String>,
    /// The agent's id of the conversation.
    thread: Option<String>,
    /// The conversation that the session branched from, until it has one of its own.
    origin: Option<Origin>,
    is_thread_loaded: bool,
    is_thread_unsaved: bool,
    /// Term of the journal, which fences the stored thread.
    term: i64,
    last_used: Instant,
}

impl AgentInfo {
    pub(in crate::session) fn new(name: String, owner: UserId, term: i64) -> Self {
        Self {
            name,
            owner,
            owner_name: None,
            thread: None,
            origin: None,
            is_thread_loaded: false,
            is_thread_unsaved: false,
            term,
            last_used: Instant::now(),
        }
    }

    pub(super) fn set_thread(&mut self, thread: String) {
        self.is_thread_unsaved |= self.thread.as_ref() != Some(&thread);
        self.thread = Some(thread);
    }

    /// Puts off the agent's idle timeout.
    pub(super) fn touch(&mut self) {
        self.last_used = Instant::now();
    }
}

impl Router {
    pub(super) async fn start_parameters(&mut self) -> Result<Start, StoreError> {
        let (store, agent) = (&self.parts.store, &mut self.agent_info);
        let owner = agent.owner;
        if self.parts.catalog.is_built_in(&agent.name) {
            return Ok(Start::of(self.id, owner));
        }
        if agent.owner_name.is_none() {
            let user = store.user(owner).await?;
            agent.owner_name = user.map(|user| user.username.to_string());
        }
        if !agent.is_thread_loaded {
            let stored = store.thread(self.id).await?;
            agent.thread = agent.thread.take().or(stored);
            if agent.thread.is_none() {
                agent.origin = origin(store.as_ref(), self.id).await?;
            }
            agent.is_thread_loaded = true;
        }
        let live = self.state.live_run().map(|run| run.id);
        // The prompt of the run that starts is not part of the history.
        let messages = self.state.messages.iter();
        let earlier = messages.filter(|message| live.is_none() || message.run != live);
        let mut history: Vec<(Author, String)> = earlier
            .map(|message| (message.author, message.text.clone()))
            .collect();
        history.drain(..history.len().saturating_sub(MAX_HISTORY_MESSAGES));
        let name = agent.owner_name.clone();
        Ok(Start {
            session: self.id,
            user: owner,
            user_name: name.unwrap_or_else(|| owner.to_string()),
            thread: agent.thread.clone(),
            origin: agent.origin.clone().filter(|_| agent.thread.is_none()),
            history,
        })
    }

    /// Stores the agent's thread once the session has a row. If that fails, the next agent event
    /// tries again; without it the agent begins a new conversation after a restart, and says so.
    pub(super) async fn save_thread(&mut self) {
        let agent = &mut self.agent_info;
        let Some(thread) = agent.thread.as_ref().filter(|_| agent.is_thread_unsaved) else {
            return;
        };
        if !self.writer.is_stored() {
            return;
        }
        let saved = self.parts.store.keep_thread(self.id, agent.term, thread);
        match saved.await {
            Ok(()) => agent.is_thread_unsaved = false,
            Err(error) => {
                tracing::warn!(%error, session.id = %self.id, agent = agent.name, user.id = %agent.owner, "the agent's conversation id was not stored; trying again with its next event");
            }
        }
    }

    /// When the idle agent is ended, if it can resume its conversation later.
    pub(super) fn agent_idle_deadline(&self) -> Option<Instant> {
        if self.agent.is_none() || self.recorder.is_some() || !self.queries.is_empty() {
            return None;
        }
        let idle = self.parts.catalog.idle(&self.agent_info.name)?;
        Some(self.agent_info.last_used + idle)
    }
}

/// The conversation of the session that a session branched from.
async fn origin(store: &dyn Store, branch: SessionId) -> Result<Option<Origin>, StoreError> {
    let row = store.session(branch).await?;
    let Some(session) = row.and_then(|row| row.branched_from) else {
        return Ok(None);
    };
    let thread = store.thread(session).await?;
    Ok(thread.map(|thread| Origin { session, thread }))
}
