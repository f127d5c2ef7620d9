//! Chunk stream: the chunks of one attempt, passed on in the order of their index.

use std::collections::BTreeMap;

use super::session_context::{CODE_FENCE_END, CODE_FENCE_START, UNFINISHED};
use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::runtime::dialect::Actions;
use crate::runtime::messages::FromAgent;

const MAX_OUT_OF_ORDER_CHUNKS: usize = 1024;

#[derive(Debug)]
pub(super) struct ChunkStream {
    next_index: u64,
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
    pub(super) fn push(
        &mut self,
        run: RunId,
        index: Option<u64>,
        chunk: String,
        out: &mut Actions,
    ) {
        let index = index.unwrap_or(self.next_index);
        if index < self.next_index || self.out_of_order.contains_key(&index) {
            return;
        }
        if index > self.next_index && self.out_of_order.len() >= MAX_OUT_OF_ORDER_CHUNKS {
            return out.unexpected(format!(
                "piece {index} of a stream whose piece {} is missing",
                self.next_index
            ));
        }
        self.out_of_order.insert(index, chunk);
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

    #[test]
    fn chunks_out_of_order_are_bounded() {
        let (mut stream, mut out) = (ChunkStream::new(false), Actions::default());
        let run = RunId::new();
        for _ in 0..2 {
            // In the second pass they are repeated, or too many.
            for index in 1..=2_000 {
                stream.push(run, Some(index), "a".into(), &mut out);
            }
        }
        assert_eq!(stream.out_of_order.len(), MAX_OUT_OF_ORDER_CHUNKS);
        stream.push(run, Some(0), "a".into(), &mut out);
        assert_eq!(stream.text.len(), MAX_OUT_OF_ORDER_CHUNKS + 1);
        stream.push(run, Some(0), "a".into(), &mut out);
        assert!(stream.out_of_order.is_empty());
    }
}
