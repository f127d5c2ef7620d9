//! Chunk stream: the chunks of one attempt, passed on in the order of their index.

use std::collections::BTreeMap;

use super::session_context::{CODE_FENCE_END, CODE_FENCE_START, UNFINISHED};
use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::runtime::dialect::Actions;
use crate::runtime::messages::FromAgent;

const MAX_OUT_OF_ORDER_CHUNKS: usize = 1024;

#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) index: Option<u64>,
    pub(super) text: String,
    pub(super) is_last: bool,
}

#[derive(Debug)]
pub(super) struct ChunkStream {
    next_index: u64,
    /// The index of the last chunk, once the agent has named it.
    last_index: Option<u64>,
    out_of_order: BTreeMap<u64, String>,
    /// The chunks passed on so far.
    text: String,
    code_fence: CodeFence,
    /// Text was passed on, and neither finished nor withdrawn.
    is_message_open: bool,
}

/// Code is passed on as a fenced block.
#[derive(Debug, PartialEq, Eq)]
enum CodeFence {
    None,
    /// It begins with the first chunk.
    Pending,
    Open,
}

impl ChunkStream {
    pub(super) fn new(is_code: bool) -> Self {
        Self {
            next_index: 0,
            last_index: None,
            out_of_order: BTreeMap::new(),
            text: String::new(),
            code_fence: if is_code {
                CodeFence::Pending
            } else {
                CodeFence::None
            },
            is_message_open: false,
        }
    }

    /// A chunk without an index is taken as the next; a repeated one is dropped.
    pub(super) fn push(&mut self, run: RunId, chunk: Chunk, out: &mut Actions) {
        let index = chunk.index.unwrap_or(self.next_index);
        if index < self.next_index || self.out_of_order.contains_key(&index) {
            return;
        }
        if self.last_index.is_some_and(|last| index > last) {
            return out.unexpected(format!("piece {index} of a stream that was done"));
        }
        if index > self.next_index && self.out_of_order.len() >= MAX_OUT_OF_ORDER_CHUNKS {
            return out.unexpected(format!(
                "piece {index} of a stream whose piece {} is missing",
                self.next_index
            ));
        }
        if chunk.is_last {
            self.last_index = Some(index);
            self.out_of_order.retain(|other, _| *other < index);
        }
        self.out_of_order.insert(index, chunk.text);
        while let Some(chunk) = self.out_of_order.remove(&self.next_index) {
            self.next_index = self.next_index.saturating_add(1);
            self.emit(run, &chunk, out);
        }
    }

    fn emit(&mut self, run: RunId, chunk: &str, out: &mut Actions) {
        if chunk.is_empty() {
            return;
        }
        self.text.push_str(chunk);
        if self.code_fence == CodeFence::Pending {
            self.code_fence = CodeFence::Open;
            self.append(run, &format!("{CODE_FENCE_START}{chunk}"), out);
        } else {
            self.append(run, chunk, out);
        }
    }

    /// Passes on text that is no chunk.
    pub(super) fn append(&mut self, run: RunId, text: &str, out: &mut Actions) {
        self.is_message_open |= !text.is_empty();
        out.emit_delta(run, Channel::Text, text);
    }

    /// Whether every chunk was passed on, up to the one that the agent called the last.
    pub(super) fn is_whole(&self) -> bool {
        self.last_index.is_some_and(|last| last < self.next_index) && !self.text.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn close_code_fence(&mut self, run: RunId, out: &mut Actions) {
        if self.code_fence == CodeFence::Open {
            self.code_fence = CodeFence::None;
            self.append(run, CODE_FENCE_END, out);
        }
    }

    /// The stream broke off: marks code as unfinished.
    pub(super) fn abandon(&mut self, run: RunId, out: &mut Actions) {
        if self.code_fence == CodeFence::Open {
            self.close_code_fence(run, out);
            self.append(run, &format!("\n\n{UNFINISHED}"), out);
        }
        self.finish(run, out);
    }

    /// The text is withdrawn: another attempt or the response replaces it.
    pub(super) fn withdraw(&mut self, run: RunId, out: &mut Actions) {
        if std::mem::take(&mut self.is_message_open) {
            out.emit(FromAgent::MessageWithdrawn { run });
        }
        self.code_fence = CodeFence::None;
    }

    pub(super) fn finish(&mut self, run: RunId, out: &mut Actions) {
        if std::mem::take(&mut self.is_message_open) {
            let text = None;
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(stream: &mut ChunkStream, index: u64, is_last: bool, out: &mut Actions) {
        let (index, text) = (Some(index), "a".to_owned());
        let chunk = Chunk {
            index,
            text,
            is_last,
        };
        stream.push(RunId::new(), chunk, out);
    }

    #[test]
    fn a_stream_is_whole_when_all_before_its_last_chunk_is_there() {
        let (mut stream, mut out) = (ChunkStream::new(false), Actions::default());
        push(&mut stream, 0, false, &mut out);
        push(&mut stream, 3, false, &mut out);
        push(&mut stream, 2, true, &mut out);
        push(&mut stream, 4, false, &mut out);
        assert!(!stream.is_whole(), "its second chunk is missing");
        push(&mut stream, 1, false, &mut out);
        assert!(stream.is_whole());
        assert_eq!(stream.text, "aaa", "nothing after the last one");
    }

    #[test]
    fn chunks_out_of_order_are_bounded() {
        let (mut stream, mut out) = (ChunkStream::new(false), Actions::default());
        for _ in 0..2 {
            // In the second pass they are repeated, or too many.
            for index in 1..=2_000 {
                push(&mut stream, index, false, &mut out);
            }
        }
        assert_eq!(stream.out_of_order.len(), MAX_OUT_OF_ORDER_CHUNKS);
        push(&mut stream, 0, false, &mut out);
        assert_eq!(stream.text.len(), MAX_OUT_OF_ORDER_CHUNKS + 1);
        push(&mut stream, 0, false, &mut out);
        assert!(stream.out_of_order.is_empty());
    }
}
