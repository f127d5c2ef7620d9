//! The wire of the daemon: requests and answers as JSON-RPC without `jsonrpc`, events beside them.
//!
//! The daemon has one loop for all its conversations and no word to stop it. A cancelled run is over
//! for the user at once, but its loop goes on: what it says is swallowed until it is done, and the
//! next prompt is held back so long. Events name neither the prompt nor the tool use that they belong
//! to, so order is all there is to go by.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::unsupported_inquiry;
use super::{Images, PROTOCOL, goes_on, text_of_brief};
use crate::domain::code::Code;
use crate::domain::event::{Activity, Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::runtime::dialect::{Act, Brief, Dialect, Lane, Order, Out, Setup, text_of, unsupported};
use crate::runtime::jsonrpc::{self, Fault, Message};
use crate::runtime::pending::Pending;
use crate::runtime::talk::FromAgent;

mod tools;

use tools::Tools;

/// How long the daemon may take for an answer; its own client waits as long.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What the daemon takes at most in one input, counted as it counts: the JSON text, in UTF-16.
const LONGEST_INPUT: usize = 100 * 1024;

const ATTACH: u64 = 1;
const INPUT: u64 = 2;

/// Speaks with a daemon.
pub(super) struct Daemon {
    setup: Setup,
    requests: Pending<Request>,
    /// The daemon's own name for this conversation, once it is attached.
    session: Option<String>,
    /// Something of this conversation was shown again: the daemon remembers it.
    replayed: bool,
    turn: Option<Turn>,
    /// A prompt that waits for the loop of a cancelled run to be done.
    held: Option<(RunId, String)>,
}

enum Request {
    Attach { wanted: Option<String> },
    Input { run: RunId },
    Detach,
}

/// A prompt that was given to the daemon, until its loop is done with it.
struct Turn {
    run: RunId,
    /// The run was cancelled: nobody is told what comes of it.
    unheard: bool,
    accepted: bool,
    stage: Stage,
    /// Something was said aloud that is not complete yet.
    speaking: bool,
    tools: Tools,
}

/// How far the daemon is with a prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for the loop. What comes now belongs to a loop that had ended with an error.
    Waiting,
    /// The same, but it begins with a slash: perhaps a command, which is answered without a loop.
    Command,
    /// Its loop has begun.
    Looping,
}

impl Daemon {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            requests: Pending::from(1), // Answers to what it could not read have the id 0.
            session: None,
            replayed: false,
            turn: None,
            held: None,
        }
    }

    fn request(&mut self, request: Request, method: &str, params: Value, out: &mut Out) {
        let id = self.requests.add(request);
        out.write(jsonrpc::bare(jsonrpc::request(id, method, params)));
    }

    fn attach(&mut self, wanted: Option<String>, out: &mut Out) {
        let params = match &wanted {
            Some(session) => json!({ "sessionId": session }),
            None => json!({}),
        };
        self.request(Request::Attach { wanted }, "agent.attach", params, out);
        out.timer(ATTACH, ANSWER_WITHIN);
    }

    fn attached(&mut self, wanted: Option<&str>, result: &Value, out: &mut Out) {
        let Some(session) = result["sessionId"].as_str() else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` attached without naming the conversation.");
            return out.fail(Code::ConnectionLost, message);
        };
        out.no_timer(ATTACH);
        // A conversation that the daemon read back from its disk gets another name, and is empty.
        let same = wanted == Some(session) || self.replayed;
        let goes_on = same && result["isNew"] != true;
        self.session = Some(session.to_owned());
        out.tell(FromAgent::Thread(session.to_owned()));
        if !goes_on && (self.setup.thread.is_some() || !self.setup.history.is_empty()) {
            out.starts_fresh(&self.setup.agent);
        }
        out.ready(vec!["questions", "images"]);
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.setup.agent;
        let text = match text_of_brief(brief, Images::NotCarried) {
            Ok(text) => text,
            Err(what) => {
                return out.refuse(run, unsupported(agent, &what));
            }
        };
        let length = Value::from(text.as_str())
            .to_string()
            .encode_utf16()
            .count();
        if length > LONGEST_INPUT {
            let message = format!(
                "The agent `{agent}` takes prompts of at most 100 KB, files included; this one has {} KB.",
                length.div_ceil(1024)
            );
            return out.fail_run(run, Code::ValidationError, message);
        }
        match &self.turn {
            None => self.submit(run, &text, out),
            Some(turn) if turn.unheard => self.held = Some((run, text)),
            Some(_) => {
                let message = format!("The agent `{agent}` is busy with another prompt.");
                out.fail_run(run, Code::Busy, message);
            }
        }
    }

    fn submit(&mut self, run: RunId, text: &str, out: &mut Out) {
        self.turn = Some(Turn {
            run,
            unheard: false,
            accepted: false,
            stage: if text.starts_with('/') {
                Stage::Command
            } else {
                Stage::Waiting
            },
            speaking: false,
            tools: Tools::default(),
        });
        let params = json!({
            "sessionId": self.session, "inputType": "user_input", "data": text,
        });
        self.request(Request::Input { run }, "agent.input", params, out);
        out.timer(INPUT, ANSWER_WITHIN);
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        if self.held.as_ref().is_some_and(|(held, _)| *held == run) {
            self.held = None;
            return out.end(run, RunOutcome::Cancelled, None);
        }
        if let Some(turn) = &mut self.turn
            && turn.run == run
            && !turn.unheard
        {
            turn.unheard = true;
            turn.complete_utterance(out);
            goes_on(&self.setup.agent, out);
            out.end(run, RunOutcome::Cancelled, None);
        }
    }

    /// The loop is done with the prompt.
    fn finish(&mut self, outcome: RunOutcome, out: &mut Out) {
        if let Some(mut turn) = self.turn.take()
            && !turn.unheard
        {
            turn.accept(out);
            turn.complete_utterance(out);
            out.end(turn.run, outcome, None);
        }
        if let Some((run, text)) = self.held.take() {
            self.submit(run, &text, out);
        }
    }

    fn answered(&mut self, id: &Value, answer: Result<Value, Fault>, out: &mut Out) {
        let request = id.as_u64().and_then(|id| self.requests.take(id));
        match (request, answer) {
            (Some(Request::Attach { wanted }), Ok(result)) => {
                self.attached(wanted.as_deref(), &result, out);
            }
            // It does not say why (the reason is lost on its side): most likely it has forgotten.
            (Some(Request::Attach { wanted: Some(_) }), Err(_)) => self.attach(None, out),
            (Some(Request::Attach { wanted: None }), Err(fault)) => {
                let reason = reason(&fault.message);
                let agent = &self.setup.agent;
                let message = format!("The agent `{agent}` refused to be attached to{reason}.");
                out.fail(Code::ConnectionLost, message);
            }
            (Some(Request::Input { run }), answer) => {
                out.no_timer(INPUT);
                self.taken(run, answer, out);
            }
            (Some(Request::Detach), _) => {}
            (None, Err(fault)) => {
                let code = fault.code;
                out.act(Act::Odd(format!("an error that answers nothing: {code}")));
            }
            (None, Ok(_)) => {
                let id = text_of(id);
                out.act(Act::Odd(format!("an answer to nothing: id {id:.64}")));
            }
        }
    }

    /// The daemon has taken the prompt, or has not. Its loop may be well ahead of this answer.
    fn taken(&mut self, run: RunId, answer: Result<Value, Fault>, out: &mut Out) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.run == run) else {
            return;
        };
        let message = match answer {
            Ok(result) if result["success"] != false => return turn.accept(out),
            Ok(_) => String::new(),
            Err(fault) => fault.message,
        };
        if turn.stage == Stage::Looping {
            return out.act(Act::Odd("a refusal of what is worked on".into()));
        }
        let agent = &self.setup.agent;
        let message = format!(
            "The agent `{agent}` did not take the prompt{}.",
            reason(&message)
        );
        let code = Code::TaskFailed;
        turn.accepted = true; // It was not: it must not be told either.
        self.finish(RunOutcome::Failed { code, message }, out);
    }

    fn event(&mut self, kind: &str, line: &Value, out: &mut Out) {
        let data = &line["data"];
        let of = data["sessionId"].as_str();
        if kind == "agent.replay" && self.session.is_none() {
            // Comes before the answer that names the conversation.
            self.replayed = true;
            return;
        }
        match (of, self.session.as_deref()) {
            (Some(of), Some(ours)) if of == ours => {}
            (Some(of), _) => {
                return out.act(Act::Stray(format!("`{kind:.64}` of session {of:.64}")));
            }
            (None, _) => return out.act(Act::Odd(format!("`{kind:.64}` of no session"))),
        }
        match kind {
            "agent.output" => self.output(data, out),
            "agent.tool" => self.tool(data, out),
            "agent.loop" => self.looped(data, out),
            "agent.status" => out.notice(Level::Info, text_of(&data["message"])),
            "agent.replay" => {}
            _ => out.raw(PROTOCOL.name, line.clone()),
        }
    }

    fn output(&mut self, data: &Value, out: &mut Out) {
        let Some(turn) = self
            .turn
            .as_mut()
            .filter(|turn| turn.stage != Stage::Waiting)
        else {
            return out.act(Act::Odd("`agent.output` with no loop under way".into()));
        };
        let channel = if data["isReasoning"] == true {
            Channel::Thought
        } else {
            Channel::Text
        };
        turn.say(channel, text_of(&data["text"]), out);
        if turn.stage == Stage::Command {
            // The answer of a command: all of it, and nothing follows.
            self.finish(RunOutcome::Completed, out);
        }
    }

    fn tool(&mut self, data: &Value, out: &mut Out) {
        let Some(turn) = self
            .turn
            .as_mut()
            .filter(|turn| turn.stage == Stage::Looping)
        else {
            return out.act(Act::Odd("`agent.tool` with no loop under way".into()));
        };
        if turn.unheard {
            return;
        }
        let Some(tool) = turn.tools.see(data) else {
            let status = text_of(&data["status"]);
            return out.act(Act::Odd(format!(
                "`agent.tool` with the status {status:.64}"
            )));
        };
        turn.complete_utterance(out);
        if tool.is_open() {
            out.tell(FromAgent::Activity(Activity::ExecutingTool));
        }
        let run = turn.run;
        out.tell(FromAgent::Tool { run, tool });
    }

    fn looped(&mut self, data: &Value, out: &mut Out) {
        let phase = data["phase"].as_str().unwrap_or_default();
        let begun = |turn: &Turn| turn.stage == Stage::Looping;
        match (phase, &mut self.turn) {
            ("started", Some(turn)) => {
                turn.stage = Stage::Looping;
                turn.accept(out);
            }
            ("awaiting_llm", Some(turn)) if begun(turn) => {
                if !turn.unheard {
                    out.tell(FromAgent::Activity(Activity::Thinking));
                }
            }
            ("finished", Some(turn)) if begun(turn) => self.finish(RunOutcome::Completed, out),
            ("error", Some(turn)) if turn.stage != Stage::Waiting => {
                let message = match text_of(&data["error"]) {
                    error if error.is_empty() => "The agent failed without saying why.".into(),
                    error => error,
                };
                let code = Code::TaskFailed;
                self.finish(RunOutcome::Failed { code, message }, out);
            }
            _ => out.act(Act::Odd(format!(
                "`agent.loop` {phase:.64} at no time for it"
            ))),
        }
    }
}

impl Dialect for Daemon {
    fn open(&mut self, out: &mut Out) {
        self.attach(self.setup.thread.clone(), out);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            // Neither wire has a word for any inquiry.
            Order::Inquire { id, inquiry } => {
                out.decline_with(id, unsupported_inquiry(&self.setup.agent, &inquiry));
            }
            // It asks nothing and can be told nothing else.
            Order::Answer { .. }
            | Order::Steer { .. }
            | Order::Settings(_)
            | Order::Tools(_)
            | Order::Context(_)
            | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        if let Some(kind) = line["event"].as_str() {
            return self.event(kind, &line, out);
        }
        match jsonrpc::read(line) {
            Message::Answer { id, answer } => self.answered(&id, answer, out),
            Message::Request { id, method, .. } => {
                let message = format!("no such method: {method}");
                let refusal = jsonrpc::error(id, jsonrpc::UNKNOWN_METHOD, &message);
                out.write(jsonrpc::bare(refusal));
            }
            Message::Notification { method, params } => {
                out.raw(PROTOCOL.name, json!({ "method": method, "params": params }));
            }
            Message::Odd(_) => out.act(Act::Odd("a line that is neither event nor answer".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        let agent = &self.setup.agent;
        let what = match timer {
            ATTACH => "let itself be attached to",
            INPUT => "take the prompt",
            _ => return,
        };
        let message = format!("The agent `{agent}` did not {what} within 10 s.");
        out.fail(Code::ConnectionLost, message);
    }

    fn close(&mut self, out: &mut Out) {
        if let Some(session) = self.session.take() {
            let params = json!({ "sessionId": session });
            self.request(Request::Detach, "agent.detach", params, out);
        }
    }
}

impl Turn {
    fn accept(&mut self, out: &mut Out) {
        if !self.accepted && !self.unheard {
            out.tell(FromAgent::Accepted { run: self.run });
        }
        self.accepted = true;
    }

    fn say(&mut self, channel: Channel, text: String, out: &mut Out) {
        self.accept(out);
        if !self.unheard {
            self.speaking |= channel == Channel::Text && !text.is_empty();
            out.say(self.run, channel, text);
        }
    }

    fn complete_utterance(&mut self, out: &mut Out) {
        if std::mem::take(&mut self.speaking) {
            let (run, text) = (self.run, None);
            out.tell(FromAgent::Final { run, text });
        }
    }
}

/// The reason as the end of a sentence, if there is one: the daemon often loses it.
fn reason(message: &str) -> String {
    match message.trim().trim_end_matches('.') {
        "" | "[object Object]" => String::new(),
        message => format!(": {message}"),
    }
}
