//! Run telemetry: metrics and trace spans of a session's runs, questions and tools.
//!
//! Sees committed events only, so nothing is counted that did not happen, and decides nothing.
//! Records sizes, never content. Touches `telemetry`, `domain`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::super::metrics::{GaugeGuard, Metrics};
use super::super::state::SessionState;
use crate::domain::event::{Author, Event};
use crate::domain::id::{QuestionId, RunId, SessionId};
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;
use crate::telemetry::{Context, Kind, Span, Tracer};

/// More than a queue holds.
const MAX_PENDING_RUNS: usize = 64;
const MAX_TOOL_SPANS: usize = 256;

pub(super) struct RunTelemetry {
    metrics: Arc<Metrics>,
    tracer: Tracer,
    session: SessionId,
    agent: String,
    command: Option<Context>,
    pending_runs: HashMap<RunId, Context>,
    run: Option<ObservedRun>,
    questions: HashMap<QuestionId, (GaugeGuard, Span)>,
    /// By the agent's ids; only in a traced run.
    tools: HashMap<String, Span>,
    queued: Option<GaugeGuard>,
}

struct ObservedRun {
    id: RunId,
    merged: Vec<RunId>,
    started: Instant,
    /// Open until the first output.
    first_output: Option<Span>,
    /// Plus one once there was an output, even an empty one.
    output_bytes: u64,
    span: Span,
    _running: GaugeGuard,
}

impl RunTelemetry {
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
            pending_runs: HashMap::new(),
            run: None,
            questions: HashMap::new(),
            tools: HashMap::new(),
            queued: None,
        }
    }

    /// Begins a command; `end_command` takes the span back.
    pub(super) fn begin_command(&mut self, of: Option<Context>) -> Span {
        let mut span = self.tracer.child("session.command", Kind::Internal, of);
        span.set("session.id", self.session);
        self.command = span.context();
        span
    }

    pub(super) fn end_command(&mut self, mut span: Span, refused: Option<&'static str>) {
        self.command = None;
        if let Some(code) = refused {
            span.fail(code);
        }
    }

    pub(super) fn commit_span(&self, events: usize) -> Span {
        let mut span = self
            .tracer
            .child("journal.commit", Kind::Internal, self.command);
        span.set("events", events);
        span
    }

    /// The current command will have this run.
    pub(super) fn expect_run(&mut self, run: RunId) {
        if let Some(command) = self
            .command
            .filter(|_| self.pending_runs.len() < MAX_PENDING_RUNS)
        {
            self.pending_runs.insert(run, command);
        }
    }

    pub(super) fn dispatch_span(&self, is_running: bool) -> Span {
        let of = self.run.as_ref().and_then(|run| run.span.context());
        let mut span = self.tracer.child("agent.dispatch", Kind::Client, of);
        if of.is_some() {
            span.set("agent", crate::telemetry::operator_name(&self.agent));
            span.set("agent.was_running", is_running);
        }
        span
    }

    /// Observes again what was under way when the session was last live.
    pub(super) fn resume(&mut self, state: &SessionState) {
        if let Some(current) = state.live_run() {
            let (id, merged) = (current.id, current.merged.clone());
            self.run = Some(self.start_run(id, merged, None));
        }
        for open in &state.questions.open {
            let open_question = (self.metrics.question_open(), Span::default());
            self.questions.insert(open.id, open_question);
        }
        self.queued = Some(self.metrics.prompts_queued(state.queue.entries.len()));
    }

    fn start_run(&self, id: RunId, merged: Vec<RunId>, of: Option<Context>) -> ObservedRun {
        let mut span = self.tracer.child("run", Kind::Internal, of);
        if of.is_some() {
            span.set("run.id", id);
            span.set("session.id", self.session);
            span.set("agent", crate::telemetry::operator_name(&self.agent));
        }
        ObservedRun {
            id,
            merged,
            started: Instant::now(),
            first_output: of.map(|_| {
                let of = span.context();
                self.tracer.child("agent.first_output", Kind::Client, of)
            }),
            output_bytes: 0,
            span,
            _running: self.metrics.run_running(&self.agent),
        }
    }

    pub(super) fn observe(&mut self, event: &Event) {
        match event.bare() {
            Event::MessageDelta { text, .. } => self.observe_output(text.len()),
            Event::MessageFinal { author, rest, .. } if *author == Author::Assistant => {
                self.observe_output(rest.len());
            }
            Event::RunStarted { run, merged, .. } => {
                let command = self.pending_runs.remove(run);
                for part in merged {
                    self.pending_runs.remove(part);
                }
                self.metrics.run_started(&self.agent);
                self.run = Some(self.start_run(*run, merged.clone(), command));
            }
            Event::RunEnded { run, outcome, .. } => self.observe_end(*run, outcome),
            Event::ToolUpdate { tool, .. } => {
                self.observe_output(0);
                self.observe_tool(&tool.id, &tool.status, tool.is_open());
            }
            Event::QuestionAsked(open) => {
                self.observe_output(0);
                self.metrics.question_asked(open.question.kind);
                let mut span = self.child_span("question");
                span.set("question.id", open.id);
                let open_question = (self.metrics.question_open(), span);
                self.questions.insert(open.id, open_question);
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
                self.metrics.question_ended(outcome);
                if let Some((_, mut span)) = self.questions.remove(question) {
                    span.set("outcome", outcome);
                }
            }
            Event::QueueUpdated { entries, .. } => {
                self.queued = Some(self.metrics.prompts_queued(entries.len()));
            }
            _ => {}
        }
    }

    /// The agent gave a sign of work, with this much text.
    fn observe_output(&mut self, bytes: usize) {
        let Some(run) = &mut self.run else {
            return;
        };
        if run.output_bytes == 0 {
            let took = run.started.elapsed();
            self.metrics.first_output(&self.agent, took);
            run.first_output = None;
        }
        run.output_bytes = run.output_bytes.max(1) + bytes as u64;
    }

    fn observe_end(&mut self, run: RunId, outcome: &RunOutcome) {
        self.pending_runs.remove(&run);
        match &self.run {
            Some(current) if current.id == run => {}
            // Counted with the run that it became part of.
            Some(current) if current.merged.contains(&run) => return,
            _ => return self.metrics.run_withdrawn(&self.agent),
        }
        let Some(mut ended) = self.run.take() else {
            return;
        };
        // Open spans end with the run.
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
            .set("size_bytes", ended.output_bytes.saturating_sub(1));
    }

    fn observe_tool(&mut self, id: &str, status: &str, is_open: bool) {
        if self
            .run
            .as_ref()
            .and_then(|run| run.span.context())
            .is_none()
        {
            return;
        }
        if !self.tools.contains_key(id) && self.tools.len() < MAX_TOOL_SPANS {
            let span = self.child_span("tool");
            self.tools.insert(id.to_owned(), span);
        }
        if !is_open && let Some(mut span) = self.tools.remove(id) {
            // Agents choose the text of a status: only known ones are exported.
            match status {
                "completed" => span.set("outcome", "completed"),
                "denied" => span.set("outcome", "denied"),
                "skipped" => span.set("outcome", "skipped"),
                "cancelled" => span.set("outcome", "cancelled"),
                _ => span.fail("failed"),
            }
        }
    }

    fn child_span(&self, name: &'static str) -> Span {
        let of = self.run.as_ref().and_then(|run| run.span.context());
        self.tracer.child(name, Kind::Internal, of)
    }
}
