//! Dialect driver: runs one dialect for one link.
//!
//! Holds commands until the agent is ready, carries out the dialect's actions, keeps its timers, and
//! knows the current run. No I/O: time is an argument, bytes and events wait here until the link
//! takes them. They stay bounded because the link asks [`DialectDriver::can_take_command`] and
//! [`DialectDriver::can_read`] before it brings more.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;
use tokio::time::Instant;

use super::dialect::{Action, Actions, Dialect, StreamKind};
use super::event_truncation;
use super::lines::Line;
use super::link_failure::LinkFailure;
use super::messages::{Declined, FromAgent, ToAgent};
use crate::domain::command::SettingsChange;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;

/// Commands held until the agent is ready. Full: the session waits.
const MAX_HELD_COMMANDS: usize = 64;
/// Unwritten bytes behind the line that is being written above which no command is taken.
const MAX_UNWRITTEN_FOR_COMMANDS: usize = 1024 * 1024;
/// Unwritten bytes above which the agent is not read either. More than a prompt with all its files.
const MAX_UNWRITTEN_FOR_READS: usize = 64 * 1024 * 1024;
/// Bytes of unsent events above which the agent is not read.
const MAX_UNSENT_BYTES: usize = 256 * 1024;
/// How much of a dropped line goes into the log.
const MAX_LOGGED_BYTES: usize = 100;
/// Unsent pieces of text are joined up to this size.
const MAX_JOINED_BYTES: usize = 16 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum DialectEnd {
    Failed(Declined),
    /// The process has done its work.
    Finished,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DroppedLines {
    /// They belonged to another conversation.
    pub(super) misrouted: u64,
    /// They made no sense.
    pub(super) unexpected: u64,
}

pub(super) struct DialectDriver {
    dialect: Box<dyn Dialect>,
    delimiter: u8,
    out: Actions,
    is_ready: bool,
    lacks: Vec<&'static str>,
    held: VecDeque<ToAgent>,
    events: VecDeque<FromAgent>,
    unsent_bytes: usize,
    unwritten: [Vec<u8>; 2],
    /// The first unwritten line is partly written.
    is_partly_written: [bool; 2],
    timers: BTreeMap<u64, Instant>,
    /// The settings that were reported to the session last.
    reported_settings: SettingsChange,
    run: Option<RunId>,
    /// A byte was written since the run's prompt was given to the dialect: the agent may have it.
    may_have_prompt: bool,
    end: Option<DialectEnd>,
    dropped: DroppedLines,
    first_non_json: Option<String>,
    completed_run: bool,
}

impl DialectDriver {
    pub(super) fn new(dialect: Box<dyn Dialect>, delimiter: u8) -> Self {
        Self {
            dialect,
            delimiter,
            out: Actions::default(),
            is_ready: false,
            lacks: Vec::new(),
            held: VecDeque::new(),
            events: VecDeque::new(),
            unsent_bytes: 0,
            unwritten: [Vec::new(), Vec::new()],
            is_partly_written: [false; 2],
            timers: BTreeMap::new(),
            reported_settings: SettingsChange::default(),
            run: None,
            may_have_prompt: false,
            end: None,
            dropped: DroppedLines::default(),
            first_non_json: None,
            completed_run: false,
        }
    }

    pub(super) fn open(&mut self, now: Instant) {
        self.dialect.open(&mut self.out);
        self.carry_out(now);
    }

    pub(super) fn handle(&mut self, command: ToAgent, now: Instant) {
        match &command {
            ToAgent::Cancel { run } if self.cancel_held(*run) => return,
            ToAgent::Prompt { run, .. } | ToAgent::Resume { run, .. } => {
                self.run = Some(*run);
                self.may_have_prompt = matches!(command, ToAgent::Resume { .. });
            }
            _ => {}
        }
        if self.is_ready {
            self.dialect.handle(command, &mut self.out);
            self.carry_out(now);
        } else {
            self.held.push_back(command);
        }
    }

    pub(super) fn read(&mut self, stream: StreamKind, line: Line, now: Instant) {
        match line {
            Line::Message(message) => {
                self.dialect.read(stream, message, &mut self.out);
                self.carry_out(now);
            }
            Line::TooLong => self.drop_unexpected("a line that is too long"),
            Line::NotJson(start) => {
                self.drop_unexpected("a line that is not JSON");
                self.first_non_json.get_or_insert(start);
            }
        }
    }

    pub(super) fn run_timers(&mut self, now: Instant) {
        while let Some((id, _)) = self.timers.iter().find(|(_, at)| **at <= now) {
            let id = *id;
            self.timers.remove(&id);
            self.dialect.on_timer(id, &mut self.out);
            self.carry_out(now);
        }
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.values().min().copied()
    }

    /// Whether lost sockets are worth another try.
    pub(super) fn can_reconnect(&self) -> bool {
        self.is_ready && self.end.is_none() && self.dialect.can_reconnect()
    }

    /// The sockets are open again; half a line must not be written to them.
    pub(super) fn reconnected(&mut self, now: Instant) {
        self.unwritten = [Vec::new(), Vec::new()];
        self.dialect.reconnected(&mut self.out);
        self.carry_out(now);
    }

    /// Puts the protocol's own farewell among the unwritten bytes.
    pub(super) fn close(&mut self, now: Instant) {
        self.dialect.close(&mut self.out);
        self.carry_out(now);
    }

    /// One line of any length may wait for the agent to read: a cancel or a timeout must not wait
    /// behind it.
    pub(super) fn can_take_command(&self) -> bool {
        let limit = MAX_UNWRITTEN_FOR_COMMANDS;
        let is_below =
            |bytes: &Vec<u8>| bytes.len() < limit || bytes.len() - self.first_line(bytes) < limit;
        self.held.len() < MAX_HELD_COMMANDS && self.unwritten.iter().all(is_below)
    }

    /// The length of the first line, with its delimiter.
    fn first_line(&self, bytes: &[u8]) -> usize {
        let end = bytes.iter().position(|byte| *byte == self.delimiter);
        end.map_or(bytes.len(), |end| end + 1)
    }

    /// False while the session does not take the events, or the agent does not read its input.
    pub(super) fn can_read(&self) -> bool {
        self.unsent_bytes < MAX_UNSENT_BYTES && self.unwritten_below(MAX_UNWRITTEN_FOR_READS)
    }

    fn unwritten_below(&self, limit: usize) -> bool {
        self.unwritten.iter().all(|bytes| bytes.len() < limit)
    }

    pub(super) fn unwritten(&self, stream: StreamKind) -> &[u8] {
        &self.unwritten[index(stream)]
    }

    pub(super) fn wrote(&mut self, stream: StreamKind, count: usize) {
        // While the agent is not ready, the prompt is held here.
        self.may_have_prompt |= self.is_ready;
        let index = index(stream);
        let last = self.unwritten[index].drain(..count).next_back();
        self.is_partly_written[index] = last.is_some_and(|last| last != self.delimiter);
    }

    fn drop_unwritten(&mut self) {
        for index in 0..self.unwritten.len() {
            let kept = if self.is_partly_written[index] {
                self.first_line(&self.unwritten[index])
            } else {
                0
            };
            self.unwritten[index].truncate(kept);
        }
    }

    pub(super) fn next_event_bytes(&self) -> Option<usize> {
        self.events.front().map(FromAgent::bytes)
    }

    pub(super) fn take_event(&mut self) -> Option<FromAgent> {
        let event = self.events.pop_front()?;
        self.unsent_bytes = self.unsent_bytes.saturating_sub(event.bytes());
        Some(event)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(super) fn lacks(&self) -> &[&'static str] {
        &self.lacks
    }

    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    /// The run waits for the agent, not for a person.
    pub(super) fn awaits_agent(&self) -> bool {
        let dialect = &self.dialect;
        let asks = !dialect.open_questions().is_empty() || dialect.has_session_question();
        self.run.is_some() && !asks
    }

    pub(super) fn take_end(&mut self) -> Option<DialectEnd> {
        self.end.take()
    }

    pub(super) fn take_dropped(&mut self) -> DroppedLines {
        std::mem::take(&mut self.dropped)
    }

    pub(super) fn first_non_json(&self) -> Option<&str> {
        self.first_non_json.as_deref()
    }

    pub(super) fn take_completed_run(&mut self) -> bool {
        std::mem::take(&mut self.completed_run)
    }

    /// Ends a run that the agent never saw.
    pub(super) fn refuse(&mut self, run: RunId, declined: Declined) {
        self.emit(failed(run, declined));
    }

    /// The agent is gone: hands back a prompt that it did not receive.
    pub(super) fn return_prompt(&mut self, reason: &Declined) {
        let run = self.run.filter(|_| self.is_ready && !self.may_have_prompt);
        if let Some(run) = run {
            self.run = None;
            let reason = reason.clone();
            self.emit(FromAgent::Undelivered { run, reason });
        }
    }

    /// The agent is gone and never saw this command.
    pub(super) fn return_command(&mut self, command: &ToAgent, reason: &Declined) {
        let reason = reason.clone();
        match *command {
            ToAgent::Prompt { run, .. } => self.emit(FromAgent::Undelivered { run, reason }),
            ToAgent::Resume { run, .. } => self.emit(failed(run, reason)),
            ToAgent::Request { id, .. } => {
                let result = Err(reason);
                self.emit(FromAgent::Response { id, result });
            }
            _ => {}
        }
    }

    /// The agent is gone: fails the current run and the held requests. Returns whether there was any.
    pub(super) fn fail_pending(&mut self, failure: &LinkFailure) -> bool {
        let mut pending = self.run.is_some();
        if let Some(run) = self.run.take() {
            for event in failure.ends(run) {
                self.emit(event);
            }
        }
        for command in std::mem::take(&mut self.held) {
            if let ToAgent::Request { id, .. } = command {
                let result = Err(failure.declined.clone());
                self.emit(FromAgent::Response { id, result });
                pending = true;
            }
        }
        pending
    }

    /// Cancels a prompt that the agent has not seen yet. Returns whether it was held.
    fn cancel_held(&mut self, cancelled: RunId) -> bool {
        let held = self.held.len();
        self.held
            .retain(|command| !matches!(command, ToAgent::Prompt { run, .. } | ToAgent::Resume { run, .. } if *run == cancelled));
        if self.held.len() == held {
            return false;
        }
        self.run = None;
        self.emit(FromAgent::RunEnded {
            run: cancelled,
            outcome: RunOutcome::Cancelled,
            usage: None,
        });
        true
    }

    fn drop_unexpected(&mut self, what: &str) {
        let what = &what[..what.floor_char_boundary(MAX_LOGGED_BYTES)];
        tracing::debug!(what, "dropped an unexpected line of an agent");
        self.dropped.unexpected += 1;
    }

    fn carry_out(&mut self, now: Instant) {
        loop {
            let actions = self.out.take();
            if actions.is_empty() {
                return self.report_settings();
            }
            for action in actions {
                self.act(action, now);
            }
        }
    }

    fn report_settings(&mut self) {
        let settings = self.dialect.settings();
        if settings != self.reported_settings {
            self.reported_settings = settings.clone();
            self.emit(event_truncation::bounded(FromAgent::Settings(settings)));
        }
    }

    fn act(&mut self, action: Action, now: Instant) {
        match action {
            Action::Write(stream, line) => self.write(stream, &line),
            Action::DropUnwritten => self.drop_unwritten(),
            Action::Emit(event) => self.emit(event_truncation::bounded(event)),
            Action::Ready { lacks } => {
                self.is_ready = true;
                self.lacks = lacks;
                for command in std::mem::take(&mut self.held) {
                    self.dialect.handle(command, &mut self.out);
                }
            }
            Action::SetTimer(id, Some(after)) => drop(self.timers.insert(id, now + after)),
            Action::SetTimer(id, None) => drop(self.timers.remove(&id)),
            Action::Misrouted(mut what) => {
                what.truncate(what.floor_char_boundary(MAX_LOGGED_BYTES));
                tracing::warn!(what, "dropped a line of another conversation from an agent");
                self.dropped.misrouted += 1;
            }
            Action::Unexpected(what) => self.drop_unexpected(&what),
            Action::Fail(mut declined) => {
                event_truncation::shorten(&mut declined.message);
                self.end.get_or_insert(DialectEnd::Failed(declined));
            }
            Action::Finish => {
                self.end.get_or_insert(DialectEnd::Finished);
            }
        }
    }

    fn write(&mut self, stream: StreamKind, line: &Value) {
        let bytes = &mut self.unwritten[index(stream)];
        // Cannot fail: a `Value` is always JSON, and a vector always takes it.
        serde_json::to_writer(&mut *bytes, line).ok();
        bytes.push(self.delimiter);
    }

    fn emit(&mut self, event: FromAgent) {
        if let FromAgent::RunEnded { run, outcome, .. } = event.bare() {
            self.completed_run |= *outcome == RunOutcome::Completed;
            if self.run == Some(*run) {
                self.run = None;
            }
            // Every question gets an answer, also those that the run leaves open.
            for question in self.dialect.open_questions() {
                let resolution = Resolution::Cancelled;
                let answer = ToAgent::Answer {
                    question,
                    resolution,
                };
                self.dialect.handle(answer, &mut self.out);
            }
        }
        if let Some(event) = self.join(event) {
            self.unsent_bytes += event.bytes();
            self.events.push_back(event);
        }
    }

    /// Appends a piece of text to the unsent one before it; returns any other event.
    fn join(&mut self, event: FromAgent) -> Option<FromAgent> {
        match (self.events.back_mut(), event) {
            (
                Some(FromAgent::MessageDelta { run, channel, text }),
                FromAgent::MessageDelta {
                    run: of,
                    channel: on,
                    text: more,
                },
            ) if *run == of && *channel == on && text.len() + more.len() <= MAX_JOINED_BYTES => {
                text.push_str(&more);
                self.unsent_bytes += more.len();
                None
            }
            (_, event) => Some(event),
        }
    }
}

fn failed(run: RunId, declined: Declined) -> FromAgent {
    let Declined { code, message } = declined;
    FromAgent::RunEnded {
        run,
        outcome: RunOutcome::Failed { code, message },
        usage: None,
    }
}

pub(super) fn unusable(agent: &str, code: ErrorCode, why: &str) -> Declined {
    let message = format!("The agent `{agent}` cannot be used: {why}.");
    Declined { code, message }
}

fn index(stream: StreamKind) -> usize {
    match stream {
        StreamKind::Main => 0,
        StreamKind::Events => 1,
    }
}

#[cfg(test)]
mod tests;
