//! Session state: a pure fold over the journal.
//!
//! The router applies every event once; a snapshot of the result stands for all events up to its
//! offset. No I/O, no clock, no new ids. Touches `domain` only.
//!
//! The fold is total: no order of events panics, and events that do not fit the run under way are
//! skipped. It is bounded: old messages and tools are dropped, the journal has them. Only values that
//! read back from their stored form unchanged are kept: else a snapshot would mean something else
//! than the events before it.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::command::Prompt;
use crate::domain::event::{
    Activity, AgentCommand, Author, Channel, Event, MessageDetails, PlanStep, Recorded,
};
use crate::domain::id::{MessageId, RunId};
use crate::domain::queue::Queue;
use crate::domain::run::{AgentError, FailureCause, RunOutcome, Usage};
use crate::domain::tool::Tool;

mod conversation;
mod questions;
mod run;
mod settings;
mod tool;

pub(crate) use questions::{Questions, ResolvedQuestion, truncated};
pub(crate) use run::{CurrentRun, RunStatus};
pub(crate) use settings::Settings;

/// Characters of the last user message that lists show.
const EXCERPT_CHARS: usize = 200;
const MAX_PAST_RUNS: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// Offset of the last event; 0 before the first.
    pub(crate) offset: u64,
    /// The newest messages within the bounds, oldest first. Shared by the copies of the state that
    /// nearly every commit makes.
    pub(crate) messages: VecDeque<Arc<Message>>,
    /// Older messages were dropped, or a long one was cut.
    pub(crate) truncated: bool,
    /// Number of all messages, dropped ones included.
    pub(crate) message_count: u64,
    /// The beginning of the last message of a person.
    pub(crate) last_user_message: Option<String>,
    /// The run under way, or the last one that ended.
    pub(crate) current: Option<CurrentRun>,
    pub(crate) settings: Settings,
    /// The sum over the session.
    pub(crate) usage: Usage,
    pub(crate) activity: Activity,
    pub(crate) plan: Vec<PlanStep>,
    /// The newest tools of the current run, oldest first. Shared like the messages.
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) questions: Questions,
    #[serde(default)]
    pub(crate) queue: Queue,
    /// Runs that ended or left the queue, the newest last.
    #[serde(default)]
    pub(crate) past_runs: VecDeque<RunId>,
    #[serde(default)]
    pub(crate) chosen_tools: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) commands: Vec<AgentCommand>,
    /// Share of the context window that is left, in percent.
    #[serde(default)]
    pub(crate) context_left: Option<u8>,
    /// Bytes of all kept messages, so that a chunk need not sum them up.
    text_bytes: usize,
    /// The message whose end was cut: later chunks must not be appended to it.
    cut: Option<MessageId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: MessageId,
    pub(crate) author: Author,
    pub(crate) text: String,
    pub(crate) at: Timestamp,
    pub(crate) run: Option<RunId>,
    /// No more chunks follow.
    pub(crate) complete: bool,
    /// Tokens used by its run, on the last message of the run.
    pub(crate) usage: Option<Usage>,
    /// What its agent says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Box<MessageDetails>>,
}

impl Message {
    /// The bytes that count against the bounds.
    fn bytes(&self) -> usize {
        let metadata = self.details.iter().flat_map(|details| &details.metadata);
        let metadata = metadata.map(|(name, value)| name.len() + value.to_string().len());
        self.text.len() + metadata.sum::<usize>()
    }
}

/// Bounds of the kept conversation. The newest message always stays, cut if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) messages: usize,
    /// Bytes of text in all messages.
    pub(crate) bytes: usize,
}

impl Default for SessionState {
    fn default() -> Self {
        Self {
            offset: 0,
            messages: VecDeque::new(),
            truncated: false,
            message_count: 0,
            last_user_message: None,
            current: None,
            settings: Settings::default(),
            usage: Usage::default(),
            activity: Activity::Idle,
            plan: Vec::new(),
            tools: Vec::new(),
            title: None,
            questions: Questions::default(),
            queue: Queue::default(),
            past_runs: VecDeque::new(),
            chosen_tools: None,
            commands: Vec::new(),
            context_left: None,
            text_bytes: 0,
            cut: None,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            messages: 200,
            bytes: 512 * 1024,
        }
    }
}

impl SessionState {
    /// Folds one event in. One that was folded before changes nothing; gaps are fine, a compacted
    /// journal has some.
    pub(crate) fn apply(&mut self, recorded: &Recorded, bounds: &Bounds) {
        if recorded.offset <= self.offset {
            return;
        }
        self.offset = recorded.offset;
        self.fold(&recorded.event, recorded.at);
        self.trim(bounds);
    }

    pub(crate) fn live_run(&self) -> Option<&CurrentRun> {
        self.current.as_ref().filter(|run| run.status.is_live())
    }

    fn fold(&mut self, event: &Event, at: Timestamp) {
        match event.bare() {
            Event::RunStarted {
                run,
                prompt,
                message,
                merged,
                senders,
                ..
            } => {
                self.start(*run, *message, prompt, at);
                if let Some(current) = self.live(*run) {
                    current.merged.clone_from(merged);
                    current.senders.clone_from(senders);
                }
            }
            Event::RunProgress { run, progress } => {
                if let Some(current) = self.live(*run) {
                    current.status = RunStatus::Running;
                    // An event without progress keeps the last one.
                    if progress.is_some() {
                        current.progress.clone_from(progress);
                    }
                }
            }
            Event::RunEnded {
                run,
                outcome,
                usage,
                cause,
                agent_error,
            } => {
                self.end(*run, outcome, *cause, usage.as_ref(), at);
                self.keep_error(*run, agent_error.as_deref());
            }
            Event::MessageDelta {
                message,
                run,
                channel,
                text,
                index,
                ..
            } => {
                if self.count_chunk(*run, *index) && *channel == Channel::Text {
                    self.append(*message, *run, text, at);
                }
            }
            Event::MessageFinal {
                message,
                run,
                author,
                text,
                index,
                ..
            } => {
                if self.count_chunk(*run, *index) {
                    match text {
                        Some(text) => self.finalise(*message, *run, *author, text, at),
                        None => self.complete(*message, *run),
                    }
                }
            }
            Event::MessageDescribed {
                message,
                run,
                details,
                ..
            } => self.describe(*message, *run, details),
            Event::ToolUpdate { run, tool } => {
                if self.live(*run).is_some() {
                    tool::update(&mut self.tools, tool.clone());
                }
            }
            Event::QuestionAsked(asked) => {
                if asked.run.is_none_or(|run| self.live(run).is_some()) {
                    self.questions.ask(asked);
                }
            }
            Event::QuestionResolved {
                question,
                by,
                granted,
                resolution,
                ..
            } => self.questions.resolve(ResolvedQuestion {
                question: *question,
                by: by.clone(),
                granted: *granted,
                resolution: resolution.clone(),
            }),
            Event::QueueUpdated {
                entries,
                modes,
                added,
                joined,
            } => {
                for gone in self.queue.update(entries, *modes, added) {
                    self.add_past_run(gone);
                }
                if let Some(current) = &mut self.current {
                    current.merged.extend(joined);
                }
            }
            Event::AgentState { activity } => self.activity = *activity,
            Event::Usage(usage) => self.add_usage(&storable(usage)),
            Event::ContextLeft { percent } => self.context_left = Some(*percent),
            Event::PlanUpdated { steps, .. } => self.plan.clone_from(steps),
            Event::SettingsChanged(change) => self.settings.choose(change),
            Event::SettingsReported(reported) => self.settings.report(reported),
            Event::ToolsChanged { tools } => self.chosen_tools = Some(tools.clone()),
            Event::CommandsAvailable { commands } => self.commands.clone_from(commands),
            Event::TitleChanged { title } => self.title = Some(title.clone()),
            Event::AgentNotice { .. }
            | Event::Suggested { .. }
            | Event::Raw { .. }
            | Event::WithMeta { .. } => {}
        }
    }

    /// The run, if it is the one under way; everything else about a run is too late.
    fn live(&mut self, run: RunId) -> Option<&mut CurrentRun> {
        self.current
            .as_mut()
            .filter(|current| current.id == run && current.status.is_live())
    }

    fn start(&mut self, run: RunId, message: MessageId, prompt: &Prompt, at: Timestamp) {
        if let Some(before) = &self.current {
            let before = before.id;
            if before == run {
                return;
            }
            // It never ended: without this its messages and questions would stay open.
            self.complete_messages(before);
            self.questions.close_run(before);
        }
        self.tools.clear();
        self.current = Some(CurrentRun {
            id: run,
            status: RunStatus::Starting,
            prompt: prompt.text.clone(),
            mode: prompt.mode,
            merged: Vec::new(),
            senders: Vec::new(),
            started_at: at,
            ended_at: None,
            cause: None,
            agent_error: None,
            progress: None,
            chunks: 0,
            message: None,
        });
        self.last_user_message = Some(excerpt(&prompt.text));
        if self.message(message).is_none() {
            self.push(Message {
                id: message,
                author: Author::User,
                text: prompt.text.clone(),
                at,
                run: Some(run),
                complete: true,
                usage: None,
                details: None,
            });
        }
    }

    fn end(
        &mut self,
        run: RunId,
        outcome: &RunOutcome,
        cause: Option<FailureCause>,
        usage: Option<&Usage>,
        at: Timestamp,
    ) {
        let Some(current) = self.live(run) else {
            return;
        };
        current.status = outcome.into();
        current.cause = cause;
        current.ended_at = Some(at);
        current.progress = None;
        current.message = None;
        self.activity = Activity::Idle;
        self.add_past_run(run);
        self.complete_messages(run);
        self.questions.close_run(run);
        if let Some(usage) = usage.map(storable) {
            self.add_usage(&usage);
            let last = self
                .messages
                .iter_mut()
                .rfind(|message| message.run == Some(run) && message.author == Author::Assistant);
            if let Some(message) = last {
                Arc::make_mut(message).usage = Some(usage);
            }
        }
    }

    fn keep_error(&mut self, run: RunId, error: Option<&AgentError>) {
        if let Some(current) = self.current.as_mut().filter(|current| current.id == run)
            && error.is_some()
        {
            current.agent_error = error.cloned().map(Box::new);
        }
    }

    /// Keeps the id of a past run, so that a late cancel of it succeeds.
    fn add_past_run(&mut self, run: RunId) {
        self.past_runs.push_back(run);
        let surplus = self.past_runs.len().saturating_sub(MAX_PAST_RUNS);
        self.past_runs.drain(..surplus);
    }

    /// Counts a chunk; false if its run is not under way.
    fn count_chunk(&mut self, run: RunId, index: u64) -> bool {
        self.live(run).is_some_and(|current| {
            current.chunks = current.chunks.max(index.saturating_add(1));
            true
        })
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.usage = self.usage.plus(usage);
        // An infinite sum has no stored form.
        self.usage.cost = self.usage.cost.map(|cost| cost.clamp(f64::MIN, f64::MAX));
    }
}

/// The usage as it reads back from storage: a cost that is not finite is dropped.
fn storable(usage: &Usage) -> Usage {
    Usage {
        cost: usage.cost.filter(|cost| cost.is_finite()),
        ..*usage
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(EXCERPT_CHARS).collect()
}

#[cfg(test)]
mod tests;
