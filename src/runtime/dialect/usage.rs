//! Usage: the new part of the totals that agents report, and the context that is left.

use crate::domain::run::Usage;

/// What a total has beyond what was reported before, if anything.
pub(super) fn increase(total: &Usage, reported: &Usage) -> Option<Usage> {
    let cost = total.cost.map(|cost| cost - reported.cost.unwrap_or(0.0));
    let new = Usage {
        input: total.input.saturating_sub(reported.input),
        output: total.output.saturating_sub(reported.output),
        cost: cost.filter(|cost| *cost > 0.0),
    };
    (new.total() > 0 || new.cost.is_some()).then_some(new)
}

/// How much of a context window is left, in percent; none if the window has no size.
pub(super) fn context_left(used: u64, window: u64) -> Option<u8> {
    let free = u128::from(window.saturating_sub(used)) * 100;
    u8::try_from(free.checked_div(u128::from(window))?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_never_more_than_full() {
        assert_eq!(context_left(25, 100), Some(75));
        assert_eq!(context_left(u64::MAX, 1), Some(0));
        assert_eq!(context_left(0, u64::MAX), Some(100));
        assert_eq!(context_left(1, 0), None);
    }

    #[test]
    fn only_what_a_total_has_grown_by_is_new() {
        let usage = |input, cost| Usage {
            input,
            output: 1,
            cost,
        };
        let new = increase(&usage(5, Some(2.5)), &usage(3, Some(2.0)));
        assert_eq!(
            new.map(|new| (new.input, new.output, new.cost)),
            Some((2, 0, Some(0.5)))
        );
        assert_eq!(increase(&usage(3, Some(1.0)), &usage(3, Some(2.0))), None);
        assert_eq!(increase(&usage(3, None), &usage(4, None)), None);
    }
}
