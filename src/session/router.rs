//! The session's event router: one task that owns state, current run and the link to the agent.
//!
//! The only writer of the journal. It hears two sides, those who ask and the agent, and everything
//! that comes of it is committed before anybody sees it. Here is the loop; `turns` is whose turn it
//! is, `dispatch` how the agent is told, `counterpart` what is known of it, `questions` what the agent
//! asks, `inquiries` what the agent is asked, `records` how things are committed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::agent::{Agent, hear};
use super::ask::{Ask, Effect, Refused, Request, recorded};
use super::failure::{Failure, moved_away};
use super::journal::{Journal, Writer};
use super::scribe::Scribe;
use super::state::{Bounds, SessionState};
use super::{Parts, Stopping};
use crate::domain::code::Code;
use crate::domain::command::{Command, SettingsChange};
use crate::domain::event::Event;
use crate::domain::id::{MessageId, QuestionId, SessionId};
use crate::domain::queue::Waiting;
use crate::domain::run::RunOutcome;
use crate::runtime::ToAgent;
use crate::store::StoreError;

mod contexts;
mod counterpart;
mod dispatch;
mod inquiries;
mod questions;
mod records;
mod turns;
mod watch;

use contexts::Contexts;
pub(super) use counterpart::Counterpart;
use inquiries::Inquiries;
use records::Change;
use watch::Watch;

/// A cancelled run that goes on is ended without its agent.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Events after which a new snapshot is worth its write.
const SNAPSHOT_EVERY: u64 = 2_000;
/// Between two attempts to commit what an agent said.
const RETRY: Duration = Duration::from_millis(500);
const PAGE: u32 = 500;
/// A session that is about to end begins nothing for so long; if it has not ended by then, it goes on.
const ENDING: Duration = Duration::from_secs(5);
const DRAFT_REST: Duration = Duration::from_secs(5);

pub(super) struct Router {
    pub(super) id: SessionId,
    counterpart: Counterpart,
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
    /// Where its users are, as each has last told. Not recorded: it changes with every click.
    contexts: Contexts,
    inquiries: Inquiries,
    /// When the questions that wait count as denied, by a clock that does not jump.
    deadlines: HashMap<QuestionId, Instant>,
    /// Nothing that waits begins before this: the session is about to end, or its agent cannot be
    /// started.
    paused: Option<Instant>,
    /// Until when the session counts as about to end.
    ending: Option<Instant>,
    /// The agent did not listen any more, and was given up.
    given_up: bool,
    watch: Watch,
}

/// The journal is not ours any more, or the gateway stops: the router ends.
struct Over;

impl Router {
    pub(super) fn new(
        id: SessionId,
        counterpart: Counterpart,
        journal: Journal,
        writer: Writer,
        parts: Arc<Parts>,
        asks: mpsc::Receiver<Box<Ask>>,
    ) -> Self {
        let (metrics, tracer) = (Arc::clone(&parts.metrics), parts.tracer.clone());
        let watch = Watch::new(metrics, tracer, id, counterpart.name.clone());
        Self {
            id,
            watch,
            counterpart,
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
            contexts: Contexts::default(),
            inquiries: Inquiries::default(),
            deadlines: HashMap::new(),
            paused: None,
            ending: None,
            given_up: false,
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
                Err(error) => {
                    tracing::warn!(%error, session.id = %self.id, "a snapshot cannot be read; folding anew");
                }
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
        self.take_up().await?;
        let mut batch = Vec::new();
        // Made once and polled again: waiting anew for each of these at every event would cost more
        // than the event.
        let mut over = pin!(over.cancelled());
        let mut stopped = pin!(stop.cancelled());
        let mut draining = pin!(drain.cancelled());
        loop {
            self.look_behind().await?;
            self.give_up_deaf_agent().await?;
            self.begin_next().await?;
            let rest_at = Instant::now() + self.patience();
            let expiry = self.next_expiry();
            let agent_rest = self.agent_rest();
            tokio::select! {
                biased;
                () = &mut over => return Ok(()),
                // A run that only waits for a human is taken up again after the restart.
                () = &mut stopped => {
                    if self.only_waits() {
                        return Ok(());
                    }
                    self.lose_run("The gateway was stopped while this run was under way; ask again.").await?;
                    return Ok(());
                }
                // A run under way has its grace; whoever asks for another is told to come back.
                () = &mut draining, if self.scribe.is_none() || self.only_waits() => return Ok(()),
                // Those who ask come first: a cancel must not wait for a stream.
                ask = self.asks.recv() => match ask {
                    Some(ask) => self.answer(*ask).await?,
                    None => return Ok(()),
                },
                heard = hear(&mut self.agent, &mut batch) => self.take_down(heard, &mut batch).await?,
                () = until(self.cancel_by) => self.end_stubborn_run().await?,
                () = until(expiry) => self.expire().await?,
                () = until(self.paused) => self.paused = None,
                // It goes on with its conversation when it is needed again.
                () = until(agent_rest) => self.agent = None,
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
                let until = Some(Instant::now() + ENDING);
                (self.paused, self.ending) = (until, until);
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
            Ask::Inquire(inquiry, wake, once, reply) => {
                self.until = None;
                self.inquire(inquiry, wake, once, reply).await
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
                let span = self.watch.takes(request.sent.trace);
                let outcome = self.carry_out(request).await;
                let over = matches!(outcome, Err(Failure::Over));
                let told = outcome.map_err(|failure| match failure {
                    Failure::Refused(refused) => refused,
                    Failure::Over => moved_away(),
                });
                let refused = told.as_ref().err().map(|refused| refused.code.as_str());
                self.watch.is_done(span, refused);
                drop(reply.send(told));
                if over { Err(Over) } else { Ok(()) }
            }
        }
    }

    async fn carry_out(&mut self, request: Request) -> Result<Effect, Failure> {
        (request.sent.still)().map_err(Failure::Refused)?;
        if let Some(effect) = self.effect_before(&request).await? {
            return Ok(effect);
        }
        let Request { command, sent } = request;
        match command {
            Command::SubmitPrompt { prompt, if_busy } => {
                self.submit(Waiting::Prompt, prompt, if_busy, sent).await
            }
            Command::Steer { text } => self.say_aside(Waiting::Steer, text, sent).await,
            Command::FollowUp { text } => self.say_aside(Waiting::FollowUp, text, sent).await,
            Command::Suggest { text } => {
                let suggested = Event::Suggested {
                    message: MessageId::new(),
                    by: sent.name(),
                    text,
                };
                let command = sent.once.map(|once| recorded(once, None));
                self.record(Change::from(suggested).by(command)).await?;
                Ok(Effect::Done(None))
            }
            Command::Cancel { run } => self.cancel(run, sent).await,
            Command::Withdraw { run } => self.withdraw(run, sent).await,
            Command::Answer { question, answer } => {
                self.answer_question(question, answer, sent).await
            }
            Command::SetQueueMode {
                steering,
                follow_up,
            } => self.set_queue_mode(steering, follow_up, sent).await,
            Command::UpdateSettings(change) => {
                self.check(&change)?;
                let changed = Event::SettingsChanged(change.clone());
                let command = sent.once.map(|once| recorded(once, None));
                self.record(Change::from(changed).by(command)).await?;
                self.tell(ToAgent::Settings(change)).await;
                Ok(Effect::Done(None))
            }
            Command::SetTools { tools } => {
                self.needs("setTools", "choose its tools")?;
                let changed = Event::ToolsChanged {
                    tools: tools.clone(),
                };
                let command = sent.once.map(|once| recorded(once, None));
                self.record(Change::from(changed).by(command)).await?;
                self.tell(ToAgent::Tools(tools)).await;
                Ok(Effect::Done(None))
            }
            Command::UpdateContext(context) => {
                if let Some(once) = sent.once.filter(|_| self.writer.is_stored()) {
                    let command = Some(recorded(once, None));
                    self.record(Change::default().by(command)).await?;
                }
                self.contexts.set(&sent.by.actor, context.clone());
                self.tell(ToAgent::Context(context)).await;
                Ok(Effect::Done(None))
            }
        }
    }

    /// Does the agent allow these settings?
    fn check(&self, change: &SettingsChange) -> Result<(), Failure> {
        let catalog = &self.parts.catalog;
        let complaint = catalog.complaint(&self.counterpart.name, change);
        complaint.map_or(Ok(()), |(setting, fault)| {
            let message = format!("`payload.settings.{setting}` {fault}.");
            let refused = Refused::new(Code::ValidationError, message);
            Err(Failure::Refused(refused))
        })
    }

    /// Can the agent do this at all?
    fn needs(&self, capability: &str, what: &str) -> Result<(), Failure> {
        let name = &self.counterpart.name;
        if self.parts.catalog.is_able(name, capability) {
            return Ok(());
        }
        let message = format!("The agent `{name}` does not let clients {what}.");
        let refused = Refused::new(Code::Unsupported, message);
        Err(Failure::Refused(refused))
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
