//! Metrics of sessions: runs, questions, commits, memory.

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

/// Agents are named by the operator, so there are few.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct AgentLabel {
    agent: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct RunEndLabels {
    agent: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct FailureLabels {
    agent: String,
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct QuestionLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct QuestionEndLabel {
    outcome: &'static str,
}

#[derive(Debug)]
pub(super) struct Metrics {
    started: Family<AgentLabel, Counter>,
    running: Family<AgentLabel, Gauge>,
    ended: Family<RunEndLabels, Counter>,
    failures: Family<FailureLabels, Counter>,
    durations: Family<AgentLabel, Durations, fn() -> Durations>,
    first_outputs: Family<AgentLabel, Durations, fn() -> Durations>,
    questions_asked: Family<QuestionLabel, Counter>,
    questions_ended: Family<QuestionEndLabel, Counter>,
    questions_open: Gauge,
    prompts_queued: Gauge,
    pub(super) events: Counter,
    pub(super) commits: Durations,
    /// How long the oldest events of a commit waited for it to begin.
    pub(super) commit_waits: Durations,
    /// Stored sessions that have not ended, as last counted; negative before the first count.
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
            questions_asked: Family::default(),
            questions_ended: Family::default(),
            questions_open: Gauge::default(),
            prompts_queued: Gauge::default(),
            events: Counter::default(),
            commits: Durations::short(),
            commit_waits: Durations::short(),
            stored: AtomicI64::new(-1),
        }
    }
}

#[derive(Debug)]
pub(super) struct GaugeGuard {
    gauge: Gauge,
    by: i64,
}

impl GaugeGuard {
    fn new(gauge: Gauge, by: i64) -> Self {
        gauge.inc_by(by);
        Self { gauge, by }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.gauge.dec_by(self.by);
    }
}

impl Metrics {
    pub(super) fn run_started(&self, agent: &str) {
        self.started.get_or_create_owned(&of(agent)).inc();
    }

    pub(super) fn run_running(&self, agent: &str) -> GaugeGuard {
        GaugeGuard::new(self.running.get_or_create_owned(&of(agent)), 1)
    }

    pub(super) fn first_output(&self, agent: &str, took: std::time::Duration) {
        self.first_outputs.get_or_create(&of(agent)).observe(took);
    }

    pub(super) fn run_ended(&self, agent: &str, outcome: &RunOutcome, took: std::time::Duration) {
        self.durations.get_or_create(&of(agent)).observe(took);
        let word = match outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed { .. } => "failed",
        };
        self.count_end(agent, word);
        if let RunOutcome::Failed { code, .. } = outcome {
            let (agent, code) = (agent.to_owned(), code.as_str());
            self.failures
                .get_or_create(&FailureLabels { agent, code })
                .inc();
        }
    }

    pub(super) fn run_withdrawn(&self, agent: &str) {
        self.count_end(agent, "withdrawn");
    }

    fn count_end(&self, agent: &str, outcome: &'static str) {
        let agent = agent.to_owned();
        self.ended
            .get_or_create(&RunEndLabels { agent, outcome })
            .inc();
    }

    pub(super) fn question_asked(&self, kind: QuestionKind) {
        let kind = match kind {
            QuestionKind::Permission => "permission",
            QuestionKind::Confirm => "confirm",
            QuestionKind::Prompt => "prompt",
            QuestionKind::Pick => "pick",
        };
        self.questions_asked
            .get_or_create(&QuestionLabel { kind })
            .inc();
    }

    pub(super) fn question_open(&self) -> GaugeGuard {
        GaugeGuard::new(self.questions_open.clone(), 1)
    }

    pub(super) fn question_ended(&self, outcome: &'static str) {
        self.questions_ended
            .get_or_create(&QuestionEndLabel { outcome })
            .inc();
    }

    pub(super) fn prompts_queued(&self, count: usize) -> GaugeGuard {
        GaugeGuard::new(
            self.prompts_queued.clone(),
            i64::try_from(count).unwrap_or(i64::MAX),
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
            self.questions_asked.clone(),
        );
        registry.register(
            "questions_ended",
            "How questions ended: granted, denied, expired or cancelled",
            self.questions_ended.clone(),
        );
        registry.register(
            "questions_open",
            "Questions that wait for an answer, in sessions that are awake",
            self.questions_open.clone(),
        );
        registry.register(
            "prompts_waiting",
            "Prompts that wait for their turn, in sessions that are awake",
            self.prompts_queued.clone(),
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

fn of(agent: &str) -> AgentLabel {
    let agent = agent.to_owned();
    AgentLabel { agent }
}

pub(super) fn register(parts: &Arc<Parts>, registry: &mut Registry) {
    // Created here, so that an alert has a series before the first run of an agent.
    for agent in parts.catalog.names() {
        drop(parts.metrics.run_running(agent));
        drop(parts.metrics.started.get_or_create_owned(&of(agent)));
        for outcome in ["completed", "cancelled", "failed"] {
            let agent = agent.to_owned();
            drop(
                parts
                    .metrics
                    .ended
                    .get_or_create_owned(&RunEndLabels { agent, outcome }),
            );
        }
    }
    parts.metrics.register(registry);
    registry.register_collector(Box::new(LiveGauges(Arc::clone(parts))));
}

/// Gauges that are read at the scrape.
struct LiveGauges(Arc<Parts>);

impl fmt::Debug for LiveGauges {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LiveGauges")
    }
}

impl Collector for LiveGauges {
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
