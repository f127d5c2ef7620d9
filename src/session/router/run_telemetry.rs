//! What an operator sees of a session: its runs, questions and tools, as counters and as spans.
//!
//! Looks at what was committed, so nothing is counted that did not happen, and decides nothing. It
//! knows how much was said and never what. Touches `telemetry`, `domain`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::super::metrics::{Counted, Metrics};
use super::super::state::SessionState;
use crate::domain::event::{Author, Event};
use crate::domain::id::{QuestionId, RunId, SessionId};
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;
use crate::telemetry::{Context, Kind, Span, Tracer};

/// More than can wait for their turn in a session.
const WAITING: usize = 64;
/// Tools of one run that are followed at the same time.
const TOOLS: usize = 256;

/// The watch over one session.
pub(super) struct Watch {
    metrics: Arc<Metrics>,
    tracer: Tracer,
    session: SessionId,
    agent: String,
    /// The command at hand.
    command: Option<Context>,
    /// The commands whose runs have not begun yet.
    waiting: HashMap<RunId, Context>,
    run: Option<Run>,
    questions: HashMap<QuestionId, (Counted, Span)>,
    /// By the agent's own ids; only while somebody traces.
    tools: HashMap<String, Span>,
    line: Option<Counted>,
}

struct Run {
    id: RunId,
    merged: Vec<RunId>,
    started: Instant,
    /// Until the agent gives the first sign.
    silence: Option<Span>,
    said_bytes: u64,
    span: Span,
    _goes_on: Counted,
}

impl Watch {
    pub(super) fn new(
        metrics: Arc<Metrics>,
        tracer: Tracer,
        session: SessionId,
        agent: String,
    ) -> Self {
        Self {
            metrics,
            tracer,
            session,
            agent,
            command: None,
            waiting: HashMap::new(),
            run: None,
            questions: HashMap::new(),
            tools: HashMap::new(),
            line: None,
        }
    }

    /// A command is at hand; until the span is given back.
    pub(super) fn takes(&mut self, of: Option<Context>) -> Span {
        let mut span = self.tracer.child("session.command", Kind::Internal, of);
        span.set("session.id", self.session);
        self.command = span.context();
        span
    }

    /// What a command came to.
    pub(super) fn is_done(&mut self, mut span: Span, refused: Option<&'static str>) {
        self.command = None;
        if let Some(code) = refused {
            span.fail(code);
        }
    }

    /// The effect of the command at hand is being committed.
    pub(super) fn commits(&self, events: usize) -> Span {
        let mut span = self
            .tracer
            .child("journal.commit", Kind::Internal, self.command);
        span.set("events", events);
        span
    }

    /// The command at hand will have this run.
    pub(super) fn expects(&mut self, run: RunId) {
        if let Some(command) = self.command.filter(|_| self.waiting.len() < WAITING) {
            self.waiting.insert(run, command);
        }
    }

    /// The agent is being told of the run.
    pub(super) fn dispatches(&self, is_running: bool) -> Span {
        let of = self.run.as_ref().and_then(|run| run.span.context());
        let mut span = self.tracer.child("agent.dispatch", Kind::Client, of);
        if of.is_some() {
            span.set("agent", crate::telemetry::chosen(&self.agent));
            span.set("agent.was_running", is_running);
        }
        span
    }

    /// What was under way when this session was last awake.
    pub(super) fn takes_up(&mut self, state: &SessionState) {
        if let Some(current) = state.live_run() {
            let (id, merged) = (current.id, current.merged.clone());
            self.run = Some(self.begun(id, merged, None));
        }
        for open in &state.questions.open {
            let waits = (self.metrics.question_waits(), Span::default());
            self.questions.insert(open.id, waits);
        }
        self.line = Some(self.metrics.prompts_wait(state.queue.entries.len()));
    }

    fn begun(&self, id: RunId, merged: Vec<RunId>, of: Option<Context>) -> Run {
        let mut span = self.tracer.child("run", Kind::Internal, of);
        if of.is_some() {
            span.set("run.id", id);
            span.set("session.id", self.session);
            span.set("agent", crate::telemetry::chosen(&self.agent));
        }
        Run {
            id,
            merged,
            started: Instant::now(),
            silence: of.map(|_| {
                let of = span.context();
                self.tracer.child("agent.first_output", Kind::Client, of)
            }),
            said_bytes: 0,
            span,
            _goes_on: self.metrics.run_goes_on(&self.agent),
        }
    }

    /// Something was committed.
    pub(super) fn sees(&mut self, event: &Event) {
        match event {
            Event::MessageDelta { text, .. } => self.hears(text.len()),
            Event::MessageFinal { author, rest, .. } if *author == Author::Assistant => {
                self.hears(rest.len());
            }
            Event::RunStarted { run, merged, .. } => {
                let command = self.waiting.remove(run);
                for part in merged {
                    self.waiting.remove(part);
                }
                self.metrics.run_started(&self.agent);
                self.run = Some(self.begun(*run, merged.clone(), command));
            }
            Event::RunEnded { run, outcome, .. } => self.sees_end(*run, outcome),
            Event::ToolUpdate { tool, .. } => {
                self.hears(0);
                self.sees_tool(&tool.id, &tool.status, tool.is_open());
            }
            Event::QuestionAsked(open) => {
                self.hears(0);
                self.metrics.asked(open.question.kind);
                let mut span = self.part("question");
                span.set("question.id", open.id);
                let waits = (self.metrics.question_waits(), span);
                self.questions.insert(open.id, waits);
            }
            Event::QuestionResolved {
                question,
                granted,
                resolution,
                ..
            } => {
                let outcome = match resolution {
                    Resolution::Answered(_) if *granted => "granted",
                    Resolution::Answered(_) => "denied",
                    Resolution::Expired => "expired",
                    Resolution::Cancelled => "cancelled",
                };
                self.metrics.answered(outcome);
                if let Some((_, mut span)) = self.questions.remove(question) {
                    span.set("outcome", outcome);
                }
            }
            Event::QueueUpdated { line, .. } => {
                self.line = Some(self.metrics.prompts_wait(line.len()));
            }
            _ => {}
        }
    }

    /// The agent gave a sign, with so much text in it.
    fn hears(&mut self, bytes: usize) {
        let Some(run) = &mut self.run else {
            return;
        };
        if !run.has_spoken() {
            let took = run.started.elapsed();
            self.metrics.first_output(&self.agent, took);
            run.silence = None;
        }
        // One more than was said: also an empty word is a sign.
        run.said_bytes = run.said_bytes.max(1) + bytes as u64;
    }

    fn sees_end(&mut self, run: RunId, outcome: &RunOutcome) {
        self.waiting.remove(&run);
        match &self.run {
            Some(current) if current.id == run => {}
            // Its run is the one that it became part of.
            Some(current) if current.merged.contains(&run) => return,
            _ => return self.metrics.run_withdrawn(&self.agent),
        }
        let Some(mut ended) = self.run.take() else {
            return;
        };
        // What is left open ends with the run.
        self.tools.clear();
        let took = ended.started.elapsed();
        self.metrics.run_ended(&self.agent, outcome, took);
        let word = match outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { code, .. } => {
                ended.span.fail(code.as_str());
                "failed"
            }
        };
        ended.span.set("outcome", word);
        ended
            .span
            .set("size_bytes", ended.said_bytes.saturating_sub(1));
    }

    fn sees_tool(&mut self, id: &str, status: &str, is_open: bool) {
        if self
            .run
            .as_ref()
            .and_then(|run| run.span.context())
            .is_none()
        {
            return;
        }
        if !self.tools.contains_key(id) && self.tools.len() < TOOLS {
            let span = self.part("tool");
            self.tools.insert(id.to_owned(), span);
        }
        if !is_open && let Some(mut span) = self.tools.remove(id) {
            // An agent may call it what it wants: only the words that we know are told.
            match status {
                "completed" => span.set("outcome", "completed"),
                "denied" => span.set("outcome", "denied"),
                "skipped" => span.set("outcome", "skipped"),
                "cancelled" => span.set("outcome", "cancelled"),
                _ => span.fail("failed"),
            }
        }
    }

    /// A part of the run under way.
    fn part(&self, name: &'static str) -> Span {
        let of = self.run.as_ref().and_then(|run| run.span.context());
        self.tracer.child(name, Kind::Internal, of)
    }
}

impl Run {
    fn has_spoken(&self) -> bool {
        self.said_bytes > 0
    }
}
