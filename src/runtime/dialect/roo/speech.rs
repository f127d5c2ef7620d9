//! What is said and thought in a run, as pieces. Pure.
//!
//! Roo repeats a message with all of its text as it grows; what was told of it is remembered, so
//! that only what is new is told.

use crate::domain::event::Channel;
use crate::domain::id::RunId;
use crate::runtime::dialect::Out;
use crate::runtime::talk::FromAgent;

/// A message as far as it came.
#[derive(Debug)]
pub(super) struct Said<'a> {
    /// The task that it belongs to.
    pub(super) task: &'a str,
    /// Its name: the time of its first word.
    pub(super) at: u64,
    /// All of it until now.
    pub(super) text: &'a str,
    /// Is there more to come?
    pub(super) partial: bool,
}

/// One message that grows.
#[derive(Debug)]
struct Open {
    task: String,
    at: u64,
    told: String,
}

/// One of the two channels: a message at a time.
#[derive(Debug)]
struct Voice {
    open: Option<Open>,
    /// Messages until this time are complete, and whatever is repeated of them is known.
    done: u64,
}

/// Both channels of one run.
#[derive(Debug)]
pub(super) struct Speech {
    run: RunId,
    text: Voice,
    thought: Voice,
}

impl Speech {
    /// Nothing is said yet in this run. Messages until that time belong to runs before it.
    pub(super) fn since(run: RunId, done: u64) -> Self {
        let voice = || Voice { open: None, done };
        Self {
            run,
            text: voice(),
            thought: voice(),
        }
    }

    /// Tells what is new in a message.
    pub(super) fn hear(&mut self, channel: Channel, said: &Said<'_>, out: &mut Out) {
        let (run, voice) = (self.run, self.voice(channel));
        let Some(open) = voice.open(run, channel, (said.task, said.at), out) else {
            return;
        };
        open.tell(run, channel, said.text, out);
        if !said.partial {
            voice.finish(run, channel, out);
        }
    }

    /// Tells the next piece of a message, of those that come in pieces.
    pub(super) fn add(&mut self, channel: Channel, at: u64, piece: &str, out: &mut Out) {
        let (run, voice) = (self.run, self.voice(channel));
        if let Some(open) = voice.open(run, channel, ("", at), out) {
            open.told.push_str(piece);
            out.say(run, channel, piece);
        }
    }

    /// What was told of this message, if it is the one that grows at the moment.
    pub(super) fn told(&mut self, channel: Channel, at: u64) -> String {
        let open = self.voice(channel).open.as_ref();
        let open = open.filter(|open| open.at == at);
        open.map_or_else(String::new, |open| open.told.clone())
    }

    fn voice(&mut self, channel: Channel) -> &mut Voice {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Thought => &mut self.thought,
        }
    }

    /// Whatever is still open is complete now.
    pub(super) fn finish(&mut self, out: &mut Out) {
        self.thought.finish(self.run, Channel::Thought, out);
        self.text.finish(self.run, Channel::Text, out);
    }
}

impl Voice {
    /// The message of that task and time as it grows, which completes the one before; none if it is
    /// an older one.
    fn open(
        &mut self,
        run: RunId,
        channel: Channel,
        (task, at): (&str, u64),
        out: &mut Out,
    ) -> Option<&mut Open> {
        let grows = |open: &Open| open.at == at && open.task == task;
        if !self.open.as_ref().is_some_and(grows) {
            if at <= self.open.as_ref().map_or(self.done, |open| open.at) {
                return None;
            }
            self.finish(run, channel, out);
            self.open = Some(Open {
                task: task.to_owned(),
                at,
                told: String::new(),
            });
        }
        self.open.as_mut()
    }

    fn finish(&mut self, run: RunId, channel: Channel, out: &mut Out) {
        let Some(open) = self.open.take() else { return };
        self.done = self.done.max(open.at);
        if channel == Channel::Text && !open.told.is_empty() {
            out.tell(FromAgent::Final { run, text: None });
        }
    }
}

impl Open {
    fn tell(&mut self, run: RunId, channel: Channel, text: &str, out: &mut Out) {
        if let Some(new) = text.strip_prefix(self.told.as_str()) {
            self.told.push_str(new);
            return out.say(run, channel, new);
        }
        text.clone_into(&mut self.told);
        if channel == Channel::Text {
            // It was written anew. A thought cannot be taken back, and stays as it was told.
            out.tell(FromAgent::Withdrawn { run });
            out.say(run, channel, text);
        }
    }
}
