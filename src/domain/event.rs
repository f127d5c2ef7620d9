//! Facts in a session's journal, for every member.
//!
//! Each becomes exactly one frame towards a client, so that offsets have no holes on the wire. The
//! serialised form here is the stored one; wire names belong to the doors.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command::{Prompt, SettingsChange};
use super::id::{MessageId, QuestionId, RunId, UserId};
use super::question::{OpenQuestion, Resolution};
use super::queue::{InLine, QueueModes, Queued};
use super::run::{Progress, RunOutcome, Usage};
use super::tool::Tool;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// A human.
    User,
    /// The agent.
    Assistant,
    /// Neither.
    System,
}

/// Said aloud, or thought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The answer.
    Text,
    /// What the agent thinks on the way.
    Thought,
}

/// What the agent does at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing.
    Idle,
    /// Thinking.
    Thinking,
    /// Using a tool.
    ExecutingTool,
    /// Waiting for a human.
    WaitingForInput,
}

/// How loud an agent's own notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Good to know.
    Info,
    /// Worth a look.
    Warn,
    /// Something is wrong.
    Error,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// What is to be done.
    pub title: String,
    /// `pending`, `running` or `completed`.
    pub status: String,
}

/// A command that an agent understands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// How it is called.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// Who or what ended a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolver {
    /// A person.
    User {
        /// Their account.
        id: UserId,
        /// Their name.
        name: String,
    },
    /// The session's setting.
    AutoApprove,
    /// The clock.
    Timeout,
    /// The end of the run.
    RunEnd,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A prompt was accepted and its run begins.
    RunStarted {
        /// The run.
        run: RunId,
        /// What was asked.
        prompt: Prompt,
        /// The utterance that the prompt is in the conversation.
        message: MessageId,
        /// The `messageId` of the command that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correlation: Option<String>,
        /// Who asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Runs that waited and are part of this one now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merged: Vec<RunId>,
    },
    /// The agent works on it.
    RunProgress {
        /// The run.
        run: RunId,
        /// How far it is, if the agent says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<Progress>,
    },
    /// The run is over.
    RunEnded {
        /// The run.
        run: RunId,
        /// How.
        #[serde(flatten)]
        outcome: RunOutcome,
        /// What it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A piece of an utterance.
    MessageDelta {
        /// The utterance.
        message: MessageId,
        /// The run that it belongs to.
        run: RunId,
        /// Aloud or thought.
        channel: Channel,
        /// The piece.
        text: String,
        /// Its place among the pieces of the run, from 0; of the last one if several were joined.
        index: u64,
        /// How many pieces before it were joined with it.
        #[serde(default, skip_serializing_if = "is_none")]
        joined: u64,
    },
    /// A whole utterance, in place of its pieces.
    MessageFinal {
        /// The utterance.
        message: MessageId,
        /// The run that it belongs to.
        run: RunId,
        /// Who spoke.
        author: Author,
        /// All of it; absent if it came in so many pieces that they stay as they are.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// What of it no piece has brought before.
        rest: String,
        /// Its place among the pieces of the run.
        index: u64,
    },
    /// Somebody proposes something to whoever drives.
    Suggested {
        /// The utterance.
        message: MessageId,
        /// Who.
        by: String,
        /// What.
        text: String,
    },
    /// A tool is used; the first sight of its id creates it, later ones change it.
    ToolUpdate {
        /// The run that it belongs to.
        run: RunId,
        /// What was seen of it.
        #[serde(flatten)]
        tool: Tool,
    },
    /// The agent asks a human, and waits.
    QuestionAsked(OpenQuestion),
    /// A question has its end.
    QuestionResolved {
        /// Which.
        question: QuestionId,
        /// The run that had asked.
        run: RunId,
        /// Who ended it: a user, or what else it was.
        by: Resolver,
        /// Is it a yes?
        granted: bool,
        /// How it ended.
        resolution: Resolution,
    },
    /// What waits for its turn has changed.
    QueueUpdated {
        /// All that waits now, in order.
        line: Vec<InLine>,
        /// How it is emptied.
        modes: QueueModes,
        /// What is new in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<Queued>,
    },
    /// The agent does something else now.
    AgentState {
        /// What.
        activity: Activity,
    },
    /// Tokens were used, beyond what was told before.
    Usage(Usage),
    /// So much of the context is left.
    ContextLeft {
        /// In percent.
        percent: u8,
    },
    /// The agent's plan, all of it.
    PlanUpdated {
        /// Its steps.
        steps: Vec<PlanStep>,
    },
    /// Settings were changed.
    SettingsChanged(SettingsChange),
    /// Other tools may be used from now on.
    ToolsChanged {
        /// Their names.
        tools: Vec<String>,
    },
    /// The agent understands these commands, all of them.
    CommandsAvailable {
        /// What it understands.
        commands: Vec<AgentCommand>,
    },
    /// The session has another title.
    TitleChanged {
        /// The title.
        title: String,
    },
    /// The agent wants something to be known.
    AgentNotice {
        /// How loud.
        level: Level,
        /// What.
        text: String,
    },
    /// Something that only the agent's own protocol has a word for.
    Raw {
        /// Which protocol.
        dialect: String,
        /// As it came.
        value: Value,
    },
}

impl Event {
    /// The run it belongs to, if to any.
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::RunStarted { run, .. }
            | Self::RunProgress { run, .. }
            | Self::RunEnded { run, .. }
            | Self::MessageDelta { run, .. }
            | Self::MessageFinal { run, .. }
            | Self::ToolUpdate { run, .. }
            | Self::QuestionResolved { run, .. } => Some(*run),
            Self::QuestionAsked(asked) => Some(asked.run),
            _ => None,
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// An event at its place in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its place: 1, 2, 3…
    pub offset: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

impl Recorded {
    /// The first offset that it stands for: its own, unless pieces were joined into it.
    pub fn first(&self) -> u64 {
        match self.event {
            Event::MessageDelta { joined, .. } => self.offset.saturating_sub(joined),
            _ => self.offset,
        }
    }

    /// Joins the piece that follows with this one; false if it does not continue it, and nothing
    /// has changed then. The result stands for all offsets of both, since the time of the first.
    pub fn join(&mut self, next: &Self) -> bool {
        if !self.is_continued_by(next) {
            return false;
        }
        if let (
            Event::MessageDelta {
                text,
                index,
                joined,
                ..
            },
            Event::MessageDelta {
                text: more,
                index: last,
                ..
            },
        ) = (&mut self.event, &next.event)
        {
            text.push_str(more);
            *joined += next.offset - self.offset;
            *index = *last;
            self.offset = next.offset;
        }
        true
    }

    /// Is the next one a piece of the same utterance, right behind this one?
    pub fn is_continued_by(&self, next: &Self) -> bool {
        match (&self.event, &next.event) {
            (
                Event::MessageDelta {
                    message,
                    run,
                    channel,
                    index,
                    ..
                },
                Event::MessageDelta {
                    message: of,
                    run: during,
                    channel: on,
                    index: last,
                    joined,
                    ..
                },
            ) => {
                (of, during, on) == (message, run, channel)
                    && self.offset.checked_add(1) == Some(next.first())
                    && index.checked_add(1) == last.checked_sub(*joined)
            }
            _ => false,
        }
    }
}
