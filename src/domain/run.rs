//! A run: an accepted prompt until its one end, and what it reports on the way.

use serde::{Deserialize, Serialize};

use super::code::Code;

/// How a run ended. There is exactly one end per run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RunOutcome {
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

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub current: u64,
    /// Steps in all.
    pub total: u64,
    /// What is being done.
    pub description: String,
}

/// Tokens used, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// In the currency of whoever bills them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Tokens in all.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Both together.
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
