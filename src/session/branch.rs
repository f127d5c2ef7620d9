//! Branch: a new session with a copy of another one's journal up to a cut.
//!
//! The events are copied with their offsets in one transaction; a run under way at the cut is closed,
//! as no agent works on it in the branch. Touches `store` and `domain`.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::journal::body;
use super::mailbox::{Refused, command_record};
use super::run_recorder::{Batch, RunRecorder};
use super::state::{Bounds, SessionState};
use super::{JournalConfig, Session, Sessions};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Epoch, SessionId, UserId};
use crate::domain::idempotency::IdempotencyKey;
use crate::domain::queue::QueuedPrompt;
use crate::domain::run::RunOutcome;
use crate::limits::Permits;
use crate::store::{
    BranchError, NewBranch, NewEvent, NewSession, SessionRow, SessionSummary, StoreError,
};

const FOLD_PAGE: u32 = 500;
/// Attempts while retention changes the journal meanwhile.
const ATTEMPTS: usize = 3;
const TITLE_SUFFIX: &str = " (branch)";
const TITLE_CHARS: usize = 200;

/// Between two steps of copying search texts: others write in between.
const COPY_PAUSE: Duration = Duration::from_millis(2);
/// Each branch keeps storage busy.
const MAX_CONCURRENT_BRANCHES: usize = 2;

pub(super) struct BranchLimits {
    pub(super) permits: Permits<UserId>,
    max_bytes: u64,
}

impl BranchLimits {
    pub(super) fn new(config: &JournalConfig) -> Self {
        Self {
            permits: Permits::new(MAX_CONCURRENT_BRANCHES, 1),
            max_bytes: config.branch_bytes.get(),
        }
    }
}

/// A new branch, as its maker is told; stored under the idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BranchInfo {
    #[serde(rename = "sessionId")]
    pub(crate) session: SessionId,
    pub(crate) offset: u64,
    pub(crate) epoch: Epoch,
}

/// The events that end the run and empty the queue of a session in this state.
pub(super) fn closing_events(state: &SessionState) -> Vec<Event> {
    let mut batch = Batch::new(&state.questions.open);
    batch.close_questions(|run| run.is_none());
    if let Some(run) = state.live_run() {
        RunRecorder::resumed(run, state).end(&RunOutcome::Cancelled, None, &mut batch);
    }
    let mut events = batch.events;
    // Queued prompts stay in the source session.
    if !state.queue.entries.is_empty() {
        events.push(Event::QueueUpdated {
            entries: Vec::new(),
            modes: state.queue.modes,
            added: Vec::new(),
            joined: Vec::new(),
        });
        let ended = |queued: &QueuedPrompt| Event::RunEnded {
            run: queued.run,
            outcome: RunOutcome::Cancelled,
            usage: None,
            cause: None,
            agent_error: None,
        };
        events.extend(state.queue.entries.iter().map(ended));
    }
    events
}

impl Sessions {
    /// Makes a branch of a session, cut after event `from` or at the head. The caller has checked that
    /// the owner asks.
    pub(crate) async fn branch(
        &self,
        source: &Session,
        from: Option<u64>,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<BranchInfo, Refused> {
        if self.parts.shutdown.drain.is_cancelled() {
            return Err(Refused::shutting_down());
        }
        let permits = &self.parts.branch_limits.permits;
        let Ok(_permit) = permits.try_acquire(source.0.owner) else {
            let message = "Another branch is being made at the moment; try again when it is done.";
            return Err(Refused::new(ErrorCode::Busy, message));
        };
        self.check_new_session(source.0.owner).await?;
        let found = self.parts.store.session(source.id()).await;
        let row = found
            .map_err(|error| storage_error(source.id(), &error))?
            .ok_or_else(empty)?;
        for _ in 0..ATTEMPTS {
            if let Some(before) = self
                .branched_before(source.id(), idempotency_key.as_ref())
                .await?
            {
                return Ok(before);
            }
            let state = self.state_at(source, from).await?;
            self.check_size(source.id(), state.offset).await?;
            let (new, branched) = self.prepare(&row, state, idempotency_key.clone());
            match self.parts.store.branch(&new).await {
                Ok(()) => {
                    self.copy_texts(branched.session).await;
                    return Ok(branched);
                }
                Err(BranchError::Changed | BranchError::Repeated) => {}
                Err(BranchError::NotFound) => {
                    let message = "There is no such session any more.";
                    return Err(Refused::new(ErrorCode::NotFound, message));
                }
                Err(BranchError::Store(error)) => return Err(storage_error(source.id(), &error)),
            }
        }
        let message = "The journal is being compacted at the moment; try again.";
        Err(Refused::new(ErrorCode::Busy, message))
    }

    /// Copies the search texts into the branch, which exists already; retention goes on with what fails
    /// here.
    async fn copy_texts(&self, branch: SessionId) {
        loop {
            match self.parts.store.copy_texts(branch).await {
                Ok(true) => tokio::time::sleep(COPY_PAUSE).await,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, session.id = %branch, "the search texts of this branch are not all copied yet; retention goes on with it");
                    return;
                }
            }
        }
    }

    async fn check_size(&self, source: SessionId, upto: u64) -> Result<(), Refused> {
        let most = self.parts.branch_limits.max_bytes;
        let bytes = self.parts.store.journal_bytes(source, upto).await;
        let bytes = bytes.map_err(|error| storage_error(source, &error))?;
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "There are {bytes} bytes of events up to that point, and a branch copies at most {most} \
             (journal.branch_bytes). Choose an earlier one."
        );
        Err(Refused::new(ErrorCode::ValidationError, message))
    }

    async fn branched_before(
        &self,
        source: SessionId,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<Option<BranchInfo>, Refused> {
        let Some(IdempotencyKey { key, digest }) = idempotency_key else {
            return Ok(None);
        };
        let found = self.parts.store.command(source, key).await;
        let Some(record) = found.map_err(|error| storage_error(source, &error))? else {
            return Ok(None);
        };
        let outcome = serde_json::from_slice(&record.outcome).ok();
        match outcome.filter(|_| record.idempotency_key.digest == *digest) {
            Some(branched) => Ok(Some(branched)),
            None => Err(Refused::key_reused()),
        }
    }

    /// The state after event `from`, or after the event before it if `from` was joined with later ones.
    async fn state_at(&self, source: &Session, from: Option<u64>) -> Result<SessionState, Refused> {
        let head = source.journal().head();
        if let Some(from) = from.filter(|from| *from > head) {
            let message = format!("There is no event {from} yet; the last one is {head}.");
            return Err(Refused::new(ErrorCode::ValidationError, message));
        }
        let now = source
            .state()
            .await
            .ok_or_else(Refused::storage_unavailable)?;
        match from {
            None if now.offset == 0 => Err(empty()),
            Some(from) if from != now.offset => {
                let folded = self.fold_upto(source, from).await;
                folded
                    .map_err(|error| storage_error(source.id(), &error))?
                    .ok_or_else(not_stored)
            }
            _ => Ok(now),
        }
    }

    /// `None` if the events before it are not stored any more.
    async fn fold_upto(
        &self,
        source: &Session,
        from: u64,
    ) -> Result<Option<SessionState>, StoreError> {
        let snapshot = self.parts.store.snapshot(source.id()).await?;
        let mut state: SessionState = snapshot
            .filter(|snapshot| snapshot.offset <= from)
            .and_then(|snapshot| serde_json::from_slice(&snapshot.body).ok())
            .unwrap_or_default();
        let bounds = Bounds::default();
        loop {
            let page = source
                .journal()
                .stored_after(state.offset, FOLD_PAGE)
                .await?;
            let Some(first) = page.first() else { break };
            if state.offset == 0 && first.recorded.first() > 1 {
                return Ok(None);
            }
            let (before, whole) = (state.offset, page.len());
            let wanted = page
                .iter()
                .take_while(|entry| entry.recorded.offset <= from);
            let folded = wanted
                .map(|entry| state.apply(&entry.recorded, &bounds))
                .count();
            if folded < whole || state.offset == before {
                break;
            }
        }
        Ok(Some(state).filter(|state| state.offset > 0))
    }

    fn prepare(
        &self,
        row: &SessionRow,
        mut state: SessionState,
        idempotency_key: Option<IdempotencyKey>,
    ) -> (NewBranch, BranchInfo) {
        let now = self.parts.clock.wall();
        let title = row.title.as_deref().map(branch_title);
        let upto = state.offset;
        let mut closing = closing_events(&state);
        // Else the next event would bring the source's title back from the journal.
        let known = state.title.is_some();
        closing.extend(
            title
                .clone()
                .filter(|_| known)
                .map(|title| Event::TitleChanged { title }),
        );
        let closing = append(&mut state, closing, now);
        let session = NewSession {
            id: SessionId::new(),
            owner: row.owner,
            agent: row.agent.clone(),
            title,
            epoch: Epoch::new(),
            created_at: now,
        };
        let branched = BranchInfo {
            session: session.id,
            offset: state.offset,
            epoch: session.epoch,
        };
        let command = idempotency_key.map(|key| command_record(key, &branched));
        let new = NewBranch {
            session,
            from: row.id,
            upto,
            closing,
            summary: SessionSummary {
                messages: state.message_count,
                last_prompt: state.last_user_message.clone(),
                title: None,
                running: false,
                waiting: 0,
                queued: 0,
                added_bytes: 0,
            },
            snapshot: serde_json::to_vec(&state).expect("the state is plain JSON"),
            command,
        };
        (new, branched)
    }
}

/// Folds events after all others and returns them in their stored form.
fn append(state: &mut SessionState, events: Vec<Event>, at: Timestamp) -> Vec<NewEvent> {
    let bounds = Bounds::default();
    events
        .into_iter()
        .map(|event| {
            let offset = state.offset + 1;
            let recorded = Recorded { offset, at, event };
            state.apply(&recorded, &bounds);
            let body = body(&recorded.event);
            NewEvent { at, body }
        })
        .collect()
}

fn branch_title(title: &str) -> String {
    let most = TITLE_CHARS - TITLE_SUFFIX.len();
    let kept: String = title.chars().take(most).collect();
    format!("{kept}{TITLE_SUFFIX}")
}

fn empty() -> Refused {
    let message = "Nothing has happened in this session yet: there is nothing to branch from.";
    Refused::new(ErrorCode::ValidationError, message)
}

fn not_stored() -> Refused {
    let message = "What led to that event is not kept any more; choose a later one.";
    Refused::new(ErrorCode::NotFound, message)
}

fn storage_error(source: SessionId, error: &StoreError) -> Refused {
    tracing::error!(%error, session.id = %source, "a branch of this session cannot be made: storage failed");
    Refused::storage_unavailable()
}

#[cfg(test)]
mod tests;
