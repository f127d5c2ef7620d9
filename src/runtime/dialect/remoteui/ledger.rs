//! The tokens that were told, so that totals can be told as what is new in them. Pure.
//!
//! There are two kinds of totals, those of a task and those of the session, and the same tokens are
//! in both: whichever comes first tells them, the other one finds them told.

use serde_json::Value;

use crate::domain::run::Usage;

/// What was told of a session.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What the session had used before this conversation began, once it is known.
    before: Option<Usage>,
    told: Usage,
}

impl Ledger {
    /// What the session had used when this began.
    pub(super) fn begin(&mut self, total: &Usage) {
        self.before = Some(*total);
    }

    /// These tokens are told now.
    pub(super) fn tell(&mut self, new: &Usage) {
        self.told = self.told.plus(new);
    }

    /// What is new in a total of the session. The first one, if nothing is known of the time
    /// before, only says where things stand.
    pub(super) fn beyond(&mut self, total: &Usage) -> Option<Usage> {
        if let Some(before) = self.before {
            return beyond(total, &before.plus(&self.told));
        }
        self.before = Some(beyond(total, &self.told).unwrap_or_default());
        None
    }
}

/// What a total has beyond what was told, if anything.
pub(super) fn beyond(total: &Usage, told: &Usage) -> Option<Usage> {
    let cost = total.cost.map(|cost| cost - told.cost.unwrap_or(0.0));
    let new = Usage {
        input: total.input.saturating_sub(told.input),
        output: total.output.saturating_sub(told.output),
        cost: cost.filter(|cost| *cost > 0.0),
    };
    (new.total() > 0 || new.cost.is_some()).then_some(new)
}

/// Tokens as the document writes them; none if it is something else.
pub(super) fn usage(value: &Value) -> Option<Usage> {
    let value = value.as_object()?;
    let count = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
    let cost = value.get("cost").and_then(Value::as_f64);
    Some(Usage {
        input: count("input"),
        output: count("output"),
        cost,
    })
}
