//! Cuts what an agent writes into lines, and reads each as JSON. Pure.
//!
//! It never gives up: a line that is too long, not text or not JSON is an item like any other, and
//! the next one is read as if nothing had happened.

use serde_json::Value;

use super::dialect::Framing;
use crate::domain::surrogate::{REPLACEMENT, without_lone_halves};

/// How much of a line that is not JSON is shown to the operator.
const EXCERPT: usize = 200;
/// A line of more values than this is like one that is too long.
const PARTS: usize = 200_000;
/// A buffer that has become larger than this is given back when it is empty.
const KEPT: usize = 256 * 1024;

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    /// A message.
    Message(Value),
    /// Longer or of more values than allowed; its content is gone.
    TooLong,
    /// Not JSON, or not even text; the beginning of it.
    NotJson(String),
}

/// The lines of one stream of bytes.
#[derive(Debug)]
pub(super) struct Lines {
    delimiter: u8,
    longest: usize,
    bytes: Vec<u8>,
    /// Where the line that is to be read next begins.
    start: usize,
    /// Up to here there is no delimiter.
    searched: usize,
    /// The rest of a line that is too long is passed by.
    skipping: bool,
}

impl Lines {
    /// Nothing yet.
    pub(super) fn new(framing: Framing, longest: usize) -> Self {
        Self {
            delimiter: framing.delimiter(),
            longest,
            bytes: Vec::new(),
            start: 0,
            searched: 0,
            skipping: false,
        }
    }

    /// These bytes came.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line, if all of it is there. Empty ones are passed by.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let found = self.bytes[self.searched..]
                .iter()
                .position(|byte| *byte == self.delimiter);
            let Some(found) = found else {
                return self.wait();
            };
            let end = self.searched + found;
            let line = &self.bytes[self.start..end];
            let read = if std::mem::take(&mut self.skipping) {
                None
            } else if line.len() > self.longest {
                Some(Line::TooLong)
            } else {
                read(line)
            };
            self.start = end + 1;
            self.searched = self.start;
            if read.is_some() {
                return read;
            }
        }
    }

    /// What is not read yet, for somebody else to go on with.
    pub(super) fn rest(self) -> Vec<u8> {
        self.bytes[self.start..].to_vec()
    }

    /// The end of the line is not there yet. One that is too long already is told now, and the rest of
    /// it not kept.
    fn wait(&mut self) -> Option<Line> {
        self.searched = self.bytes.len();
        if self.skipping || self.searched - self.start > self.longest {
            self.bytes.clear();
            (self.start, self.searched) = (0, 0);
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Line::TooLong);
        }
        if self.start == self.searched && self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        None
    }
}

fn read(line: &[u8]) -> Option<Line> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    if parts(line) > PARTS {
        return Some(Line::TooLong);
    }
    let message = serde_json::from_slice(line).ok().or_else(|| mended(line));
    Some(message.map_or_else(
        || {
            let start = &line[..line.len().min(EXCERPT)];
            Line::NotJson(String::from_utf8_lossy(start).into_owned())
        },
        Line::Message,
    ))
}

/// Agents that count in UTF-16 cut a text between the halves of a character. One letter less is
/// better than the whole line.
fn mended(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(&without_lone_halves(line, REPLACEMENT)?).ok()
}

/// Of how many parts a value consists, about: each takes much more room in memory than on the line.
fn parts(line: &[u8]) -> usize {
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
    fn a_character_that_is_cut_in_two_costs_no_other_text() {
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
    fn a_line_that_is_too_long_is_told_once_and_not_kept() {
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
    fn a_line_of_too_many_values_is_like_one_that_is_too_long() {
        let mut lines = Lines::new(Framing::Newline, 10 * 1024 * 1024);
        let bomb = format!("[{}1]\n", "{},".repeat(PARTS));
        let text = format!("{}\n", json!(",[{\"".repeat(PARTS)));
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
    fn a_form_feed_ends_a_line_where_that_is_the_custom() {
        let mut lines = Lines::new(Framing::FormFeed, 100);
        lines.push(b"{\"a\":\n1}\x0c2\x0c");
        assert_eq!(
            all(&mut lines),
            [Line::Message(json!({ "a": 1 })), Line::Message(json!(2))]
        );
    }
}
