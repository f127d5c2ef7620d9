//! What a process wrote to its standard error last: a bounded ring of lines, for the operator and,
//! in a few lines, for whoever asks why a run has failed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

const LINES: usize = 200;
const LINE_BYTES: usize = 1_000;
/// A shorter part of a secret would hide too much else.
const SHORTEST_SECRET: usize = 6;
/// How much of it goes into an error.
const SHOWN_LINES: usize = 5;
const SHOWN_BYTES: usize = 1_000;

/// The last lines.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// What must not be seen: the secrets that the process was given.
    secrets: Arc<[String]>,
}

impl LastWords {
    /// Nothing yet.
    pub(super) fn without(secrets: &[String]) -> Self {
        Self {
            lines: Arc::default(),
            // One that has several lines would never be found in one.
            secrets: secrets
                .iter()
                .flat_map(|secret| secret.lines())
                .filter(|line| line.len() >= SHORTEST_SECRET)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Reads until the other side closes.
    pub(super) async fn follow(self, mut from: impl AsyncRead + Unpin) {
        let (mut buffer, mut line) = (vec![0; 4 * 1024], Vec::new());
        while let Ok(read) = from.read(&mut buffer).await {
            for byte in &buffer[..read] {
                match byte {
                    b'\n' => self.add(&std::mem::take(&mut line)),
                    _ if line.len() < LINE_BYTES => line.push(*byte),
                    _ => {}
                }
            }
            if read == 0 {
                break;
            }
        }
        self.add(&line);
    }

    fn add(&self, line: &[u8]) {
        let line = self.clean(&String::from_utf8_lossy(line));
        if line.trim().is_empty() {
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// A line of the process as it may be shown: without secrets, and without colours and the like,
    /// which are for terminals.
    pub(super) fn clean(&self, line: &str) -> String {
        let mut line = without_escapes(line);
        for secret in self.secrets.iter() {
            line = line.replace(secret.as_str(), "[secret]");
        }
        line
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// The last few, in one piece; none if there are none.
    pub(super) fn brief(&self) -> Option<String> {
        let all = self.all();
        let text = all[all.len().saturating_sub(SHOWN_LINES)..].join("\n");
        let from = text.len().saturating_sub(SHOWN_BYTES);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
        (!text.is_empty()).then(|| text[from..].to_owned())
    }
}

/// A line without control characters and the sequences that they begin.
fn without_escapes(line: &str) -> String {
    let (mut text, mut letters) = (String::new(), line.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // Up to the letter that ends the sequence.
            while letters
                .next()
                .is_some_and(|letter| !letter.is_ascii_alphabetic())
            {}
        } else if letter == '\t' {
            text.push(' ');
        } else if !letter.is_control() {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_without_colours_and_secrets() {
        let words = LastWords::without(&["hunter22".into()]);
        let mut text: Vec<u8> = (0..500)
            .flat_map(|n| format!("line {n}\n").into_bytes())
            .collect();
        text.extend_from_slice(b"\x1b[31mkey hunter22\x1b[0m is\x07 wrong\n\xff\n");
        text.extend(vec![b'x'; 100_000]);
        words.clone().follow(text.as_slice()).await;
        let all = words.all();
        assert_eq!(all.len(), LINES);
        assert_eq!(all[LINES - 3], "key [secret] is wrong");
        assert_eq!(all[LINES - 1].len(), LINE_BYTES);
        assert!(words.brief().unwrap().len() <= SHOWN_BYTES);
    }

    #[tokio::test]
    async fn silence_is_no_last_word() {
        let words = LastWords::without(&[]);
        words.clone().follow(&b"\n  \n"[..]).await;
        assert_eq!(words.brief(), None);
    }
}
