//! The Agent Client Protocol, version 1: JSON-RPC, one message per line, both sides ask.
//!
//! The agent keeps the conversation under an id of its own. A prompt is a request whose answer is the
//! end of the run; everything in between comes as `session/update`. Both sides number their requests
//! by themselves: what we asked is in `pending`, what the agent asked is in `permissions`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Act, Dialect, Framing, Lane, Order, Out, Protocol, Setup, Transport, unsupported};
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, SettingsChange, Topic};
use crate::domain::event::{AgentCommand, Level};
use crate::domain::id::RunId;
use crate::runtime::jsonrpc::{self, Fault, Message, UNKNOWN_METHOD};
use crate::runtime::pending::Pending;

mod choice;
mod content;
mod login;
mod meter;
mod opening;
mod permission;
mod run;
mod tool;
mod update;

use choice::{Choice, Choices, Way};
use meter::Meter;
use opening::Offers;
use permission::Permissions;
use run::Run;
use tool::Tools;

/// The protocol as the configuration knows it.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "acp",
    about: "Agent Client Protocol, version 1",
    capabilities: &[
        "cancel",
        "thoughts",
        "plan",
        "usage",
        "tools",
        "questions",
        "queue",
        "followUp",
        "branch",
        "query",
        "models",
        "commands",
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
        (
            "mcp_servers",
            "the MCP servers that the agent shall connect to: a list, as the protocol describes it",
        ),
        (
            "auth_method",
            "the id of the agent's own way to log in that needs no human, for example with an API key",
        ),
    ],
    speaker: |setup| Box::new(Acp::new(setup)),
};

/// What a request of ours was for.
#[derive(Debug)]
enum Asked {
    Initialize,
    Authenticate,
    /// A conversation of its own.
    New,
    /// The one from before.
    TakeUp {
        method: &'static str,
    },
    Prompt {
        run: RunId,
    },
    /// Another mode or model.
    Set {
        way: Way,
        value: String,
    },
    Close,
}

impl Asked {
    /// As the protocol calls it, for people who read what went wrong.
    fn method(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::New => "session/new",
            Self::TakeUp { method } => method,
            Self::Prompt { .. } => "session/prompt",
            Self::Set { way, .. } => way.method(),
            Self::Close => "session/close",
        }
    }

    /// How long its answer may take. A prompt takes as long as it takes, and nobody waits for a
    /// goodbye.
    fn deadline(&self) -> Option<Duration> {
        match self {
            // Real agents are slow to start: they load models, plug-ins, a whole Node.
            Self::Initialize | Self::Authenticate => Some(Duration::from_secs(30)),
            Self::New | Self::TakeUp { .. } => Some(Duration::from_mins(1)),
            Self::Set { .. } => Some(Duration::from_secs(15)),
            Self::Prompt { .. } | Self::Close => None,
        }
    }
}

/// Speaks it with one agent.
struct Acp {
    setup: Setup,
    offers: Offers,
    /// The agent's name for the conversation, once it is known.
    session: Option<String>,
    /// Is the handshake over?
    ready: bool,
    /// Was the conversation begun in an earlier life of the agent?
    taken_up: bool,
    /// Updates that came before the name of the conversation was known.
    early: Vec<Value>,
    pending: Pending<Asked>,
    /// How many changes of mode or model wait for their answer: prompts go out after them.
    setting: usize,
    choices: Choices,
    commands: Vec<AgentCommand>,
    meter: Meter,
    run: Option<Run>,
    tools: Tools,
    permissions: Permissions,
}

impl Acp {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            offers: Offers::default(),
            session: None,
            ready: false,
            taken_up: false,
            early: Vec::new(),
            pending: Pending::from(0),
            setting: 0,
            choices: Choices::default(),
            commands: Vec::new(),
            meter: Meter::default(),
            run: None,
            tools: Tools::default(),
            permissions: Permissions::default(),
        }
    }

    /// Sends a request, with its deadline.
    fn ask(&mut self, asked: Asked, params: Value, out: &mut Out) {
        let (method, deadline) = (asked.method(), asked.deadline());
        let id = self.pending.add(asked);
        out.write(jsonrpc::request(id, method, params));
        if let Some(deadline) = deadline {
            out.timer(id, deadline);
        }
    }

    fn session_id(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    fn settings(&mut self, change: SettingsChange, out: &mut Out) {
        if let Some(mode) = change.mode {
            // Taken up with the next prompt: the run under way keeps the mode that it began in.
            if !self.choices.wish(&mode) {
                self.unknown_choice("mode", &mode, out);
            }
        }
        let Some(model) = change.model else {
            return;
        };
        let Some(value) = self.choices.model(&model) else {
            if self.choices.has_models() {
                self.unknown_choice("model", &model, out);
            }
            return;
        };
        if !self.choices.is_current_model(&value) {
            self.set(Choice::Model, value, out);
        }
    }

    fn unknown_choice(&self, what: &str, name: &str, out: &mut Out) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` has no {what} called `{name}`; it stays as it is.");
        out.notice(Level::Warn, text);
    }

    /// Wants another mode or model.
    fn set(&mut self, choice: Choice, value: String, out: &mut Out) {
        let way = self.choices.way(choice);
        let params = way.params(self.session_id(), &value);
        self.setting += 1;
        self.ask(Asked::Set { way, value }, params, out);
    }

    /// What came of it; a reason if it did not work.
    fn set_done(&mut self, way: &Way, value: &str, came: Result<Value, String>, out: &mut Out) {
        self.setting = self.setting.saturating_sub(1);
        match came {
            Ok(result) => self.choices.was_set(way, value, &result),
            Err(why) => {
                self.choices.is_unknown(way.choice);
                let (agent, what) = (&self.setup.agent, way.noun());
                let text =
                    format!("The agent `{agent}` did not change its {what} to `{value}`: {why}");
                out.notice(Level::Warn, text);
            }
        }
        self.go_on(out);
    }

    fn inquire(&self, id: u64, inquiry: &Inquiry, out: &mut Out) {
        let agent = &self.setup.agent;
        let refuse = |out: &mut Out, what: &str| {
            let why = unsupported(agent, what);
            out.decline(id, why.code, why.message);
        };
        match inquiry {
            Inquiry::Query { topic, .. } => match topic {
                Topic::Models if self.choices.has_models() => {
                    out.answer(id, self.choices.list_models(agent));
                }
                Topic::Models => refuse(out, "tell which models it has"),
                Topic::Commands => out.answer(id, json!({ "commands": self.commands })),
                Topic::Mcp => refuse(out, "tell which MCP servers it is connected to"),
                Topic::Skills => refuse(out, "tell which skills it has"),
                Topic::Tree => refuse(out, "tell how its conversation branches"),
            },
            Inquiry::Extension { .. } => refuse(out, "do anything special"),
        }
    }

    fn answered(&mut self, asked: Asked, answer: Result<Value, Fault>, out: &mut Out) {
        match asked {
            Asked::Initialize => self.initialized(answer, out),
            Asked::Authenticate => self.authenticated(answer, out),
            Asked::New => self.begun(answer, out),
            Asked::TakeUp { method } => self.took_up(method, answer, out),
            Asked::Prompt { run } => self.prompted(run, answer, out),
            Asked::Set { way, value } => {
                let came = answer.map_err(|fault| login::said(&fault));
                self.set_done(&way, &value, came, out);
            }
            Asked::Close => {}
        }
    }

    /// The agent wants something of us.
    fn request(&mut self, id: Value, method: &str, params: &Value, out: &mut Out) {
        if method == "session/request_permission" {
            self.permission(id, params, out);
        } else {
            // Neither files nor terminals were offered, and nothing else is known.
            out.write(jsonrpc::error(id, UNKNOWN_METHOD, "method not found"));
        }
    }

    /// The agent wants something to be known.
    fn notification(&mut self, method: &str, params: Value, out: &mut Out) {
        match method {
            "session/update" => self.update(params, out),
            "$/cancel_request" => self.taken_back(&params["requestId"], out),
            // Vendors talk to their own.
            other if other.starts_with("$/") || other.starts_with('_') => {}
            other => out.act(Act::Odd(format!("a notification `{}`", short(other)))),
        }
    }
}

impl Dialect for Acp {
    fn open(&mut self, out: &mut Out) {
        self.introduce(out);
    }

    fn hear(&mut self, order: Order, out: &mut Out) {
        match order {
            Order::Prompt { run, brief } => self.prompt(run, &brief, out),
            Order::Cancel { run } => self.cancel(run, out),
            Order::Answer {
                question,
                resolution,
            } => self.permitted(&question, &resolution, out),
            Order::Inquire { id, inquiry } => self.inquire(id, &inquiry, out),
            Order::Settings(change) => self.settings(change, out),
            // The protocol has no word for these.
            Order::Steer { .. } | Order::Tools(_) | Order::Context(_) | Order::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _lane: Lane, line: Value, out: &mut Out) {
        match jsonrpc::read(line) {
            Message::Request { id, method, params } => self.request(id, &method, &params, out),
            Message::Notification { method, params } => self.notification(&method, params, out),
            Message::Answer { id, answer } => {
                let number = id.as_u64();
                let asked = number.and_then(|number| Some((number, self.pending.take(number)?)));
                let Some((number, asked)) = asked else {
                    return out.act(Act::Odd("an answer to nothing that waits".into()));
                };
                if asked.deadline().is_some() {
                    out.no_timer(number);
                }
                self.answered(asked, answer, out);
            }
            Message::Odd(_) => out.act(Act::Odd("a line that is not a message".into())),
        }
    }

    fn late(&mut self, timer: u64, out: &mut Out) {
        let Some(asked) = self.pending.take(timer) else {
            return;
        };
        let waited = asked.deadline().unwrap_or_default().as_secs();
        if let Asked::Set { way, value } = &asked {
            let why = format!("it did not answer within {waited} s.");
            return self.set_done(way, value, Err(why), out);
        }
        let message = format!(
            "The agent `{}` did not answer `{}` within {waited} s.",
            self.setup.agent,
            asked.method()
        );
        out.fail(Code::ConnectionLost, message);
    }

    fn close(&mut self, out: &mut Out) {
        if self.offers.close && self.session.is_some() {
            let params = json!({ "sessionId": self.session_id() });
            self.ask(Asked::Close, params, out);
        }
    }
}

/// The beginning of a name that the agent gave, for the operator: it may be anything.
fn short(name: &str) -> String {
    let plain = name.chars().filter(|char| !char.is_control());
    plain.take(64).collect()
}
