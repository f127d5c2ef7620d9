//! The run that a session's state tells of.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::code::Code;
use crate::domain::command::Mode;
use crate::domain::id::{MessageId, RunId};
use crate::domain::run::{Progress, RunOutcome};

/// The run under way, or the last one that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurrentRun {
    /// Its id.
    pub(crate) id: RunId,
    /// How it stands.
    pub(crate) status: RunStatus,
    /// What was asked.
    pub(crate) prompt: String,
    /// To be planned or done.
    #[serde(default = "act")]
    pub(crate) mode: Mode,
    /// Runs that waited and are part of this one.
    #[serde(default)]
    pub(crate) merged: Vec<RunId>,
    /// When it began.
    pub(crate) started_at: Timestamp,
    /// When it ended.
    pub(crate) ended_at: Option<Timestamp>,
    /// How far it is, as far as the agent said.
    pub(crate) progress: Option<Progress>,
    /// The index of its next chunk.
    pub(crate) chunks: u64,
    /// The utterance that the agent is writing.
    pub(crate) message: Option<MessageId>,
}

fn act() -> Mode {
    Mode::Act
}

/// How a run stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunStatus {
    /// Accepted; the agent has not said yet that it works on it.
    Starting,
    /// The agent works on it.
    Running,
    /// The agent finished.
    Completed,
    /// Somebody cancelled it.
    Cancelled,
    /// It failed.
    Failed {
        /// Which kind of failure.
        code: Code,
        /// What a person reads.
        message: String,
    },
}

impl RunStatus {
    /// Is the end still to come?
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
