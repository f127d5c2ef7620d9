//! Run: an accepted prompt until its one end; its outcome, progress and usage.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error_code::ErrorCode;

/// Outcome of a run. There is exactly one per run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RunOutcome {
    /// The agent finished.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed {
        /// Kind of failure.
        code: ErrorCode,
        /// Text for people.
        message: String,
    },
}

/// An agent's own words about a failure, beside the gateway's code for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentError {
    /// The agent's code: a string or a number.
    pub code: Value,
    /// The agent's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What else it says, for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// Why a run was lost, if its agent did not end it: what helps differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The agent's program is not on the machine: an operator must install it.
    NotInstalled,
    /// The agent is there and cannot be started or reached: an operator must correct its setup.
    NotStarted,
    /// The agent ended during the run.
    Crashed,
    /// The gateway was stopped or restarted during the run.
    GatewayRestarted,
}

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub current: u64,
    /// Steps in all.
    pub total: u64,
    /// The current step.
    pub description: String,
}

/// Tokens used, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Cost, in the provider's currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Tokens in all.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let cost = match (self.cost, other.cost) {
            (None, None) => None,
            (one, two) => Some(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
        };
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cost,
        }
    }
}
