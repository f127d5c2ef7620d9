//! How a router commits: the effect of a command or nothing, what has happened in any case.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::super::ask::{Ask, Effect, Refused, Request};
use super::super::failure::{Failure, out_of_reach, unavailable};
use super::super::journal::RecordError;
use super::super::state::SessionState;
use super::super::tail::Entry;
use super::{Over, RETRY, Router, SNAPSHOT_EVERY};
use crate::domain::act::Act;
use crate::domain::code::Code;
use crate::domain::command::Command;
use crate::domain::event::{Event, Recorded};
use crate::store::{CommandRecord, Snapshot, StoreError, Summary};

/// How long a look into the journal may hold up the next command.
const GLANCE: Duration = Duration::from_millis(100);

/// What one commit changes.
#[derive(Default)]
pub(super) struct Change {
    /// What happened.
    pub(super) events: Vec<Event>,
    /// The command whose first effect it is.
    pub(super) command: Option<CommandRecord>,
    /// What the audit log says.
    pub(super) acts: Vec<Act>,
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
    /// The same, as the first effect of a command.
    pub(super) fn by(self, command: Option<CommandRecord>) -> Self {
        Self { command, ..self }
    }
}

impl Router {
    /// Has this command taken effect already?
    pub(super) async fn effect_before(&self, request: &Request) -> Result<Option<Effect>, Failure> {
        let Some(once) = &request.sent.once else {
            return Ok(None);
        };
        let record = self.recorded_before(once).await?;
        Ok(record.map(|record| self.known_effect(&request.command, &record)))
    }

    /// What is recorded under a key.
    pub(super) async fn recorded_before(
        &self,
        (key, digest): &(String, [u8; 32]),
    ) -> Result<Option<CommandRecord>, Failure> {
        if !self.writer.is_stored() {
            return Ok(None);
        }
        let found = self
            .parts
            .store
            .command(self.id, key)
            .await
            .map_err(|error| unavailable(&error))?;
        match found {
            Some(record) if record.digest != *digest => Err(Failure::Refused(Refused::new(
                Code::ValidationError,
                "This idempotencyKey was used for another command.",
            ))),
            // It took effect, but this router was told that it failed: whoever reads the journal anew
            // knows better.
            Some(_) if self.writer.is_unsure() => Err(Failure::Over),
            found => Ok(found),
        }
    }

    fn known_effect(&self, command: &Command, record: &CommandRecord) -> Effect {
        if let Command::Answer { question, .. } = command
            && let Some(ended) = self.state.questions.ended(*question).cloned()
        {
            let accepted = true;
            return Effect::Resolved { ended, accepted };
        }
        Effect::DoneBefore(serde_json::from_slice(&record.outcome).unwrap_or_default())
    }

    /// After a commit whose answer was lost: is something in the journal that this router does not
    /// know? Then it is not the one to go on.
    pub(super) async fn look_behind(&mut self) -> Result<(), Over> {
        if !self.writer.is_unsure() {
            return Ok(());
        }
        // Not for long: those who ask wait meanwhile.
        let look = self.journal.kept_after(self.journal.head(), 1);
        match tokio::time::timeout(GLANCE, look).await {
            Ok(Ok(unknown)) if !unknown.is_empty() => Err(Over),
            // Nothing, or nothing to be known yet: asked again at the next turn.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Commits the effect of a command, or nothing.
    pub(super) async fn record(&mut self, change: Change) -> Result<(), Failure> {
        let at = self.parts.clock.wall();
        let summary = self.summary_after(&change.events, at);
        let Change {
            events,
            command,
            acts,
        } = change;
        let recorded = self
            .writer
            .record(&events, at, summary, command, acts, self.until);
        let committing = self.watch.commits(events.len());
        let recorded = recorded.await;
        drop(committing);
        match recorded {
            Ok(entries) => {
                self.take_in(&entries);
                Ok(())
            }
            Err(RecordError::Store(error)) => Err(unavailable(&error)),
            Err(RecordError::Late) => Err(Failure::Refused(out_of_reach())),
            Err(RecordError::Fenced | RecordError::Stopping) => Err(Failure::Over),
        }
    }

    /// Commits what has happened already, however long it takes: meanwhile the agent waits, and those
    /// who want a change are told that storage is unavailable. Folded only afterwards:
    /// the state never knows more than the journal.
    pub(super) async fn record_surely(
        &mut self,
        events: Vec<Event>,
        acts: Vec<Act>,
    ) -> Result<(), Over> {
        if events.is_empty() {
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
                    self.excuse_until(Instant::now() + RETRY).await;
                }
                Err(_) => return Err(Over),
            }
        };
        self.take_in(&entries);
        if self.state.offset >= self.snapshot_at + SNAPSHOT_EVERY {
            self.save_snapshot().await;
        }
        Ok(())
    }

    /// What was committed is the state from now on.
    fn take_in(&mut self, entries: &[Arc<Entry>]) {
        for entry in entries {
            self.state.apply(&entry.recorded, &self.bounds);
            self.watch.sees(&entry.recorded.event);
        }
    }

    /// Answers what can be answered while storage is away.
    async fn excuse_until(&mut self, moment: Instant) {
        while let Ok(asked) = tokio::time::timeout_at(moment, self.asks.recv()).await {
            match asked.map(|ask| *ask) {
                Some(Ask::State(reply)) => drop(reply.send(self.state.clone())),
                Some(Ask::Command(_, _, reply)) => drop(reply.send(Err(out_of_reach()))),
                Some(Ask::Inquire(_, _, _, reply)) => drop(reply.send(Err(out_of_reach()))),
                // As soon as it can be recorded; its sender does not wait for ever.
                Some(Ask::EndRun(reply)) => {
                    self.cancel_by = Some(Instant::now());
                    drop(reply);
                }
                None => return tokio::time::sleep_until(moment).await,
            }
        }
    }

    fn is_worth_a_retry(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Unavailable(_)) && !self.parts.stopping.stop.is_cancelled()
    }

    /// What lists show once these events are committed. Pieces of text change nothing of it, and
    /// they are most of what there is.
    fn summary_after(&self, events: &[Event], at: Timestamp) -> Option<Summary> {
        let is_piece = |event: &Event| matches!(event, Event::MessageDelta { index: 1.., .. });
        if events.iter().all(is_piece) {
            return None;
        }
        let mut after = self.state.clone();
        for (offset, event) in (after.offset + 1..).zip(events) {
            let event = event.clone();
            after.apply(&Recorded { offset, at, event }, &self.bounds);
        }
        let named = |event: &Event| matches!(event, Event::TitleChanged { .. });
        let mut summary = summary_of(&after);
        // Somebody may have renamed it since the agent did.
        summary.title = summary.title.filter(|_| events.iter().any(named));
        Some(summary)
    }

    /// Opening this session again will not have to read all of it.
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
            Err(error) => tracing::warn!(%error, session.id = %self.id, "no snapshot was saved"),
        }
    }
}

fn summary_of(state: &SessionState) -> Summary {
    let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
    Summary {
        messages: state.message_count,
        last_prompt: state.last_user_message.clone(),
        title: state.title.clone(),
        running: state.live_run().is_some(),
        waiting: count(state.questions.open.len()),
        queued: count(state.queue.entries.len()),
    }
}
