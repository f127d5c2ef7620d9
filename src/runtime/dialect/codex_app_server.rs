//! `codex app-server`: one thread per session, one turn per run. JSON-RPC without `jsonrpc`.
//!
//! The conversation is begun by `opening`. What the agent writes by itself is sorted by `events`; the
//! turn is kept by `turn`, what is used in it is read by `item`, what the agent asks is put by
//! `approval`, what it tells about itself is put into shape by `inventory`.

mod approval;
mod events;
mod input;
mod inventory;
mod item;
mod meter;
mod opening;
mod rights;
mod turn;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use self::approval::Approvals;
use self::meter::Meter;
use self::turn::{Stage, Stop, Turn};
use super::{
    Act, Brief, Dialect, Framing, FromAgent, Lane, Order, Out, Protocol, Setup, Transport,
    unsupported,
};
use crate::domain::code::Code;
use crate::domain::command::{Mode, Topic};
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::runtime::jsonrpc::{self, Fault, Message};
use crate::runtime::pending::Pending;

/// The protocol.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "codex-app-server",
    about: "Codex, as its app server speaks",
    capabilities: &[
        "cancel",
        "thoughts",
        "plan",
        "usage",
        "tools",
        "questions",
        "queue",
        "steer",
        "followUp",
        "query",
        "models",
        "mcp",
        "skills",
        "branch",
        "images",
        "attachments",
        "modes",
        "resume",
    ],
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[
        ("model", "the model to begin with"),
        (
            "sandbox",
            "read-only, workspace-write or danger-full-access; unless said, as Codex is configured",
        ),
        (
            "approval_policy",
            "untrusted, on-request or never; unless said, as Codex is configured",
        ),
        ("effort", "how hard the model thinks: low, medium, high, …"),
    ],
    speaker: |setup| Box::new(Codex::new(setup)),
};

/// How long the agent may take to introduce itself, to begin a thread, or to take a prompt. Beginning a
/// thread may start MCP servers, so this is generous.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long it may take to tell something about itself.
const QUERY_PATIENCE: Duration = Duration::from_secs(30);

/// So many threads of helpers are kept in mind; the oldest is forgotten first.
const CHILDREN: usize = 256;

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Initialize,
    Account,
    Resume,
    Start,
    /// Plan from now on, or do not; then the prompt follows.
    Mode {
        run: RunId,
        brief: Box<Brief>,
    },
    Turn {
        run: RunId,
    },
    Steer,
    Interrupt,
    Query {
        id: u64,
        topic: Topic,
        params: Value,
    },
}

/// Someone who speaks with one app server.
struct Codex {
    setup: Setup,
    asked: Pending<Asked>,
    /// Our thread.
    thread: Option<String>,
    /// Was its name told? Only then can it be taken up again: Codex keeps no thread without a turn.
    told_thread: bool,
    /// Threads of helpers that our thread has started, the newest last. They may outlive their turn.
    children: VecDeque<String>,
    provider: String,
    model: Option<String>,
    /// A model that was chosen and that the agent does not know about yet.
    chosen_model: Option<String>,
    /// What the thread is set to; a thread that was taken up may have been left either way.
    mode: Option<Mode>,
    needs_login: bool,
    turn: Option<Turn>,
    meter: Meter,
    approvals: Approvals,
}

impl Codex {
    fn new(setup: Setup) -> Self {
        Self {
            asked: Pending::from(0),
            thread: None,
            told_thread: false,
            children: VecDeque::new(),
            provider: "openai".into(),
            model: None,
            chosen_model: None,
            mode: None,
            needs_login: false,
            turn: None,
            meter: Meter::default(),
            approvals: Approvals::default(),
            setup,
        }
    }

    fn ask(&mut self, what: Asked, method: &str, params: Value, out: &mut Out) {
        let patience = match what {
            Asked::Query { .. } => QUERY_PATIENCE,
            _ => PATIENCE,
        };
        let id = self.asked.add(what);
        out.write(jsonrpc::bare(jsonrpc::request(id, method, params)));
        out.timer(id, patience);
    }

    fn prompt(&mut self, run: RunId, brief: Brief, out: &mut Out) {
        if let Err(name) = input::check(&brief) {
            let what = format!("read the file `{name}`: it takes text and images only");
            return out.refuse(run, unsupported(&self.setup.agent, &what));
        }
        self.turn = Some(Turn::new(run));
        if self.mode == Some(brief.mode) {
            return self.begin_turn(run, &brief, out);
        }
        // A request of its own: an agent that does not know it says so, while it would take no
        // notice of an unknown field in the prompt, and act.
        let mode = match brief.mode {
            Mode::Plan => "plan",
            Mode::Act => "default",
        };
        let model = self.chosen_model.as_ref().or(self.model.as_ref());
        let params = json!({
            "threadId": self.thread,
            "collaborationMode": { "mode": mode, "settings": {
                "model": model, "reasoning_effort": self.setup.option("effort"),
                "developer_instructions": null,
            } },
        });
        let brief = Box::new(brief);
        let what = Asked::Mode { run, brief };
        self.ask(what, "thread/settings/update", params, out);
    }

    fn begin_turn(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        if let Some(turn) = &mut self.turn {
            turn.stage = Stage::HandedOver;
        }
        let mut params = json!({ "threadId": self.thread, "input": input::of(brief) });
        if let Some(model) = self.chosen_model.take() {
            params["model"] = model.as_str().into();
            self.model = Some(model);
        }
        if let Some(effort) = self.setup.option("effort") {
            params["effort"] = effort.into();
        }
        self.ask(Asked::Turn { run }, "turn/start", params, out);
    }

    fn mode_set(&mut self, run: RunId, brief: &Brief, answer: Result<Value, Fault>, out: &mut Out) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.run == run) else {
            return;
        };
        match answer {
            Ok(_) => self.mode = Some(brief.mode),
            // Who cannot plan does not do so now.
            Err(_) if self.mode.is_none() && brief.mode == Mode::Act => {
                self.mode = Some(Mode::Act);
            }
            Err(fault) => {
                let what = format!("change between planning and acting: {}", fault.message);
                let declined = unsupported(&self.setup.agent, &what);
                self.leave_unsaid(out);
                self.turn = None;
                return out.refuse(run, declined);
            }
        }
        if turn.stop != Stop::No {
            self.leave_unsaid(out);
            self.turn = None;
            return out.end(run, RunOutcome::Cancelled, None);
        }
        self.begin_turn(run, brief, out);
    }

    /// The agent works on our prompt, in the turn of this name.
    fn has_turn(&mut self, id: &str, out: &mut Out) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        if let Some(thread) = self.thread.clone().filter(|_| !self.told_thread) {
            self.told_thread = true;
            out.tell(FromAgent::Thread(thread));
        }
        turn.id = Some(id.to_owned());
        if turn.stage != Stage::Accepted {
            turn.stage = Stage::Accepted;
            out.tell(FromAgent::Accepted { run: turn.run });
        }
        if turn.stop != Stop::No {
            self.leave_unsaid(out);
            return self.interrupt(out);
        }
        for text in std::mem::take(&mut turn.unsaid) {
            self.steer(text, out);
        }
    }

    fn steer(&mut self, text: String, out: &mut Out) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        let Some(id) = turn.id.clone() else {
            return turn.unsaid.push(text);
        };
        let params = json!({
            "threadId": self.thread, "expectedTurnId": id, "input": [super::text_block(&text)],
        });
        self.ask(Asked::Steer, "turn/steer", params, out);
    }

    /// What was said before the turn had a name is not heard any more.
    fn leave_unsaid(&mut self, out: &mut Out) {
        let unsaid = self
            .turn
            .as_mut()
            .map(|turn| std::mem::take(&mut turn.unsaid));
        if unsaid.is_some_and(|unsaid| !unsaid.is_empty()) {
            self.unheard(out);
        }
    }

    fn unheard(&self, out: &mut Out) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` did not hear what was said to it: the run is over");
        out.notice(Level::Warn, text);
    }

    fn interrupt(&mut self, out: &mut Out) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        // Before the turn has a name there is nothing to interrupt: it is done once it has one.
        if let Some(id) = turn.id.clone().filter(|_| turn.stop == Stop::Wanted) {
            turn.stop = Stop::Told;
            let params = json!({ "threadId": self.thread, "turnId": id });
            self.ask(Asked::Interrupt, "turn/interrupt", params, out);
        }
    }

    fn answered(&mut self, what: Asked, answer: Result<Value, Fault>, out: &mut Out) {
        match (what, answer) {
            (Asked::Initialize, Ok(_)) => self.introduced(out),
            (Asked::Resume, Err(_)) => {
                self.thread = None;
                let params = self.thread_params();
                self.start(params, out);
            }
            (Asked::Resume | Asked::Start, Ok(answer)) => self.has_thread(&answer, out),
            (Asked::Initialize | Asked::Start, Err(fault)) => {
                let message = self.complaint(&fault.message);
                out.fail(Code::TaskFailed, message);
            }
            (Asked::Account, Ok(answer)) => {
                self.needs_login =
                    answer["account"].is_null() && answer["requiresOpenaiAuth"] == true;
                if self.needs_login {
                    out.notice(Level::Warn, self.login_hint());
                }
            }
            (Asked::Mode { run, brief }, answer) => self.mode_set(run, &brief, answer, out),
            (Asked::Turn { run }, Ok(answer)) => {
                let ours = self.turn.as_ref().is_some_and(|turn| turn.run == run);
                if let Some(id) = answer["turn"]["id"].as_str().filter(|_| ours) {
                    self.has_turn(id, out);
                }
            }
            (Asked::Turn { run }, Err(fault)) => {
                let ours = self.turn.as_ref().is_some_and(|turn| turn.run == run);
                if ours {
                    self.leave_unsaid(out);
                }
                if let Some(turn) = self.turn.take_if(|_| ours) {
                    let message = self.complaint(&fault.message);
                    turn.fail(message, out);
                }
            }
            (Asked::Steer, Err(fault)) => {
                let message = self.complaint(&format!("did not hear that: {}", fault.message));
                out.notice(Level::Warn, message);
            }
            (Asked::Query { id, topic, params }, Ok(answer)) => {
                let model = self.chosen_model.as_deref().or(self.model.as_deref());
                let told = match topic {
                    Topic::Models => inventory::models(&answer, &self.provider, model),
                    Topic::Mcp => inventory::servers(&answer, &params),
                    _ => inventory::skills(&answer),
                };
                out.answer(id, told);
            }
            (Asked::Query { id, .. }, Err(fault)) => {
                out.decline(id, Code::TaskFailed, self.complaint(&fault.message));
            }
            // The end of the turn tells what came of an interruption.
            (Asked::Account | Asked::Interrupt, _) | (Asked::Steer, Ok(_)) => {}
        }
    }

    fn complaint(&self, message: &str) -> String {
        format!("The agent `{}`: {message}", self.setup.agent)
    }

    fn login_hint(&self) -> String {
        format!(
            "The agent `{}` is not logged in: run `codex login` as the user that it runs as.",
            self.setup.agent
        )
    }
}

impl Dialect for Codex {
    fn open(&mut self, out: &mut Out) {
        let params = json!({
            "clientInfo": {
                "name": "switchboard", "title": "Switchboard", "version": self.setup.version,
            },
            // Planning is behind this.
            "capabilities": { "experimentalApi": true },
        });
        self.ask(Asked::Initialize, "initialize", params, out);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, brief, out),
            Order::Steer { run, text } => {
                if self.turn.as_ref().is_some_and(|turn| turn.run == run) {
                    self.steer(text, out);
                } else {
                    self.unheard(out);
                }
            }
            Order::Cancel { run } => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.run == run) {
                    if turn.stop == Stop::No {
                        turn.stop = Stop::Wanted;
                    }
                    self.interrupt(out);
                }
            }
            Order::Answer {
                question,
                resolution,
            } => self.approvals.answer(&question, &resolution, out),
            Order::Inquire { id, inquiry } => self.inquire(id, inquiry, out),
            Order::Settings(change) => {
                if change.model.is_some() {
                    self.chosen_model = change.model;
                }
            }
            Order::Tools(_) | Order::Context(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        match jsonrpc::read(line) {
            Message::Request { id, method, params } => self.requested(id, &method, &params, out),
            Message::Notification { method, params } => self.noted(&method, &params, out),
            Message::Answer { id, answer } => {
                let number = id.as_u64();
                let asked = number.and_then(|number| Some((number, self.asked.take(number)?)));
                let Some((number, what)) = asked else {
                    let id = events::brief(&id);
                    return out.act(Act::Odd(format!("an answer to nothing: {id}")));
                };
                out.no_timer(number);
                self.answered(what, answer, out);
            }
            Message::Odd(_) => out.act(Act::Odd("a line that is not a message".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        match self.asked.take(timer) {
            Some(Asked::Query { id, .. }) => {
                out.decline(
                    id,
                    Code::ConnectionLost,
                    self.complaint("no answer in time."),
                );
            }
            Some(Asked::Account | Asked::Steer | Asked::Interrupt) | None => {}
            Some(_) => {
                self.turn = None;
                out.fail(Code::ConnectionLost, self.complaint("no answer in time."));
            }
        }
    }
}
