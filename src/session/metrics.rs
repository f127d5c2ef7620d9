//! What sessions count: runs, questions, commits, and what they hold in memory.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::Parts;
use crate::domain::question::QuestionKind;
use crate::domain::run::RunOutcome;
use crate::telemetry::Durations;

/// Agents are named by the operator: there are never many.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfAgent {
    agent: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Ending {
    agent: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Failing {
    agent: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Asking {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct Answering {
    outcome: &'static str,
}

/// Counters of all sessions of one gateway.
#[derive(Debug)]
pub(super) struct Metrics {
    started: Family<OfAgent, Counter>,
    running: Family<OfAgent, Gauge>,
    ended: Family<Ending, Counter>,
    failures: Family<Failing, Counter>,
    durations: Family<OfAgent, Durations, fn() -> Durations>,
    first_outputs: Family<OfAgent, Durations, fn() -> Durations>,
    asked: Family<Asking, Counter>,
    answered: Family<Answering, Counter>,
    questions_open: Gauge,
    waiting: Gauge,
    /// Events that were committed.
    pub(super) events: Counter,
    /// How long a commit took.
    pub(super) commits: Durations,
    /// How long the first of a commit had waited for it to begin.
    pub(super) commit_waits: Durations,
    /// Sessions in the database that have not ended, as last counted; below 0 if they never were.
    pub(super) stored: AtomicI64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            started: Family::default(),
            running: Family::default(),
            ended: Family::default(),
            failures: Family::default(),
            durations: Family::new_with_constructor(Durations::long),
            first_outputs: Family::new_with_constructor(Durations::long),
            asked: Family::default(),
            answered: Family::default(),
            questions_open: Gauge::default(),
            waiting: Gauge::default(),
            events: Counter::default(),
            commits: Durations::short(),
            commit_waits: Durations::short(),
            stored: AtomicI64::new(-1),
        }
    }
}

/// Something that goes on, counted until dropped.
#[derive(Debug)]
pub(super) struct Counted {
    gauge: Gauge,
    by: i64,
}

impl Counted {
    fn new(gauge: Gauge, by: i64) -> Self {
        gauge.inc_by(by);
        Self { gauge, by }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.dec_by(self.by);
    }
}

impl Metrics {
    /// A run begins.
    pub(super) fn run_started(&self, agent: &str) {
        self.started.get_or_create_owned(&of(agent)).inc();
    }

    /// A run goes on.
    pub(super) fn run_goes_on(&self, agent: &str) -> Counted {
        Counted::new(self.running.get_or_create_owned(&of(agent)), 1)
    }

    /// The first sign of an agent's work on a run.
    pub(super) fn first_output(&self, agent: &str, took: std::time::Duration) {
        self.first_outputs.get_or_create(&of(agent)).observe(took);
    }

    /// A run that took so long is over.
    pub(super) fn run_ended(&self, agent: &str, outcome: &RunOutcome, took: std::time::Duration) {
        self.durations.get_or_create(&of(agent)).observe(took);
        let word = match outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { .. } => "failed",
        };
        self.ends(agent, word);
        if let RunOutcome::Failed { code, .. } = outcome {
            let (agent, code) = (agent.to_owned(), code.as_str());
            self.failures.get_or_create(&Failing { agent, code }).inc();
        }
    }

    /// A prompt was taken back before its turn came.
    pub(super) fn run_withdrawn(&self, agent: &str) {
        self.ends(agent, "withdrawn");
    }

    fn ends(&self, agent: &str, outcome: &'static str) {
        let agent = agent.to_owned();
        self.ended.get_or_create(&Ending { agent, outcome }).inc();
    }

    /// A question is asked.
    pub(super) fn asked(&self, kind: QuestionKind) {
        let kind = match kind {
            QuestionKind::Permission => "permission",
            QuestionKind::Confirm => "confirm",
            QuestionKind::Prompt => "prompt",
            QuestionKind::Pick => "pick",
        };
        self.asked.get_or_create(&Asking { kind }).inc();
    }

    /// A question waits.
    pub(super) fn question_waits(&self) -> Counted {
        Counted::new(self.questions_open.clone(), 1)
    }

    /// A question has its end.
    pub(super) fn answered(&self, outcome: &'static str) {
        self.answered.get_or_create(&Answering { outcome }).inc();
    }

    /// So many prompts wait in a session.
    pub(super) fn prompts_wait(&self, many: usize) -> Counted {
        Counted::new(
            self.waiting.clone(),
            i64::try_from(many).unwrap_or(i64::MAX),
        )
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("runs_started", "Runs that began", self.started.clone());
        registry.register("runs_running", "Runs under way", self.running.clone());
        registry.register(
            "runs_ended",
            "Runs that ended: completed, cancelled, failed, or withdrawn before their turn",
            self.ended.clone(),
        );
        registry.register(
            "run_failures",
            "Runs that failed, by the code that their users saw",
            self.failures.clone(),
        );
        registry.register(
            "run_duration_seconds",
            "From the beginning of a run to its end, waiting for people included",
            self.durations.clone(),
        );
        registry.register(
            "run_first_output_seconds",
            "From the beginning of a run to the first sign of its agent",
            self.first_outputs.clone(),
        );
        registry.register(
            "questions_asked",
            "Questions of agents to people",
            self.asked.clone(),
        );
        registry.register(
            "questions_ended",
            "How questions ended: granted, denied, expired or cancelled",
            self.answered.clone(),
        );
        registry.register(
            "questions_open",
            "Questions that wait for an answer, in sessions that are awake",
            self.questions_open.clone(),
        );
        registry.register(
            "prompts_waiting",
            "Prompts that wait for their turn, in sessions that are awake",
            self.waiting.clone(),
        );
        registry.register(
            "journal_events",
            "Events committed to journals",
            self.events.clone(),
        );
        registry.register(
            "journal_commit_seconds",
            "How long a commit of events took in storage",
            self.commits.clone(),
        );
        registry.register(
            "journal_commit_wait_seconds",
            "How long the oldest events of a commit had waited for it to begin",
            self.commit_waits.clone(),
        );
    }
}

fn of(agent: &str) -> OfAgent {
    let agent = agent.to_owned();
    OfAgent { agent }
}

/// Puts all of it under its names.
pub(super) fn register(parts: &Arc<Parts>, registry: &mut Registry) {
    // Without labels that nobody has used yet, there would be nothing to alert on.
    for agent in parts.catalog.names() {
        drop(parts.metrics.run_goes_on(agent));
        drop(parts.metrics.started.get_or_create_owned(&of(agent)));
        for outcome in ["completed", "cancelled", "failed"] {
            let agent = agent.to_owned();
            drop(
                parts
                    .metrics
                    .ended
                    .get_or_create_owned(&Ending { agent, outcome }),
            );
        }
    }
    parts.metrics.register(registry);
    registry.register_collector(Box::new(Held(Arc::clone(parts))));
}

/// Counted when somebody asks.
struct Held(Arc<Parts>);

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Held")
    }
}

impl Collector for Held {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let live = self.0.live.lock().len();
        let size = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
        let stored = self.0.metrics.stored.load(Ordering::Relaxed);
        for (name, help, value) in [
            ("sessions_live", "Sessions awake in memory", size(live)),
            (
                "sessions_stored",
                "Sessions that have not ended, as counted within the last minutes",
                stored.max(0),
            ),
            (
                "journal_tail_bytes",
                "Recent events of all sessions in memory, about",
                size(self.0.tails.bytes()),
            ),
            (
                "journal_commit_queue",
                "What waits for the next commit; full at 4096, and agents wait then",
                size(self.0.committer.waiting()),
            ),
        ] {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
