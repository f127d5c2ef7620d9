//! Run recorder: turns one run's agent events into journal events. Names messages and questions,
//! numbers chunks, closes what the run leaves open.
//!
//! No I/O and no clock. Agent events of another run are dropped: nothing of a run appears after its end.

use serde_json::{Map, Value};

use super::state::{CurrentRun, SessionState};
use crate::domain::event::{Author, Channel, Event};
use crate::domain::id::{MessageId, RunId};
use crate::domain::question::{OpenQuestion, Resolution};
use crate::domain::queue::Queue;
use crate::domain::run::{AgentError, FailureCause, RunOutcome, Usage};
use crate::domain::tool::Tool;
use crate::runtime::{Declined, FromAgent};

mod questions;

use questions::OpenInBatch;
pub(super) use questions::QuestionPolicy;

/// A streamed message up to this size is recorded whole at its end, so that its chunks need not be
/// kept for ever.
const WHOLE_MESSAGE_BYTES: usize = 256 * 1024;
/// Open tool calls of one run that are tracked; older ones are not closed with the run.
const MAX_OPEN_TOOLS: usize = 100;
const TITLE_CHARS: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) events: Vec<Event>,
    /// Resolutions to send to the agent after the commit, by the agent's id of the question.
    pub(super) answers: Vec<(String, Resolution)>,
    pub(super) auto_approved: Vec<OpenQuestion>,
    /// Questions that are open once `events` are committed.
    open: Vec<OpenInBatch>,
}

impl Batch {
    /// A batch on top of the questions that the session's state has open.
    pub(super) fn new(open: &[OpenQuestion]) -> Self {
        Self {
            open: open.iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl Batch {
    /// Adds meta to what an agent's event became, which begins at this index: to the end of a run if
    /// there is one, else to the first event. What became of nothing loses it.
    pub(super) fn attach(&mut self, first: usize, meta: Map<String, Value>) {
        let ends_run = |event: &Event| matches!(event, Event::RunEnded { .. });
        let new = self.events.get(first..).unwrap_or_default();
        let index = first + new.iter().position(ends_run).unwrap_or(0);
        if index < self.events.len() {
            let event = self.events.remove(index);
            self.events.insert(index, event.with_meta(meta));
        }
    }
}

#[derive(Debug)]
pub(super) struct RunRecorder {
    run: RunId,
    /// Queued runs that became part of this one and end with it.
    merged: Vec<RunId>,
    /// Tool calls that have not ended, as last reported.
    tools: Vec<Tool>,
    /// The run is being cancelled: its new questions are cancelled at once.
    is_cancelled: bool,
    /// The message under way, and its text unless that is over `WHOLE_MESSAGE_BYTES`.
    message: Option<(MessageId, Option<String>)>,
    next_index: u64,
    /// Why the run is about to be lost, as its link or the router knows.
    cause: Option<FailureCause>,
    /// The agent's own words about the failure that is about to end the run.
    agent_error: Option<Box<AgentError>>,
}

impl RunRecorder {
    pub(super) fn new(run: RunId, merged: Vec<RunId>) -> Self {
        Self {
            run,
            merged,
            tools: Vec::new(),
            is_cancelled: false,
            message: None,
            next_index: 0,
            cause: None,
            agent_error: None,
        }
    }

    /// The recorder of a run that was under way before, as far as the state knows it.
    pub(super) fn resumed(current: &CurrentRun, state: &SessionState) -> Self {
        let tools = state.tools.iter().filter(|tool| tool.is_open());
        Self {
            run: current.id,
            merged: current.merged.clone(),
            tools: tools.map(|tool| tool.without_payload()).collect(),
            is_cancelled: false,
            message: current.message.map(|message| (message, None)),
            next_index: current.chunks,
            cause: None,
            agent_error: None,
        }
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    pub(super) fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// True if no message is under way and no tool is running.
    pub(super) fn is_quiet(&self) -> bool {
        let is_running = |tool: &Tool| tool.status == "running";
        self.message.is_none() && !self.tools.iter().any(is_running)
    }

    pub(super) fn record(&mut self, event: FromAgent, policy: &QuestionPolicy, batch: &mut Batch) {
        let events = &mut batch.events;
        let mine = |run: RunId| run == self.run;
        match event {
            FromAgent::RunAccepted { run } if mine(run) => {
                events.push(Event::RunProgress {
                    run,
                    progress: None,
                });
            }
            FromAgent::RunProgress { run, progress } if mine(run) => {
                events.push(Event::RunProgress {
                    run,
                    progress: Some(progress),
                });
            }
            FromAgent::MessageDelta { run, channel, text } if mine(run) => {
                events.push(self.chunk(channel, text));
            }
            FromAgent::MessageFinal { run, text } if mine(run) => events.push(self.complete(text)),
            FromAgent::MessageWhole { run, text, details } if mine(run) => {
                let whole = self.complete(Some(text.clone()));
                if let Event::MessageFinal { message, .. } = whole {
                    events.push(whole);
                    events.push(Event::MessageDescribed {
                        message,
                        run,
                        text,
                        details,
                    });
                }
            }
            FromAgent::MessageWithdrawn { run } if mine(run) => events.extend(self.retract()),
            FromAgent::ToolUpdate { run, tool } if mine(run) => {
                self.track_tool(&tool);
                events.push(Event::ToolUpdate { run, tool });
            }
            FromAgent::QuestionAsked {
                run,
                question,
                content: asked,
                timeout,
            } if mine(run) => self.ask(question, *asked, timeout, policy, batch),
            FromAgent::RunError { run, error } if mine(run) => self.agent_error = Some(error),
            // It was sent a second time already.
            FromAgent::Undelivered { run, reason } if mine(run) => {
                let Declined { code, message } = reason;
                self.finish(&RunOutcome::Failed { code, message }, None, batch);
            }
            FromAgent::RunEnded {
                run,
                outcome,
                usage,
            } if mine(run) => self.finish(&outcome, usage, batch),
            FromAgent::RunAccepted { run }
            | FromAgent::FollowUpTaken { run, .. }
            | FromAgent::RunProgress { run, .. }
            | FromAgent::MessageDelta { run, .. }
            | FromAgent::MessageFinal { run, .. }
            | FromAgent::MessageWhole { run, .. }
            | FromAgent::MessageWithdrawn { run }
            | FromAgent::ToolUpdate { run, .. }
            | FromAgent::QuestionAsked { run, .. }
            | FromAgent::Undelivered { run, .. }
            | FromAgent::RunError { run, .. }
            | FromAgent::RunEnded { run, .. } => {
                tracing::debug!(run.id = %run, "dropped an agent event of another run");
            }
            FromAgent::QuestionWithdrawn { question } => batch.settle(&question),
            FromAgent::LinkFailed(cause) => self.cause = Some(cause),
            FromAgent::PlanUpdated(steps) => events.push(Event::PlanUpdated {
                run: Some(self.run),
                steps,
            }),
            other => events.extend(session_event(other)),
        }
    }

    /// Records the end of a run that its agent does not report.
    pub(super) fn end(
        mut self,
        outcome: &RunOutcome,
        cause: Option<FailureCause>,
        batch: &mut Batch,
    ) {
        self.cause = cause.or(self.cause);
        self.finish(outcome, None, batch);
    }

    /// A message that a person sends to the run under way.
    pub(super) fn user_message(&mut self, text: String) -> Event {
        Event::MessageFinal {
            message: MessageId::new(),
            run: self.run,
            author: Author::User,
            text: Some(text),
            rest: String::new(),
            index: self.index(),
        }
    }

    /// The run has begun with a queued prompt: it leaves the queue, and ends with the run.
    pub(super) fn take_up(&mut self, queue: &mut Queue, queued: RunId) -> Vec<Event> {
        let mut entries = queue.entries.iter();
        let Some(text) = entries
            .find(|entry| entry.run == queued)
            .map(|entry| entry.prompt.text.clone())
        else {
            return Vec::new();
        };
        queue.withdraw(queued);
        self.merged.push(queued);
        let updated = Event::QueueUpdated {
            entries: queue.summary(),
            modes: queue.modes,
            added: Vec::new(),
            joined: vec![queued],
        };
        vec![updated, self.user_message(text)]
    }

    /// Closes what the run leaves open, then ends it and the runs that became part of it.
    fn finish(&mut self, outcome: &RunOutcome, usage: Option<Usage>, batch: &mut Batch) {
        let run = self.run;
        // A message that was cut off still gets its last chunk.
        if self.message.is_some() {
            batch.events.push(self.complete(None));
        }
        batch.close_questions(|run| run.is_some());
        let cancelled = |tool| Event::ToolUpdate {
            run,
            tool: Tool {
                status: "cancelled".into(),
                ..tool
            },
        };
        batch.events.extend(self.tools.drain(..).map(cancelled));
        let has_failed = matches!(outcome, RunOutcome::Failed { .. });
        let cause = self.cause.take().filter(|_| has_failed);
        let agent_error = self.agent_error.take().filter(|_| has_failed);
        let ended = |run, usage, agent_error| Event::RunEnded {
            run,
            outcome: outcome.clone(),
            usage,
            cause,
            agent_error,
        };
        batch.events.push(ended(run, usage, agent_error));
        let merged = self.merged.drain(..).map(|run| ended(run, None, None));
        batch.events.extend(merged);
    }

    fn track_tool(&mut self, update: &Tool) {
        self.tools.retain(|tool| tool.id != update.id);
        if update.is_open() {
            self.tools.push(update.without_payload());
            let surplus = self.tools.len().saturating_sub(MAX_OPEN_TOOLS);
            self.tools.drain(..surplus);
        }
    }

    fn chunk(&mut self, channel: Channel, text: String) -> Event {
        let (message, so_far) = self
            .message
            .get_or_insert_with(|| (MessageId::new(), Some(String::new())));
        if channel == Channel::Text {
            match so_far {
                Some(whole) if whole.len() + text.len() <= WHOLE_MESSAGE_BYTES => {
                    whole.push_str(&text);
                }
                _ => *so_far = None,
            }
        }
        let message = *message;
        Event::MessageDelta {
            message,
            run: self.run,
            channel,
            text,
            index: self.index(),
            joined: 0,
        }
    }

    fn complete(&mut self, text: Option<String>) -> Event {
        let (message, so_far) = self
            .message
            .take()
            .unwrap_or_else(|| (MessageId::new(), Some(String::new())));
        // Text that was streamed is not sent again; text that was not is the rest.
        let streamed = so_far.as_deref().is_none_or(|text| !text.is_empty());
        let rest = match &text {
            Some(text) if !streamed => text.clone(),
            _ => String::new(),
        };
        Event::MessageFinal {
            message,
            run: self.run,
            author: Author::Assistant,
            // Without any text it is `None`; an empty text means that it was retracted.
            text: if streamed {
                so_far
            } else {
                text.filter(|text| !text.is_empty())
            },
            rest,
            index: self.index(),
        }
    }

    /// Replaces the message under way with an empty one.
    fn retract(&mut self) -> Option<Event> {
        let (message, _) = self.message.take()?;
        Some(Event::MessageFinal {
            message,
            run: self.run,
            author: Author::Assistant,
            text: Some(String::new()),
            rest: String::new(),
            index: self.index(),
        })
    }

    fn index(&mut self) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        index
    }
}

/// The event for an agent event that belongs to no run.
pub(super) fn session_event(event: FromAgent) -> Option<Event> {
    match event {
        FromAgent::Usage(usage) => Some(Event::Usage(usage)),
        FromAgent::ContextLeft(percent) => Some(Event::ContextLeft {
            percent: percent.min(100),
        }),
        FromAgent::PlanUpdated(steps) => Some(Event::PlanUpdated { run: None, steps }),
        FromAgent::Activity(activity) => Some(Event::AgentState { activity }),
        FromAgent::TitleChanged(title) => {
            let title = title.chars().filter(|letter| !letter.is_control());
            let title: String = title.take(TITLE_CHARS).collect();
            (!title.trim().is_empty()).then_some(Event::TitleChanged { title })
        }
        FromAgent::Notice { level, text } => Some(Event::AgentNotice { level, text }),
        FromAgent::CommandsAvailable(commands) => Some(Event::CommandsAvailable { commands }),
        FromAgent::Raw { dialect, value } => Some(Event::Raw { dialect, value }),
        FromAgent::Settings(reported) => {
            (!reported.is_empty()).then_some(Event::SettingsReported(reported))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
