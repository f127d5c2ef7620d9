//! State frame: all that a client needs to show a session, as of one offset.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::question::Question;
use super::queue::Queue;
use super::shared_objects::{CommandInfo, Step, TaskError, TaskProgress, TokenUsage};
use super::tool::ToolState;
use crate::domain::id::{Epoch, MessageId, RunId, SessionId};
use crate::domain::shared_text::Text;
use crate::session::state::{CurrentRun, Message, RunStatus, SessionState, Settings};
use crate::wire::enums::{self, WireEnum as _};
use crate::wire::server_envelope::{Envelope, Moment, moment};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateParts {
    /// The conversation; without it, an empty one is sent.
    pub(crate) history: bool,
    /// The settings; without them, the field is absent.
    pub(crate) settings: bool,
}

impl StateParts {
    pub(crate) const WHOLE: Self = Self {
        history: true,
        settings: true,
    };
}

pub(crate) fn full_state(
    session: SessionId,
    state: &SessionState,
    epoch: Epoch,
    capabilities: &[&str],
    what: StateParts,
    message_id: Option<&str>,
    at: Timestamp,
) -> Text {
    let history = state
        .messages
        .iter()
        .map(AsRef::as_ref)
        .filter(|_| what.history);
    let line = state.queue.summary();
    let payload = FullState {
        conversation_history: history.map(Into::into).collect(),
        current_task: state.current.as_ref().map(Into::into),
        settings: what.settings.then(|| (&state.settings).into()),
        token_usage: (&state.usage).into(),
        capabilities,
        offset: state.offset,
        epoch,
        history_truncated: state.truncated,
        activity: state.activity.word(),
        plan: state.plan.iter().map(Into::into).collect(),
        tools: state
            .tools
            .iter()
            .map(|tool| tool.as_ref().into())
            .collect(),
        title: state.title.as_deref(),
        questions: state.questions.open.iter().map(Into::into).collect(),
        queue: Queue::new(&line, state.queue.modes),
        commands: state.commands.iter().map(Into::into).collect(),
        enabled_tools: state.chosen_tools.as_deref(),
        context_left_percent: state.context_left,
    };
    Envelope::new("FULL_STATE", Some(session), at, &payload)
        .answering(message_id)
        .frame()
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FullState<'a> {
    conversation_history: Vec<HistoryMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_task: Option<TaskState<'a>>,
    /// Absent if they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<AllSettings<'a>>,
    token_usage: TokenUsage,
    capabilities: &'a [&'a str],
    offset: u64,
    epoch: Epoch,
    history_truncated: bool,
    #[schema(schema_with = enums::activity)]
    activity: &'static str,
    plan: Vec<Step<'a>>,
    tools: Vec<ToolState<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    questions: Vec<Question<'a>>,
    #[serde(flatten)]
    queue: Queue<'a>,
    commands: Vec<CommandInfo<'a>>,
    /// The tools that were chosen; absent as long as nobody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled_tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_left_percent: Option<u8>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct HistoryMessage<'a> {
    id: MessageId,
    #[serde(rename = "type")]
    #[schema(schema_with = enums::author)]
    author: &'static str,
    content: &'a str,
    #[serde(serialize_with = "moment")]
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_usage: Option<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<RunId>,
    is_complete: bool,
    /// As in `MESSAGE`, if its agent has said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = enums::text_format)]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a Map<String, Value>>,
}

impl<'a> From<&'a Message> for HistoryMessage<'a> {
    fn from(message: &'a Message) -> Self {
        let details = message.details.as_deref();
        Self {
            id: message.id,
            author: message.author.word(),
            content: &message.text,
            timestamp: message.at,
            token_usage: message.usage.as_ref().map(Into::into),
            task_id: message.run,
            is_complete: message.complete,
            format: details.map(|details| details.format.word()),
            metadata: details
                .map(|details| &details.metadata)
                .filter(|metadata| !metadata.is_empty()),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TaskState<'a> {
    id: RunId,
    #[schema(schema_with = enums::task_status)]
    status: &'static str,
    prompt: &'a str,
    #[serde(serialize_with = "moment")]
    start_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<TaskProgress<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TaskError<'a>>,
}

impl<'a> From<&'a CurrentRun> for TaskState<'a> {
    fn from(run: &'a CurrentRun) -> Self {
        let (status, error) = match &run.status {
            RunStatus::Starting | RunStatus::Running => ("running", None),
            RunStatus::Completed => ("completed", None),
            RunStatus::Cancelled => ("cancelled", None),
            RunStatus::Failed { code, message } => {
                let agent = run.agent_error.as_deref();
                (
                    "error",
                    Some(TaskError::new(*code, message, run.cause, agent)),
                )
            }
        };
        Self {
            id: run.id,
            status,
            prompt: &run.prompt,
            start_time: run.started_at,
            end_time: run.ended_at.map(Moment),
            progress: run.progress.as_ref().map(Into::into),
            error,
        }
    }
}

/// What the agent reported or a member chose; what is not known is absent. Beyond these, the agent's own.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AllSettings<'a> {
    auto_approve: bool,
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

impl<'a> From<&'a Settings> for AllSettings<'a> {
    fn from(settings: &'a Settings) -> Self {
        let current = &settings.current;
        Self {
            auto_approve: settings.auto_approve(),
            model: current.model.as_deref(),
            max_tokens: current.max_tokens,
            temperature: current.temperature,
            mode: current.mode.as_deref(),
            other: &current.other,
        }
    }
}
