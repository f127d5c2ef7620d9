//! What a session and an agent say to each other, whatever the agent speaks.

use std::time::Duration;

use serde_json::Value;

use super::clip::bytes_of;
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Prompt, SettingsChange};
use crate::domain::event::{Activity, AgentCommand, Channel, Level, PlanStep};
use crate::domain::id::RunId;
use crate::domain::question::{OpenQuestion, Question, Resolution};
use crate::domain::queue::QueueModes;
use crate::domain::run::{Progress, RunOutcome, Usage};
use crate::domain::tool::Tool;

/// What the session tells an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToAgent {
    /// Begin a run. One at a time: an agent that is busy ends the new run as failed.
    Prompt {
        /// Its name from now on.
        run: RunId,
        /// What is asked.
        prompt: Prompt,
    },
    /// Go on with a run that another life of this agent had begun, and that waits for answers. Told
    /// only to those who can.
    Resume {
        /// The run.
        run: RunId,
        /// What was asked of it.
        prompt: Prompt,
        /// What it waits for.
        questions: Vec<OpenQuestion>,
    },
    /// Say something to the run under way. Told only to those who can hear it.
    Steer {
        /// Which run.
        run: RunId,
        /// What.
        text: String,
    },
    /// Stop a run. Ignored if it is not the one under way.
    Cancel {
        /// Which.
        run: RunId,
    },
    /// A question has its end.
    Answer {
        /// The agent's own name for the question.
        question: String,
        /// How it ended.
        resolution: Resolution,
    },
    /// Tell something, or do something that only this agent knows; answered also during a run.
    Inquire {
        /// Comes back with the answer.
        id: u64,
        /// What.
        inquiry: Inquiry,
    },
    /// These settings are in force from now on.
    Settings(SettingsChange),
    /// These tools may be used from now on, and no others.
    Tools(Vec<String>),
    /// The user is somewhere else now.
    Context(Value),
    /// This is how what waits is taken up from now on.
    QueueModes(QueueModes),
}

/// Why an agent did not do what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declined {
    /// Which kind of reason.
    pub(crate) code: Code,
    /// What a person reads.
    pub(crate) message: String,
}

/// What an agent tells the session. Which session that is follows from the channel, never from a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FromAgent {
    /// The prompt arrived and is worked on.
    Accepted {
        /// The run.
        run: RunId,
    },
    /// How far a run is.
    Progress {
        /// The run.
        run: RunId,
        /// How far.
        progress: Progress,
    },
    /// A piece of the answer.
    Delta {
        /// The run.
        run: RunId,
        /// Aloud or thought.
        channel: Channel,
        /// The piece.
        text: String,
    },
    /// The answer is complete.
    Final {
        /// The run.
        run: RunId,
        /// All of it, if it did not come in pieces.
        text: Option<String>,
    },
    /// What was said aloud in this run since its last complete utterance does not count: it is said
    /// again from the start.
    Withdrawn {
        /// The run.
        run: RunId,
    },
    /// A tool is used; the first sight of its id creates it, later ones change it.
    Tool {
        /// The run.
        run: RunId,
        /// What is to be seen of it.
        tool: Tool,
    },
    /// A human is asked; the run goes on when the answer comes.
    Asked {
        /// The run.
        run: RunId,
        /// The agent's own name for the question.
        question: String,
        /// What is asked.
        asked: Box<Question>,
        /// How long it waits for the answer, if not as long as the gateway lets it.
        patience: Option<Duration>,
    },
    /// A question needs no answer any more: the agent went on without one.
    Settled {
        /// The agent's own name for the question.
        question: String,
    },
    /// What came of something that was asked of the agent itself.
    Told {
        /// The number that it was asked under.
        id: u64,
        /// The answer.
        answer: Result<Value, Declined>,
    },
    /// Tokens were used, beyond what was told before.
    Usage(Usage),
    /// So much of the context is left, in percent.
    ContextLeft(u8),
    /// The commands that it understands, all of them.
    Commands(Vec<AgentCommand>),
    /// Something that only its own protocol has a word for.
    Raw {
        /// Which protocol.
        dialect: String,
        /// As it came.
        value: Value,
    },
    /// The plan, all of it.
    Plan(Vec<PlanStep>),
    /// What the agent does now.
    Activity(Activity),
    /// A title for the session.
    Title(String),
    /// Something that should be known.
    Notice {
        /// How loud.
        level: Level,
        /// What.
        text: String,
    },
    /// The agent's own name for this conversation, with which it can go on later.
    Thread(String),
    /// The run is over: at most once per run, and the last that is said about it. If the channel
    /// closes without it, the agent is gone and the session ends the run itself.
    Ended {
        /// The run.
        run: RunId,
        /// How.
        outcome: RunOutcome,
        /// What it used, beyond what was told before.
        usage: Option<Usage>,
    },
}

impl FromAgent {
    /// About how much room it takes.
    pub(super) fn bytes(&self) -> usize {
        /// Of the smallest.
        const LEAST: usize = 64;
        let value = |value: &Option<Value>| value.as_ref().map_or(0, bytes_of);
        LEAST
            + match self {
                Self::Delta { text, .. } | Self::Notice { text, .. } => text.len(),
                Self::Final { text, .. } => text.as_ref().map_or(0, String::len),
                Self::Tool { tool, .. } => value(&tool.input) + value(&tool.output),
                Self::Raw { value, .. } => bytes_of(value),
                Self::Told { answer, .. } => answer.as_ref().map_or(0, bytes_of),
                Self::Asked { asked, .. } => {
                    let args = asked.tool.as_ref().map_or(0, |tool| bytes_of(&tool.args));
                    asked.message.len() + args + asked.options.len() * LEAST
                }
                Self::Plan(steps) => steps.len() * LEAST,
                Self::Commands(commands) => commands.len() * LEAST,
                _ => 0,
            }
    }
}
