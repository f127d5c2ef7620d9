//! Escaping in Markdown blocks: they hold any text so that it cannot end its block.

use serde_json::Value;

/// Fewer backticks are no fence.
const MIN_FENCE: usize = 3;

/// A quotation written in chunks. A fence or comment that a text opens ends with the quotation.
#[derive(Debug, Default)]
pub(super) struct Quote {
    open: bool,
    inside_line: bool,
    after_return: bool,
}

impl Quote {
    /// Adds to the quotation, or begins it.
    pub(super) fn write(&mut self, text: &str, out: &mut String) {
        for letter in text.chars() {
            let ends_return = std::mem::replace(&mut self.after_return, letter == '\r');
            match letter {
                '\n' if ends_return => {}
                '\n' | '\r' => {
                    if !self.inside_line {
                        out.push('>');
                    }
                    out.push('\n');
                    (self.open, self.inside_line) = (true, false);
                }
                letter if is_shown(letter) => {
                    if !self.inside_line {
                        out.push_str("> ");
                    }
                    out.push(letter);
                    (self.open, self.inside_line) = (true, true);
                }
                _ => {}
            }
        }
    }

    pub(super) fn close(&mut self, out: &mut String) {
        let before = std::mem::take(self);
        if before.inside_line {
            out.push('\n');
        }
        if before.open {
            out.push('\n');
        }
    }
}

/// No control characters: a terminal that shows the document would interpret them.
fn is_shown(letter: char) -> bool {
    letter == '\t' || !letter.is_control()
}

/// A value between fences that are longer than any in it.
pub(super) fn fenced(value: &Value, out: &mut String) {
    let (kind, text) = match value {
        Value::String(text) => ("", text.clone()),
        other => ("json", format!("{other:#}")),
    };
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let ticks = "`".repeat(MIN_FENCE.max(1 + longest_run(&text)));
    out.push_str(&ticks);
    out.push_str(kind);
    out.push('\n');
    out.extend(
        text.chars()
            .filter(|letter| *letter == '\n' || is_shown(*letter)),
    );
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&ticks);
    out.push_str("\n\n");
}

/// The longest row of backticks; those that a control character separates count as one.
fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for letter in text.chars() {
        match letter {
            '`' => run += 1,
            letter if letter == '\n' || is_shown(letter) => run = 0,
            _ => {}
        }
        longest = longest.max(run);
    }
    longest
}

/// A text as a part of one line, with all markup escaped.
pub(super) fn inline(text: &str) -> String {
    let gap = |letter: char| letter.is_whitespace() || letter.is_control();
    let words: Vec<&str> = text.split(gap).filter(|word| !word.is_empty()).collect();
    let mut shown = String::with_capacity(text.len());
    for letter in words.join(" ").chars() {
        if "\\`*_[]<>#|~&".contains(letter) {
            shown.push('\\');
        }
        shown.push(letter);
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn quoted(pieces: &[&str]) -> String {
        let (mut quote, mut out) = (Quote::default(), String::new());
        for piece in pieces {
            quote.write(piece, &mut out);
        }
        quote.close(&mut out);
        out
    }

    fn between_fences(value: &Value) -> String {
        let mut out = String::new();
        fenced(value, &mut out);
        out
    }

    #[test]
    fn every_line_of_a_quotation_is_marked() {
        assert_eq!(quoted(&["a\n\nb"]), "> a\n>\n> b\n\n");
        assert_eq!(quoted(&["a\r", "\nb\rc"]), "> a\n> b\n> c\n\n");
        assert_eq!(quoted(&["one ", "line", "\n"]), "> one line\n\n");
        assert_eq!(quoted(&["\u{1b}[31mred\0"]), "> [31mred\n\n");
        assert_eq!(quoted(&[]), "");
        assert_eq!(quoted(&["\u{7f}"]), "", "nothing to see");
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        assert_eq!(between_fences(&json!("x")), "```\nx\n```\n\n");
        let tricky = between_fences(&json!("```\nout\n`````"));
        assert!(tricky.starts_with("``````\n") && tricky.ends_with("\n``````\n\n"));
        let hidden = between_fences(&json!("``\u{1}`"));
        assert!(hidden.starts_with("````\n"), "{hidden}");
        assert_eq!(between_fences(&json!({})), "```json\n{}\n```\n\n");
    }

    #[test]
    fn a_title_stays_on_its_line_with_its_markup_escaped() {
        assert_eq!(inline(" a\n# b\t*c*"), r"a \# b \*c\*");
        assert_eq!(inline("<script>&amp;"), r"\<script\>\&amp;");
    }

    proptest! {
        #[test]
        fn every_line_of_any_text_stays_quoted(pieces in prop::collection::vec("(.|\n|\r|`|#){0,20}", 0..6)) {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let out = quoted(&pieces);
            for line in out.trim_end_matches('\n').lines() {
                prop_assert!(line.starts_with('>'), "{out:?}");
            }
            prop_assert!(out.is_empty() || out.ends_with("\n\n"));
        }

        #[test]
        fn no_text_closes_its_fence(text in "(.|\n|\r|`){0,60}") {
            let out = between_fences(&json!(text));
            let fence = out.lines().next().unwrap();
            let closing = out.lines().filter(|line| line.trim().starts_with(fence)).count();
            prop_assert_eq!(closing, 2, "{}", out);
        }
    }
}
