//! Usage: the totals of a thread, reported as what is new in them.

use serde_json::Value;

use super::super::usage::{context_left, increase};
use super::super::{Actions, FromAgent};
use crate::domain::run::Usage;

/// The usage reported so far; unknown for a resumed thread until its first update.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    reported: Option<Usage>,
}

fn usage(counts: &Value) -> Usage {
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cost: None,
    }
}

impl UsageMeter {
    pub(super) fn start_from_zero(&mut self) {
        self.reported = Some(Usage::default());
    }

    /// Reports what is new since the last update, and how much of the context is left.
    pub(super) fn update(&mut self, counts: &Value, during_turn: bool, out: &mut Actions) {
        let total = usage(&counts["total"]);
        let reported = self.reported.unwrap_or_default();
        let new = match self.reported {
            Some(reported) => increase(&total, &reported),
            // A resumed thread repeats what it had used before.
            None if during_turn => Some(usage(&counts["last"])).filter(|last| last.total() > 0),
            None => None,
        };
        // Never less than before: nothing is reported twice.
        self.reported = Some(Usage {
            input: total.input.max(reported.input),
            output: total.output.max(reported.output),
            cost: None,
        });
        if let Some(new) = new {
            out.emit(FromAgent::Usage(new));
        }
        let used = counts["last"]["totalTokens"].as_u64();
        let window = counts["modelContextWindow"].as_u64();
        let left = used
            .zip(window)
            .and_then(|(used, window)| context_left(used, window));
        if let Some(left) = left {
            out.emit(FromAgent::ContextLeft(left));
        }
    }
}
