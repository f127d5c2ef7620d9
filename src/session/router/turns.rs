//! Whose turn it is: one run at a time, and a queue of those that wait.

use std::time::Duration;

use tokio::time::Instant;

use super::super::ask::{Effect, Refused, Sent, recorded};
use super::super::decision;
use super::super::failure::Failure;
use super::super::scribe::{Notes, Rules, Scribe, beside_runs};
use super::super::state::CurrentRun;
use super::dispatch::sentence;
use super::records::Change;
use super::{CANCEL_GRACE, Over, Router};
use crate::domain::act::By;
use crate::domain::code::Code;
use crate::domain::command::{IfBusy, Mode, Prompt};
use crate::domain::event::Event;
use crate::domain::id::{MessageId, RunId};
use crate::domain::question::{OpenQuestion, Resolution};
use crate::domain::queue::{Queue, Queued, Take, Turn, Waiting};
use crate::domain::run::RunOutcome;
use crate::runtime::{FromAgent, ToAgent};

/// So many prompts may wait, and so many bytes of them. More: the next is refused.
const QUEUE: usize = 50;
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// After an agent could not be used, what waits is held back for so long.
const AGENT_REST: Duration = Duration::from_secs(30);

impl Router {
    /// Begins with a prompt, or lets it wait for its turn.
    pub(super) async fn submit(
        &mut self,
        why: Waiting,
        mut prompt: Prompt,
        if_busy: IfBusy,
        sent: Sent,
    ) -> Result<Effect, Failure> {
        if self.is_ending() {
            let ending = Refused::new(Code::Busy, "The session is about to end; try again.");
            return Err(Failure::Refused(ending));
        }
        if prompt.context.is_none() {
            prompt.context = self.contexts.of(&sent.by.actor);
        }
        let run = RunId::new();
        self.watch.expects(run);
        let by = Some(sent.name());
        let command = sent.once.map(|once| recorded(once, Some(run)));
        let queued = Queued {
            run,
            why,
            prompt,
            by,
            correlation: sent.message_id,
        };
        if self.scribe.is_none() && self.state.queue.entries.is_empty() {
            self.needs_room()?;
            let turn = Turn {
                first: queued,
                merged: Vec::new(),
            };
            self.record(Change::from(started(&turn)).by(command))
                .await?;
            self.begin(turn).await.map_err(|Over| Failure::Over)?;
            return Ok(Effect::Begun(run));
        }
        let queue = &self.state.queue;
        let busy = |message: &str| Err(Failure::Refused(Refused::new(Code::Busy, message)));
        if if_busy == IfBusy::Refuse {
            return busy("A run is under way.");
        }
        if queue.entries.len() >= QUEUE || queue.bytes() + queued.prompt.bytes() > QUEUE_BYTES {
            return busy("Too many prompts wait already; try again when some are done.");
        }
        let mut queue = queue.clone();
        queue.add(queued.clone());
        let updated = updated(&queue, vec![queued]);
        self.record(Change::from(updated).by(command)).await?;
        Ok(Effect::Queued(run))
    }

    /// Something said to the agent on the way: in the mode of the prompt before.
    pub(super) async fn say_aside(
        &mut self,
        why: Waiting,
        text: String,
        sent: Sent,
    ) -> Result<Effect, Failure> {
        if why == Waiting::Steer && self.hears_steering() {
            return self.steer(text, sent).await;
        }
        let current = self.state.current.as_ref();
        let prompt = Prompt::new(text, current.map_or(Mode::Act, |run| run.mode));
        match self.submit(why, prompt, IfBusy::Queue, sent).await? {
            Effect::Begun(run) => Ok(Effect::Done(Some(run))),
            other => Ok(other),
        }
    }

    /// Is there room for the agent, if it has to be started?
    fn needs_room(&self) -> Result<(), Failure> {
        if self.agent.is_some() {
            return Ok(());
        }
        let (name, owner) = (&self.counterpart.name, self.counterpart.owner);
        let room = self.parts.catalog.has_room(name, owner, self.id);
        room.map_err(|full| {
            Failure::Refused(Refused::new(full.code(), sentence(&full.to_string())))
        })
    }

    /// Can the agent be spoken to in the middle of its run?
    fn hears_steering(&self) -> bool {
        let goes_on = self.scribe.is_some() && self.agent.is_some() && self.cancel_by.is_none();
        goes_on && self.parts.catalog.hears_steering(&self.counterpart.name)
    }

    /// Says something to the run under way; recorded first, as everything that is said.
    async fn steer(&mut self, text: String, sent: Sent) -> Result<Effect, Failure> {
        let Some(scribe) = &mut self.scribe else {
            return Ok(Effect::Done(None));
        };
        let (run, said) = (scribe.run(), scribe.said_by_user(text.clone()));
        let command = sent.once.map(|once| recorded(once, Some(run)));
        self.record(Change::from(said).by(command)).await?;
        self.tell(ToAgent::Steer { run, text }).await;
        Ok(Effect::Done(Some(run)))
    }

    pub(super) async fn withdraw(&mut self, run: RunId, sent: Sent) -> Result<Effect, Failure> {
        let mut queue = self.state.queue.clone();
        if !queue.withdraw(run) {
            return match self.knows(run) {
                // Said twice, or too late to matter.
                true if !self.is_live(run) => Ok(Effect::Done(Some(run))),
                true => Err(Failure::Refused(Refused::new(
                    Code::ValidationError,
                    "That run has begun; cancel it instead.",
                ))),
                false => Err(no_such_run()),
            };
        }
        let command = sent.once.map(|once| recorded(once, Some(run)));
        // It was accepted, so it has an end.
        let ended = Event::RunEnded {
            run,
            outcome: RunOutcome::Cancelled,
            usage: None,
        };
        let change = Change {
            events: vec![updated(&queue, Vec::new()), ended],
            command,
            ..Change::default()
        };
        self.record(change).await?;
        Ok(Effect::Done(Some(run)))
    }

    pub(super) async fn set_queue_mode(
        &mut self,
        steering: Option<Take>,
        follow_up: Option<Take>,
        sent: Sent,
    ) -> Result<Effect, Failure> {
        let mut queue = self.state.queue.clone();
        queue.modes.steering = steering.unwrap_or(queue.modes.steering);
        queue.modes.follow_up = follow_up.unwrap_or(queue.modes.follow_up);
        let command = sent.once.map(|once| recorded(once, None));
        let (updated, modes) = (updated(&queue, Vec::new()), queue.modes);
        self.record(Change::from(updated).by(command)).await?;
        self.tell(ToAgent::QueueModes(modes)).await;
        Ok(Effect::Done(None))
    }

    pub(super) async fn cancel(
        &mut self,
        wanted: Option<RunId>,
        sent: Sent,
    ) -> Result<Effect, Failure> {
        let target = self
            .live_run()
            .filter(|_| wanted.is_none_or(|wanted| self.is_live(wanted)));
        if let Some(run) = wanted.filter(|_| target.is_none()) {
            let waits = |queued: &Queued| queued.run == run;
            if self.state.queue.entries.iter().any(waits) {
                return self.withdraw(run, sent).await;
            }
            if !self.knows(run) {
                return Err(no_such_run());
            }
        }
        let command = sent.once.map(|once| recorded(once, target.or(wanted)));
        let questions = if target.is_some() {
            self.state.questions.open.clone()
        } else {
            Vec::new()
        };
        let resolver = super::questions::resolver(&sent.by);
        let cancelled = |open: &OpenQuestion| Event::QuestionResolved {
            question: open.id,
            run: open.run,
            by: resolver.clone(),
            granted: false,
            resolution: Resolution::Cancelled,
        };
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
            self.cancel_by.get_or_insert(Instant::now() + CANCEL_GRACE);
            if let Some(scribe) = &mut self.scribe {
                scribe.cancel();
                for open in &questions {
                    scribe.resolved(open.id);
                }
            }
            for open in questions {
                self.tell_resolution(open.asked_as, Resolution::Cancelled)
                    .await;
            }
            self.tell(ToAgent::Cancel { run }).await;
        }
        Ok(Effect::Done(target.or(wanted)))
    }

    /// Begins with what waits, if it is its turn.
    pub(super) async fn begin_next(&mut self) -> Result<(), Over> {
        let draining = self.parts.stopping.drain.is_cancelled();
        if self.scribe.is_some() || self.paused.is_some() || draining {
            return Ok(());
        }
        let mut queue = self.state.queue.clone();
        let Some(turn) = queue.take_turn() else {
            return Ok(());
        };
        let events = vec![updated(&queue, Vec::new()), started(&turn)];
        self.record_surely(events, Vec::new()).await?;
        self.begin(turn).await
    }

    /// Hands a run that is committed to the agent. Committed first: if the gateway dies from here on,
    /// the run is known and ends visibly.
    async fn begin(&mut self, turn: Turn) -> Result<(), Over> {
        let Turn { first, merged } = turn;
        let Queued { run, prompt, .. } = first;
        self.scribe = Some(Scribe::new(run, merged));
        let mut span = self.watch.dispatches(self.agent.is_some());
        let dispatched = self.dispatch(ToAgent::Prompt { run, prompt }).await;
        if let Err(failed) = &dispatched {
            span.fail(failed.code().as_str());
        }
        drop(span);
        match dispatched {
            Ok(()) => Ok(()),
            Err(failed) => {
                // What waits is not thrown after it.
                self.paused = Some(Instant::now() + AGENT_REST);
                let (code, message) = (failed.code(), failed.message());
                self.end_run(RunOutcome::Failed { code, message }).await
            }
        }
    }

    /// A run that was under way when this session was last awake: goes on if it only waits for
    /// answers and its agent can, else it has lost its agent and ends.
    pub(super) async fn take_up(&mut self) -> Result<(), Over> {
        self.watch.takes_up(&self.state);
        let Some(run) = self.state.live_run().cloned() else {
            return Ok(());
        };
        self.scribe = Some(Scribe::resumed(&run, &self.state));
        if self.only_waits() && self.dispatch(self.resume(&run)).await.is_ok() {
            return Ok(());
        }
        self.lose_run("The gateway was restarted while this run was under way; ask again.")
            .await
    }

    fn resume(&self, run: &CurrentRun) -> ToAgent {
        ToAgent::Resume {
            run: run.id,
            prompt: Prompt::new(run.prompt.clone(), run.mode),
            questions: self.state.questions.open.clone(),
        }
    }

    /// Does the run wait for answers only, and can its agent go on after a restart?
    pub(super) fn only_waits(&self) -> bool {
        self.scribe.as_ref().is_some_and(Scribe::only_waits)
            && self.cancel_by.is_none()
            && self.parts.catalog.can_resume(&self.counterpart.name)
    }

    /// Writes down what the agent said; nothing at all means that it is gone.
    pub(super) async fn take_down(
        &mut self,
        heard: usize,
        batch: &mut Vec<FromAgent>,
    ) -> Result<(), Over> {
        if heard == 0 {
            self.agent = None;
            self.inquiries.forget();
            return self
                .lose_run("The agent ended unexpectedly; ask again.")
                .await;
        }
        let rules = Rules {
            at: self.parts.clock.wall(),
            patience: self.parts.question_patience,
            auto_approve: self.state.settings.auto_approve
                && self
                    .parts
                    .catalog
                    .permits_auto_approve(&self.counterpart.name),
        };
        let mut notes = Notes::default();
        if self.scribe.is_some() {
            self.counterpart.is_used();
        }
        let agent = self.agent.as_ref();
        let taken = agent.map_or(0, |agent| agent.room_taken_by(batch));
        for said in batch.drain(..) {
            match (said, &mut self.scribe) {
                (FromAgent::Told { id, answer }, _) => self.inquiries.answer(id, answer),
                (FromAgent::Thread(thread), _) => self.counterpart.calls_it(thread),
                (said, Some(scribe)) => {
                    scribe.write(said, &rules, &mut notes);
                    if matches!(notes.events.last(), Some(Event::RunEnded { .. })) {
                        self.scribe = None;
                        self.cancel_by = None;
                    }
                }
                // An agent that only introduces itself makes no session of a draft.
                (said, None) if self.writer.is_stored() => notes.events.extend(beside_runs(said)),
                (_, None) => {}
            }
        }
        let decided = notes.decided.iter();
        let acts = decided
            .map(|(open, _)| decision::act(By::gateway(rules.at), self.id, open, true))
            .collect();
        self.record_surely(notes.events, acts).await?;
        if let Some(agent) = &self.agent {
            agent.wrote_down(taken);
        }
        self.keep_thread().await;
        for (question, resolution) in notes.answers {
            self.tell_resolution(question, resolution).await;
        }
        Ok(())
    }

    /// Ends the current run, if there is one, because its agent cannot.
    pub(super) async fn lose_run(&mut self, message: &str) -> Result<(), Over> {
        let failed = RunOutcome::Failed {
            code: Code::ConnectionLost,
            message: message.to_owned(),
        };
        self.end_run(failed).await
    }

    pub(super) async fn end_stubborn_run(&mut self) -> Result<(), Over> {
        // Dropping the link ends the agent: nothing more of this run can appear.
        self.agent = None;
        self.inquiries.forget();
        self.end_run(RunOutcome::Cancelled).await
    }

    pub(super) async fn end_run(&mut self, outcome: RunOutcome) -> Result<(), Over> {
        self.cancel_by = None;
        let Some(mut scribe) = self.scribe.take() else {
            return Ok(());
        };
        let mut events = Vec::new();
        scribe.end(&outcome, &mut events);
        self.record_surely(events, Vec::new()).await
    }

    /// Is it the run under way, or part of it?
    fn is_live(&self, run: RunId) -> bool {
        let Some(live) = self.live_run() else {
            return false;
        };
        let current = self.state.current.as_ref();
        live == run
            || current.is_some_and(|current| current.id == live && current.merged.contains(&run))
    }

    /// Is the session about to end?
    fn is_ending(&self) -> bool {
        self.ending.is_some_and(|until| Instant::now() < until)
    }

    fn live_run(&self) -> Option<RunId> {
        self.scribe.as_ref().map(Scribe::run)
    }

    /// Was there ever such a run, not too long ago?
    fn knows(&self, run: RunId) -> bool {
        let current = self.state.current.as_ref();
        current.is_some_and(|current| current.id == run) || self.state.past_runs.contains(&run)
    }
}

fn started(turn: &Turn) -> Event {
    let first = &turn.first;
    Event::RunStarted {
        run: first.run,
        prompt: first.prompt.clone(),
        message: MessageId::new(),
        correlation: first.correlation.clone(),
        by: first.by.clone(),
        merged: turn.merged.clone(),
    }
}

fn updated(queue: &Queue, added: Vec<Queued>) -> Event {
    Event::QueueUpdated {
        line: queue.line(),
        modes: queue.modes,
        added,
    }
}

fn no_such_run() -> Failure {
    Failure::Refused(Refused::new(Code::NotFound, "There is no such run."))
}
