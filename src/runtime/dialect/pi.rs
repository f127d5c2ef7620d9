//! pi in its RPC mode: commands and events as JSON lines, one conversation per process.
//!
//! The run is kept by `run`, its end is found by `idle`, what extensions ask is put by `dialog`, what pi
//! tells about itself is put into shape by `inventory`.

mod dialog;
mod idle;
mod input;
mod inventory;
mod run;
mod tool;

use std::time::Duration;

use serde_json::{Map, Value, json};

use self::dialog::Dialogs;
use self::run::{Next, Run};
use super::{
    Act, Brief, Dialect, Framing, FromAgent, Lane, Order, Out, Protocol, Setup, Transport, text_of,
    unsupported,
};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Mode, Topic};
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::runtime::pending::Pending;

/// The protocol.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "pi",
    about: "pi, in its RPC mode",
    capabilities: &[
        "cancel",
        "thoughts",
        "usage",
        "tools",
        "questions",
        "queue",
        "steer",
        "followUp",
        "query",
        "models",
        "skills",
        "commands",
        "branch",
        "images",
        "attachments",
        "resume",
    ],
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[],
    speaker: |setup| Box::new(Pi::new(setup)),
};

/// How long pi may take until it answers for the first time: it loads its extensions before.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long it may take to tell something about itself.
const QUERY_PATIENCE: Duration = Duration::from_secs(30);

/// How long it may take to say whether it is idle.
const LOOK_PATIENCE: Duration = Duration::from_secs(10);

/// The timer after which it is asked whether it is idle; those of requests have their numbers.
const LOOK: u64 = u64::MAX;

/// After a prompt was taken it begins at once, unless an extension has done with it what there was.
const LOOK_AFTER_PROMPT: Duration = Duration::from_secs(2);

/// If it is not idle yet, it is asked again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a command was for.
#[derive(Debug)]
enum Asked {
    Switch,
    State,
    Commands,
    Prompt {
        run: RunId,
    },
    Steer,
    Abort {
        run: RunId,
    },
    Look {
        run: RunId,
    },
    Model,
    Query {
        id: u64,
        topic: Topic,
        params: Value,
    },
}

/// Someone who speaks with one pi.
struct Pi {
    setup: Setup,
    asked: Pending<Asked>,
    /// Could the conversation from before not be taken up?
    fresh: bool,
    /// The file of the conversation: its name. pi writes it only once there is something in it.
    file: Option<String>,
    told_file: bool,
    /// The model in use, as pi describes it.
    model: Value,
    run: Option<Run>,
    dialogs: Dialogs,
}

impl Pi {
    fn new(setup: Setup) -> Self {
        Self {
            asked: Pending::from(1),
            fresh: setup.thread.is_none() && !setup.history.is_empty(),
            file: None,
            told_file: false,
            model: Value::Null,
            run: None,
            dialogs: Dialogs::default(),
            setup,
        }
    }

    fn ask(&mut self, what: Asked, command: &str, params: Value, out: &mut Out) {
        let patience = match what {
            Asked::Switch | Asked::State => Some(PATIENCE),
            Asked::Look { .. } => Some(LOOK_PATIENCE),
            Asked::Query { .. } => Some(QUERY_PATIENCE),
            // Extensions may ask a human before a prompt is taken, and the rest is no matter.
            _ => None,
        };
        let id = self.asked.add(what);
        let mut line = Map::new();
        line.insert("id".into(), format!("r{id}").into());
        line.insert("type".into(), command.into());
        if let Value::Object(params) = params {
            line.extend(params);
        }
        out.write(line.into());
        if let Some(patience) = patience {
            out.timer(id, patience);
        }
    }

    fn introduced(&mut self, state: &Value, out: &mut Out) {
        self.file = state["sessionFile"].as_str().map(str::to_owned);
        self.model = state["model"].clone();
        let resumed = self.setup.thread.is_some();
        // pi opens a file that is not there without a word.
        if self.fresh || resumed && state["messageCount"].as_u64().unwrap_or_default() == 0 {
            out.starts_fresh(&self.setup.agent);
        }
        self.told_file = resumed && self.file == self.setup.thread;
        let lacks = if self.file.is_some() {
            Vec::new()
        } else {
            vec!["resume"]
        };
        out.ready(lacks);
        self.ask(Asked::Commands, "get_commands", Value::Null, out);
    }

    fn prompt(&mut self, run: RunId, brief: &Brief, out: &mut Out) {
        let refused = if brief.mode == Mode::Plan {
            Some("plan without acting".to_owned())
        } else {
            let unread = brief.files.iter().find(|file| !input::is_carried(file));
            unread.map(|file| {
                format!(
                    "read the file `{}`: it takes text and images only",
                    file.name
                )
            })
        };
        if let Some(what) = refused {
            return out.refuse(run, unsupported(&self.setup.agent, &what));
        }
        self.run = Some(Run::new(run));
        let mut params = json!({ "message": brief.text_with_files().0 });
        let images = input::images(brief);
        if !images.is_empty() {
            params["images"] = images.into();
        }
        self.ask(Asked::Prompt { run }, "prompt", params, out);
    }

    fn ours(&mut self, run: RunId) -> Option<&mut Run> {
        self.run.as_mut().filter(|current| current.id == run)
    }

    /// pi works on the prompt.
    fn accept(&mut self, out: &mut Out) {
        let Some(run) = self.run.as_mut().filter(|run| !run.accepted) else {
            return;
        };
        run.accepted = true;
        if let Some(file) = self.file.clone().filter(|_| !self.told_file) {
            self.told_file = true;
            out.tell(FromAgent::Thread(file));
        }
        out.tell(FromAgent::Accepted { run: run.id });
    }

    fn follow(&mut self, next: Next, out: &mut Out) {
        match next {
            Next::Nothing => {}
            Next::Look => self.look(out),
            Next::Abort => self.abort(out),
        }
    }

    fn abort(&mut self, out: &mut Out) {
        if let Some(run) = self.run.as_ref().map(|run| run.id) {
            self.ask(Asked::Abort { run }, "abort", Value::Null, out);
        }
    }

    /// A dialog has its end. If it was all that pi waited for, the run may be over.
    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        self.dialogs.answer(question, resolution, out);
        let waits = |run: &Run| run.accepted && !run.is_busy();
        if self.run.as_ref().is_some_and(waits) && !self.dialogs.is_any_open() {
            out.timer(LOOK, LOOK_AGAIN);
        }
    }

    fn end(&mut self, out: &mut Out) {
        if let Some(run) = self.run.take() {
            out.no_timer(LOOK);
            run.end(&self.setup.agent, out);
        }
    }

    fn inquire(&mut self, id: u64, inquiry: Inquiry, out: &mut Out) {
        let (what, asked) = match inquiry {
            Inquiry::Query { topic, params } => match topic {
                Topic::Models => ("get_available_models", Asked::Query { id, topic, params }),
                Topic::Commands | Topic::Skills => {
                    ("get_commands", Asked::Query { id, topic, params })
                }
                Topic::Mcp | Topic::Tree => {
                    return out.decline_with(
                        id,
                        unsupported(&self.setup.agent, "tell that about itself"),
                    );
                }
            },
            Inquiry::Extension { name, .. } => {
                return out
                    .decline_with(id, unsupported(&self.setup.agent, &format!("do `{name}`")));
            }
        };
        self.ask(asked, what, Value::Null, out);
    }

    /// Models are named `provider/model`; without a provider it is the one in use.
    fn choose(&mut self, model: &str, out: &mut Out) {
        let provider = text_of(&self.model["provider"]);
        let (provider, model) = model.split_once('/').unwrap_or((&provider, model));
        let params = json!({ "provider": provider, "modelId": model });
        self.ask(Asked::Model, "set_model", params, out);
    }

    fn responded(&mut self, mut line: Value, out: &mut Out) {
        let id = line["id"].as_str().and_then(|id| id.strip_prefix('r'));
        let id: Option<u64> = id.and_then(|id| id.parse().ok());
        let Some((id, what)) = id.and_then(|id| Some((id, self.asked.take(id)?))) else {
            return out.act(Act::Odd("an answer to nothing that waits".into()));
        };
        out.no_timer(id);
        if line["success"] == true {
            self.succeeded(what, &line["data"].take(), out);
        } else {
            self.failed(&what, &text_of(&line["error"]), out);
        }
    }

    fn succeeded(&mut self, what: Asked, data: &Value, out: &mut Out) {
        match what {
            Asked::Switch => {
                self.fresh = data["cancelled"] == true;
                self.ask(Asked::State, "get_state", Value::Null, out);
            }
            Asked::State => self.introduced(data, out),
            Asked::Commands => out.tell(FromAgent::Commands(inventory::commands(data))),
            Asked::Prompt { run } => {
                if self.ours(run).is_some() {
                    self.accept(out);
                    out.timer(LOOK, LOOK_AFTER_PROMPT);
                }
            }
            Asked::Abort { run } => {
                // It may have been waiting for another try, which ends without a word.
                if self
                    .ours(run)
                    .is_some_and(|run| run.accepted && !run.is_busy())
                {
                    self.look(out);
                }
            }
            Asked::Look { run } => self.looked(run, data, out),
            Asked::Model => self.model = data.clone(),
            Asked::Query { id, topic, params } => {
                let told = match topic {
                    Topic::Models => inventory::models(data, &self.model, &params),
                    Topic::Skills => inventory::skills(data),
                    _ => json!({ "commands": inventory::commands(data) }),
                };
                out.answer(id, told);
            }
            Asked::Steer => {}
        }
    }

    fn failed(&mut self, what: &Asked, error: &str, out: &mut Out) {
        let agent = &self.setup.agent;
        let complaint = format!("The agent `{agent}`: {error}");
        match what {
            Asked::Switch => {
                self.fresh = true;
                self.ask(Asked::State, "get_state", Value::Null, out);
            }
            Asked::State => out.fail(Code::TaskFailed, complaint),
            &Asked::Prompt { run } => {
                if let Some(run) = self.run.take_if(|current| current.id == run) {
                    out.no_timer(LOOK);
                    run.refuse(error, agent, out);
                }
            }
            &Asked::Look { run } => self.look_again(run, Some(LOOK_AGAIN), out),
            Asked::Steer | Asked::Model => out.notice(Level::Warn, complaint),
            &Asked::Query { id, .. } => out.decline(id, Code::TaskFailed, complaint),
            Asked::Commands | Asked::Abort { .. } => {}
        }
    }

    fn happened(&mut self, kind: &str, event: &Value, out: &mut Out) {
        match kind {
            "extension_ui_request" => {
                let run = self.run.as_ref().map(|run| run.id);
                self.dialogs.ask(event, run, out);
            }
            "extension_error" => {
                let error = text_of(&event["error"]);
                out.notice(Level::Warn, format!("An extension has failed: {error}"));
            }
            "session_info_changed" => {
                if let Some(title) = event["name"].as_str() {
                    out.tell(FromAgent::Title(title.to_owned()));
                }
            }
            "queue_update" | "thinking_level_changed" => {}
            _ if run::EVENTS.contains(&kind) => {
                if kind == "agent_start" {
                    self.accept(out);
                    out.no_timer(LOOK);
                }
                let window = self.model["contextWindow"].as_u64();
                match &mut self.run {
                    Some(run) => {
                        let next = run.read(kind, event, window, out);
                        self.follow(next, out);
                    }
                    None => out.act(Act::Odd(format!("{kind} while no run is under way"))),
                }
            }
            _ => out.raw(PROTOCOL.name, event.clone()),
        }
    }
}

impl Dialect for Pi {
    fn open(&mut self, out: &mut Out) {
        match self.setup.thread.clone() {
            Some(thread) => {
                let params = json!({ "sessionPath": thread });
                self.ask(Asked::Switch, "switch_session", params, out);
            }
            None => self.ask(Asked::State, "get_state", Value::Null, out),
        }
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Steer { run, text } => {
                if self.ours(run).is_some() {
                    return self.ask(Asked::Steer, "steer", json!({ "message": text }), out);
                }
                let agent = &self.setup.agent;
                out.notice(
                    Level::Warn,
                    format!(
                        "The agent `{agent}` did not hear what was said to it: the run is over"
                    ),
                );
            }
            Order::Cancel { run } => {
                if let Some(run) = self.ours(run).filter(|run| !run.cancelled) {
                    run.cancelled = true;
                    self.abort(out);
                }
            }
            Order::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            Order::Inquire { id, inquiry } => self.inquire(id, inquiry, out),
            Order::Settings(change) => {
                if let Some(model) = change.model {
                    self.choose(&model, out);
                }
            }
            // pi would keep a way to empty its queue for all its conversations.
            Order::Tools(_) | Order::Context(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        match line["type"].as_str() {
            Some("response") => self.responded(line, out),
            Some(kind) => self.happened(kind, &line, out),
            None => out.act(Act::Odd("a line of no kind".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        if timer == LOOK {
            return self.look(out);
        }
        let complaint = format!("The agent `{}`: no answer in time.", self.setup.agent);
        match self.asked.take(timer) {
            Some(Asked::Switch | Asked::State) => out.fail(Code::ConnectionLost, complaint),
            Some(Asked::Query { id, .. }) => out.decline(id, Code::ConnectionLost, complaint),
            Some(Asked::Look { run }) => self.look_again(run, None, out),
            _ => {}
        }
    }
}
