//! Command queue: one command in flight, the others wait. Pure.
//!
//! A core answers a command that it cannot decode without its id, so only the order tells which one
//! is meant.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Actions, ErrorCode, RunId, text_of};
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
    Prompt(RunId),
    Steer,
    Abort(RunId),
    Setting,
    AgentRequest(u64),
    /// The answer is dropped: its request was declined as late.
    Ignored,
}

#[derive(Debug)]
pub(super) struct CommandError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

#[derive(Debug)]
struct Command {
    purpose: Purpose,
    kind: &'static str,
    payload: Value,
}

#[derive(Debug)]
struct InFlight {
    number: u64,
    purpose: Purpose,
    kind: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct CommandQueue {
    sent: u64,
    in_flight: Option<InFlight>,
    waiting: VecDeque<Command>,
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
        Some((in_flight.purpose, answer))
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
        if let Purpose::AgentRequest(_) = in_flight.purpose {
            // The request is declined, but its answer still comes before all others.
            out.set_timer(timer, LATE_ANSWER_TIMEOUT);
            let purpose = std::mem::replace(&mut in_flight.purpose, Purpose::Ignored);
            return Some((purpose, in_flight.kind));
        }
        Some((in_flight.purpose.clone(), in_flight.kind))
    }

    fn send_next(&mut self, out: &mut Actions) {
        if self.in_flight.is_some() {
            return;
        }
        let Some(command) = self.waiting.pop_front() else {
            return;
        };
        self.sent += 1;
        let Command {
            purpose,
            kind,
            payload,
        } = command;
        let number = self.sent;
        out.write(json!({ "v": PROTOCOL_VERSION, "id": command_id(number), "type": kind, "payload": payload }));
        out.set_timer(number, COMMAND_TIMEOUT);
        self.in_flight = Some(InFlight {
            number,
            purpose,
            kind,
        });
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
    let code = match text_of(&error["code"]).as_str() {
        _ if message.contains("run_in_progress") => ErrorCode::Busy,
        _ if message.contains("session_not_found") => ErrorCode::NotFound,
        "invalid_payload" => ErrorCode::ValidationError,
        "session_not_found" => ErrorCode::NotFound,
        "invalid_command" | "not_implemented" => ErrorCode::Unsupported,
        _ => ErrorCode::TaskFailed,
    };
    CommandError {
        code,
        message: super::run_events::error_text(error),
    }
}
