//! The session's event router: one task that owns state, current run and the link to the agent.
//!
//! The only writer of the journal. It hears two sides, those who ask and the agent, and everything
//! that comes of it is committed before anybody sees it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, hear};
use super::ask::{Ask, Effect, Refused, Request, recorded};
use super::failure::{Failure, moved_away, out_of_reach, unavailable};
use super::journal::{Journal, RecordError, Writer};
use super::scribe::Scribe;
use super::state::{Bounds, SessionState};
use super::{Parts, Stopping};
use crate::domain::code::Code;
use crate::domain::command::{Command, IfBusy, Prompt};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{MessageId, RunId, SessionId};
use crate::domain::run::RunOutcome;
use crate::runtime::{FromAgent, ToAgent};
use crate::store::{CommandRecord, Snapshot, StoreError, Summary};

/// A cancelled run that goes on is ended without its agent.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Events after which a new snapshot is worth its write.
const SNAPSHOT_EVERY: u64 = 2_000;
/// Between two attempts to commit what an agent said.
const RETRY: Duration = Duration::from_millis(500);
const PAGE: u32 = 500;
const DRAFT_REST: Duration = Duration::from_secs(5);

pub(super) struct Router {
    pub(super) id: SessionId,
    pub(super) agent_name: String,
    pub(super) journal: Journal,
    pub(super) writer: Writer,
    pub(super) parts: Arc<Parts>,
    pub(super) asks: mpsc::Receiver<Box<Ask>>,
    pub(super) state: SessionState,
    pub(super) bounds: Bounds,
    agent: Option<Agent>,
    scribe: Option<Scribe>,
    cancel_by: Option<Instant>,
    snapshot_at: u64,
    /// Until when the effect of the command at hand may begin.
    until: Option<Instant>,
}

/// The journal is not ours any more, or the gateway stops: the router ends.
struct Over;

impl Router {
    pub(super) fn new(
        id: SessionId,
        agent_name: String,
        journal: Journal,
        writer: Writer,
        parts: Arc<Parts>,
        asks: mpsc::Receiver<Box<Ask>>,
    ) -> Self {
        Self {
            id,
            agent_name,
            journal,
            writer,
            parts,
            asks,
            state: SessionState::default(),
            bounds: Bounds::default(),
            agent: None,
            scribe: None,
            cancel_by: None,
            snapshot_at: 0,
            until: None,
        }
    }

    /// Folds what is stored. A run that was under way lost its agent with the gateway that had it.
    pub(super) async fn recover(&mut self) -> Result<(), StoreError> {
        if let Some(snapshot) = self.parts.store.snapshot(self.id).await? {
            let head = self.journal.head();
            match serde_json::from_slice(&snapshot.body) {
                Ok(_) if snapshot.offset > head => {
                    tracing::error!(session.id = %self.id, "a snapshot is ahead of its journal");
                }
                Ok(state) => self.state = state,
                Err(error) => tracing::warn!(%error, "a snapshot cannot be read; folding anew"),
            }
        }
        self.snapshot_at = self.state.offset;
        loop {
            // What is kept, without a look at holes: a snapshot stood for what is missing.
            let page = self.journal.kept_after(self.state.offset, PAGE).await?;
            if page.is_empty() {
                // Whatever could not be read: the state stands for all there is.
                self.state.offset = self.journal.head();
                return Ok(());
            }
            for entry in &page {
                self.state.apply(&entry.recorded, &self.bounds);
            }
        }
    }

    /// Works until told to stop, fenced off, or nobody needs it.
    pub(super) async fn run(mut self, over: CancellationToken) {
        match self.run_inner(&over).await {
            Ok(()) => self.save_snapshot().await,
            Err(Over) => {
                tracing::info!(session.id = %self.id, "a session cannot be written here any more");
            }
        }
    }

    async fn run_inner(&mut self, over: &CancellationToken) -> Result<(), Over> {
        let Stopping { drain, stop } = self.parts.stopping.clone();
        if let Some(run) = self.state.live_run() {
            self.scribe = Some(Scribe::resumed(run.id, run.message, run.chunks));
            self.lose_run("The gateway was restarted while this run was under way; ask again.")
                .await?;
        }
        let mut batch = Vec::new();
        // Made once and polled again: waiting anew for each of these at every event would cost more
        // than the event.
        let mut over = pin!(over.cancelled());
        let mut stopped = pin!(stop.cancelled());
        let mut draining = pin!(drain.cancelled());
        loop {
            let rest_at = Instant::now() + self.patience();
            tokio::select! {
                biased;
                () = &mut over => return Ok(()),
                () = &mut stopped => {
                    self.lose_run("The gateway was stopped while this run was under way; ask again.").await?;
                    return Ok(());
                }
                // A run under way has its grace; whoever asks for another is told to come back.
                () = &mut draining, if self.scribe.is_none() => return Ok(()),
                // Those who ask come first: a cancel must not wait for a stream.
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.answer(*ask).await?,
                    None => return Ok(()),
                },
                heard = hear(&mut self.agent, &mut batch) => self.take_down(heard, &mut batch).await?,
                () = until(self.cancel_by) => self.end_stubborn_run().await?,
                () = tokio::time::sleep_until(rest_at), if self.scribe.is_none() => {
                    if self.parts.live.let_rest(self.id) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// How long it stays awake without a reason. One that nobody has used yet is not worth keeping.
    fn patience(&self) -> Duration {
        if self.writer.is_stored() {
            self.parts.idle
        } else {
            DRAFT_REST.min(self.parts.idle)
        }
    }

    async fn answer(&mut self, ask: Ask) -> Result<(), Over> {
        match ask {
            Ask::EndRun(reply) => {
                self.agent = None;
                self.end_run(RunOutcome::Cancelled).await?;
                reply.send(()).ok();
                Ok(())
            }
            Ask::State(reply) => {
                // Whoever asked may have left.
                drop(reply.send(self.state.clone()));
                Ok(())
            }
            // Nobody waits for the outcome any more: it was told to have failed.
            Ask::Command(_, _, reply) if reply.is_closed() => Ok(()),
            Ask::Command(_, _, reply) if self.parts.stopping.drain.is_cancelled() => {
                drop(reply.send(Err(Refused::new(
                    Code::Busy,
                    "The gateway is going down; come back in a moment.",
                ))));
                Ok(())
            }
            Ask::Command(request, until, reply) => {
                self.until = Some(until);
                let outcome = self.carry_out(request).await;
                let over = matches!(outcome, Err(Failure::Over));
                let told = outcome.map_err(|failure| match failure {
                    Failure::Refused(refused) => refused,
                    Failure::Over => moved_away(),
                });
                drop(reply.send(told));
                if over { Err(Over) } else { Ok(()) }
            }
        }
    }

    async fn carry_out(&mut self, request: Request) -> Result<Effect, Failure> {
        if let Some(effect) = self.effect_before(&request).await? {
            return Ok(effect);
        }
        let Request {
            command,
            message_id,
            once,
        } = request;
        match command {
            Command::SubmitPrompt { prompt, if_busy } => {
                self.submit(prompt, if_busy, message_id, once).await
            }
            Command::Cancel { run } => self.cancel(run, once).await,
            Command::UpdateSettings(change) => {
                let record = once.map(|once| recorded(once, None));
                self.record(&[Event::SettingsChanged(change)], None, record)
                    .await?;
                Ok(Effect::Done(None))
            }
        }
    }

    /// Has this command taken effect already?
    async fn effect_before(&self, request: &Request) -> Result<Option<Effect>, Failure> {
        let Some((key, digest)) = &request.once else {
            return Ok(None);
        };
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
            None => Ok(None),
            Some(record) if record.digest != *digest => Err(Failure::Refused(Refused::new(
                Code::ValidationError,
                "This idempotencyKey was used for another command.",
            ))),
            Some(record) => Ok(Some(Effect::DoneBefore(
                serde_json::from_slice(&record.outcome).unwrap_or_default(),
            ))),
        }
    }

    async fn submit(
        &mut self,
        prompt: Prompt,
        if_busy: IfBusy,
        correlation: Option<String>,
        once: Option<(String, [u8; 32])>,
    ) -> Result<Effect, Failure> {
        if self.scribe.is_some() {
            let hint = match if_busy {
                IfBusy::Queue => "This version does not queue prompts; wait for the run to end.",
                IfBusy::Refuse => "A run is under way.",
            };
            return Err(Failure::Refused(Refused::new(Code::Busy, hint)));
        }
        let run = RunId::new();
        let started = Event::RunStarted {
            run,
            prompt: prompt.clone(),
            message: MessageId::new(),
            correlation,
        };
        let summary = Summary {
            messages: self.state.message_count + 1,
            last_prompt: Some(prompt.text.chars().take(200).collect()),
            running: true,
            title: None,
        };
        let record = once.map(|once| recorded(once, Some(run)));
        self.record(&[started], Some(summary), record).await?;
        self.scribe = Some(Scribe::new(run));
        // Committed first: if the gateway dies from here on, the run is known and ends visibly.
        if let Err(message) = self.dispatch(run, prompt).await {
            self.lose_run(&message)
                .await
                .map_err(|Over| Failure::Over)?;
        }
        Ok(Effect::Done(Some(run)))
    }

    async fn dispatch(&mut self, run: RunId, prompt: Prompt) -> Result<(), String> {
        if self.agent.is_none() {
            let started = Agent::start(&self.agent_name, &self.parts);
            self.agent = Some(started.map_err(|error| error.to_string())?);
        }
        let agent = self.agent.as_ref().expect("it was started just now");
        let asked = agent.link.send(ToAgent::Prompt { run, prompt }).await;
        asked.map_err(|_| "The agent is gone; ask again.".to_owned())
    }

    async fn cancel(
        &mut self,
        wanted: Option<RunId>,
        once: Option<(String, [u8; 32])>,
    ) -> Result<Effect, Failure> {
        let live = self.scribe.as_ref().map(Scribe::run);
        let known = self.state.current.as_ref().map(|run| run.id);
        if wanted.is_some() && wanted != live && wanted != known {
            let none = Refused::new(Code::NotFound, "There is no such run.");
            return Err(Failure::Refused(none));
        }
        let target = live.filter(|live| wanted.is_none_or(|wanted| wanted == *live));
        if let Some(once) = once.filter(|_| self.writer.is_stored()) {
            let record = recorded(once, target.or(wanted));
            self.record(&[], None, Some(record)).await?;
        }
        if let Some(run) = target {
            self.cancel_by.get_or_insert(Instant::now() + CANCEL_GRACE);
            if let Some(agent) = &self.agent {
                // An agent that is gone is noticed by its silence.
                drop(agent.link.send(ToAgent::Cancel { run }).await);
            }
        }
        Ok(Effect::Done(target.or(wanted)))
    }

    /// Writes down what the agent said; nothing at all means that it is gone.
    async fn take_down(&mut self, heard: usize, batch: &mut Vec<FromAgent>) -> Result<(), Over> {
        if heard == 0 {
            self.agent = None;
            return self
                .lose_run("The agent ended unexpectedly; ask again.")
                .await;
        }
        let mut events = Vec::with_capacity(heard);
        for said in batch.drain(..) {
            if let Some(scribe) = &mut self.scribe {
                scribe.write(said, &mut events);
                if matches!(events.last(), Some(Event::RunEnded { .. })) {
                    self.scribe = None;
                    self.cancel_by = None;
                }
            }
        }
        self.record_surely(events).await
    }

    /// Ends the current run, if there is one, because its agent cannot.
    async fn lose_run(&mut self, message: &str) -> Result<(), Over> {
        let failed = RunOutcome::Failed {
            code: Code::ConnectionLost,
            message: message.to_owned(),
        };
        self.end_run(failed).await
    }

    async fn end_stubborn_run(&mut self) -> Result<(), Over> {
        // Dropping the link ends the agent: nothing more of this run can appear.
        self.agent = None;
        self.end_run(RunOutcome::Cancelled).await
    }

    async fn end_run(&mut self, outcome: RunOutcome) -> Result<(), Over> {
        self.cancel_by = None;
        let Some(mut scribe) = self.scribe.take() else {
            return Ok(());
        };
        let mut events = Vec::new();
        scribe.end(outcome, &mut events);
        self.record_surely(events).await
    }

    /// Commits the effect of a command, or nothing.
    async fn record(
        &mut self,
        events: &[Event],
        summary: Option<Summary>,
        record: Option<CommandRecord>,
    ) -> Result<(), Failure> {
        let at = self.parts.clock.wall();
        let recorded = self.writer.record(events, at, summary, record, self.until);
        match recorded.await {
            Ok(entries) => {
                for entry in entries {
                    self.state.apply(&entry.recorded, &self.bounds);
                }
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
    async fn record_surely(&mut self, events: Vec<Event>) -> Result<(), Over> {
        if events.is_empty() {
            return Ok(());
        }
        let at = self.parts.clock.wall();
        let summary = self.summary_after(&events, at);
        let entries = loop {
            let recorded = self.writer.record(&events, at, summary.clone(), None, None);
            match recorded.await {
                Ok(entries) => break entries,
                Err(RecordError::Store(error)) if self.is_worth_a_retry(&error) => {
                    self.excuse_until(Instant::now() + RETRY).await;
                }
                Err(_) => return Err(Over),
            }
        };
        for entry in entries {
            self.state.apply(&entry.recorded, &self.bounds);
        }
        if self.state.offset >= self.snapshot_at + SNAPSHOT_EVERY {
            self.save_snapshot().await;
        }
        Ok(())
    }

    /// Answers what can be answered while storage is away.
    async fn excuse_until(&mut self, moment: Instant) {
        while let Ok(asked) = tokio::time::timeout_at(moment, self.asks.recv()).await {
            match asked.map(|ask| *ask) {
                Some(Ask::State(reply)) => drop(reply.send(self.state.clone())),
                Some(Ask::Command(_, _, reply)) => drop(reply.send(Err(out_of_reach()))),
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
        Some(summary_of(&after))
    }

    /// Opening this session again will not have to read all of it.
    async fn save_snapshot(&mut self) {
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
    Summary {
        messages: state.message_count,
        last_prompt: state.last_user_message.clone(),
        title: state.title.clone(),
        running: state.live_run().is_some(),
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
