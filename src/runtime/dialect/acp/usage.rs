//! Usage: a session's cost and context as agents report them, and the tokens of a prompt.

use serde_json::Value;

use super::super::usage::{context_left, increase};
use crate::domain::run::Usage;

/// Turns the totals of a session into what is new.
#[derive(Debug, Default)]
pub(super) struct UsageMeter {
    /// The last total; it has only a cost.
    total: Usage,
    context_left: Option<u8>,
    prompted: bool,
}

impl UsageMeter {
    /// A prompt was sent: costs from now on are new.
    pub(super) fn prompt_sent(&mut self) {
        self.prompted = true;
    }

    /// The cost since the last update. An earlier process of the agent reported what a resumed session
    /// had cost before.
    pub(super) fn new_cost(&mut self, update: &Value, resumed: bool) -> Option<Usage> {
        let total = Usage {
            cost: Some(update["cost"]["amount"].as_f64()?),
            ..Usage::default()
        };
        let new = increase(&total, &self.total);
        self.total = total;
        new.filter(|_| self.prompted || !resumed)
    }

    /// How much of the context is left, in percent, if that changed.
    pub(super) fn context_left(&mut self, update: &Value) -> Option<u8> {
        let left = context_left(update["used"].as_u64()?, update["size"].as_u64()?)?;
        let changed = self.context_left.replace(left) != Some(left);
        changed.then_some(left)
    }
}

pub(super) fn of_prompt(result: &Value) -> Option<Usage> {
    let usage = result["usage"].as_object()?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (mut input, mut output) = (count("inputTokens"), count("outputTokens"));
    // Some agents include cached and thought tokens in these, others do not: the total tells.
    if count("totalTokens") > input.saturating_add(output) {
        let cached = count("cachedReadTokens").saturating_add(count("cachedWriteTokens"));
        input = input.saturating_add(cached);
        output = output.saturating_add(count("thoughtTokens"));
    }
    (input > 0 || output > 0).then_some(Usage {
        input,
        output,
        cost: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_new_part_of_a_cost_is_reported() {
        let mut meter = UsageMeter::default();
        let at = |amount: f64| json!({ "cost": { "amount": amount } });
        assert_eq!(meter.new_cost(&at(2.0), true), None);
        meter.prompt_sent();
        let cost = |usage: Option<Usage>| usage.and_then(|usage| usage.cost);
        assert_eq!(cost(meter.new_cost(&at(2.5), true)), Some(0.5));
        assert_eq!(cost(meter.new_cost(&at(2.5), true)), None);
        assert_eq!(cost(meter.new_cost(&at(0.0), true)), None);
        assert_eq!(cost(meter.new_cost(&at(1.0), true)), Some(1.0));
    }

    #[test]
    fn the_context_is_reported_when_it_changes_and_never_more_than_full() {
        let mut meter = UsageMeter::default();
        let mut left =
            |used: u64, size: u64| meter.context_left(&json!({ "used": used, "size": size }));
        assert_eq!(left(25, 100), Some(75));
        assert_eq!(left(25, 100), None);
        assert_eq!(left(u64::MAX, 1), Some(0));
        assert_eq!(left(0, u64::MAX), Some(100));
        assert_eq!(left(1, 0), None);
    }

    #[test]
    fn cached_and_thought_tokens_are_added_only_where_the_counts_exclude_them() {
        let of = |total: u64| {
            of_prompt(&json!({ "usage": {
                "inputTokens": 10, "outputTokens": 5, "totalTokens": total,
                "cachedReadTokens": 3, "thoughtTokens": 2,
            } }))
            .map(|usage| (usage.input, usage.output))
        };
        assert_eq!(of(15), Some((10, 5)));
        assert_eq!(of(20), Some((13, 7)));
        assert_eq!(of_prompt(&json!({ "usage": 1 })), None);
    }
}
