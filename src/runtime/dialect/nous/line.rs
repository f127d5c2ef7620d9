//! The commands to a core: one is on its way, the others wait. Pure.
//!
//! A core answers a command that it cannot read without naming it, so that only the order tells which
//! one is meant.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Act, Code, Out, RunId, text_of};

const VERSION: &str = "1";
/// How long a core may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// It gives up by itself after 30 s, and then answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a command is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// To know how the core stands.
    State,
    /// To end a run that somebody else began.
    Halt,
    /// To be in the right conversation.
    Session,
    /// To begin a run.
    Prompt(RunId),
    /// To say something to it.
    Steer,
    /// To end it.
    Abort(RunId),
    /// To set something.
    Setting,
    /// To tell somebody.
    Inquiry(u64),
    /// Nobody waits for the answer.
    Nothing,
}

/// Why the core did not do it.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Which kind of reason.
    pub(super) code: Code,
    /// What a person reads.
    pub(super) text: String,
}

#[derive(Debug)]
struct Command {
    what: What,
    kind: &'static str,
    payload: Value,
}

#[derive(Debug)]
struct Flight {
    number: u64,
    what: What,
    kind: &'static str,
}

/// The commands.
#[derive(Debug, Default)]
pub(super) struct Line {
    sent: u64,
    flight: Option<Flight>,
    waiting: VecDeque<Command>,
}

impl Line {
    /// Sends a command in its turn.
    pub(super) fn send(&mut self, what: What, kind: &'static str, payload: Value, out: &mut Out) {
        self.waiting.push_back(Command {
            what,
            kind,
            payload,
        });
        self.go_on(out);
    }

    /// Sends a command before all that wait.
    pub(super) fn hurry(&mut self, what: What, kind: &'static str, payload: Value, out: &mut Out) {
        self.waiting.push_front(Command {
            what,
            kind,
            payload,
        });
        self.go_on(out);
    }

    /// Takes back what was not sent yet; says whether there was any.
    pub(super) fn take_back(&mut self, is_meant: impl Fn(&What) -> bool) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|command| !is_meant(&command.what));
        self.waiting.len() < before
    }

    /// Reads an answer: what it was for, and what came of it. The next command is sent.
    pub(super) fn answered(
        &mut self,
        line: &Value,
        out: &mut Out,
    ) -> Option<(What, Result<Value, Refusal>)> {
        let Some(ok) = line["ok"].as_bool() else {
            out.act(Act::Odd("a line that is not an answer".into()));
            return None;
        };
        let id = text_of(&line["id"]);
        let is_meant = |flight: &mut Flight| id.is_empty() || id == name(flight.number);
        let Some(flight) = self.flight.take_if(is_meant) else {
            let id = brief(&line["id"]);
            out.act(Act::Odd(format!("an answer to nothing: `{id}`")));
            return None;
        };
        out.no_timer(flight.number);
        self.go_on(out);
        let answer = if ok {
            Ok(line["payload"].clone())
        } else {
            Err(refusal(&line["error"]))
        };
        Some((flight.what, answer))
    }

    /// The answer did not come in time: what it was for, and the name of the command.
    pub(super) fn late(&mut self, timer: u64, out: &mut Out) -> Option<(What, &'static str)> {
        let flight = self.flight.as_mut()?;
        if flight.number != timer {
            return None;
        }
        if let What::Inquiry(_) = flight.what {
            // Whoever asked is told, but the answer still comes before all others.
            out.timer(timer, PATIENCE);
            let what = std::mem::replace(&mut flight.what, What::Nothing);
            return Some((what, flight.kind));
        }
        Some((flight.what.clone(), flight.kind))
    }

    fn go_on(&mut self, out: &mut Out) {
        if self.flight.is_some() {
            return;
        }
        let Some(command) = self.waiting.pop_front() else {
            return;
        };
        self.sent += 1;
        let Command {
            what,
            kind,
            payload,
        } = command;
        let number = self.sent;
        out.write(json!({ "v": VERSION, "id": name(number), "type": kind, "payload": payload }));
        out.timer(number, DEADLINE);
        self.flight = Some(Flight { number, what, kind });
    }
}

fn name(number: u64) -> String {
    format!("c{number}")
}

/// A name that the core gave, as the operator sees it: it may be anything, and may be long.
pub(super) fn brief(name: &Value) -> String {
    match name {
        Value::Null => String::new(),
        Value::String(name) => {
            let plain = name.chars().filter(|char| !char.is_control());
            plain.take(64).collect()
        }
        _ => "?".into(),
    }
}

fn refusal(error: &Value) -> Refusal {
    let message = text_of(&error["message"]);
    let code = match text_of(&error["code"]).as_str() {
        _ if message.contains("run_in_progress") => Code::Busy,
        _ if message.contains("session_not_found") => Code::NotFound,
        "invalid_payload" => Code::ValidationError,
        "session_not_found" => Code::NotFound,
        "invalid_command" | "not_implemented" => Code::Unsupported,
        _ => Code::TaskFailed,
    };
    Refusal {
        code,
        text: super::run::words(error),
    }
}
