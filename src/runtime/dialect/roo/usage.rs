//! Usage totals per task, reported as increments. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::run::Usage;
use crate::runtime::dialect::usage::{self, increase};

#[derive(Debug, Default)]
pub(super) struct UsageTotals {
    reported: BTreeMap<String, Usage>,
    /// A resumed task: its first total contains earlier usage and only sets the baseline.
    resumed: Option<String>,
}

impl UsageTotals {
    pub(super) fn resume(&mut self, task: &str) {
        if !self.reported.contains_key(task) {
            self.resumed = Some(task.to_owned());
        }
    }

    pub(super) fn new_in(&mut self, task: &str, total: &Value) -> Option<Usage> {
        let total = usage_of(total)?;
        let reported = self.reported.insert(task.to_owned(), total);
        if reported.is_none() && self.resumed.take_if(|taken| *taken == task).is_some() {
            return None;
        }
        increase(&total, &reported.unwrap_or_default())
    }
}

fn usage_of(total: &Value) -> Option<Usage> {
    let total = total.as_object()?;
    let count = |name: &str| total.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input: count("totalTokensIn"),
        output: count("totalTokensOut"),
        cost: total.get("totalCost").and_then(Value::as_f64),
    })
}

/// In percent.
pub(super) fn context_left(total: &Value, window: u64) -> Option<u8> {
    usage::context_left(total["contextTokens"].as_u64()?, window)
}
