//! Event: a fact in a session's journal, for every member.
//!
//! Each event becomes exactly one frame towards a client, so that offsets have no holes on the wire.
//! The serialised form here is the stored one; it must stay readable. Wire names are `wire`'s.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::command::{Prompt, SettingsChange};
use super::id::{MessageId, QuestionId, RunId, UserId};
use super::question::{OpenQuestion, Resolution};
use super::queue::{QueueEntry, QueueModes, QueuedPrompt};
use super::run::{AgentError, FailureCause, Progress, RunOutcome, Usage};
use super::tool::Tool;

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// A person.
    User,
    /// The agent.
    Assistant,
    /// Neither.
    System,
}

/// Channel of a message: the answer or the reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    /// The answer.
    Text,
    /// The agent's reasoning.
    Thought,
}

/// Format of a message's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextFormat {
    /// Markdown.
    Markdown,
    /// Text as it is.
    Text,
}

/// What an agent says about one of its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageDetails {
    /// Format of the text.
    pub format: TextFormat,
    /// The agent's own data about it, such as its sources.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// The agent's current activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing.
    Idle,
    /// Thinking.
    Thinking,
    /// Using a tool.
    ExecutingTool,
    /// Waiting for an answer.
    WaitingForInput,
}

/// Level of an agent's notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Information.
    Info,
    /// Warning.
    Warn,
    /// Error.
    Error,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Description.
    pub title: String,
    /// `pending`, `running` or `completed`.
    pub status: String,
}

/// A command that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// Who or what resolved a question.
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
    /// The session's auto-approve setting.
    AutoApprove,
    /// The deadline.
    Timeout,
    /// The end of the run, or of the agent if no run asked.
    RunEnd,
}

/// A fact in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A run started.
    RunStarted {
        /// The run.
        run: RunId,
        /// Its prompt.
        prompt: Prompt,
        /// The prompt's message in the conversation.
        message: MessageId,
        /// The `messageId` of the command that brought the prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correlation: Option<String>,
        /// Name of the sender.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// Those who sent its prompts; empty in what was recorded before senders were.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        senders: Vec<UserId>,
        /// Queued runs that became part of this one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        merged: Vec<RunId>,
    },
    /// The agent works on the run.
    RunProgress {
        /// The run.
        run: RunId,
        /// Progress, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<Progress>,
    },
    /// The run ended.
    RunEnded {
        /// The run.
        run: RunId,
        /// How it ended.
        #[serde(flatten)]
        outcome: RunOutcome,
        /// Tokens it used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Why it was lost, if its agent did not end it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<FailureCause>,
        /// The agent's own words about its failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_error: Option<Box<AgentError>>,
    },
    /// A chunk of a message.
    MessageDelta {
        /// The message.
        message: MessageId,
        /// Its run.
        run: RunId,
        /// Answer or reasoning.
        channel: Channel,
        /// The chunk.
        text: String,
        /// Index among the run's chunks, from 0; of the last one if several were joined.
        index: u64,
        /// How many earlier chunks were joined into it.
        #[serde(default, skip_serializing_if = "is_zero")]
        joined: u64,
    },
    /// A complete message; replaces its chunks.
    MessageFinal {
        /// The message.
        message: MessageId,
        /// Its run.
        run: RunId,
        /// Its author.
        author: Author,
        /// The whole text; absent if it is too long to store beside its chunks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The part of it that no chunk has brought.
        rest: String,
        /// Index among the run's chunks.
        index: u64,
    },
    /// A complete message again, with what its agent says about it.
    MessageDescribed {
        /// The message.
        message: MessageId,
        /// Its run.
        run: RunId,
        /// The whole text.
        text: String,
        /// What the agent says about it.
        #[serde(flatten)]
        details: Box<MessageDetails>,
    },
    /// A member suggests something to the driver.
    Suggested {
        /// The message.
        message: MessageId,
        /// Name of the sender.
        by: String,
        /// The text.
        text: String,
    },
    /// A tool call began or changed; the first update with its id creates it.
    ToolUpdate {
        /// Its run.
        run: RunId,
        /// The tool call.
        #[serde(flatten)]
        tool: Tool,
    },
    /// The agent asks a question, and waits.
    QuestionAsked(OpenQuestion),
    /// A question was resolved.
    QuestionResolved {
        /// The question.
        question: QuestionId,
        /// The run that asked, if a run did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// Who or what resolved it.
        by: Resolver,
        /// True if it is a yes.
        granted: bool,
        /// How it ended.
        resolution: Resolution,
    },
    /// The queue changed.
    QueueUpdated {
        /// All queued prompts, in order.
        #[serde(rename = "line")]
        entries: Vec<QueueEntry>,
        /// The queue modes.
        modes: QueueModes,
        /// Prompts that are new in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<QueuedPrompt>,
        /// Prompts that left it because the run under way took them up; they end with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        joined: Vec<RunId>,
    },
    /// The agent's activity changed.
    AgentState {
        /// The activity.
        activity: Activity,
    },
    /// More tokens were used.
    Usage(Usage),
    /// Share of the context window that is left.
    ContextLeft {
        /// In percent.
        percent: u8,
    },
    /// The agent's plan, all of it.
    PlanUpdated {
        /// The run that follows it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// Its steps.
        steps: Vec<PlanStep>,
    },
    /// Settings were chosen.
    SettingsChanged(SettingsChange),
    /// The agent reported settings that are in force.
    SettingsReported(SettingsChange),
    /// The tools that the agent may use changed.
    ToolsChanged {
        /// Their names.
        tools: Vec<String>,
    },
    /// All commands that the agent offers.
    CommandsAvailable {
        /// The commands.
        commands: Vec<AgentCommand>,
    },
    /// The session's title changed.
    TitleChanged {
        /// The title.
        title: String,
    },
    /// A notice of the agent.
    AgentNotice {
        /// Its level.
        level: Level,
        /// The text.
        text: String,
    },
    /// A message of the agent's protocol without a canonical event.
    Raw {
        /// The protocol.
        dialect: String,
        /// The message, unchanged.
        value: Value,
    },
    /// An event together with what only the agent's protocol has words for.
    WithMeta {
        /// The event itself.
        event: Box<Event>,
        /// Fields of the agent's message, by its own names.
        meta: Map<String, Value>,
    },
}

impl Event {
    /// The event without its meta.
    pub fn bare(&self) -> &Self {
        match self {
            Self::WithMeta { event, .. } => event.bare(),
            event => event,
        }
    }

    /// Fields that only the agent's protocol knows.
    pub fn meta(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::WithMeta { meta, .. } => Some(meta),
            _ => None,
        }
    }

    /// The event with this meta.
    #[must_use]
    pub fn with_meta(self, meta: Map<String, Value>) -> Self {
        let event = Box::new(self);
        Self::WithMeta { event, meta }
    }

    /// The run it belongs to, if any.
    pub fn run(&self) -> Option<RunId> {
        match self.bare() {
            Self::RunStarted { run, .. }
            | Self::RunProgress { run, .. }
            | Self::RunEnded { run, .. }
            | Self::MessageDelta { run, .. }
            | Self::MessageFinal { run, .. }
            | Self::MessageDescribed { run, .. }
            | Self::ToolUpdate { run, .. } => Some(*run),
            Self::QuestionAsked(asked) => asked.run,
            Self::QuestionResolved { run, .. } | Self::PlanUpdated { run, .. } => *run,
            _ => None,
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for this signature"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// An event at its offset in the journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Its offset: 1, 2, 3…
    pub offset: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The event.
    pub event: Event,
}

impl Recorded {
    /// The first offset that it stands for: its own, unless chunks were joined into it.
    pub fn first(&self) -> u64 {
        match self.event {
            Event::MessageDelta { joined, .. } => self.offset.saturating_sub(joined),
            _ => self.offset,
        }
    }

    /// Joins the next chunk into this one. False if it does not continue this one; nothing changes
    /// then. The result stands for all offsets of both and keeps the time of the first.
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

    /// True if `next` is the next chunk of the same message.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::question::{Answer, AnswerValue};
    use super::*;

    /// Journals hold these names; renamed fields and variants must keep them.
    #[test]
    fn the_stored_names_of_events_are_stable() {
        let run = RunId::new();
        let queue = json!({
            "kind": "queue_updated",
            "line": [{ "run": run, "why": "follow_up", "text": "x" }],
            "modes": { "steering": "one", "follow_up": "all" },
            "added": [{ "run": run, "why": "follow_up", "prompt": { "text": "x", "mode": "act" } }],
        });
        let question = json!({
            "kind": "question_asked", "id": QuestionId::new(), "asked_as": "7", "run": run,
            "answer": "confirm", "title": "t", "message": "m", "severity": "info",
            "allow_remember": false, "allow_reason": false, "multiline": false, "secret": false,
            "multi": false,
        });
        let resolved = json!({
            "kind": "question_resolved", "question": QuestionId::new(), "run": run,
            "by": "timeout", "granted": true,
            "resolution": { "answered": { "said": { "value": "Ada" } } },
        });
        let mut beside = question.clone();
        let mut settled = resolved.clone();
        for of_session in [&mut beside, &mut settled] {
            of_session.as_object_mut().unwrap().remove("run");
        }
        let meta = json!({ "kind": "with_meta", "event": question.clone(), "meta": { "cost": 1 } });
        for stored in [meta, queue, question, resolved, beside, settled] {
            let event: Event = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), stored);
        }
        let answer = Answer::new(AnswerValue::Ids(vec!["a".into()]));
        let stored = serde_json::to_string(&answer).unwrap();
        assert_eq!(stored, r#"{"said":{"ids":["a"]}}"#);
    }
}
