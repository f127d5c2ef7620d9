//! The agent that a session talks to, whether or not it runs at the moment.

use tokio::time::Instant;

use super::Router;
use crate::domain::event::Author;
use crate::domain::id::UserId;
use crate::runtime::Start;
use crate::store::StoreError;

/// How much of the conversation an agent that does not remember it is told.
const HISTORY: usize = 40;

/// The agent of a session.
pub(in crate::session) struct Counterpart {
    /// Its name in the catalog.
    pub(super) name: String,
    /// Whose session it is.
    pub(super) owner: UserId,
    /// Their name, once it was looked up.
    owner_name: Option<String>,
    /// The agent's own name for the conversation.
    pub(super) thread: Option<String>,
    /// What is stored of it was looked up.
    looked_up: bool,
    /// It is not stored yet.
    unkept: bool,
    /// The owner of the journal since.
    term: i64,
    /// When it was last told or heard.
    used: Instant,
}

impl Counterpart {
    pub(in crate::session) fn new(name: String, owner: UserId, term: i64) -> Self {
        Self {
            name,
            owner,
            owner_name: None,
            thread: None,
            looked_up: false,
            unkept: false,
            term,
            used: Instant::now(),
        }
    }

    /// It goes by this name for the conversation from now on.
    pub(super) fn calls_it(&mut self, thread: String) {
        self.unkept |= self.thread.as_ref() != Some(&thread);
        self.thread = Some(thread);
    }

    /// It is told or heard.
    pub(super) fn is_used(&mut self) {
        self.used = Instant::now();
    }
}

impl Router {
    /// What an agent that is started has to know.
    pub(super) async fn introduction(&mut self) -> Result<Start, StoreError> {
        let owner = self.counterpart.owner;
        if self.parts.catalog.is_built_in(&self.counterpart.name) {
            return Ok(Start::of(self.id, owner));
        }
        if self.counterpart.owner_name.is_none() {
            let user = self.parts.store.user(owner).await?;
            self.counterpart.owner_name = user.map(|user| user.username.to_string());
        }
        if !self.counterpart.looked_up {
            let stored = self.parts.store.thread(self.id).await?;
            self.counterpart.thread = self.counterpart.thread.take().or(stored);
            self.counterpart.looked_up = true;
        }
        let (live, messages) = (
            self.state.live_run().map(|run| run.id),
            &self.state.messages,
        );
        // What is asked now is not what was said before.
        let earlier = messages
            .iter()
            .filter(|message| live.is_none() || message.run != live);
        let said = earlier.map(|message| (message.author, message.text.clone()));
        let mut history: Vec<(Author, String)> = said.collect();
        history.drain(..history.len().saturating_sub(HISTORY));
        Ok(Start {
            session: self.id,
            user: owner,
            user_name: self
                .counterpart
                .owner_name
                .clone()
                .unwrap_or_else(|| owner.to_string()),
            thread: self.counterpart.thread.clone(),
            history,
        })
    }

    /// Stores the agent's name for the conversation, once there is a row to store it in. If that
    /// fails, the agent begins anew after a restart, and says so.
    pub(super) async fn keep_thread(&mut self) {
        let Some(thread) = self
            .counterpart
            .thread
            .clone()
            .filter(|_| self.counterpart.unkept)
        else {
            return;
        };
        if !self.writer.is_stored() {
            return;
        }
        let kept = self
            .parts
            .store
            .keep_thread(self.id, self.counterpart.term, &thread);
        match kept.await {
            Ok(()) => self.counterpart.unkept = false,
            // Tried again with the next thing that the agent says.
            Err(error) => {
                tracing::warn!(%error, session.id = %self.id, "the agent's conversation is not noted yet");
            }
        }
    }

    /// When the agent is put to rest, if it has nothing to do and can go on later.
    pub(super) fn agent_rest(&self) -> Option<Instant> {
        if self.agent.is_none() || self.scribe.is_some() || !self.inquiries.is_empty() {
            return None;
        }
        let idle = self.parts.catalog.idle(&self.counterpart.name)?;
        Some(self.counterpart.used + idle)
    }
}
