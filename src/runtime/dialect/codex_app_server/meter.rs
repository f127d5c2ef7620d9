//! What a thread has used. The app server tells totals, the session wants what is new.

use serde_json::Value;

use super::super::{FromAgent, Out};
use crate::domain::run::Usage;

/// What was told so far; nothing is known of a thread that was taken up until it says something.
#[derive(Debug, Default)]
pub(super) struct Meter {
    told: Option<Usage>,
}

fn usage(counts: &Value) -> Usage {
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cost: None,
    }
}

impl Meter {
    /// The thread is new: nothing was used.
    pub(super) fn begin(&mut self) {
        self.told = Some(Usage::default());
    }

    /// Tells what is new since the last time, and how much of the context is left.
    pub(super) fn read(&mut self, counts: &Value, during_a_run: bool, out: &mut Out) {
        let total = usage(&counts["total"]);
        let new = match self.told {
            Some(told) => Usage {
                input: total.input.saturating_sub(told.input),
                output: total.output.saturating_sub(told.output),
                cost: None,
            },
            // A thread that was taken up repeats what it had used before.
            None if during_a_run => usage(&counts["last"]),
            None => Usage::default(),
        };
        // Never less than before: what was told once is not told again.
        let told = self.told.unwrap_or_default();
        self.told = Some(Usage {
            input: total.input.max(told.input),
            output: total.output.max(told.output),
            cost: None,
        });
        if new.total() > 0 {
            out.tell(FromAgent::Usage(new));
        }
        let used = counts["last"]["totalTokens"].as_u64();
        let window = counts["modelContextWindow"].as_u64();
        if let (Some(used), Some(window @ 1..)) = (used, window) {
            let left = u128::from(window.saturating_sub(used)) * 100 / u128::from(window);
            out.tell(FromAgent::ContextLeft(u8::try_from(left).unwrap_or(100)));
        }
    }
}
