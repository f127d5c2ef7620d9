//! Command queue: one command in flight, the others wait. Pure.
//!
//! A core answers a command that it cannot decode without its id, so only the order tells which one
//! is meant.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Actions, AgentError, ErrorCode, RunId, text_of};
use crate::runtime::event_truncation::excerpt;

const PROTOCOL_VERSION: &str = "1";
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// The core gives up by itself after 30 s, and then answers.
const LATE_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    State,
    /// Ends a run from an earlier connection.
    AbortStale,
    Session,
    /// A conversation that goes on from another one.
    Branch,
    /// What the branch remembers.
    BranchPath,
    /// The message at which the branch was cut, and what it then remembers.
    Leaf(String),
    LeafPath(String),
    Prompt(RunId),
    Steer,
    /// The queued run that it would be otherwise.
    FollowUp(RunId),
    /// How many follow-ups the core has left, as a turn of the run begins.
    Pending(RunId),
    Abort(RunId),
    Setting,
    AgentRequest(u64),
    /// Finds out whether a silent core still answers.
    Ping,
    /// The state of the core after its sockets were lost.
    Recovery,
    /// What a run said while its events were not heard.
    Missed {
        run: RunId,
        /// The core has ended it, and its end was not heard.
        is_over: bool,
    },
    /// The answer is dropped: its request was declined as late.
    Ignored,
}

#[derive(Debug)]
pub(super) struct CommandError {
    pub(super) code: ErrorCode,
    /// With the core's own code.
    pub(super) text: String,
    /// The core's own words.
    pub(super) agent: AgentError,
}

impl CommandError {
    /// Whether the core says this, in its code or its message.
    pub(super) fn says(&self, word: &str) -> bool {
        self.agent.code == word || self.agent.message.contains(word)
    }
}

#[derive(Debug)]
pub(super) struct Command {
    pub(super) purpose: Purpose,
    kind: &'static str,
    payload: Value,
}

#[derive(Debug)]
struct InFlight {
    number: u64,
    command: Command,
}

#[derive(Debug, Default)]
pub(super) struct CommandQueue {
    sent: u64,
    in_flight: Option<InFlight>,
    /// Sent before all others, and the only ones that are sent while `is_held`.
    urgent: VecDeque<Command>,
    waiting: VecDeque<Command>,
    /// The core must first be known again.
    is_held: bool,
}

impl CommandQueue {
    pub(super) fn send(
        &mut self,
        purpose: Purpose,
        kind: &'static str,
        payload: Value,
        out: &mut Actions,
    ) {
        let command = Command {
            purpose,
            kind,
            payload,
        };
        self.waiting.push_back(command);
        self.send_next(out);
    }

    pub(super) fn send_first(
        &mut self,
        purpose: Purpose,
        kind: &'static str,
        payload: Value,
        out: &mut Actions,
    ) {
        let command = Command {
            purpose,
            kind,
            payload,
        };
        self.waiting.push_front(command);
        self.send_next(out);
    }

    /// Sends a command also while the others are held back.
    pub(super) fn send_urgent(
        &mut self,
        purpose: Purpose,
        kind: &'static str,
        payload: Value,
        out: &mut Actions,
    ) {
        let command = Command {
            purpose,
            kind,
            payload,
        };
        self.urgent.push_back(command);
        self.send_next(out);
    }

    /// Puts back a command whose answer was lost and that may be sent twice.
    pub(super) fn put_back(&mut self, command: Command) {
        self.waiting.push_front(command);
    }

    /// Holds all but urgent commands back. Returns the one whose answer is lost.
    pub(super) fn hold(&mut self, out: &mut Actions) -> Option<Command> {
        self.is_held = true;
        self.urgent.clear();
        let lost = self.in_flight.take()?;
        out.clear_timer(lost.number);
        Some(lost.command)
    }

    /// Ends `hold`.
    pub(super) fn release(&mut self, out: &mut Actions) {
        self.is_held = false;
        self.send_next(out);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_none() && self.waiting.is_empty() && self.urgent.is_empty()
    }

    /// Whether the prompt of a run is still to be sent.
    pub(super) fn has_prompt(&self, run: RunId) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|command| command.purpose == Purpose::Prompt(run))
    }

    /// Removes unsent commands; returns whether there were any.
    pub(super) fn withdraw(&mut self, matches: impl Fn(&Purpose) -> bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|command| !matches(&command.purpose));
        self.waiting.len() < before
    }

    /// Matches a response with its command, then sends the next one.
    pub(super) fn response(
        &mut self,
        line: &Value,
        out: &mut Actions,
    ) -> Option<(Purpose, Result<Value, CommandError>)> {
        let Some(ok) = line["ok"].as_bool() else {
            out.unexpected("a line that is not an answer");
            return None;
        };
        let id = text_of(&line["id"]);
        let matches =
            |in_flight: &mut InFlight| id.is_empty() || id == command_id(in_flight.number);
        let Some(in_flight) = self.in_flight.take_if(matches) else {
            let id = printable(&line["id"]);
            out.unexpected(format!("an answer to nothing: `{id}`"));
            return None;
        };
        out.clear_timer(in_flight.number);
        self.send_next(out);
        let answer = if ok {
            Ok(line["payload"].clone())
        } else {
            Err(command_error(&line["error"]))
        };
        Some((in_flight.command.purpose, answer))
    }

    /// The purpose and name of a command whose response is late.
    pub(super) fn timed_out(
        &mut self,
        timer: u64,
        out: &mut Actions,
    ) -> Option<(Purpose, &'static str)> {
        let in_flight = self.in_flight.as_mut()?;
        if in_flight.number != timer {
            return None;
        }
        let command = &mut in_flight.command;
        if let Purpose::AgentRequest(_) = command.purpose {
            // The request is declined, but its answer still comes before all others.
            out.set_timer(timer, LATE_ANSWER_TIMEOUT);
            let purpose = std::mem::replace(&mut command.purpose, Purpose::Ignored);
            return Some((purpose, command.kind));
        }
        Some((command.purpose.clone(), command.kind))
    }

    fn send_next(&mut self, out: &mut Actions) {
        if self.in_flight.is_some() {
            return;
        }
        let held = self.is_held;
        let next = self.urgent.pop_front();
        let next = next.or_else(|| if held { None } else { self.waiting.pop_front() });
        let Some(command) = next else { return };
        self.sent += 1;
        let number = self.sent;
        let (kind, payload) = (command.kind, &command.payload);
        out.write(json!({ "v": PROTOCOL_VERSION, "id": command_id(number), "type": kind, "payload": payload }));
        out.set_timer(number, COMMAND_TIMEOUT);
        self.in_flight = Some(InFlight { number, command });
    }
}

fn command_id(number: u64) -> String {
    format!("c{number}")
}

/// An id from the core for the log: it may be anything, and of any length.
pub(super) fn printable(name: &Value) -> String {
    match name {
        Value::Null => String::new(),
        Value::String(name) => excerpt(name),
        _ => "?".into(),
    }
}

fn command_error(error: &Value) -> CommandError {
    let message = text_of(&error["message"]);
    let native = text_of(&error["code"]);
    let code = match native.as_str() {
        _ if message.contains("run_in_progress") => ErrorCode::Busy,
        _ if message.contains("session_not_found") => ErrorCode::NotFound,
        "invalid_payload" => ErrorCode::ValidationError,
        "session_not_found" => ErrorCode::NotFound,
        "invalid_command" | "not_implemented" => ErrorCode::Unsupported,
        _ => ErrorCode::TaskFailed,
    };
    let text = super::run_events::error_text(error);
    let text = match native.as_str() {
        "" => text,
        native if text.starts_with(native) => text,
        native => format!("{text} [{native}]"),
    };
    let agent = super::run_events::agent_error(error);
    CommandError { code, text, agent }
}
