//! Runs: one at a time per session; starts, queues, steers, cancels and ends them.

use std::time::Duration;

use tokio::time::Instant;
use tracing::Instrument as _;

use super::super::mailbox::{CommandError, CommandMeta, Refused, Reply, command_record};
use super::super::quotas::QuotaExceeded;
use super::super::run_recorder::{Batch, RunRecorder};
use super::commit::Change;
use super::questions::{resolved, resolver};
use super::send_to_agent::sentence;
use super::{AgentInfo, Router, Terminated};
use crate::domain::command::{IfBusy, Mode, Prompt};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Event;
use crate::domain::id::{MessageId, RunId};
use crate::domain::question::{OpenQuestion, Resolution};
use crate::domain::queue::{NextRun, PromptKind, Queue, QueueMode, QueuedPrompt};
use crate::domain::run::{FailureCause, RunOutcome};
use crate::runtime::{PromptContent, ToAgent};

/// Of all queued prompts together. Full: the next one is refused.
const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;
/// A cancelled run that goes on is ended without its agent after this.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// While the senders' rights cannot be read, queued prompts are held back for this long.
const SENDERS_RETRY_DELAY: Duration = Duration::from_millis(500);
/// After an agent could not be used, queued prompts are held back for this long.
const AGENT_RETRY_DELAY: Duration = Duration::from_secs(30);

impl Router {
    /// Starts a run for a prompt, or queues the prompt.
    pub(super) async fn submit(
        &mut self,
        kind: PromptKind,
        mut prompt: Prompt,
        if_busy: IfBusy,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        if self.is_ending() {
            let message = "The session is about to end; try again.";
            return Err(Refused::new(ErrorCode::Busy, message).into());
        }
        if prompt.context.is_some() {
            self.check_context("payload.context")?;
        } else {
            prompt.context = self.ui_contexts.of(&meta.by.actor);
        }
        self.check_quotas().await?;
        let run = RunId::new();
        self.telemetry.expect_run(run);
        let (by, sender) = (Some(meta.sender()), meta.by.actor.user());
        let key = meta.idempotency_key;
        let command = key.map(|key| command_record(key, &Some(run)));
        let queued = QueuedPrompt {
            run,
            kind,
            prompt,
            by,
            sender,
            correlation: meta.message_id,
        };
        if self.recorder.is_none() && self.state.queue.entries.is_empty() {
            self.check_agent_capacity()?;
            let next = NextRun {
                senders: sender.into_iter().collect(),
                first: queued,
                merged: Vec::new(),
            };
            self.record(Change::from(run_started(&next)).by(command))
                .await?;
            self.dispatch_run(next).await?;
            return Ok(Reply::Started(run));
        }
        self.check_queue(&queued, if_busy)?;
        let mut queue = self.state.queue.clone();
        queue.add(queued.clone());
        let updated = queue_updated(&queue, vec![queued]);
        self.record(Change::from(updated).by(command)).await?;
        Ok(Reply::Queued(run))
    }

    /// Submits a text in the mode of the run before.
    pub(super) async fn submit_text(
        &mut self,
        kind: PromptKind,
        text: String,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let current = self.state.current.as_ref();
        let prompt = Prompt::new(text, current.map_or(Mode::Act, |run| run.mode));
        match self.submit(kind, prompt, IfBusy::Queue, meta).await? {
            Reply::Started(run) => Ok(Reply::Done(Some(run))),
            other => Ok(other),
        }
    }

    /// Steers the run under way if its agent can, else queues the text before all other prompts.
    pub(super) async fn steer(
        &mut self,
        text: String,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let catalog = &self.parts.catalog;
        let name = &self.agent_info.name;
        let run = self.state.live_run();
        let can_steer = self.agent.is_some()
            && self.cancel_by.is_none()
            && run.is_some_and(|run| catalog.hears_steering(name, &run.prompt));
        if can_steer {
            self.check_quotas().await?;
        }
        let Some(recorder) = self.recorder.as_mut().filter(|_| can_steer) else {
            return self.submit_text(PromptKind::Steer, text, meta).await;
        };
        let (run, message) = (recorder.run(), recorder.user_message(text.clone()));
        let key = meta.idempotency_key;
        let command = key.map(|key| command_record(key, &Some(run)));
        self.record(Change::from(message).by(command)).await?;
        self.send_to_agent(ToAgent::Steer { run, text }).await;
        Ok(Reply::Done(Some(run)))
    }

    pub(super) async fn check_quotas(&self) -> Result<(), Refused> {
        let (parts, owner) = (&self.parts, self.agent_info.owner);
        let (is_first, usage) = (!self.writer.is_stored(), self.writer.usage());
        let checked = parts
            .quotas
            .check_prompt(parts.store.as_ref(), owner, is_first, usage);
        Ok(checked.await?)
    }

    /// Ends the run under way if its owner has reached a quota meanwhile.
    pub(super) async fn end_run_over_quota(&mut self) -> Result<(), Terminated> {
        let checked = self.parts.quotas.check_run(self.writer.usage());
        let (Err(exceeded), true) = (checked, self.recorder.is_some()) else {
            return Ok(());
        };
        self.agent = None;
        self.queries.fail_all();
        let outcome = RunOutcome::Failed {
            code: ErrorCode::ValidationError,
            message: exceeded.sentence(),
        };
        self.end_run(outcome, None).await
    }

    fn check_queue(&self, new: &QueuedPrompt, if_busy: IfBusy) -> Result<(), Refused> {
        let queue = &self.state.queue;
        if if_busy == IfBusy::Refuse {
            return Err(Refused::new(ErrorCode::Busy, "A run is under way."));
        }
        let (count, bytes) = (queue.entries.len() + 1, queue.bytes() + new.prompt.bytes());
        let full = |limit, max: usize, actual: usize| {
            let message = "Too many prompts wait already; try again when some are done.";
            let (max, actual) = (max as u64, actual as u64);
            Err(Refused {
                quota: Some(QuotaExceeded { limit, max, actual }),
                ..Refused::new(ErrorCode::RateLimited, message)
            })
        };
        if count > self.parts.queue_max {
            return full("queueMax", self.parts.queue_max, count);
        }
        if bytes > MAX_QUEUED_BYTES {
            return full("queueBytes", MAX_QUEUED_BYTES, bytes);
        }
        Ok(())
    }

    /// Refuses a prompt whose agent would have to start and cannot, because too many run.
    fn check_agent_capacity(&self) -> Result<(), Refused> {
        if self.agent.is_some() {
            return Ok(());
        }
        let (name, owner) = (&self.agent_info.name, self.agent_info.owner);
        let capacity = self.parts.catalog.has_room(name, owner, self.id);
        capacity.map_err(|full| Refused::new(full.code(), sentence(&full.to_string())))
    }

    /// Removes a prompt from the queue. Its run was accepted, so it gets an end.
    pub(super) async fn withdraw(
        &mut self,
        run: RunId,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let mut queue = self.state.queue.clone();
        if self.is_handed_over(run) && !self.is_live(run) {
            let message = "The agent has it already; cancel the run under way instead.";
            return Err(Refused::new(ErrorCode::ValidationError, message).into());
        }
        if !queue.withdraw(run) {
            return match self.is_known(run) {
                // Withdrawn twice, or too late to matter.
                true if !self.is_live(run) => Ok(Reply::Done(Some(run))),
                true => Err(Refused::new(
                    ErrorCode::ValidationError,
                    "That run has begun; cancel it instead.",
                )
                .into()),
                false => Err(no_such_run().into()),
            };
        }
        let ended = Event::RunEnded {
            run,
            outcome: RunOutcome::Cancelled,
            usage: None,
            cause: None,
            agent_error: None,
        };
        let key = meta.idempotency_key;
        let change = Change {
            events: vec![queue_updated(&queue, Vec::new()), ended],
            command: key.map(|key| command_record(key, &Some(run))),
            ..Change::default()
        };
        self.record(change).await?;
        Ok(Reply::Done(Some(run)))
    }

    pub(super) async fn set_queue_mode(
        &mut self,
        steering: Option<QueueMode>,
        follow_up: Option<QueueMode>,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let mut queue = self.state.queue.clone();
        queue.modes.steering = steering.unwrap_or(queue.modes.steering);
        queue.modes.follow_up = follow_up.unwrap_or(queue.modes.follow_up);
        let updated = queue_updated(&queue, Vec::new());
        let effect = self.record_done(updated, meta).await?;
        self.send_to_agent(ToAgent::QueueModes(queue.modes)).await;
        Ok(effect)
    }

    /// Cancels the run under way and its questions, or withdraws a queued run.
    pub(super) async fn cancel(
        &mut self,
        wanted: Option<RunId>,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let target = self
            .live_run()
            .filter(|_| wanted.is_none_or(|wanted| self.is_live(wanted)));
        if let Some(run) = wanted.filter(|_| target.is_none()) {
            let is_it = |queued: &QueuedPrompt| queued.run == run;
            if self.state.queue.entries.iter().any(is_it) {
                return self.withdraw(run, meta).await;
            }
            if !self.is_known(run) {
                return Err(no_such_run().into());
            }
        }
        let key = meta.idempotency_key;
        let command = key.map(|key| command_record(key, &target.or(wanted)));
        let questions = match target {
            Some(_) => self.state.questions.of_runs().cloned().collect(),
            None => Vec::new(),
        };
        let by = resolver(&meta.by);
        let cancelled =
            |open: &OpenQuestion| resolved(open, by.clone(), false, Resolution::Cancelled);
        let events: Vec<Event> = questions.iter().map(cancelled).collect();
        if !events.is_empty() || (command.is_some() && self.writer.is_stored()) {
            let change = Change {
                events,
                command,
                ..Change::default()
            };
            self.record(change).await?;
        }
        if let Some(run) = target {
            self.stop_run(run, questions).await;
        }
        Ok(Reply::Done(target.or(wanted)))
    }

    /// Tells the agent to stop the run under way, whose questions are recorded as cancelled.
    pub(super) async fn stop_run(&mut self, run: RunId, questions: Vec<OpenQuestion>) {
        self.cancel_by.get_or_insert(Instant::now() + CANCEL_GRACE);
        if let Some(recorder) = &mut self.recorder {
            recorder.cancel();
        }
        for open in questions {
            self.send_resolution(open.native_id, Resolution::Cancelled)
                .await;
        }
        self.send_to_agent(ToAgent::Cancel { run }).await;
    }

    /// Starts the next run from the queue, if none is under way.
    pub(super) async fn start_next(&mut self) -> Result<(), Terminated> {
        let is_draining = self.parts.shutdown.drain.is_cancelled();
        if self.recorder.is_some() || self.paused_until.is_some() || is_draining {
            return Ok(());
        }
        if self.state.queue.entries.is_empty() {
            return Ok(());
        }
        if !self.check_queued_senders().await? {
            self.paused_until = Some(Instant::now() + SENDERS_RETRY_DELAY);
            return Ok(());
        }
        let mut queue = self.state.queue.clone();
        let Some(next) = queue.take_next() else {
            return Ok(());
        };
        let events = vec![queue_updated(&queue, Vec::new()), run_started(&next)];
        self.record_with_retry(events, Vec::new()).await?;
        self.dispatch_run(next).await
    }

    /// Sends a committed run to the agent. Committed first: if the gateway dies from here on, the run
    /// is known and gets an end.
    async fn dispatch_run(&mut self, next: NextRun) -> Result<(), Terminated> {
        let NextRun { first, merged, .. } = next;
        let QueuedPrompt { run, prompt, .. } = first;
        self.recorder = Some(RunRecorder::new(run, merged));
        let prompt = PromptContent::from(prompt);
        self.unconfirmed = Some(prompt.clone());
        self.dispatch_prompt(run, prompt).await
    }

    /// Sends the prompt of the run under way to another agent: the one before ended without it.
    pub(super) async fn redispatch(&mut self, prompt: PromptContent) -> Result<(), Terminated> {
        self.agent = None;
        match self.live_run() {
            Some(_) if self.cancel_by.is_some() => self.end_run(RunOutcome::Cancelled, None).await,
            Some(run) => self.dispatch_prompt(run, prompt).await,
            None => Ok(()),
        }
    }

    async fn dispatch_prompt(
        &mut self,
        run: RunId,
        prompt: PromptContent,
    ) -> Result<(), Terminated> {
        let mut trace = self.telemetry.dispatch_span(self.agent.is_some());
        let span = self.run_span(run);
        let dispatched = self.dispatch(ToAgent::Prompt { run, prompt });
        let dispatched = dispatched.instrument(span).await;
        let Err(error) = dispatched else {
            return Ok(());
        };
        trace.fail(error.code().as_str());
        drop(trace);
        // The queued prompts must not fail one after the other.
        self.paused_until = Some(Instant::now() + AGENT_RETRY_DELAY);
        let (code, message) = (error.code(), error.message());
        let failed = RunOutcome::Failed { code, message };
        self.end_run(failed, error.cause()).await
    }

    /// Resumes the run that was under way when this session was last live, if it only waits for
    /// answers and its agent can resume; else the run has lost its agent and fails.
    pub(super) async fn resume_run(&mut self) -> Result<(), Terminated> {
        self.telemetry.resume(&self.state);
        let Some(run) = self.state.live_run().cloned() else {
            return Ok(());
        };
        self.recorder = Some(RunRecorder::resumed(&run, &self.state));
        if self.end_run_of_disabled_sender(&run.senders).await? {
            return Ok(());
        }
        if self.is_waiting_for_answers() {
            let resume = ToAgent::Resume {
                run: run.id,
                prompt: Prompt::new(run.prompt, run.mode).into(),
                questions: self.state.questions.of_runs().cloned().collect(),
            };
            let span = self.run_span(run.id);
            if self.dispatch(resume).instrument(span).await.is_ok() {
                return Ok(());
            }
        }
        self.fail_run(
            FailureCause::GatewayRestarted,
            "The gateway was restarted while this run was under way; ask again.",
        )
        .await
    }

    /// True if the run does nothing but wait for answers, and its agent can resume it after a restart.
    pub(super) fn is_waiting_for_answers(&self) -> bool {
        self.state.questions.of_runs().next().is_some()
            && self.recorder.as_ref().is_some_and(RunRecorder::is_quiet)
            && self.cancel_by.is_none()
            && self.parts.catalog.can_resume(&self.agent_info.name)
    }

    /// Ends the run under way, if any, because its agent cannot.
    pub(super) async fn fail_run(
        &mut self,
        cause: FailureCause,
        message: &str,
    ) -> Result<(), Terminated> {
        let failed = RunOutcome::Failed {
            code: ErrorCode::ConnectionLost,
            message: message.to_owned(),
        };
        self.end_run(failed, Some(cause)).await
    }

    /// Ends a cancelled run whose agent goes on.
    pub(super) async fn force_cancel(&mut self) -> Result<(), Terminated> {
        // Dropping the handle ends the agent: no more events of this run can come.
        self.agent = None;
        self.queries.fail_all();
        self.end_run(RunOutcome::Cancelled, None).await
    }

    pub(super) async fn end_run(
        &mut self,
        outcome: RunOutcome,
        cause: Option<FailureCause>,
    ) -> Result<(), Terminated> {
        self.cancel_by = None;
        self.unconfirmed = None;
        let Some(recorder) = self.recorder.take() else {
            return Ok(());
        };
        let mut batch = Batch::new(&self.state.questions.open);
        recorder.end(&outcome, cause, &mut batch);
        self.record_with_retry(batch.events, Vec::new()).await
    }

    /// Entered for the dispatch only: entering it for every agent event would cost too much. Names the
    /// session again, because a log line shows the fields of its innermost span only.
    fn run_span(&self, run: RunId) -> tracing::Span {
        let AgentInfo { name, owner, .. } = &self.agent_info;
        tracing::info_span!("run", run.id = %run, session.id = %self.id, agent = name, user.id = %owner)
    }

    pub(super) fn live_run(&self) -> Option<RunId> {
        self.recorder.as_ref().map(RunRecorder::run)
    }

    /// True for the run under way and for the queued runs that became part of it.
    fn is_live(&self, run: RunId) -> bool {
        let Some(live) = self.live_run() else {
            return false;
        };
        let current = self.state.current.as_ref();
        live == run
            || current.is_some_and(|current| current.id == live && current.merged.contains(&run))
    }

    fn is_ending(&self) -> bool {
        self.ending_until
            .is_some_and(|until| Instant::now() < until)
    }

    /// True for the current run and the most recent past ones.
    fn is_known(&self, run: RunId) -> bool {
        let current = self.state.current.as_ref();
        current.is_some_and(|current| current.id == run) || self.state.past_runs.contains(&run)
    }
}

fn run_started(next: &NextRun) -> Event {
    let first = &next.first;
    Event::RunStarted {
        run: first.run,
        prompt: first.prompt.clone(),
        message: MessageId::new(),
        correlation: first.correlation.clone(),
        by: first.by.clone(),
        senders: next.senders.clone(),
        merged: next.merged.clone(),
    }
}

pub(super) fn queue_updated(queue: &Queue, added: Vec<QueuedPrompt>) -> Event {
    Event::QueueUpdated {
        entries: queue.summary(),
        modes: queue.modes,
        added,
        joined: Vec::new(),
    }
}

fn no_such_run() -> Refused {
    Refused::new(ErrorCode::NotFound, "There is no such run.")
}
