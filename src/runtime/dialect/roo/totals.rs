//! The tokens of each task, told as what is new in them. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::run::Usage;

/// What was told of the tokens of each task.
#[derive(Debug, Default)]
pub(super) struct Totals {
    told: BTreeMap<String, Usage>,
    /// A task that had used tokens before this began: its first total only says where it stands.
    taken_up: Option<String>,
}

impl Totals {
    /// A task of an earlier time is taken up.
    pub(super) fn take_up(&mut self, task: &str) {
        if !self.told.contains_key(task) {
            self.taken_up = Some(task.to_owned());
        }
    }

    /// What is new in a total, if anything.
    pub(super) fn beyond(&mut self, task: &str, total: &Value) -> Option<Usage> {
        let total = usage(total)?;
        let told = self.told.insert(task.to_owned(), total);
        if told.is_none() && self.taken_up.take_if(|taken| *taken == task).is_some() {
            return None;
        }
        let told = told.unwrap_or_default();
        let cost = total.cost.map(|cost| cost - told.cost.unwrap_or(0.0));
        let new = Usage {
            input: total.input.saturating_sub(told.input),
            output: total.output.saturating_sub(told.output),
            cost: cost.filter(|cost| *cost > 0.0),
        };
        (new.total() > 0 || new.cost.is_some()).then_some(new)
    }
}

fn usage(total: &Value) -> Option<Usage> {
    let total = total.as_object()?;
    let count = |name: &str| total.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input: count("totalTokensIn"),
        output: count("totalTokensOut"),
        cost: total.get("totalCost").and_then(Value::as_f64),
    })
}

/// How much of the context is left, in percent.
pub(super) fn context_left(total: &Value, window: u64) -> Option<u8> {
    let used = total["contextTokens"].as_u64()?;
    let left = window
        .saturating_sub(used)
        .saturating_mul(100)
        .checked_div(window)?;
    u8::try_from(left).ok()
}
