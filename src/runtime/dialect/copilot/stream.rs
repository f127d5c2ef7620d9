//! What streams of one try: pieces with numbers, told in the order of these.

use std::collections::BTreeMap;

use super::memory::{CODE_BEGINS, CODE_ENDS, UNFINISHED};
use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::runtime::dialect::{Act, Out};
use crate::runtime::talk::FromAgent;

/// How many pieces may come before their turn. More than that is no stream.
const MOST_EARLY: usize = 1024;

/// The pieces of one try.
#[derive(Debug)]
pub(super) struct Stream {
    /// The number of the piece that is told next.
    next: u64,
    /// Those that came before their turn.
    early: BTreeMap<u64, String>,
    /// All that was told of them.
    told: String,
    fence: Fence,
    /// Something was told that neither counts nor is withdrawn yet.
    speaking: bool,
}

/// Code is told as a block of code.
#[derive(Debug, PartialEq, Eq)]
enum Fence {
    /// No code streams here.
    None,
    /// It begins with the first piece.
    ToCome,
    /// It must be ended.
    Open,
}

impl Stream {
    /// Nothing has come yet.
    pub(super) fn new(is_code: bool) -> Self {
        Self {
            next: 0,
            early: BTreeMap::new(),
            told: String::new(),
            fence: if is_code { Fence::ToCome } else { Fence::None },
            speaking: false,
        }
    }

    /// A piece came. One without a number is taken as the next; one that was there already is dropped.
    pub(super) fn hear(&mut self, run: RunId, index: Option<u64>, piece: String, out: &mut Out) {
        let index = index.unwrap_or(self.next);
        if index < self.next || self.early.contains_key(&index) {
            return;
        }
        if index > self.next && self.early.len() >= MOST_EARLY {
            return out.act(Act::Odd(format!(
                "piece {index} of a stream whose piece {} is missing",
                self.next
            )));
        }
        self.early.insert(index, piece);
        while let Some(piece) = self.early.remove(&self.next) {
            self.next = self.next.saturating_add(1);
            self.tell(run, &piece, out);
        }
    }

    fn tell(&mut self, run: RunId, piece: &str, out: &mut Out) {
        if piece.is_empty() {
            return;
        }
        self.told.push_str(piece);
        if self.fence == Fence::ToCome {
            self.fence = Fence::Open;
            self.add(run, &format!("{CODE_BEGINS}{piece}"), out);
        } else {
            self.add(run, piece, out);
        }
    }

    /// Says something that is not part of the stream.
    pub(super) fn add(&mut self, run: RunId, text: &str, out: &mut Out) {
        self.speaking |= !text.is_empty();
        out.say(run, Channel::Text, text);
    }

    /// All that was told of it.
    pub(super) fn told(&self) -> &str {
        &self.told
    }

    /// No more code follows.
    pub(super) fn end_code(&mut self, run: RunId, out: &mut Out) {
        if self.fence == Fence::Open {
            self.fence = Fence::None;
            self.add(run, CODE_ENDS, out);
        }
    }

    /// Nothing follows any more, and what was told is not all.
    pub(super) fn break_off(&mut self, run: RunId, out: &mut Out) {
        if self.fence == Fence::Open {
            self.end_code(run, out);
            self.add(run, &format!("\n\n{UNFINISHED}"), out);
        }
        self.complete(run, out);
    }

    /// What was told does not count.
    pub(super) fn withdraw(&mut self, run: RunId, out: &mut Out) {
        if std::mem::take(&mut self.speaking) {
            out.tell(FromAgent::Withdrawn { run });
        }
        self.fence = Fence::None;
    }

    /// What was told is all.
    pub(super) fn complete(&mut self, run: RunId, out: &mut Out) {
        if std::mem::take(&mut self.speaking) {
            let text = None;
            out.tell(FromAgent::Final { run, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_not_kept_without_end() {
        let (mut stream, mut out) = (Stream::new(false), Out::default());
        let run = RunId::new();
        for _ in 0..2 {
            // Those of the second time are known already, or too many.
            for index in 1..=2_000 {
                stream.hear(run, Some(index), "a".into(), &mut out);
            }
        }
        assert_eq!(stream.early.len(), MOST_EARLY);
        stream.hear(run, Some(0), "a".into(), &mut out);
        assert_eq!(stream.told.len(), MOST_EARLY + 1);
        stream.hear(run, Some(0), "a".into(), &mut out);
        assert!(stream.early.is_empty());
    }
}
