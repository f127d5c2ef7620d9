//! Message buffers: turn growing messages into deltas. Pure.
//!
//! Roo repeats a message with its whole text as it grows; only what is new is reported.

use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::runtime::dialect::Actions;
use crate::runtime::messages::FromAgent;

#[derive(Debug)]
pub(super) struct MessageSnapshot<'a> {
    pub(super) task: &'a str,
    /// Its id: the time of its start.
    pub(super) ts: u64,
    pub(super) text: &'a str,
    pub(super) partial: bool,
}

#[derive(Debug)]
struct OpenMessage {
    task: String,
    ts: u64,
    reported: String,
}

/// One channel: a message at a time.
#[derive(Debug)]
struct ChannelBuffer {
    open: Option<OpenMessage>,
    /// Messages up to this time are complete; repetitions are ignored.
    complete_until: u64,
}

#[derive(Debug)]
pub(super) struct MessageBuffers {
    run: RunId,
    text: ChannelBuffer,
    thought: ChannelBuffer,
}

impl MessageBuffers {
    /// Messages up to `complete_until` belong to earlier runs.
    pub(super) fn starting_after(run: RunId, complete_until: u64) -> Self {
        let buffer = || ChannelBuffer {
            open: None,
            complete_until,
        };
        Self {
            run,
            text: buffer(),
            thought: buffer(),
        }
    }

    /// Reports what is new in a message.
    pub(super) fn update(
        &mut self,
        channel: Channel,
        snapshot: &MessageSnapshot<'_>,
        out: &mut Actions,
    ) {
        let (run, buffer) = (self.run, self.buffer(channel));
        let Some(open) = buffer.open(run, channel, (snapshot.task, snapshot.ts), out) else {
            return;
        };
        open.report(run, channel, snapshot.text, out);
        if !snapshot.partial {
            buffer.finish(run, channel, out);
        }
    }

    /// Reports the next piece of a message that comes in pieces.
    pub(super) fn append(&mut self, channel: Channel, ts: u64, piece: &str, out: &mut Actions) {
        let (run, buffer) = (self.run, self.buffer(channel));
        if let Some(open) = buffer.open(run, channel, ("", ts), out) {
            open.reported.push_str(piece);
            out.emit_delta(run, channel, piece);
        }
    }

    /// The reported text of this message if it is still open.
    pub(super) fn reported(&mut self, channel: Channel, ts: u64) -> String {
        let open = self.buffer(channel).open.as_ref();
        let open = open.filter(|open| open.ts == ts);
        open.map_or_else(String::new, |open| open.reported.clone())
    }

    fn buffer(&mut self, channel: Channel) -> &mut ChannelBuffer {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Thought => &mut self.thought,
        }
    }

    pub(super) fn finish(&mut self, out: &mut Actions) {
        self.thought.finish(self.run, Channel::Thought, out);
        self.text.finish(self.run, Channel::Text, out);
    }
}

impl ChannelBuffer {
    /// Opens or continues a message and completes the one before; `None` for an older one.
    fn open(
        &mut self,
        run: RunId,
        channel: Channel,
        (task, ts): (&str, u64),
        out: &mut Actions,
    ) -> Option<&mut OpenMessage> {
        let is_open = |open: &OpenMessage| open.ts == ts && open.task == task;
        if !self.open.as_ref().is_some_and(is_open) {
            let newest = self
                .open
                .as_ref()
                .map_or(self.complete_until, |open| open.ts);
            if ts <= newest {
                return None;
            }
            self.finish(run, channel, out);
            self.open = Some(OpenMessage {
                task: task.to_owned(),
                ts,
                reported: String::new(),
            });
        }
        self.open.as_mut()
    }

    fn finish(&mut self, run: RunId, channel: Channel, out: &mut Actions) {
        let Some(open) = self.open.take() else { return };
        self.complete_until = self.complete_until.max(open.ts);
        if channel == Channel::Text && !open.reported.is_empty() {
            out.emit(FromAgent::MessageFinal { run, text: None });
        }
    }
}

impl OpenMessage {
    fn report(&mut self, run: RunId, channel: Channel, text: &str, out: &mut Actions) {
        if let Some(new) = text.strip_prefix(self.reported.as_str()) {
            self.reported.push_str(new);
            return out.emit_delta(run, channel, new);
        }
        text.clone_into(&mut self.reported);
        if channel == Channel::Text {
            // The text was rewritten. Thoughts cannot be withdrawn and stay.
            out.emit(FromAgent::MessageWithdrawn { run });
            out.emit_delta(run, channel, text);
        }
    }
}
