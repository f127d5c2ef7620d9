//! Between a session and an agent's protocol: holds orders until the agent is ready, carries out what
//! the dialect decides, keeps its timers, and knows which run is under way.
//!
//! No I/O. Time comes as an argument; what is to be written and told waits here, bounded by whoever
//! asks [`Interpreter::has_room`] before bringing more.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::clip;
use super::dialect::{Act, Dialect, Lane, Order, Out};
use super::lines::Line;
use super::talk::{Declined, FromAgent};
use crate::domain::code::Code;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

/// Orders that wait for an agent to be ready. Full: the session waits.
const HELD: usize = 64;
/// How much may wait to be written before the session has to wait, in bytes.
const UNWRITTEN: usize = 1024 * 1024;
/// How much may wait to be written before the agent has to wait, too. More than a prompt with all
/// its files.
const UNREAD: usize = 64 * 1024 * 1024;
/// How much may wait to be told before the agent has to wait, in bytes.
const UNTOLD: usize = 256 * 1024;
/// How much of a remark goes into the log.
const SHOWN: usize = 100;
/// Pieces of text that nobody has taken yet are joined up to this size.
const JOINED: usize = 16 * 1024;

/// Why there is nothing more to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The agent cannot be used.
    Failed(Declined),
    /// The process has done its part.
    Finished,
}

/// What came from the agent and was of no use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Belonged to another conversation.
    pub(super) strays: u64,
    /// Made no sense.
    pub(super) odd: u64,
}

/// One agent's dialect at work.
pub(super) struct Interpreter {
    dialect: Box<dyn Dialect>,
    delimiter: u8,
    patience: Option<Duration>,
    out: Out,
    ready: bool,
    lacks: Vec<&'static str>,
    held: VecDeque<Order>,
    said: VecDeque<FromAgent>,
    untold: usize,
    unwritten: [Vec<u8>; 2],
    timers: BTreeMap<u64, Instant>,
    run: Option<RunId>,
    /// Questions that wait for their answers.
    questions: HashSet<String>,
    verdict: Option<Verdict>,
    tally: Tally,
    /// The first line that was not JSON.
    noise: Option<String>,
    /// A run was completed.
    worked: bool,
}

impl Interpreter {
    /// `patience`: questions wait no longer than that.
    pub(super) fn new(
        dialect: Box<dyn Dialect>,
        delimiter: u8,
        patience: Option<Duration>,
    ) -> Self {
        Self {
            dialect,
            delimiter,
            patience,
            out: Out::default(),
            ready: false,
            lacks: Vec::new(),
            held: VecDeque::new(),
            said: VecDeque::new(),
            untold: 0,
            unwritten: [Vec::new(), Vec::new()],
            timers: BTreeMap::new(),
            run: None,
            questions: HashSet::new(),
            verdict: None,
            tally: Tally::default(),
            noise: None,
            worked: false,
        }
    }

    /// The line is open.
    pub(super) fn open(&mut self, now: Instant) {
        self.dialect.open(&mut self.out);
        self.carry_out(now);
    }

    /// The session wants something.
    pub(super) fn hear(&mut self, order: Order, now: Instant) {
        match &order {
            Order::Cancel { run } if self.drop_held(*run) => return,
            Order::Prompt { run, .. } => self.run = Some(*run),
            Order::Answer { question, .. } => {
                self.questions.remove(question);
            }
            _ => {}
        }
        if self.ready {
            self.dialect.hear(order, &mut self.out);
            self.carry_out(now);
        } else {
            self.held.push_back(order);
        }
    }

    /// The agent wrote a line.
    pub(super) fn read(&mut self, lane: Lane, line: Line, now: Instant) {
        match line {
            Line::Message(message) => {
                self.dialect.read(lane, message, &mut self.out);
                self.carry_out(now);
            }
            Line::TooLong => self.odd("a line that is too long"),
            Line::NotJson(start) => {
                self.odd("a line that is not JSON");
                self.noise.get_or_insert(start);
            }
        }
    }

    /// Wakes the dialect for every timer that has run out.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((name, _)) = self.timers.iter().find(|(_, at)| **at <= now) {
            let name = *name;
            self.timers.remove(&name);
            self.dialect.late(name, &mut self.out);
            self.carry_out(now);
        }
    }

    /// When the next timer runs out.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.values().min().copied()
    }

    /// Says goodbye.
    pub(super) fn close(&mut self, now: Instant) {
        self.dialect.close(&mut self.out);
        self.carry_out(now);
    }

    /// May the session bring more?
    pub(super) fn has_room(&self) -> bool {
        self.held.len() < HELD && self.unwritten.iter().all(|bytes| bytes.len() < UNWRITTEN)
    }

    /// May the agent bring more? Not while nobody takes what it said, nor while it does not read
    /// what it is answered.
    pub(super) fn is_heard(&self) -> bool {
        self.untold < UNTOLD && self.unwritten.iter().all(|bytes| bytes.len() < UNREAD)
    }

    /// What is to be written on a lane.
    pub(super) fn unwritten(&self, lane: Lane) -> &[u8] {
        &self.unwritten[index(lane)]
    }

    /// So much of it is written.
    pub(super) fn wrote(&mut self, lane: Lane, count: usize) {
        self.unwritten[index(lane)].drain(..count);
    }

    /// What is to be told next, and how much room it takes.
    pub(super) fn next_told(&self) -> Option<usize> {
        self.said.front().map(FromAgent::bytes)
    }

    /// It is told herewith.
    pub(super) fn take_told(&mut self) -> Option<FromAgent> {
        let said = self.said.pop_front()?;
        self.untold = self.untold.saturating_sub(said.bytes());
        Some(said)
    }

    /// Can the agent be spoken to?
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    /// What the agent cannot, of what its protocol can.
    pub(super) fn lacks(&self) -> &[&'static str] {
        &self.lacks
    }

    /// Is a run under way?
    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// Does a run wait for the agent, and not for a human?
    pub(super) fn is_awaited(&self) -> bool {
        self.run.is_some() && self.questions.is_empty()
    }

    /// Why there is nothing more to say, if so.
    pub(super) fn verdict(&mut self) -> Option<Verdict> {
        self.verdict.take()
    }

    /// What was of no use since this was asked last.
    pub(super) fn tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// The first line that was not of the protocol, if there was one.
    pub(super) fn noise(&self) -> Option<&str> {
        self.noise.as_deref()
    }

    /// Was a run completed since this was asked last?
    pub(super) fn has_worked(&mut self) -> bool {
        std::mem::take(&mut self.worked)
    }

    /// A prompt that cannot be put before the agent.
    pub(super) fn refuse(&mut self, run: RunId, declined: Declined) {
        let Declined { code, message } = declined;
        let outcome = RunOutcome::Failed { code, message };
        self.tell(FromAgent::Ended {
            run,
            outcome,
            usage: None,
        });
    }

    /// The agent is gone: whatever waits for it gets its end. Says whether anything did.
    pub(super) fn lose(&mut self, declined: &Declined) -> bool {
        let waited = self.run.is_some()
            || self
                .held
                .iter()
                .any(|order| matches!(order, Order::Inquire { .. }));
        if let Some(run) = self.run.take() {
            self.tell(FromAgent::Ended {
                run,
                outcome: RunOutcome::Failed {
                    code: declined.code,
                    message: declined.message.clone(),
                },
                usage: None,
            });
        }
        for order in std::mem::take(&mut self.held) {
            if let Order::Inquire { id, .. } = order {
                let answer = Err(declined.clone());
                self.tell(FromAgent::Told { id, answer });
            }
        }
        waited
    }

    /// A prompt that the agent has not seen yet is cancelled without it.
    fn drop_held(&mut self, cancelled: RunId) -> bool {
        let held = self.held.len();
        self.held
            .retain(|order| !matches!(order, Order::Prompt { run, .. } if *run == cancelled));
        if self.held.len() == held {
            return false;
        }
        self.run = None;
        self.tell(FromAgent::Ended {
            run: cancelled,
            outcome: RunOutcome::Cancelled,
            usage: None,
        });
        true
    }

    fn odd(&mut self, what: &str) {
        let what = &what[..what.floor_char_boundary(SHOWN)];
        tracing::debug!(what, "an agent wrote something of no use");
        self.tally.odd += 1;
    }

    fn carry_out(&mut self, now: Instant) {
        loop {
            let acts = self.out.take();
            if acts.is_empty() {
                return;
            }
            for act in acts {
                self.act(act, now);
            }
        }
    }

    fn act(&mut self, act: Act, now: Instant) {
        match act {
            Act::Write(lane, line) => self.write(lane, &line),
            Act::Tell(said) => self.tell(clip::bounded(said)),
            Act::Ready { lacks } => {
                self.ready = true;
                self.lacks = lacks;
                for order in std::mem::take(&mut self.held) {
                    self.dialect.hear(order, &mut self.out);
                }
            }
            Act::Timer(name, Some(after)) => drop(self.timers.insert(name, now + after)),
            Act::Timer(name, None) => drop(self.timers.remove(&name)),
            Act::Stray(mut what) => {
                what.truncate(what.floor_char_boundary(SHOWN));
                tracing::warn!(
                    what,
                    "an agent spoke of a conversation that is not this session's"
                );
                self.tally.strays += 1;
            }
            Act::Odd(what) => self.odd(&what),
            Act::Fail(mut declined) => {
                clip::shorten(&mut declined.message);
                self.verdict.get_or_insert(Verdict::Failed(declined));
            }
            Act::Finish => {
                self.verdict.get_or_insert(Verdict::Finished);
            }
        }
    }

    fn write(&mut self, lane: Lane, line: &Value) {
        let bytes = &mut self.unwritten[index(lane)];
        // A `Value` is always JSON, and a vector takes it.
        serde_json::to_writer(&mut *bytes, line).ok();
        bytes.push(self.delimiter);
    }

    fn tell(&mut self, mut said: FromAgent) {
        match &mut said {
            FromAgent::Ended { run, outcome, .. } => {
                self.worked |= *outcome == RunOutcome::Completed;
                if self.run == Some(*run) {
                    self.run = None;
                }
                // Every question gets an answer, also those that its run leaves open.
                for question in self.questions.drain() {
                    let resolution = Resolution::Cancelled;
                    let answer = Order::Answer {
                        question,
                        resolution,
                    };
                    self.dialect.hear(answer, &mut self.out);
                }
            }
            FromAgent::Settled { question } => {
                self.questions.remove(question);
            }
            FromAgent::Asked {
                question, patience, ..
            } => {
                *patience = patience.iter().copied().chain(self.patience).min();
                self.questions.insert(question.clone());
            }
            _ => {}
        }
        if let Some(said) = self.join(said) {
            self.untold += said.bytes();
            self.said.push_back(said);
        }
    }

    /// Joins a piece of text with the one before, if nobody has taken that yet; gives it back if not.
    fn join(&mut self, said: FromAgent) -> Option<FromAgent> {
        match (self.said.back_mut(), said) {
            (
                Some(FromAgent::Delta { run, channel, text }),
                FromAgent::Delta {
                    run: of,
                    channel: on,
                    text: more,
                },
            ) if *run == of && *channel == on && text.len() + more.len() <= JOINED => {
                text.push_str(&more);
                self.untold += more.len();
                None
            }
            (_, said) => Some(said),
        }
    }
}

/// The refusal that whoever waits for a lost agent hears.
pub(super) fn lost(agent: &str, code: Code, why: &str) -> Declined {
    let message = format!("The agent `{agent}` cannot be used: {why}.");
    Declined { code, message }
}

fn index(lane: Lane) -> usize {
    match lane {
        Lane::Main => 0,
        Lane::Events => 1,
    }
}

#[cfg(test)]
mod tests;
