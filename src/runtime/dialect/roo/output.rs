//! What comes out of a tool while it is used. Pure.
//!
//! Each time it is told from the start, so it is told rarely, and only the end of it until all is there.

use serde_json::Value;

/// It is told again when it has grown by so much.
const STEP: usize = 2048;
/// So much of its end is told while more may come.
const TAIL: usize = 8192;
/// So much of its end is kept, and told when it is complete: as much as a session keeps, with quotes.
const WHOLE: usize = 256 * 1024 - 2;

/// The output of one use of a tool.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The end of it.
    written: String,
    /// The length of all of it.
    length: usize,
    /// How long it was when it was told.
    told: usize,
    /// Is there something that was not told?
    stale: bool,
}

impl Output {
    /// A piece more.
    pub(super) fn add(&mut self, piece: &str) {
        self.written.push_str(piece);
        self.length = self.length.saturating_add(piece.len());
        self.stale |= !piece.is_empty();
        // Not each time: what is left is moved.
        if self.written.len() > 2 * WHOLE {
            self.written = end_of(&self.written, WHOLE).to_owned();
        }
    }

    /// All of it until now.
    pub(super) fn replace(&mut self, whole: &str) {
        let end = end_of(whole, WHOLE);
        if self.length == whole.len() && self.written == end {
            return;
        }
        end.clone_into(&mut self.written);
        self.length = whole.len();
        self.told = self.told.min(self.length);
        self.stale = true;
    }

    /// The end of it, if there is enough that is new.
    pub(super) fn news(&mut self) -> Option<Value> {
        let due = self.told == 0 || self.length - self.told >= STEP;
        if !due || self.length == 0 || !self.stale {
            return None;
        }
        self.told = self.length;
        self.stale = self.length > TAIL;
        Some(end_of(&self.written, TAIL).into())
    }

    /// All of it, if that was not told.
    pub(super) fn rest(&mut self) -> Option<Value> {
        if !std::mem::take(&mut self.stale) {
            return None;
        }
        self.told = self.length;
        Some(end_of(&self.written, WHOLE).into())
    }
}

fn end_of(text: &str, bytes: usize) -> &str {
    let surplus = text.len().saturating_sub(bytes);
    &text[text.ceil_char_boundary(surplus)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(told: &Value) -> usize {
        told.as_str().map_or(0, str::len)
    }

    #[test]
    fn what_is_told_grows_with_the_output_and_not_with_its_square() {
        let (mut pieces, mut repeated) = (Output::default(), Output::default());
        let (mut whole, mut told) = (String::new(), [0, 0]);
        for _ in 0..20_000 {
            whole.push_str("a line of some output\n");
            pieces.add("a line of some output\n");
            repeated.replace(&whole);
            told[0] += pieces.news().as_ref().map_or(0, length);
            told[1] += repeated.news().as_ref().map_or(0, length);
        }
        assert!(told[0] <= 5 * whole.len(), "{told:?}");
        assert_eq!(told[0], told[1]);
        let rest = pieces.rest();
        assert_eq!(rest.as_ref().map_or(0, length), WHOLE);
        assert_eq!(rest, repeated.rest());
        assert_eq!(pieces.rest(), None);
    }

    #[test]
    fn letters_are_not_cut_in_two() {
        let mut output = Output::default();
        output.add(&"é".repeat(TAIL));
        output.add("x");
        assert_eq!(output.news().as_ref().map_or(0, length), TAIL - 1);
        output.add(&"é".repeat(WHOLE));
        assert_eq!(output.rest().as_ref().map_or(0, length), WHOLE);
        assert_eq!(output.written.len(), WHOLE);
    }

    #[test]
    fn what_is_written_anew_is_told_at_its_end() {
        let mut output = Output::default();
        output.replace("50 %");
        assert_eq!(output.news(), Some("50 %".into()));
        output.replace("50 %");
        assert_eq!((output.news(), output.rest()), (None, None));
        output.replace("done");
        assert_eq!((output.news(), output.rest()), (None, Some("done".into())));
    }
}
