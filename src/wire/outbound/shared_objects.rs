//! Shared objects: the payload objects that several messages share.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::error_code::ErrorCode;
use crate::domain::event::{AgentCommand, PlanStep};
use crate::domain::run::{AgentError, FailureCause, Progress, Usage};
use crate::wire::enums::WireEnum;

/// Tokens used.
#[derive(Serialize, ToSchema)]
pub(super) struct TokenUsage {
    input: u64,
    output: u64,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(rename = "contextLeftPercent", skip_serializing_if = "Option::is_none")]
    context_left: Option<u8>,
}

impl TokenUsage {
    /// Only how much of the context is left.
    pub(super) fn context_left(percent: u8) -> Self {
        Self {
            context_left: Some(percent),
            ..Self::from(&Usage::default())
        }
    }
}

impl From<&Usage> for TokenUsage {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            total: usage.total(),
            // JSON has no word for the others; a `null` would break a client that adds costs up.
            cost: usage.cost.filter(|cost| cost.is_finite()),
            context_left: None,
        }
    }
}

/// How far a task is.
#[derive(Serialize, ToSchema)]
pub(super) struct TaskProgress<'a> {
    current: u64,
    total: u64,
    description: &'a str,
}

impl<'a> From<&'a Progress> for TaskProgress<'a> {
    fn from(progress: &'a Progress) -> Self {
        Self {
            current: progress.current,
            total: progress.total,
            description: &progress.description,
        }
    }
}

/// Why a task failed.
#[derive(Serialize, ToSchema)]
pub(super) struct TaskError<'a> {
    #[schema(schema_with = crate::wire::enums::code)]
    code: ErrorCode,
    message: &'a str,
    /// Why the run was lost, if its agent did not end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = crate::wire::enums::failure_cause)]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<TaskErrorDetails<'a>>,
}

/// What the agent itself said about the failure.
#[derive(Serialize, ToSchema)]
struct TaskErrorDetails<'a> {
    agent: AgentErrorBody<'a>,
}

/// An agent's own error, unchanged.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentError)]
struct AgentErrorBody<'a> {
    /// A string or a number.
    #[schema(value_type = Value)]
    code: &'a Value,
    #[serde(skip_serializing_if = "str::is_empty")]
    #[schema(required = false)]
    message: &'a str,
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Value, required = false)]
    data: &'a Value,
}

impl<'a> TaskError<'a> {
    pub(super) fn new(
        code: ErrorCode,
        message: &'a str,
        cause: Option<FailureCause>,
        agent: Option<&'a AgentError>,
    ) -> Self {
        let details = agent.map(|error| TaskErrorDetails {
            agent: AgentErrorBody {
                code: &error.code,
                message: &error.message,
                data: &error.data,
            },
        });
        Self {
            code,
            message,
            cause: cause.map(WireEnum::word),
            details,
        }
    }
}

/// A command that the agent understands.
#[derive(Serialize, ToSchema)]
pub(super) struct CommandInfo<'a> {
    name: &'a str,
    description: &'a str,
}

impl<'a> From<&'a AgentCommand> for CommandInfo<'a> {
    fn from(command: &'a AgentCommand) -> Self {
        Self {
            name: &command.name,
            description: &command.description,
        }
    }
}

/// A step of a plan.
#[derive(Serialize, ToSchema)]
pub(super) struct Step<'a> {
    title: &'a str,
    status: &'a str,
}

impl<'a> From<&'a PlanStep> for Step<'a> {
    fn from(step: &'a PlanStep) -> Self {
        Self {
            title: &step.title,
            status: &step.status,
        }
    }
}
