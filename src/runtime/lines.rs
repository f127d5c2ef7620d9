//! Lines: splits an agent's byte stream at its delimiter and parses each line as JSON. Pure.
//!
//! No line is fatal: one that is too long, not text or not JSON is an item like any other, and the
//! next one is read.

use serde_json::Value;

use super::dialect::Framing;
use crate::domain::lone_surrogates::{REPLACEMENT, replace_lone_surrogates};

/// Of a line that is not JSON, for the operator.
const MAX_EXCERPT_BYTES: usize = 200;
/// A line of more JSON values than this counts as too long.
const MAX_VALUES: usize = 200_000;
/// An empty buffer with more capacity than this is freed.
const MAX_IDLE_CAPACITY: usize = 256 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Message(Value),
    /// Over the limit of bytes or values; its content is dropped.
    TooLong,
    /// Its beginning; bytes that are not UTF-8 are replaced.
    NotJson(String),
}

#[derive(Debug)]
pub(super) struct Lines {
    delimiter: u8,
    max_bytes: usize,
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// No delimiter stands before this.
    searched: usize,
    /// The rest of a line that is too long is dropped.
    skipping: bool,
}

impl Lines {
    pub(super) fn new(framing: Framing, max_bytes: usize) -> Self {
        Self {
            delimiter: framing.delimiter(),
            max_bytes,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            skipping: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line; empty ones are skipped.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let found = self.bytes[self.searched..]
                .iter()
                .position(|byte| *byte == self.delimiter);
            let Some(found) = found else {
                return self.wait_for_delimiter();
            };
            let end = self.searched + found;
            let line = &self.bytes[self.start..end];
            let parsed = if std::mem::take(&mut self.skipping) {
                None
            } else if line.len() > self.max_bytes {
                Some(Line::TooLong)
            } else {
                parse(line)
            };
            self.start = end + 1;
            self.searched = self.start;
            if parsed.is_some() {
                return parsed;
            }
        }
    }

    /// The unread bytes, for another reader of the stream.
    pub(super) fn rest(self) -> Vec<u8> {
        self.bytes[self.start..].to_vec()
    }

    /// A line that is too long already is reported now, and its rest not kept.
    fn wait_for_delimiter(&mut self) -> Option<Line> {
        self.searched = self.bytes.len();
        if self.skipping || self.searched - self.start > self.max_bytes {
            self.bytes.clear();
            (self.start, self.searched) = (0, 0);
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Line::TooLong);
        }
        if self.start == self.searched && self.bytes.capacity() > MAX_IDLE_CAPACITY {
            self.bytes = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        None
    }
}

fn parse(line: &[u8]) -> Option<Line> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    if count_values(line) > MAX_VALUES {
        return Some(Line::TooLong);
    }
    let message = serde_json::from_slice(line)
        .ok()
        .or_else(|| parse_repaired(line));
    Some(message.map_or_else(
        || {
            let start = &line[..line.len().min(MAX_EXCERPT_BYTES)];
            Line::NotJson(String::from_utf8_lossy(start).into_owned())
        },
        Line::Message,
    ))
}

/// Agents that count in UTF-16 cut a text between two surrogates: losing one character is better than
/// losing the line.
fn parse_repaired(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(&replace_lone_surrogates(line, REPLACEMENT)?).ok()
}

/// Roughly how many JSON values a line has: each takes much more memory than its bytes.
fn count_values(line: &[u8]) -> usize {
    let (mut count, mut in_text, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'{' | b'[' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn all(lines: &mut Lines) -> Vec<Line> {
        std::iter::from_fn(|| lines.next()).collect()
    }

    #[test]
    fn lines_are_found_however_the_bytes_arrive() {
        let text = b"{\"a\":1}\r\n\n  \n[2]\n\"\xc3\xa9\"\n";
        let expected = [
            Line::Message(json!({ "a": 1 })),
            Line::Message(json!([2])),
            Line::Message(json!("é")),
        ];
        for size in 1..=text.len() {
            let mut lines = Lines::new(Framing::Newline, 100);
            let mut found = Vec::new();
            for piece in text.chunks(size) {
                lines.push(piece);
                found.extend(all(&mut lines));
            }
            assert_eq!(found, expected, "{size} bytes at once");
        }
    }

    #[test]
    fn a_bad_line_is_an_item_and_the_next_one_is_read() {
        let mut lines = Lines::new(Framing::Newline, 100);
        lines.push(b"Welcome!\n\xff\xfe\n{\"a\":1}\n{\"cut");
        let found = all(&mut lines);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Line::NotJson("Welcome!".into()));
        assert!(matches!(found[1], Line::NotJson(_)));
        assert_eq!(found[2], Line::Message(json!({ "a": 1 })));
    }

    #[test]
    fn a_character_cut_in_two_costs_no_other_text() {
        let mut lines = Lines::new(Framing::Newline, 100);
        lines.push(b"{\"text\":\"Hello \\ud83d\"}\n{\"text\":\"\\ude00 world\"}\n\"\\ud83d\n");
        let found = all(&mut lines);
        let expected = [
            Line::Message(json!({ "text": "Hello \u{fffd}" })),
            Line::Message(json!({ "text": "\u{fffd} world" })),
            Line::NotJson("\"\\ud83d".into()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_reported_once_and_not_kept() {
        for size in [1, 7, 64, 1_000] {
            let mut lines = Lines::new(Framing::Newline, 50);
            let mut found = Vec::new();
            let text = [
                &[b'x'; 900][..],
                b"\n1\n",
                &[b'y'; 51],
                b"\n",
                &[b'2'; 15],
                b"\n",
            ]
            .concat();
            for piece in text.chunks(size) {
                lines.push(piece);
                found.extend(all(&mut lines));
                assert!(lines.bytes.len() <= 51 + size);
            }
            let number = Line::Message(json!(222_222_222_222_222_u64));
            let expected = [
                Line::TooLong,
                Line::Message(json!(1)),
                Line::TooLong,
                number,
            ];
            assert_eq!(found, expected, "{size} bytes at once");
        }
    }

    #[test]
    fn a_line_of_too_many_values_counts_as_too_long() {
        let mut lines = Lines::new(Framing::Newline, 10 * 1024 * 1024);
        let bomb = format!("[{}1]\n", "{},".repeat(MAX_VALUES));
        let text = format!("{}\n", json!(",[{\"".repeat(MAX_VALUES)));
        lines.push(bomb.as_bytes());
        lines.push(text.as_bytes());
        let found = all(&mut lines);
        assert_eq!(found[0], Line::TooLong);
        assert!(
            matches!(&found[1], Line::Message(_)),
            "a text may contain anything"
        );
    }

    #[test]
    fn a_form_feed_ends_a_line_in_form_feed_framing() {
        let mut lines = Lines::new(Framing::FormFeed, 100);
        lines.push(b"{\"a\":\n1}\x0c2\x0c");
        assert_eq!(
            all(&mut lines),
            [Line::Message(json!({ "a": 1 })), Line::Message(json!(2))]
        );
    }
}
