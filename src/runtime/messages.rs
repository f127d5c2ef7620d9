//! Messages between a session and its agent: [`ToAgent`] and [`FromAgent`].
//!
//! No agent's protocol is visible in them. Their JSON is a stable form, because the agent may live in
//! another process: `{"type": …, "data": …}`, names in snake case, durations in milliseconds. The
//! tests hold a sample of every variant; add variants and optional fields, never rename.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event_truncation::bytes_of;
use super::prompt_content::PromptContent;
use crate::domain::command::{AgentRequest, SettingsChange};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Activity, AgentCommand, Channel, Level, MessageDetails, PlanStep};
use crate::domain::id::RunId;
use crate::domain::question::{OpenQuestion, Question, Resolution};
use crate::domain::queue::QueueModes;
use crate::domain::run::{AgentError, FailureCause, Progress, RunOutcome, Usage};
use crate::domain::tool::Tool;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub(crate) enum ToAgent {
    /// Start a run. The next prompt comes after the end of the run before; a busy agent ends the new
    /// run as failed.
    Prompt { run: RunId, prompt: PromptContent },
    /// Continue a run that an earlier process of this agent started and that waits for answers. Sent
    /// only to agents that can.
    Resume {
        run: RunId,
        prompt: PromptContent,
        questions: Vec<OpenQuestion>,
    },
    /// Add a text to the current run. Sent only to agents with the capability `steer`.
    Steer { run: RunId, text: String },
    /// Take up a queued text within the current run, after what it does now. Sent only to agents with the
    /// capability `followUpInRun`; answered with [`FromAgent::FollowUpTaken`], if at all. The text stays
    /// in the session's queue until then.
    FollowUp {
        run: RunId,
        /// The run that it would be otherwise.
        queued: RunId,
        text: String,
    },
    /// Stop a run; ignored unless it is the current one. If the run does not end soon, the process is
    /// ended.
    Cancel { run: RunId },
    /// A question has ended. Every question gets exactly one of these, also when its run is cancelled
    /// (then before the cancel) or ends without an answer (then after its end); none if the agent
    /// withdrew the question.
    Answer {
        /// The agent's id for the question.
        question: String,
        resolution: Resolution,
    },
    /// A query, or an operation that only this agent knows. Answered with [`FromAgent::Response`],
    /// also during a run.
    Request { id: u64, request: AgentRequest },
    /// Settings that apply from now on; absent ones stay.
    Settings(SettingsChange),
    /// The only tools that the agent may use from now on.
    Tools(Vec<String>),
    /// The client's position: open files, selection.
    Context(Value),
    /// How queued prompts are taken from now on.
    QueueModes(QueueModes),
}

/// Of an event without its contents.
const BASE_BYTES: usize = 64;

/// Why an agent did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Declined {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

/// An event of the agent for its session. Which session follows from the channel, never from a field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub(crate) enum FromAgent {
    RunAccepted {
        run: RunId,
    },
    RunProgress {
        run: RunId,
        progress: Progress,
    },
    MessageDelta {
        run: RunId,
        channel: Channel,
        text: String,
    },
    MessageFinal {
        run: RunId,
        /// The whole message, if it did not come in pieces.
        text: Option<String>,
    },
    /// The run has begun with the text of a [`ToAgent::FollowUp`].
    FollowUpTaken {
        run: RunId,
        queued: RunId,
    },
    /// A whole message that did not come in pieces, with what the agent says about it.
    MessageWhole {
        run: RunId,
        text: String,
        details: Box<MessageDetails>,
    },
    /// The pieces of the current message are void: it is sent again from the start.
    MessageWithdrawn {
        run: RunId,
    },
    /// A tool call; the first update with an id creates it, later ones change it.
    ToolUpdate {
        run: RunId,
        tool: Tool,
    },
    /// A question for a person. The run waits for [`ToAgent::Answer`].
    QuestionAsked {
        run: RunId,
        /// The agent's id for the question.
        question: String,
        content: Box<Question>,
        /// The agent waits no longer than this. The session alone decides when the question expires.
        #[serde(
            default,
            rename = "timeout_ms",
            with = "millis",
            skip_serializing_if = "Option::is_none"
        )]
        timeout: Option<Duration>,
    },
    /// A question that no run waits for. It ends with the agent.
    SessionQuestion(Box<SessionQuestion>),
    /// The agent went on without an answer.
    QuestionWithdrawn {
        /// The agent's id for the question.
        question: String,
    },
    /// The result of a [`ToAgent::Request`] with the same id.
    Response {
        id: u64,
        #[serde(with = "response_result")]
        result: Result<Value, Declined>,
    },
    /// Tokens used since the last report.
    Usage(Usage),
    /// Settings that are in force, by the agent's own report; absent ones are unknown or as before.
    Settings(SettingsChange),
    /// How much of the context window is left, in percent.
    ContextLeft(u8),
    /// The complete list of the agent's commands.
    CommandsAvailable(Vec<AgentCommand>),
    /// A message of the agent's protocol that has no counterpart here.
    Raw {
        dialect: String,
        value: Value,
    },
    /// The complete plan.
    PlanUpdated(Vec<PlanStep>),
    Activity(Activity),
    TitleChanged(String),
    Notice {
        level: Level,
        text: String,
    },
    /// An event together with what only the agent's protocol has words for.
    WithMeta {
        event: Box<FromAgent>,
        meta: Map<String, Value>,
    },
    /// The agent's own id for this conversation, with which it can continue later; or what its dialect
    /// must know for that.
    Thread(String),
    /// The agent ended before it received any of this run's prompt: it may be sent to another one. The
    /// last event about the run from this agent.
    Undelivered {
        run: RunId,
        /// Why the agent ended.
        reason: Declined,
    },
    /// The agent's own words about the failure of a run; precede the end of that run.
    RunError {
        run: RunId,
        error: Box<AgentError>,
    },
    /// The link to the agent failed; precedes the end of the run that it takes with it.
    LinkFailed(FailureCause),
    /// The end of a run: at most once per run, and the last event about it. If the channel closes
    /// without it, the agent is gone and the session ends the run itself.
    RunEnded {
        run: RunId,
        outcome: RunOutcome,
        /// Tokens used since the last report.
        usage: Option<Usage>,
    },
}

/// A question of the agent beside its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionQuestion {
    /// The agent's id for the question.
    pub(crate) question: String,
    pub(crate) content: Question,
    /// As in [`FromAgent::QuestionAsked`].
    #[serde(
        default,
        rename = "timeout_ms",
        with = "millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) timeout: Option<Duration>,
}

impl FromAgent {
    /// The event without its meta.
    pub(crate) fn bare(&self) -> &Self {
        match self {
            Self::WithMeta { event, .. } => event.bare(),
            event => event,
        }
    }

    /// Whether it asks a person.
    pub(crate) fn is_question(&self) -> bool {
        matches!(
            self.bare(),
            Self::QuestionAsked { .. } | Self::SessionQuestion(_)
        )
    }

    /// The event, and its meta if it has any.
    pub(crate) fn split_meta(self) -> (Self, Option<Map<String, Value>>) {
        match self {
            Self::WithMeta { event, meta } => (*event, Some(meta)),
            event => (event, None),
        }
    }

    /// Whether it shows that the agent has the prompt of the run. `RunAccepted` does not: some dialects
    /// emit it before the agent has read anything.
    pub(crate) fn follows_prompt(&self) -> bool {
        matches!(
            self.bare(),
            Self::RunProgress { .. }
                | Self::MessageDelta { .. }
                | Self::MessageFinal { .. }
                | Self::MessageWhole { .. }
                | Self::MessageWithdrawn { .. }
                | Self::ToolUpdate { .. }
                | Self::QuestionAsked { .. }
                | Self::RunEnded { .. }
        )
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let value = |value: &Option<Value>| value.as_ref().map_or(0, bytes_of);
        BASE_BYTES
            + match self {
                Self::MessageDelta { text, .. } | Self::Notice { text, .. } => text.len(),
                Self::MessageFinal { text, .. } => text.as_ref().map_or(0, String::len),
                Self::MessageWhole { text, details, .. } => {
                    text.len() + details.metadata.values().map(bytes_of).sum::<usize>()
                }
                Self::Thread(thread) => thread.len(),
                Self::ToolUpdate { tool, .. } => value(&tool.input) + value(&tool.output),
                Self::Raw { value, .. } => bytes_of(value),
                Self::RunError { error, .. } => error.message.len() + bytes_of(&error.data),
                Self::Response { result, .. } => result.as_ref().map_or(0, bytes_of),
                Self::QuestionAsked { content, .. } => bytes_of_question(content),
                Self::SessionQuestion(asked) => bytes_of_question(&asked.content),
                Self::WithMeta { event, meta } => {
                    event.bytes() + meta.values().map(bytes_of).sum::<usize>()
                }
                Self::PlanUpdated(steps) => steps.len() * BASE_BYTES,
                Self::CommandsAvailable(commands) => commands.len() * BASE_BYTES,
                Self::Settings(settings) => settings.other.values().map(bytes_of).sum(),
                _ => 0,
            }
    }
}

fn bytes_of_question(question: &Question) -> usize {
    let args = question
        .tool
        .as_ref()
        .map_or(0, |tool| bytes_of(&tool.args));
    question.message.len() + args + question.options.len() * BASE_BYTES
}

/// An optional duration as a number of milliseconds.
mod millis {
    use super::{Deserialize, Duration};
    use serde::{Deserializer, Serialize as _, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let millis =
            duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        millis.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

/// A result as `{"ok": …}` or `{"error": …}`.
mod response_result {
    use super::{Declined, Deserialize, Serialize, Value};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Form<V, D> {
        Ok(V),
        Error(D),
    }

    pub(super) fn serialize<S: Serializer>(
        result: &Result<Value, Declined>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match result {
            Ok(value) => Form::Ok(value),
            Err(declined) => Form::Error(declined),
        }
        .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<Value, Declined>, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Ok(value) => Ok(value),
            Form::Error(declined) => Err(declined),
        })
    }
}

#[cfg(test)]
mod tests;
