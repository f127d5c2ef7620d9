//! What a session looks like now: a pure fold over its journal.
//!
//! The router applies every event once; a snapshot of the result stands for all events up to its
//! offset. No I/O, no clock, no ids made. Touches `domain` only.
//!
//! Folding is total: whatever the order of events, it never panics, and what does not fit the run
//! under way is passed over. It is bounded: old messages and tools fall out, the journal has them.
//! Nothing is kept that does not read back from its stored form as itself: a snapshot would mean
//! something else than the events before it.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::command::Prompt;
use crate::domain::event::{Activity, AgentCommand, Author, Channel, Event, PlanStep, Recorded};
use crate::domain::id::{MessageId, RunId};
use crate::domain::queue::Queue;
use crate::domain::run::{RunOutcome, Usage};
use crate::domain::tool::Tool;

mod questions;
mod run;
mod settings;
mod tool;

pub(crate) use questions::{Ended, Questions, brief};
pub(crate) use run::{CurrentRun, RunStatus};
pub(crate) use settings::Settings;

/// How much of the last user message is kept for lists, in characters.
const EXCERPT_CHARS: usize = 200;
/// So many runs are remembered by their ids.
const PAST_RUNS: usize = 64;

/// A session after some part of its journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionState {
    /// Of the last event folded; 0 before the first.
    pub(crate) offset: u64,
    /// The newest messages within the bounds, oldest first. Shared between copies of the state, which
    /// are made with nearly every commit.
    pub(crate) messages: VecDeque<Arc<Message>>,
    /// Were older messages dropped, or was a long one cut?
    pub(crate) truncated: bool,
    /// All messages there ever were.
    pub(crate) message_count: u64,
    /// The beginning of what a human said last.
    pub(crate) last_user_message: Option<String>,
    /// The run under way, or the last one that ended.
    pub(crate) current: Option<CurrentRun>,
    /// The settings in force.
    pub(crate) settings: Settings,
    /// The sum of everything used.
    pub(crate) usage: Usage,
    /// What the agent does.
    pub(crate) activity: Activity,
    /// The agent's plan.
    pub(crate) plan: Vec<PlanStep>,
    /// The newest tools of the current run, oldest first. Shared like the messages.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// The title, if it has one.
    pub(crate) title: Option<String>,
    /// What the agent wants to know of a human.
    #[serde(default)]
    pub(crate) questions: Questions,
    /// The prompts that wait for their turn.
    #[serde(default)]
    pub(crate) queue: Queue,
    /// Runs that are over or left the queue, the newest last.
    #[serde(default)]
    pub(crate) past_runs: VecDeque<RunId>,
    /// The tools that the agent may use, if somebody has chosen.
    #[serde(default)]
    pub(crate) chosen_tools: Option<Vec<String>>,
    /// The commands that the agent understands.
    #[serde(default)]
    pub(crate) commands: Vec<AgentCommand>,
    /// How much of the context is left, in percent.
    #[serde(default)]
    pub(crate) context_left: Option<u8>,
    /// The bytes of all kept texts, so that nobody has to add them up for every piece.
    text_bytes: usize,
    /// The message that lost its end: more pieces must not be glued to what is left of it.
    cut: Option<MessageId>,
}

/// One utterance in the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Its id.
    pub(crate) id: MessageId,
    /// Who spoke.
    pub(crate) author: Author,
    /// What was said so far.
    pub(crate) text: String,
    /// When it began.
    pub(crate) at: Timestamp,
    /// The run that it belongs to.
    pub(crate) run: Option<RunId>,
    /// Is that all of it?
    pub(crate) complete: bool,
    /// What its run used, on the last utterance of the run.
    pub(crate) usage: Option<Usage>,
}

/// How much of the conversation is kept. The newest message always stays, cut if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    /// At most so many messages.
    pub(crate) messages: usize,
    /// At most so many bytes of text in all of them.
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
    /// Folds one event in.
    ///
    /// One that was folded before changes nothing; a gap is no fault, a compacted journal has some.
    pub(crate) fn apply(&mut self, recorded: &Recorded, bounds: &Bounds) {
        if recorded.offset <= self.offset {
            return;
        }
        self.offset = recorded.offset;
        self.fold(&recorded.event, recorded.at);
        self.trim(bounds);
    }

    /// The run under way, if there is one.
    pub(crate) fn live_run(&self) -> Option<&CurrentRun> {
        self.current.as_ref().filter(|run| run.status.is_live())
    }

    fn fold(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::RunStarted {
                run,
                prompt,
                message,
                merged,
                ..
            } => {
                self.start(*run, *message, prompt, at);
                if let Some(current) = self.live(*run) {
                    current.merged.clone_from(merged);
                }
            }
            Event::RunProgress { run, progress } => {
                if let Some(current) = self.live(*run) {
                    current.status = RunStatus::Running;
                    // "Still at it" takes nothing back.
                    if progress.is_some() {
                        current.progress.clone_from(progress);
                    }
                }
            }
            Event::RunEnded {
                run,
                outcome,
                usage,
            } => self.end(*run, outcome, usage.as_ref(), at),
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
                        Some(text) => self.settle(*message, *run, *author, text, at),
                        None => self.complete(*message, *run),
                    }
                }
            }
            Event::ToolUpdate { run, tool } => {
                if self.live(*run).is_some() {
                    tool::update(&mut self.tools, tool.clone());
                }
            }
            Event::QuestionAsked(asked) => {
                if self.live(asked.run).is_some() {
                    self.questions.ask(asked);
                }
            }
            Event::QuestionResolved {
                question,
                by,
                granted,
                resolution,
                ..
            } => self.questions.resolve(Ended {
                question: *question,
                by: by.clone(),
                granted: *granted,
                resolution: resolution.clone(),
            }),
            Event::QueueUpdated { line, modes, added } => {
                for gone in self.queue.follow(line, *modes, added) {
                    self.pass(gone);
                }
            }
            Event::AgentState { activity } => self.activity = *activity,
            Event::Usage(usage) => self.add_usage(&storable(usage)),
            Event::ContextLeft { percent } => self.context_left = Some(*percent),
            Event::PlanUpdated { steps } => self.plan.clone_from(steps),
            Event::SettingsChanged(change) => self.settings.change(change),
            Event::ToolsChanged { tools } => self.chosen_tools = Some(tools.clone()),
            Event::CommandsAvailable { commands } => self.commands.clone_from(commands),
            Event::TitleChanged { title } => self.title = Some(title.clone()),
            Event::AgentNotice { .. } | Event::Suggested { .. } | Event::Raw { .. } => {}
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
            // Without an end of its own, its utterances and questions would stay open for ever.
            self.complete_messages(before);
            self.questions.forget(before);
        }
        self.tools.clear();
        self.current = Some(CurrentRun {
            id: run,
            status: RunStatus::Starting,
            prompt: prompt.text.clone(),
            mode: prompt.mode,
            merged: Vec::new(),
            started_at: at,
            ended_at: None,
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
            });
        }
    }

    fn end(&mut self, run: RunId, outcome: &RunOutcome, usage: Option<&Usage>, at: Timestamp) {
        let Some(current) = self.live(run) else {
            return;
        };
        current.status = outcome.into();
        current.ended_at = Some(at);
        current.progress = None;
        current.message = None;
        self.activity = Activity::Idle;
        self.pass(run);
        self.complete_messages(run);
        self.questions.forget(run);
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

    /// Remembers a run that is over, for those who still want to stop it.
    fn pass(&mut self, run: RunId) {
        self.past_runs.push_back(run);
        let surplus = self.past_runs.len().saturating_sub(PAST_RUNS);
        self.past_runs.drain(..surplus);
    }

    /// Follows the index of a chunk; says whether its run is under way.
    fn count_chunk(&mut self, run: RunId, index: u64) -> bool {
        self.live(run).is_some_and(|current| {
            current.chunks = current.chunks.max(index.saturating_add(1));
            true
        })
    }

    fn append(&mut self, id: MessageId, run: RunId, text: &str, at: Timestamp) {
        let cut = self.cut == Some(id);
        match self.message(id) {
            // Too late, or not its own: whatever other runs said is complete.
            Some(known) if known.complete => return,
            Some(known) => {
                if !cut {
                    known.text.push_str(text);
                    self.text_bytes = self.text_bytes.saturating_add(text.len());
                }
            }
            None => self.push(Message {
                id,
                author: Author::Assistant,
                text: text.to_owned(),
                at,
                run: Some(run),
                complete: false,
                usage: None,
            }),
        }
        if let Some(current) = &mut self.current {
            current.message = Some(id);
        }
    }

    fn settle(&mut self, id: MessageId, run: RunId, author: Author, text: &str, at: Timestamp) {
        match self.message(id) {
            Some(known) if known.run != Some(run) => return,
            Some(known) => {
                let before = known.text.len();
                text.clone_into(&mut known.text);
                known.author = author;
                known.complete = true;
                self.text_bytes = self.text_bytes.saturating_sub(before) + text.len();
                self.cut = self.cut.filter(|cut| *cut != id);
            }
            None => self.push(Message {
                id,
                author,
                text: text.to_owned(),
                at,
                run: Some(run),
                complete: true,
                usage: None,
            }),
        }
        if author == Author::User {
            self.last_user_message = Some(excerpt(text));
        }
        if let Some(current) = &mut self.current {
            current.message = current.message.filter(|writing| *writing != id);
        }
    }

    /// The pieces stay as they are.
    fn complete(&mut self, id: MessageId, run: RunId) {
        if let Some(known) = self.message(id).filter(|known| known.run == Some(run)) {
            known.complete = true;
        }
        if let Some(current) = &mut self.current {
            current.message = current.message.filter(|writing| *writing != id);
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.usage = self.usage.plus(usage);
        // An infinite sum has no stored form.
        self.usage.cost = self.usage.cost.map(|cost| cost.clamp(f64::MIN, f64::MAX));
    }

    /// A kept message; searched from the end, where the talk is.
    fn message(&mut self, id: MessageId) -> Option<&mut Message> {
        let known = self.messages.iter_mut().rfind(|message| message.id == id);
        known.map(Arc::make_mut)
    }

    fn push(&mut self, message: Message) {
        self.text_bytes = self.text_bytes.saturating_add(message.text.len());
        self.message_count = self.message_count.saturating_add(1);
        self.messages.push_back(Arc::new(message));
    }

    fn complete_messages(&mut self, run: RunId) {
        for message in &mut self.messages {
            if message.run == Some(run) && !message.complete {
                Arc::make_mut(message).complete = true;
            }
        }
    }

    fn trim(&mut self, bounds: &Bounds) {
        while self.messages.len() > 1
            && (self.messages.len() > bounds.messages || self.text_bytes > bounds.bytes)
        {
            if let Some(oldest) = self.messages.pop_front() {
                self.text_bytes = self.text_bytes.saturating_sub(oldest.text.len());
                self.cut = self.cut.filter(|cut| *cut != oldest.id);
                self.truncated = true;
            }
        }
        // More than the bound is left only if a single message is longer than that.
        if self.text_bytes > bounds.bytes
            && let Some(only) = self.messages.front_mut()
        {
            let only = Arc::make_mut(only);
            only.text
                .truncate(only.text.floor_char_boundary(bounds.bytes));
            only.text.shrink_to_fit();
            self.text_bytes = only.text.len();
            self.cut = Some(only.id);
            self.truncated = true;
        }
    }
}

/// The usage as it reads once stored: a cost that is no number is no cost.
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
