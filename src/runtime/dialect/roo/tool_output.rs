//! Output of a running tool. Pure.
//!
//! Each report repeats the output from its start, so reports are rare and carry only its tail until
//! the end.

use serde_json::Value;

/// Growth between two reports.
const REPORT_STEP: usize = 2048;
/// Bytes of a report while more may come.
const PARTIAL_TAIL: usize = 8192;
/// Bytes kept, and reported at the end: as much as a session stores, minus the quotes.
const MAX_OUTPUT: usize = 256 * 1024 - 2;

#[derive(Debug, Default)]
pub(super) struct ToolOutput {
    tail: String,
    /// Length of the whole output.
    length: usize,
    reported: usize,
    has_unreported: bool,
}

impl ToolOutput {
    pub(super) fn add(&mut self, piece: &str) {
        self.tail.push_str(piece);
        self.length = self.length.saturating_add(piece.len());
        self.has_unreported |= !piece.is_empty();
        // Not on every call: it moves the rest.
        if self.tail.len() > 2 * MAX_OUTPUT {
            self.tail = tail_of(&self.tail, MAX_OUTPUT).to_owned();
        }
    }

    pub(super) fn replace(&mut self, whole: &str) {
        let end = tail_of(whole, MAX_OUTPUT);
        if self.length == whole.len() && self.tail == end {
            return;
        }
        end.clone_into(&mut self.tail);
        self.length = whole.len();
        self.reported = self.reported.min(self.length);
        self.has_unreported = true;
    }

    /// The tail, if enough of it is new.
    pub(super) fn take_progress(&mut self) -> Option<Value> {
        let due = self.reported == 0 || self.length - self.reported >= REPORT_STEP;
        if !due || self.length == 0 || !self.has_unreported {
            return None;
        }
        self.reported = self.length;
        self.has_unreported = self.length > PARTIAL_TAIL;
        Some(tail_of(&self.tail, PARTIAL_TAIL).into())
    }

    pub(super) fn take_unreported(&mut self) -> Option<Value> {
        if !std::mem::take(&mut self.has_unreported) {
            return None;
        }
        self.reported = self.length;
        Some(tail_of(&self.tail, MAX_OUTPUT).into())
    }
}

fn tail_of(text: &str, bytes: usize) -> &str {
    let surplus = text.len().saturating_sub(bytes);
    &text[text.ceil_char_boundary(surplus)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(reported: &Value) -> usize {
        reported.as_str().map_or(0, str::len)
    }

    #[test]
    fn the_reported_amount_is_linear_in_the_output() {
        let (mut pieces, mut repeated) = (ToolOutput::default(), ToolOutput::default());
        let (mut whole, mut reported) = (String::new(), [0, 0]);
        for _ in 0..20_000 {
            whole.push_str("a line of some output\n");
            pieces.add("a line of some output\n");
            repeated.replace(&whole);
            reported[0] += pieces.take_progress().as_ref().map_or(0, length);
            reported[1] += repeated.take_progress().as_ref().map_or(0, length);
        }
        assert!(reported[0] <= 5 * whole.len(), "{reported:?}");
        assert_eq!(reported[0], reported[1]);
        let rest = pieces.take_unreported();
        assert_eq!(rest.as_ref().map_or(0, length), MAX_OUTPUT);
        assert_eq!(rest, repeated.take_unreported());
        assert_eq!(pieces.take_unreported(), None);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let mut output = ToolOutput::default();
        output.add(&"é".repeat(PARTIAL_TAIL));
        output.add("x");
        assert_eq!(
            output.take_progress().as_ref().map_or(0, length),
            PARTIAL_TAIL - 1
        );
        output.add(&"é".repeat(MAX_OUTPUT));
        assert_eq!(
            output.take_unreported().as_ref().map_or(0, length),
            MAX_OUTPUT
        );
        assert_eq!(output.tail.len(), MAX_OUTPUT);
    }

    #[test]
    fn replaced_output_is_reported_at_the_end() {
        let mut output = ToolOutput::default();
        output.replace("50 %");
        assert_eq!(output.take_progress(), Some("50 %".into()));
        output.replace("50 %");
        assert_eq!(
            (output.take_progress(), output.take_unreported()),
            (None, None)
        );
        output.replace("done");
        assert_eq!(
            (output.take_progress(), output.take_unreported()),
            (None, Some("done".into()))
        );
    }
}
