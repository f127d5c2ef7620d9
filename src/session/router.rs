//! Router: the one task of a session. Owns its state, its run and the link to its agent.
//!
//! The only writer of the journal. It takes commands from the mailbox and events from the agent; what
//! comes of either is committed before anyone sees it. This file is the loop and the list of
//! commands. A prompt goes `runs` → `commit` → `send_to_agent` → agent; an agent event goes
//! `agent_events` → `run_recorder` → `commit`.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::journal::{Journal, Writer};
use super::mailbox::{
    CommandError, CommandMeta, Refused, Reply, Request, SessionMessage, command_record,
};
use super::run_recorder::RunRecorder;
use super::running_agent::{AgentHandle, next_events};
use super::state::{Bounds, SessionState};
use super::{Parts, ShutdownTokens};
use crate::domain::command::{Command, SettingsChange};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Event;
use crate::domain::id::{MessageId, RunId, SessionId};
use crate::domain::queue::PromptKind;
use crate::domain::run::{FailureCause, RunOutcome};
use crate::runtime::{PromptContent, ToAgent};
use crate::store::StoreError;

mod agent_events;
mod agent_info;
mod commit;
mod follow_ups;
mod queries;
mod questions;
mod run_telemetry;
mod runs;
mod send_to_agent;
mod sender_recheck;
mod ui_contexts;

pub(super) use agent_info::AgentInfo;
use commit::Change;
use queries::PendingQueries;
use questions::QuestionDeadlines;
use run_telemetry::RunTelemetry;
use ui_contexts::UiContexts;

const RECOVERY_PAGE: u32 = 500;
/// A session that is about to end starts nothing for this long; if it has not ended by then, it goes on.
const ENDING_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle timeout of a session without an event.
const DRAFT_IDLE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Router {
    id: SessionId,
    agent_info: AgentInfo,
    journal: Journal,
    writer: Writer,
    parts: Arc<Parts>,
    mailbox: mpsc::Receiver<Box<SessionMessage>>,
    state: SessionState,
    bounds: Bounds,
    agent: Option<AgentHandle>,
    recorder: Option<RunRecorder>,
    /// The prompt of the run under way, until its agent says something about it: should the agent turn
    /// out never to have received it, the next one gets it.
    unconfirmed: Option<PromptContent>,
    /// Runs, each with a queued prompt that its agent was given to take up within it.
    handed_over: Vec<(RunId, RunId)>,
    /// When a run that is being cancelled is ended without its agent.
    cancel_by: Option<Instant>,
    snapshot_at: u64,
    /// Until when the effect of the current command may begin.
    command_deadline: Option<Instant>,
    ui_contexts: UiContexts,
    queries: PendingQueries,
    question_timeout: Option<Duration>,
    question_deadlines: QuestionDeadlines,
    /// Queued prompts start only after this: the session is about to end, or its agent cannot start.
    paused_until: Option<Instant>,
    /// Until when the session counts as about to end.
    ending_until: Option<Instant>,
    /// The agent took no messages any more and was dropped; its run is still to be ended.
    agent_unresponsive: bool,
    /// When the senders' rights, which could not be read, are asked for again.
    recheck_senders_at: Option<Instant>,
    telemetry: RunTelemetry,
}

/// The router lost its journal to another node, or the gateway stops: the router ends.
struct Terminated;

impl From<Terminated> for CommandError {
    fn from(Terminated: Terminated) -> Self {
        Self::Terminated
    }
}

impl Router {
    pub(super) fn new(
        agent_info: AgentInfo,
        journal: Journal,
        writer: Writer,
        parts: Arc<Parts>,
        mailbox: mpsc::Receiver<Box<SessionMessage>>,
    ) -> Self {
        let id = journal.session();
        let (metrics, tracer) = (Arc::clone(&parts.metrics), parts.tracer.clone());
        let telemetry = RunTelemetry::new(metrics, tracer, id, agent_info.name.clone());
        let of_agent = parts.catalog.question_timeout(&agent_info.name);
        Self {
            id,
            telemetry,
            agent_info,
            journal,
            writer,
            question_timeout: of_agent.into_iter().chain(parts.question_timeout).min(),
            parts,
            mailbox,
            state: SessionState::default(),
            bounds: Bounds::default(),
            agent: None,
            recorder: None,
            unconfirmed: None,
            handed_over: Vec::new(),
            cancel_by: None,
            snapshot_at: 0,
            command_deadline: None,
            ui_contexts: UiContexts::default(),
            queries: PendingQueries::default(),
            question_deadlines: QuestionDeadlines::default(),
            paused_until: None,
            ending_until: None,
            agent_unresponsive: false,
            recheck_senders_at: None,
        }
    }

    /// Folds the stored snapshot and the events after it.
    pub(super) async fn recover(&mut self) -> Result<(), StoreError> {
        if let Some(snapshot) = self.parts.store.snapshot(self.id).await? {
            let head = self.journal.head();
            match serde_json::from_slice(&snapshot.body) {
                Ok(_) if snapshot.offset > head => {
                    tracing::error!(session.id = %self.id, snapshot.offset, head, "a snapshot is ahead of its journal; folding the journal instead");
                }
                Ok(state) => self.state = state,
                Err(error) => {
                    tracing::warn!(%error, session.id = %self.id, "a snapshot cannot be read; folding the journal instead");
                }
            }
        }
        self.snapshot_at = self.state.offset;
        loop {
            // Holes are fine: a snapshot stood for what is missing.
            let page = self.journal.stored_after(self.state.offset, RECOVERY_PAGE);
            let page = page.await?;
            if page.is_empty() {
                // Also past events that could not be read.
                self.state.offset = self.journal.head();
                return Ok(());
            }
            for entry in &page {
                self.state.apply(&entry.recorded, &self.bounds);
            }
        }
    }

    /// Works until the session closes, the gateway stops, the journal is lost, or it is idle.
    pub(super) async fn run(mut self, closed: CancellationToken) {
        if let Err(Terminated) = self.run_inner(&closed).await {
            let run = self.live_run().map(tracing::field::display);
            tracing::info!(
                session.id = %self.id,
                agent = self.agent_info.name,
                user.id = %self.agent_info.owner,
                run.id = run,
                "the session's journal cannot be written here any more; its router ends"
            );
            return;
        }
        self.save_snapshot().await;
    }

    async fn run_inner(&mut self, closed: &CancellationToken) -> Result<(), Terminated> {
        let ShutdownTokens { drain, stop } = self.parts.shutdown.clone();
        self.resume_run().await?;
        let mut batch = Vec::new();
        // Made once and polled again: waiting anew for each of these at every event would cost more
        // than the event.
        let mut closed = pin!(closed.cancelled());
        let mut stopped = pin!(stop.cancelled());
        let mut draining = pin!(drain.cancelled());
        loop {
            self.check_in_doubt().await?;
            self.end_unresponsive_run().await?;
            self.close_session_questions().await?;
            self.start_next().await?;
            let idle_at = Instant::now() + self.idle_timeout();
            let expiry = self.next_question_deadline();
            let agent_idle_at = self.agent_idle_deadline();
            tokio::select! {
                biased;
                () = &mut closed => return Ok(()),
                // A run that only waits for answers is resumed after the restart.
                () = &mut stopped => {
                    if !self.is_waiting_for_answers() {
                        let message = "The gateway was stopped while this run was under way; ask again.";
                        self.fail_run(FailureCause::GatewayRestarted, message).await?;
                    }
                    return Ok(());
                }
                // A run under way may finish; commands are refused meanwhile.
                () = &mut draining, if self.recorder.is_none() || self.is_waiting_for_answers() => return Ok(()),
                // Commands before agent events: a cancel must not wait behind a stream.
                message = self.mailbox.recv() => match message {
                    Some(message) => self.handle(*message).await?,
                    None => return Ok(()),
                },
                count = next_events(&mut self.agent, &mut batch) => {
                    self.record_agent_events(count, &mut batch).await?;
                }
                () = sleep_until(self.cancel_by) => self.force_cancel().await?,
                () = sleep_until(expiry) => self.expire_questions().await?,
                () = sleep_until(self.recheck_senders_at) => self.senders_changed().await?,
                () = sleep_until(self.paused_until) => self.paused_until = None,
                // It resumes its conversation when it is needed again.
                () = sleep_until(agent_idle_at) => self.agent = None,
                () = tokio::time::sleep_until(idle_at), if self.recorder.is_none() => {
                    if self.parts.live.remove_if_idle(self.id) {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn idle_timeout(&self) -> Duration {
        if self.writer.is_stored() {
            self.parts.idle_timeout
        } else {
            DRAFT_IDLE_TIMEOUT.min(self.parts.idle_timeout)
        }
    }

    async fn handle(&mut self, message: SessionMessage) -> Result<(), Terminated> {
        match message {
            SessionMessage::EndRun(reply) => {
                let until = Some(Instant::now() + ENDING_TIMEOUT);
                (self.paused_until, self.ending_until) = (until, until);
                self.agent = None;
                self.end_run(RunOutcome::Cancelled, None).await?;
                reply.send(()).ok();
                Ok(())
            }
            SessionMessage::SendersChanged => self.senders_changed().await,
            SessionMessage::State(reply) => {
                drop(reply.send(self.state.clone()));
                Ok(())
            }
            SessionMessage::AgentRequest(request, start, key, reply) => {
                self.command_deadline = None;
                self.request_agent(request, start, key, reply).await
            }
            // The sender was told that the command failed.
            SessionMessage::Command(_, _, reply) if reply.is_closed() => Ok(()),
            SessionMessage::Command(_, _, reply) if self.parts.shutdown.drain.is_cancelled() => {
                drop(reply.send(Err(Refused::shutting_down())));
                Ok(())
            }
            SessionMessage::Command(request, until, reply) => {
                self.command_deadline = Some(until);
                let span = self.telemetry.begin_command(request.meta.trace);
                let outcome = self.carry_out(request).await;
                let is_terminated = matches!(outcome, Err(CommandError::Terminated));
                let outcome = outcome.map_err(|error| match error {
                    CommandError::Refused(refused) => refused,
                    CommandError::Terminated => Refused::session_moving(),
                });
                let refused = outcome.as_ref().err().map(|refused| refused.code.as_str());
                self.telemetry.end_command(span, refused);
                drop(reply.send(outcome));
                if is_terminated {
                    Err(Terminated)
                } else {
                    Ok(())
                }
            }
        }
    }

    async fn carry_out(&mut self, request: Request) -> Result<Reply, CommandError> {
        (request.meta.recheck)()?;
        if let Some(effect) = self.previous_effect(&request).await? {
            return Ok(effect);
        }
        let Request { command, meta } = request;
        match command {
            Command::SubmitPrompt { prompt, if_busy } => {
                self.submit(PromptKind::Prompt, prompt, if_busy, meta).await
            }
            Command::Steer { text } => self.steer(text, meta).await,
            Command::FollowUp { text } => self.follow_up(text, meta).await,
            Command::Suggest { text } => {
                self.check_quotas().await?;
                let suggested = Event::Suggested {
                    message: MessageId::new(),
                    by: meta.sender(),
                    text,
                };
                self.record_done(suggested, meta).await
            }
            Command::Cancel { run } => self.cancel(run, meta).await,
            Command::Withdraw { run } => self.withdraw(run, meta).await,
            Command::Answer { question, answer } => {
                self.answer_question(question, answer, meta).await
            }
            Command::SetQueueMode {
                steering,
                follow_up,
            } => self.set_queue_mode(steering, follow_up, meta).await,
            Command::UpdateSettings(change) => {
                self.check_settings(&change)?;
                let changed = Event::SettingsChanged(change.clone());
                let effect = self.record_done(changed, meta).await?;
                self.send_to_agent(ToAgent::Settings(change)).await;
                Ok(effect)
            }
            Command::SetTools { tools } => {
                self.require("setTools", "choose its tools")?;
                let changed = Event::ToolsChanged {
                    tools: tools.clone(),
                };
                let effect = self.record_done(changed, meta).await?;
                self.send_to_agent(ToAgent::Tools(tools)).await;
                Ok(effect)
            }
            Command::UpdateContext(context) => {
                self.check_context("payload")?;
                if let Some(key) = meta.idempotency_key.filter(|_| self.writer.is_stored()) {
                    let command = Some(command_record(key, &None::<RunId>));
                    self.record(Change::default().by(command)).await?;
                }
                self.ui_contexts.set(&meta.by.actor, context.clone());
                self.send_to_agent(ToAgent::Context(context)).await;
                Ok(Reply::Done(None))
            }
        }
    }

    /// Commits one event as the effect of a command without a run.
    async fn record_done(
        &mut self,
        event: Event,
        meta: CommandMeta,
    ) -> Result<Reply, CommandError> {
        let key = meta.idempotency_key;
        let command = key.map(|key| command_record(key, &None::<RunId>));
        self.record(Change::from(event).by(command)).await?;
        Ok(Reply::Done(None))
    }

    fn check_settings(&self, change: &SettingsChange) -> Result<(), Refused> {
        let catalog = &self.parts.catalog;
        let checked = catalog.check_settings(&self.agent_info.name, change);
        checked.map_err(|refused| {
            let field = format!("payload.settings.{}", refused.setting);
            let message = format!("`{field}` {}.", refused.fault);
            Refused::new(refused.code, message).about(field)
        })
    }

    /// Refuses a context that the agent would never see.
    fn check_context(&self, field: &str) -> Result<(), Refused> {
        let taken = self.require("context", "tell it where they are");
        taken.map_err(|refused| refused.about(field.to_owned()))
    }

    fn require(&self, capability: &str, what: &str) -> Result<(), Refused> {
        let name = &self.agent_info.name;
        if self.parts.catalog.is_able(name, capability) {
            return Ok(());
        }
        let message = format!("The agent `{name}` does not let clients {what}.");
        Err(Refused::new(ErrorCode::Unsupported, message))
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
