//! Event frames: every kind of event as its one frame.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::prompt::Asked;
use super::question::{Question, Resolved};
use super::queue::Queue;
use super::shared_objects::{CommandInfo, Step, TaskError, TaskProgress, TokenUsage};
use super::tool::ToolState;
use crate::domain::command::SettingsChange;
use crate::domain::event::{Author, Channel, Event, Recorded, TextFormat};
use crate::domain::id::{MessageId, RunId, SessionId};
use crate::domain::run::{AgentError, FailureCause, RunOutcome, Usage};
use crate::domain::shared_text::Text;
use crate::wire::enums::{self, WireEnum as _};
use crate::wire::server_envelope::Envelope;

/// The frame of an event, the same for every client of the session.
pub(crate) fn event(session: SessionId, recorded: &Recorded) -> Text {
    let event = EventFrame { session, recorded };
    match recorded.event.bare() {
        Event::RunStarted {
            run,
            prompt,
            message,
            correlation,
            by,
            merged,
            senders: _,
        } => {
            let status = TaskStatus {
                prompt: Some(Asked::new(prompt, by.as_deref())),
                user_message_id: Some(*message),
                merged_task_ids: merged,
                ..TaskStatus::new(*run, "starting")
            };
            event
                .envelope("TASK_STATUS_UPDATE", &status)
                .answering(correlation.as_deref())
                .frame()
        }
        Event::RunProgress { run, progress } => event.frame(
            "TASK_STATUS_UPDATE",
            &TaskStatus {
                progress: progress.as_ref().map(Into::into),
                ..TaskStatus::new(*run, "running")
            },
        ),
        Event::RunEnded {
            run,
            outcome,
            usage,
            cause,
            agent_error,
        } => {
            let error = (*cause, agent_error.as_deref());
            event.run_ended(*run, outcome, error, usage.as_ref())
        }
        Event::MessageDelta {
            message,
            run,
            channel,
            text,
            index,
            joined,
        } => event.frame(
            "TASK_OUTPUT_CHUNK",
            &Chunk {
                from_offset: (*joined > 0).then(|| recorded.first()),
                ..Chunk::piece(
                    *message,
                    *run,
                    *channel,
                    text,
                    index.saturating_sub(*joined),
                )
            },
        ),
        Event::MessageFinal {
            message,
            run,
            author: author @ (Author::User | Author::System),
            text: Some(text),
            ..
        } => event.frame(
            "MESSAGE",
            &Utterance {
                id: *message,
                task_id: Some(*run),
                role: author.word(),
                content: text,
                format: TextFormat::Markdown.word(),
                metadata: None,
            },
        ),
        Event::MessageDescribed {
            message,
            run,
            text,
            details,
        } => event.frame(
            "MESSAGE",
            &Utterance {
                id: *message,
                task_id: Some(*run),
                role: Author::Assistant.word(),
                content: text,
                format: details.format.word(),
                metadata: (!details.metadata.is_empty()).then_some(Metadata {
                    suggestion: None,
                    by: None,
                    agent: Some(&details.metadata),
                }),
            },
        ),
        Event::Suggested { message, by, text } => event.frame(
            "MESSAGE",
            &Utterance {
                id: *message,
                task_id: None,
                role: Author::User.word(),
                content: text,
                format: TextFormat::Text.word(),
                metadata: Some(Metadata {
                    suggestion: Some(true),
                    by: Some(by),
                    agent: None,
                }),
            },
        ),
        // The end of a message that came in chunks. An empty text instead of them withdraws them.
        Event::MessageFinal {
            message,
            run,
            text,
            rest,
            index,
            ..
        } => event.frame(
            "TASK_OUTPUT_CHUNK",
            &Chunk {
                is_complete: true,
                withdrawn: (text.as_deref() == Some("") && *index > 0).then_some(true),
                ..Chunk::piece(*message, *run, Channel::Text, rest, *index)
            },
        ),
        Event::ToolUpdate { run, tool } => event.frame(
            "TOOL_UPDATE",
            &ToolUpdate {
                task_id: *run,
                tool: tool.into(),
            },
        ),
        Event::QuestionAsked(open) => event.frame("QUESTION", &Question::from(open)),
        Event::QuestionResolved {
            question,
            run,
            by,
            granted,
            resolution,
        } => {
            let resolved = Resolved::new(*question, *run, by, *granted, resolution);
            event.frame("QUESTION_RESOLVED", &resolved)
        }
        Event::QueueUpdated { entries, modes, .. } => {
            event.frame("QUEUE_UPDATE", &Queue::new(entries, *modes))
        }
        Event::AgentState { activity } => {
            let state = activity.word();
            event.frame("AGENT_STATE", &AgentState { state })
        }
        Event::Usage(usage) => event.frame("USAGE_UPDATE", &TokenUsage::from(usage)),
        Event::ContextLeft { percent } => {
            event.frame("USAGE_UPDATE", &TokenUsage::context_left(*percent))
        }
        Event::PlanUpdated { run, steps } => {
            let steps = steps.iter().map(Into::into).collect();
            let task_id = *run;
            event.frame("PLAN_UPDATE", &Plan { task_id, steps })
        }
        Event::SettingsChanged(change) | Event::SettingsReported(change) => {
            event.frame("STATE_UPDATE", &StateUpdate::from(change))
        }
        Event::ToolsChanged { tools } => {
            let updates = Updates::Tools { tools };
            event.frame("STATE_UPDATE", &StateUpdate { updates })
        }
        Event::CommandsAvailable { commands } => {
            let commands = commands.iter().map(Into::into).collect();
            event.frame("COMMANDS_UPDATE", &Commands { commands })
        }
        Event::TitleChanged { title } => event.frame("TITLE_UPDATE", &Title { title }),
        Event::AgentNotice { level, text } => {
            let level = level.word();
            event.frame("AGENT_NOTICE", &AgentNotice { level, text })
        }
        Event::Raw { dialect, value } => event.frame("RAW", &Raw { dialect, value }),
        Event::WithMeta { .. } => unreachable!("the bare event has no meta"),
    }
}

struct EventFrame<'a> {
    session: SessionId,
    recorded: &'a Recorded,
}

impl EventFrame<'_> {
    fn envelope<'p, P: Serialize>(&'p self, kind: &'static str, payload: &'p P) -> Envelope<'p, P> {
        let at: Timestamp = self.recorded.at;
        Envelope::new(kind, Some(self.session), at, payload)
            .at_offset(self.recorded.offset)
            .with_meta(self.recorded.event.meta())
    }

    fn frame<P: Serialize>(&self, kind: &'static str, payload: &P) -> Text {
        self.envelope(kind, payload).frame()
    }

    fn run_ended(
        &self,
        run: RunId,
        outcome: &RunOutcome,
        (cause, agent): (Option<FailureCause>, Option<&AgentError>),
        usage: Option<&Usage>,
    ) -> Text {
        let (status, error) = match outcome {
            RunOutcome::Completed => ("completed", None),
            RunOutcome::Cancelled => ("cancelled", None),
            RunOutcome::Failed { code, message } => {
                ("error", Some(TaskError::new(*code, message, cause, agent)))
            }
        };
        let status = TaskStatus {
            error,
            token_usage: usage.map(Into::into),
            ..TaskStatus::new(run, status)
        };
        self.frame("TASK_STATUS_UPDATE", &status)
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskStatus<'a> {
    task_id: RunId,
    #[schema(schema_with = enums::task_status)]
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<TaskProgress<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TaskError<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_usage: Option<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Asked<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message_id: Option<MessageId>,
    /// Tasks that waited and are part of this one now.
    #[serde(skip_serializing_if = "<[RunId]>::is_empty")]
    merged_task_ids: &'a [RunId],
}

impl TaskStatus<'_> {
    fn new(run: RunId, status: &'static str) -> Self {
        Self {
            task_id: run,
            status,
            progress: None,
            error: None,
            token_usage: None,
            prompt: None,
            user_message_id: None,
            merged_task_ids: &[],
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    content: &'a str,
    is_complete: bool,
    #[serde(rename = "chunkIndex")]
    index: u64,
    task_id: RunId,
    #[schema(schema_with = enums::channel)]
    channel: &'static str,
    /// Tells the utterances of one run apart, and finds the one that a state left unfinished.
    message_id: MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_offset: Option<u64>,
    /// What the utterance has said so far does not count: the agent begins again.
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn: Option<bool>,
}

impl<'a> Chunk<'a> {
    fn piece(
        message: MessageId,
        run: RunId,
        channel: Channel,
        content: &'a str,
        index: u64,
    ) -> Self {
        Self {
            content,
            is_complete: false,
            index,
            task_id: run,
            channel: channel.word(),
            message_id: message,
            from_offset: None,
            withdrawn: None,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Utterance<'a> {
    id: MessageId,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<RunId>,
    #[schema(schema_with = enums::author)]
    role: &'static str,
    content: &'a str,
    #[schema(schema_with = enums::text_format)]
    format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
}

/// Of an agent's message, the agent's own data about it.
#[derive(Serialize, ToSchema)]
struct Metadata<'a> {
    /// Proposed to whoever drives; the agent does not hear it.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<bool>,
    /// Who suggests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    agent: Option<&'a Map<String, Value>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUpdate<'a> {
    task_id: RunId,
    #[serde(flatten)]
    tool: ToolState<'a>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct AgentState {
    #[schema(schema_with = enums::activity)]
    state: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan<'a> {
    /// The run that follows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<RunId>,
    steps: Vec<Step<'a>>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Title<'a> {
    title: &'a str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct AgentNotice<'a> {
    #[schema(schema_with = enums::level)]
    level: &'static str,
    text: &'a str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Raw<'a> {
    dialect: &'a str,
    #[schema(value_type = Value)]
    value: &'a Value,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Commands<'a> {
    commands: Vec<CommandInfo<'a>>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct StateUpdate<'a> {
    updates: Updates<'a>,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum Updates<'a> {
    Settings { settings: ChangedSettings<'a> },
    Tools { tools: &'a [String] },
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ChangedSettings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    auto_approve: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    other: &'a Map<String, Value>,
}

impl<'a> From<&'a SettingsChange> for StateUpdate<'a> {
    fn from(change: &'a SettingsChange) -> Self {
        let settings = ChangedSettings {
            auto_approve: change.auto_approve,
            model: change.model.as_deref(),
            max_tokens: change.max_tokens,
            temperature: change.temperature,
            mode: change.mode.as_deref(),
            other: &change.other,
        };
        let updates = Updates::Settings { settings };
        Self { updates }
    }
}
