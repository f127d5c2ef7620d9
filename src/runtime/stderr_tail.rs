//! Stderr tail: the last lines of a process's standard error, without secrets.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _};

const MAX_LINES: usize = 200;
const MAX_LINE_BYTES: usize = 1_000;
/// Redacting a shorter one would hide too much else.
const MIN_SECRET_BYTES: usize = 6;
const MAX_EXCERPT_LINES: usize = 5;
const MAX_EXCERPT_BYTES: usize = 1_000;

/// The last lines; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    secrets: Arc<[String]>,
}

impl StderrTail {
    pub(super) fn redacting(secrets: &[String]) -> Self {
        Self {
            lines: Arc::default(),
            // Line by line: a secret of several lines would never match.
            secrets: secrets
                .iter()
                .flat_map(|secret| secret.lines())
                .filter(|line| line.len() >= MIN_SECRET_BYTES)
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Reads until the end of the stream.
    pub(super) async fn follow(self, mut from: impl AsyncRead + Unpin) {
        let (mut buffer, mut line) = (vec![0; 4 * 1024], Vec::new());
        while let Ok(read) = from.read(&mut buffer).await {
            for byte in &buffer[..read] {
                match byte {
                    b'\n' => self.add(&std::mem::take(&mut line)),
                    _ if line.len() < MAX_LINE_BYTES => line.push(*byte),
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
        if lines.len() >= MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub(super) fn clean(&self, line: &str) -> String {
        let mut line = without_escapes(line);
        for secret in self.secrets.iter() {
            line = line.replace(secret.as_str(), "[secret]");
        }
        line
    }

    pub(super) fn all(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// The last few lines, for an error message.
    pub(super) fn excerpt(&self) -> Option<String> {
        let all = self.all();
        let text = all[all.len().saturating_sub(MAX_EXCERPT_LINES)..].join("\n");
        let from = text.len().saturating_sub(MAX_EXCERPT_BYTES);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
        (!text.is_empty()).then(|| text[from..].to_owned())
    }
}

fn without_escapes(line: &str) -> String {
    let (mut text, mut letters) = (String::new(), line.chars().peekable());
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // Skips to the letter that ends the sequence.
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
        let tail = StderrTail::redacting(&["hunter22".into()]);
        let mut text: Vec<u8> = (0..500)
            .flat_map(|n| format!("line {n}\n").into_bytes())
            .collect();
        text.extend_from_slice(b"\x1b[31mkey hunter22\x1b[0m is\x07 wrong\n\xff\n");
        text.extend(vec![b'x'; 100_000]);
        tail.clone().follow(text.as_slice()).await;
        let all = tail.all();
        assert_eq!(all.len(), MAX_LINES);
        assert_eq!(all[MAX_LINES - 3], "key [secret] is wrong");
        assert_eq!(all[MAX_LINES - 1].len(), MAX_LINE_BYTES);
        assert!(tail.excerpt().unwrap().len() <= MAX_EXCERPT_BYTES);
    }

    #[tokio::test]
    async fn an_empty_standard_error_has_no_excerpt() {
        let tail = StderrTail::redacting(&[]);
        tail.clone().follow(&b"\n  \n"[..]).await;
        assert_eq!(tail.excerpt(), None);
    }
}
