//! Reported usage: turns totals into increments. Pure.
//!
//! The totals of a task and those of the session contain the same tokens: the first message reports
//! them, the other one finds them reported.

use serde_json::Value;

use crate::domain::run::Usage;
use crate::runtime::dialect::usage::increase;

#[derive(Debug, Default)]
pub(super) struct ReportedUsage {
    /// Usage of the session before this connection, once known.
    baseline: Option<Usage>,
    reported: Usage,
}

impl ReportedUsage {
    pub(super) fn set_baseline(&mut self, total: &Usage) {
        self.baseline = Some(*total);
    }

    pub(super) fn add(&mut self, new: &Usage) {
        self.reported = self.reported.plus(new);
    }

    /// What is new in a total of the session. Without a baseline the first total only sets it.
    pub(super) fn new_in(&mut self, total: &Usage) -> Option<Usage> {
        if let Some(baseline) = self.baseline {
            return increase(total, &baseline.plus(&self.reported));
        }
        self.baseline = Some(increase(total, &self.reported).unwrap_or_default());
        None
    }
}

/// `tokenUsage` of a message.
pub(super) fn usage_of(value: &Value) -> Option<Usage> {
    let value = value.as_object()?;
    let count = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let cost = value.get("cost").and_then(Value::as_f64);
    Some(Usage {
        input: count("input"),
        output: count("output"),
        cost,
    })
}
