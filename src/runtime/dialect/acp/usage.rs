//! What a conversation has cost, and how full it is.

use serde_json::Value;

use crate::domain::run::Usage;

/// Agents tell sums since the conversation began; sessions want what is new.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// What everything has cost so far.
    cost: f64,
    /// How much of the context was left when that was told last.
    left: Option<u8>,
    /// Was anything asked yet?
    begun: bool,
}

impl Meter {
    /// Something is asked: what is told from now on is new.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// The cost that was not told before. What a conversation that was taken up had cost before was
    /// told by an earlier life of the agent.
    pub(super) fn cost(&mut self, update: &Value, taken_up: bool) -> Option<Usage> {
        let sum = update["cost"]["amount"].as_f64()?;
        let more = sum - self.cost;
        self.cost = sum;
        let told_before = taken_up && !self.begun;
        (more > 0.0 && !told_before).then_some(Usage {
            cost: Some(more),
            ..Usage::default()
        })
    }

    /// How much of the context is left, in percent, if that is news.
    pub(super) fn left(&mut self, update: &Value) -> Option<u8> {
        let (used, size) = (update["used"].as_u64()?, update["size"].as_u64()?);
        let free = u128::from(size.saturating_sub(used)) * 100;
        let percent = free.checked_div(u128::from(size))?;
        let left = u8::try_from(percent).ok();
        if left == self.left {
            return None;
        }
        self.left = left;
        left
    }
}

/// What a run has used, as the answer to its prompt says.
pub(super) fn tokens(result: &Value) -> Option<Usage> {
    let usage = result["usage"].as_object()?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (mut input, mut output) = (count("inputTokens"), count("outputTokens"));
    // Some count what was cached and thought among these, others beside them: the sum tells.
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
    fn only_what_is_new_is_told() {
        let mut meter = Meter::default();
        let at = |amount: f64| json!({ "cost": { "amount": amount } });
        assert_eq!(meter.cost(&at(2.0), true), None);
        meter.begin();
        let cost = |usage: Option<Usage>| usage.and_then(|usage| usage.cost);
        assert_eq!(cost(meter.cost(&at(2.5), true)), Some(0.5));
        assert_eq!(cost(meter.cost(&at(2.5), true)), None);
        assert_eq!(cost(meter.cost(&at(0.0), true)), None);
        assert_eq!(cost(meter.cost(&at(1.0), true)), Some(1.0));
    }

    #[test]
    fn the_context_is_never_more_than_full() {
        let mut meter = Meter::default();
        let mut left = |used: u64, size: u64| meter.left(&json!({ "used": used, "size": size }));
        assert_eq!(left(25, 100), Some(75));
        assert_eq!(left(25, 100), None);
        assert_eq!(left(u64::MAX, 1), Some(0));
        assert_eq!(left(0, u64::MAX), Some(100));
        assert_eq!(left(1, 0), None);
    }

    #[test]
    fn what_is_counted_beside_is_added_and_what_is_counted_among_is_not() {
        let of = |total: u64| {
            tokens(&json!({ "usage": {
                "inputTokens": 10, "outputTokens": 5, "totalTokens": total,
                "cachedReadTokens": 3, "thoughtTokens": 2,
            } }))
            .map(|usage| (usage.input, usage.output))
        };
        assert_eq!(of(15), Some((10, 5)));
        assert_eq!(of(20), Some((13, 7)));
        assert_eq!(tokens(&json!({ "usage": 1 })), None);
    }
}
