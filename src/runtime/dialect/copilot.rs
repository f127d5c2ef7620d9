//! The Copilot CLI: makes user interfaces out of API specifications. JSON-RPC over standard input and
//! output, one request after the other.
//!
//! It remembers nothing between requests: the code that it made and what was said are kept here and
//! given to it again. It can hold 100 requests; a session has at most one on its way, so that limit
//! is never met. There is no word to stop a request, so a cancel ends the process.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Act, Brief, Dialect, Framing, Lane, Order, Out, Protocol, Setup, Transport, text_of,
    unsupported,
};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Mode};
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::domain::run::RunOutcome;
use crate::runtime::jsonrpc::{self, Fault, Message};
use crate::runtime::talk::FromAgent;

mod clarification;
mod greeting;
mod memory;
mod reply;
mod request;
mod specification;
mod stream;

use clarification::Clarification;
use greeting::Greeting;
use memory::Memory;
use reply::Reply;
use request::{Request, Style};
use stream::Stream;

/// What is known about the Copilot CLI beforehand.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "copilot",
    about: "The Copilot CLI that makes user interfaces out of API specifications",
    capabilities: &[
        "cancel",
        "questions",
        "queue",
        "followUp",
        "branch",
        "attachments",
        "resume",
    ],
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[
        Duration::from_secs(5),
        Duration::from_secs(10),
        Duration::from_secs(30),
    ],
    options: &[
        ("format", "what code is made: `react` by default"),
        ("theme", "how it looks: `light` by default"),
        ("layout", "how it is laid out: `default` by default"),
        ("include_auth", "whether it has a login: true by default"),
        ("pagination", "whether lists have pages: true by default"),
    ],
    speaker,
};

fn speaker(setup: Setup) -> Box<dyn Dialect> {
    Box::new(Copilot::new(setup))
}

/// The timer of a request; those of the introduction are its own.
const LATE: u64 = 3;
/// The timer of the pause before it is sent again.
const AGAIN: u64 = 4;

struct Copilot {
    agent: String,
    version: &'static str,
    session: String,
    style: Style,
    /// The number of the next request.
    next: u64,
    greeting: Greeting,
    memory: Memory,
    turn: Option<Turn>,
}

/// A run.
struct Turn {
    run: RunId,
    /// What the user said, and what was cleared up since.
    text: String,
    request: Request,
    /// How many tries of this request have failed.
    failed: usize,
    /// The number of the try that is on its way.
    id: Option<u64>,
    stream: Stream,
    /// What the agent wants to know before it goes on.
    question: Option<Clarification>,
}

impl Copilot {
    fn new(setup: Setup) -> Self {
        Self {
            style: Style::from(&setup),
            memory: Memory::of(&setup.history),
            agent: setup.agent,
            version: setup.version,
            session: setup.session,
            next: 1,
            greeting: Greeting::default(),
            turn: None,
        }
    }

    fn number(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }

    fn initialize(&mut self, out: &mut Out) {
        let id = self.number();
        self.greeting.send(id, self.version, out);
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let agent = &self.agent;
        if self.turn.is_some() {
            let message = format!("The agent `{agent}` is busy with another prompt.");
            return out.fail_run(run, Code::Busy, message);
        }
        match self.request_for(brief) {
            Ok((text, request)) => {
                out.tell(FromAgent::Accepted { run });
                self.turn = Some(Turn {
                    run,
                    text,
                    stream: Stream::new(request.is_code()),
                    request,
                    failed: 0,
                    id: None,
                    question: None,
                });
                self.send(out);
            }
            Err(what) => {
                out.refuse(run, unsupported(agent, &what));
            }
        }
    }

    /// Which request a prompt is; or what of it is impossible, completing "The agent cannot …".
    fn request_for(&self, brief: &Brief) -> Result<(String, Request), String> {
        if brief.mode == Mode::Plan {
            return Err("plan without acting".into());
        }
        if !brief.images.is_empty() {
            return Err("look at images".into());
        }
        let mut brief = brief.clone();
        let spec = brief
            .files
            .iter()
            .enumerate()
            .find_map(|(place, file)| Some((place, specification::of(file)?)));
        if let Some((place, _)) = spec {
            brief.files.remove(place);
        }
        let (text, others) = brief.text_with_files();
        if !others.is_empty() {
            let others = others.join(", ");
            return Err(format!("read files that are not text ({others})"));
        }
        let request = match spec {
            Some(_) if self.greeting.excludes("codeGeneration") => {
                return Err("generate code".into());
            }
            Some((_, spec)) => Request::Generate { spec },
            None if self.memory.has_code() && !self.greeting.excludes("customization") => {
                Request::Customize
            }
            None => Request::Chat,
        };
        Ok((text, request))
    }

    /// Sends the request of the run, for the first time or again.
    fn send(&mut self, out: &mut Out) {
        let id = self.number();
        let Some(turn) = &mut self.turn else { return };
        let params = match &turn.request {
            Request::Generate { spec } => self.style.generate(spec, &turn.text),
            Request::Customize => self.memory.customize(&turn.text),
            Request::Chat => self.memory.chat(&self.session, &turn.text),
        };
        turn.id = Some(id);
        turn.stream = Stream::new(turn.request.is_code());
        out.write(jsonrpc::request(id, turn.request.method(), params));
        out.timer(LATE, turn.request.within());
    }

    fn answered(&mut self, id: &Value, answer: Result<Value, Fault>, out: &mut Out) {
        if self.greeting.is_sent_as(id) {
            return self.greeting.answered(&self.agent, answer, out);
        }
        let sent = self.turn.as_ref().and_then(|turn| turn.id);
        if sent.is_none() || id.as_u64() != sent {
            // Most likely of a try that was given up.
            let id = text_of(id);
            return out.act(Act::Odd(format!("an answer to nothing: id {id:.64}")));
        }
        out.no_timer(LATE);
        match answer {
            Ok(result) if result["clarificationNeeded"] == true => self.ask(&result, out),
            Ok(result) => self.finish(&Reply::read(&result), out),
            Err(fault) if reply::is_worth_another_try(&fault) => {
                let (code, message) = reply::failure(&self.agent, &fault);
                self.try_again(code, message, out);
            }
            Err(fault) => {
                let (code, message) = reply::failure(&self.agent, &fault);
                self.give_up(RunOutcome::Failed { code, message }, out);
            }
        }
    }

    /// A try has failed; with this if it was the last one.
    fn try_again(&mut self, code: Code, message: String, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        turn.id = None;
        let Some(pause) = turn.request.again_after().get(turn.failed) else {
            return self.give_up(RunOutcome::Failed { code, message }, out);
        };
        turn.failed += 1;
        turn.stream.withdraw(turn.run, out);
        if pause.is_zero() {
            self.send(out);
        } else {
            out.timer(AGAIN, *pause);
        }
    }

    fn finish(&mut self, reply: &Reply, out: &mut Out) {
        let Some(mut turn) = self.turn.take() else {
            return;
        };
        let run = turn.run;
        if reply.confirms(&turn.request, turn.stream.told()) {
            turn.stream.end_code(run, out);
            turn.stream
                .add(run, &reply.text_beside_stream(&turn.request), out);
            turn.stream.complete(run, out);
        } else {
            turn.stream.withdraw(run, out);
            let mut text = reply.text();
            if text.is_empty() {
                turn.stream.told().clone_into(&mut text);
            }
            if !text.is_empty() {
                let text = Some(text);
                out.tell(FromAgent::Final { run, text });
            }
        }
        self.memory.learn(&turn.text, turn.request, reply);
        out.end(run, RunOutcome::Completed, None);
    }

    /// The run ends without a result.
    fn give_up(&mut self, outcome: RunOutcome, out: &mut Out) {
        if let Some(mut turn) = self.turn.take() {
            turn.stream.break_off(turn.run, out);
            out.end(turn.run, outcome, None);
        }
    }

    fn ask(&mut self, result: &Value, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let asked_as = turn.id.take().unwrap_or_default().to_string();
        turn.stream.withdraw(turn.run, out);
        let question = Clarification::read(asked_as, result);
        out.tell(FromAgent::Asked {
            run: turn.run,
            question: question.name().to_owned(),
            asked: Box::new(question.question()),
            patience: None,
        });
        turn.question = Some(question);
    }

    fn answer(&mut self, name: &str, resolution: &Resolution, out: &mut Out) {
        let Some(turn) = &mut self.turn else { return };
        let Some(question) = turn.question.take_if(|question| question.name() == name) else {
            return;
        };
        match resolution {
            Resolution::Answered(answer) => match question.cleared_up(answer) {
                Some(words) => {
                    turn.text = format!("{}\n\n{words}", turn.text);
                    if let Request::Generate { spec } = &turn.request {
                        self.memory.know_spec(spec.clone());
                    }
                    turn.request = Request::Customize;
                    turn.failed = 0;
                    self.send(out);
                }
                None => self.give_up(RunOutcome::Cancelled, out),
            },
            Resolution::Cancelled => self.give_up(RunOutcome::Cancelled, out),
            Resolution::Expired => {
                let code = Code::TaskFailed;
                let agent = &self.agent;
                let message = format!(
                    "Nobody answered what the agent `{agent}` had to know, so it did nothing."
                );
                self.give_up(RunOutcome::Failed { code, message }, out);
            }
        }
    }

    fn cancel(&mut self, run: RunId, out: &mut Out) {
        if self.turn.as_ref().is_some_and(|turn| turn.run == run) {
            out.no_timer(LATE);
            out.no_timer(AGAIN);
            self.give_up(RunOutcome::Cancelled, out);
            out.act(Act::Finish);
        }
    }

    fn chunk(&mut self, params: &Value, out: &mut Out) {
        let of = params["requestId"].as_u64();
        match (&mut self.turn, of) {
            (Some(turn), Some(_)) if turn.id == of => {
                let index = params["index"].as_u64();
                turn.stream
                    .hear(turn.run, index, text_of(&params["chunk"]), out);
            }
            // Of a try that was given up: it was ours.
            (_, Some(id)) if id < self.next => {
                out.act(Act::Odd(format!("`stream/chunk` of request {id}, late")));
            }
            _ => {
                let id = text_of(&params["requestId"]);
                out.act(Act::Stray(format!("`stream/chunk` of request {id:.64}")));
            }
        }
    }
}

impl Dialect for Copilot {
    fn open(&mut self, out: &mut Out) {
        self.initialize(out);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            Order::Inquire { id, inquiry } => {
                let what = match inquiry {
                    Inquiry::Query { .. } => "answer questions about itself".to_owned(),
                    Inquiry::Extension { name, .. } => format!("do `{name}`"),
                };
                out.decline_with(id, unsupported(&self.agent, &what));
            }
            // It can be told nothing else.
            Order::Steer { .. }
            | Order::Settings(_)
            | Order::Tools(_)
            | Order::Context(_)
            | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        match jsonrpc::read(line) {
            Message::Answer { id, answer } => self.answered(&id, answer, out),
            Message::Notification { method, params } if method == "stream/chunk" => {
                self.chunk(&params, out);
            }
            Message::Notification { method, params } => {
                out.raw(PROTOCOL.name, json!({ "method": method, "params": params }));
            }
            Message::Request { id, method, .. } => {
                let message = format!("no such method: {method}");
                out.write(jsonrpc::error(id, jsonrpc::UNKNOWN_METHOD, &message));
            }
            Message::Odd(_) => out.act(Act::Odd("a line that is not JSON-RPC".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        match timer {
            greeting::LATE => self.greeting.late(&self.agent, out),
            greeting::AGAIN => self.initialize(out),
            LATE => {
                let Some(turn) = self.turn.as_ref().filter(|turn| turn.id.is_some()) else {
                    return;
                };
                let message = format!(
                    "The agent `{}` did not answer within {} s.",
                    self.agent,
                    turn.request.within().as_secs()
                );
                self.try_again(Code::TaskFailed, message, out);
            }
            AGAIN if self.turn.as_ref().is_some_and(Turn::waits_to_try) => {
                self.send(out);
            }
            _ => {}
        }
    }

    fn close(&mut self, out: &mut Out) {
        out.write(jsonrpc::notification("exit", json!({})));
    }
}

impl Turn {
    fn waits_to_try(&self) -> bool {
        self.id.is_none() && self.question.is_none()
    }
}
