//! Commit: writes the router's changes to the journal. A command's effect is committed or refused;
//! what has happened already is retried until it is committed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::journal::RecordError;
use super::super::mailbox::{CommandError, Refused, Reply, Request, SessionMessage};
use super::super::state::SessionState;
use super::super::tail::Entry;
use super::{AgentInfo, Router, Terminated};
use crate::domain::audit::AuditEntry;
use crate::domain::command::Command;
use crate::domain::event::{Event, Recorded};
use crate::domain::idempotency::IdempotencyKey;
use crate::store::{CommandRecord, SessionSummary, Snapshot, StoreError};

const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Events after which a new snapshot is worth its write.
const SNAPSHOT_EVERY: u64 = 2_000;
/// How long the check after an in-doubt commit may hold up the next command.
const IN_DOUBT_CHECK_TIMEOUT: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Change {
    pub(super) events: Vec<Event>,
    /// The command whose effect it is, if it has an idempotency key.
    pub(super) command: Option<CommandRecord>,
    pub(super) acts: Vec<AuditEntry>,
}

impl From<Event> for Change {
    fn from(event: Event) -> Self {
        Self {
            events: vec![event],
            ..Self::default()
        }
    }
}

impl Change {
    pub(super) fn by(self, command: Option<CommandRecord>) -> Self {
        Self { command, ..self }
    }
}

impl Router {
    pub(super) async fn previous_effect(
        &self,
        request: &Request,
    ) -> Result<Option<Reply>, CommandError> {
        let Some(key) = &request.meta.idempotency_key else {
            return Ok(None);
        };
        let record = self.find_record(key).await?;
        Ok(record.map(|record| self.known_effect(&request.command, &record)))
    }

    /// The record stored under an idempotency key; refused if the key belongs to another command.
    pub(super) async fn find_record(
        &self,
        IdempotencyKey { key, digest }: &IdempotencyKey,
    ) -> Result<Option<CommandRecord>, CommandError> {
        if !self.writer.is_stored() {
            return Ok(None);
        }
        let found = self
            .parts
            .store
            .command(self.id, key)
            .await
            .map_err(|error| self.storage_error(&error))?;
        match found {
            Some(record) if record.idempotency_key.digest != *digest => {
                Err(Refused::key_reused().into())
            }
            // It took effect although this router was told that it failed: a new router has to read
            // the journal again.
            Some(_) if self.writer.is_in_doubt() => Err(CommandError::Terminated),
            found => Ok(found),
        }
    }

    fn known_effect(&self, command: &Command, record: &CommandRecord) -> Reply {
        if let Command::Answer { question, .. } = command
            && let Some(ended) = self.state.questions.ended(*question).cloned()
        {
            let accepted = true;
            return Reply::Resolved { ended, accepted };
        }
        Reply::Repeated(serde_json::from_slice(&record.outcome).unwrap_or_default())
    }

    /// After an in-doubt commit: if the journal has events that this router does not know, a new
    /// router has to read it again.
    pub(super) async fn check_in_doubt(&mut self) -> Result<(), Terminated> {
        if !self.writer.is_in_doubt() {
            return Ok(());
        }
        let look = self.journal.stored_after(self.journal.head(), 1);
        match tokio::time::timeout(IN_DOUBT_CHECK_TIMEOUT, look).await {
            Ok(Ok(unknown)) if !unknown.is_empty() => Err(Terminated),
            // Nothing, or storage does not answer: checked again before the next message.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Commits the effect of a command, all of it or nothing.
    pub(super) async fn record(&mut self, change: Change) -> Result<(), CommandError> {
        let at = self.parts.clock.wall();
        let summary = self.summary_after(&change.events, at);
        let Change {
            events,
            command,
            acts,
        } = change;
        let recorded =
            self.writer
                .record(&events, at, summary, command, acts, self.command_deadline);
        let committing = self.telemetry.commit_span(events.len());
        let recorded = recorded.await;
        drop(committing);
        match recorded {
            Ok(entries) => {
                self.apply(&entries);
                Ok(())
            }
            Err(RecordError::Store(error)) => Err(self.storage_error(&error)),
            Err(RecordError::Late) => Err(Refused::storage_unavailable().into()),
            Err(RecordError::Fenced | RecordError::Stopping) => Err(CommandError::Terminated),
        }
    }

    /// Commits what has happened already, and retries while storage is away: the agent waits meanwhile,
    /// and commands are refused. Folded only afterwards: the state is never ahead of the journal.
    pub(super) async fn record_with_retry(
        &mut self,
        events: Vec<Event>,
        acts: Vec<AuditEntry>,
    ) -> Result<(), Terminated> {
        if events.is_empty() && acts.is_empty() {
            return Ok(());
        }
        let at = self.parts.clock.wall();
        let summary = self.summary_after(&events, at);
        let entries = loop {
            let recorded =
                self.writer
                    .record(&events, at, summary.clone(), None, acts.clone(), None);
            match recorded.await {
                Ok(entries) => break entries,
                Err(RecordError::Store(error)) if self.is_worth_a_retry(&error) => {
                    self.answer_while_retrying(Instant::now() + RETRY_DELAY)
                        .await;
                }
                Err(_) => return Err(Terminated),
            }
        };
        self.apply(&entries);
        if self.state.offset >= self.snapshot_at + SNAPSHOT_EVERY {
            self.save_snapshot().await;
        }
        Ok(())
    }

    /// Logs why storage refused a command, where that becomes the sender's answer.
    fn storage_error(&self, error: &StoreError) -> CommandError {
        let AgentInfo { name, owner, .. } = &self.agent_info;
        let run = self.live_run().map(tracing::field::display);
        tracing::warn!(%error, session.id = %self.id, agent = name, user.id = %owner, run.id = run, "a command of this session was refused: storage failed");
        Refused::storage_unavailable().into()
    }

    fn apply(&mut self, entries: &[Arc<Entry>]) {
        for entry in entries {
            self.state.apply(&entry.recorded, &self.bounds);
            self.telemetry.observe(&entry.recorded.event);
        }
    }

    /// Handles the mailbox while storage is away: state is served, the rest refused.
    async fn answer_while_retrying(&mut self, moment: Instant) {
        while let Ok(message) = tokio::time::timeout_at(moment, self.mailbox.recv()).await {
            let unavailable = Refused::storage_unavailable;
            match message.map(|message| *message) {
                Some(SessionMessage::State(reply)) => drop(reply.send(self.state.clone())),
                Some(SessionMessage::Command(_, _, reply)) => {
                    drop(reply.send(Err(unavailable())));
                }
                Some(SessionMessage::AgentRequest(_, _, _, reply)) => {
                    drop(reply.send(Err(unavailable())));
                }
                // Asked again before a queued prompt starts.
                Some(SessionMessage::SendersChanged) => {}
                // Ended as soon as it can be recorded; the sender does not wait for that.
                Some(SessionMessage::EndRun(reply)) => {
                    self.cancel_by = Some(Instant::now());
                    drop(reply);
                }
                None => return tokio::time::sleep_until(moment).await,
            }
        }
    }

    fn is_worth_a_retry(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Unavailable(_)) && !self.parts.shutdown.stop.is_cancelled()
    }

    /// The session's row in lists once these events are committed. Chunks after the first change
    /// nothing in it, and they are most of all events.
    fn summary_after(&self, events: &[Event], at: Timestamp) -> Option<SessionSummary> {
        let is_chunk =
            |event: &Event| matches!(event.bare(), Event::MessageDelta { index: 1.., .. });
        if events.iter().all(is_chunk) {
            return None;
        }
        let mut after = self.state.clone();
        for (offset, event) in (after.offset + 1..).zip(events) {
            let event = event.clone();
            after.apply(&Recorded { offset, at, event }, &self.bounds);
        }
        let renames = |event: &Event| matches!(event.bare(), Event::TitleChanged { .. });
        let mut summary = summary_of(&after);
        // The owner may have renamed the session since the agent did.
        summary.title = summary.title.filter(|_| events.iter().any(renames));
        Some(summary)
    }

    /// Saves the state, so that the next activation need not fold the whole journal.
    pub(super) async fn save_snapshot(&mut self) {
        if self.state.offset == self.snapshot_at || !self.writer.is_stored() {
            return;
        }
        let body = serde_json::to_vec(&self.state).expect("the state is plain JSON");
        let snapshot = Snapshot {
            offset: self.state.offset,
            body,
        };
        match self.parts.store.save_snapshot(self.id, &snapshot).await {
            Ok(()) => self.snapshot_at = snapshot.offset,
            Err(error) => {
                tracing::warn!(%error, session.id = %self.id, "the session's snapshot was not saved");
            }
        }
    }
}

fn summary_of(state: &SessionState) -> SessionSummary {
    let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
    SessionSummary {
        messages: state.message_count,
        last_prompt: state.last_user_message.clone(),
        title: state.title.clone(),
        running: state.live_run().is_some(),
        waiting: count(state.questions.open.len()),
        queued: count(state.queue.entries.len()),
        // Filled in by the writer.
        added_bytes: 0,
    }
}
