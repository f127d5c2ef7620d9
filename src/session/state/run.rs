//! Current run: the run under way, or the last one that ended.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::command::Mode;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::{MessageId, RunId, UserId};
use crate::domain::run::{AgentError, FailureCause, Progress, RunOutcome};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurrentRun {
    pub(crate) id: RunId,
    pub(crate) status: RunStatus,
    pub(crate) prompt: String,
    #[serde(default = "act")]
    pub(crate) mode: Mode,
    /// Queued runs that became part of this one.
    #[serde(default)]
    pub(crate) merged: Vec<RunId>,
    /// Those who sent its prompts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) senders: Vec<UserId>,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Option<Timestamp>,
    /// Why it was lost, if its agent did not end it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<FailureCause>,
    /// The agent's own words about its failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_error: Option<Box<AgentError>>,
    pub(crate) progress: Option<Progress>,
    /// Index of the next chunk.
    pub(crate) chunks: u64,
    pub(crate) message: Option<MessageId>,
}

fn act() -> Mode {
    Mode::Act
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    Starting,
    Running,
    Completed,
    Cancelled,
    Failed { code: ErrorCode, message: String },
}

impl RunStatus {
    pub(crate) fn is_live(&self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

impl From<&RunOutcome> for RunStatus {
    fn from(outcome: &RunOutcome) -> Self {
        match outcome {
            RunOutcome::Completed => Self::Completed,
            RunOutcome::Cancelled => Self::Cancelled,
            RunOutcome::Failed { code, message } => Self::Failed {
                code: *code,
                message: message.clone(),
            },
        }
    }
}
