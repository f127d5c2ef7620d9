//! The handshake: who is there, may we, and which conversation.

use serde_json::{Value, json};

use super::super::{FromAgent, Out};
use super::login;
use super::{Acp, Asked};
use crate::domain::code::Code;
use crate::runtime::jsonrpc::Fault;

/// The only version that we speak.
const VERSION: u64 = 1;

/// What the agent said that it can do.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an offer of its own, as the protocol makes them"
)]
#[derive(Debug, Default)]
pub(super) struct Offers {
    /// Sees images.
    pub(super) image: bool,
    /// Takes files inside a prompt.
    pub(super) embedded: bool,
    /// Takes up a conversation without repeating it.
    resume: bool,
    /// Takes up a conversation and repeats it.
    load: bool,
    /// Wants to hear when a conversation is over.
    pub(super) close: bool,
    /// Its ways to log in, for people.
    pub(super) logins: Vec<String>,
}

impl Offers {
    fn of(result: &Value) -> Self {
        let all = &result["agentCapabilities"];
        let (prompt, session) = (&all["promptCapabilities"], &all["sessionCapabilities"]);
        // An offer is an object, mostly an empty one; some agents say true.
        let offered = |value: &Value| value.is_object() || value == true;
        Self {
            image: prompt["image"] == true,
            embedded: prompt["embeddedContext"] == true,
            resume: offered(&session["resume"]),
            load: all["loadSession"] == true,
            close: offered(&session["close"]),
            logins: login::ways(&result["authMethods"]),
        }
    }

    /// With what a conversation from before is taken up.
    fn taking_up(&self) -> Option<&'static str> {
        match self {
            Self { resume: true, .. } => Some("session/resume"),
            Self { load: true, .. } => Some("session/load"),
            _ => None,
        }
    }
}

impl Acp {
    /// Says who we are, and that we have neither files nor terminals for the agent: it works in its
    /// own directory, with its own hands.
    pub(super) fn introduce(&mut self, out: &mut Out) {
        if let Err(why) = self.servers() {
            return out.fail(Code::ValidationError, why);
        }
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": {
                "name": "switchboard", "title": "Switchboard", "version": self.setup.version,
            },
        });
        self.ask(Asked::Initialize, params, out);
    }

    pub(super) fn initialized(&mut self, answer: Result<Value, Fault>, out: &mut Out) {
        let result = match answer {
            Ok(result) => result,
            Err(fault) => return self.unusable("initialize", &fault, out),
        };
        let version = &result["protocolVersion"];
        if version.as_u64() != Some(VERSION) {
            let spoken = match version {
                Value::Number(number) => format!("version {number}"),
                _ => "an unknown version".into(),
            };
            let message = format!(
                "The agent `{}` speaks {spoken} of the Agent Client Protocol, and only version \
                 {VERSION} is understood here. Install a version of it that speaks {VERSION}.",
                self.setup.agent
            );
            return out.fail(Code::Unsupported, message);
        }
        self.offers = Offers::of(&result);
        match self.setup.option("auth_method") {
            Some(method) => {
                let params = json!({ "methodId": method });
                self.ask(Asked::Authenticate, params, out);
            }
            None => self.converse(out),
        }
    }

    pub(super) fn authenticated(&mut self, answer: Result<Value, Fault>, out: &mut Out) {
        match answer {
            Ok(_) => self.converse(out),
            Err(fault) => {
                let message = login::needed(&self.setup.agent, &fault, &self.offers.logins);
                out.fail(Code::TaskFailed, message);
            }
        }
    }

    /// Takes up the conversation, or begins one.
    fn converse(&mut self, out: &mut Out) {
        match (self.setup.thread.clone(), self.offers.taking_up()) {
            (Some(thread), Some(method)) => {
                let mut params = self.place();
                params["sessionId"] = json!(thread);
                self.session = Some(thread);
                self.ask(Asked::TakeUp { method }, params, out);
            }
            _ => self.begin(out),
        }
    }

    fn begin(&mut self, out: &mut Out) {
        let params = self.place();
        self.ask(Asked::New, params, out);
    }

    /// Where the agent works, and with what.
    fn place(&self) -> Value {
        json!({
            "cwd": self.setup.directory,
            "mcpServers": self.servers().unwrap_or_default(),
        })
    }

    /// The option `mcp_servers`: a list, or one that is written as a text.
    fn servers(&self) -> Result<Vec<Value>, String> {
        let given = match self.setup.options.get("mcp_servers") {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(value) => value.clone(),
        };
        let wrong = || {
            let agent = &self.setup.agent;
            format!("The option `mcp_servers` of the agent `{agent}` is not a list of servers.")
        };
        match given {
            Value::Array(servers) => Ok(servers),
            _ => Err(wrong()),
        }
    }

    pub(super) fn begun(&mut self, answer: Result<Value, Fault>, out: &mut Out) {
        let result = match answer {
            Ok(result) => result,
            Err(fault) => return self.unusable("session/new", &fault, out),
        };
        let Some(session) = result["sessionId"].as_str() else {
            let message = format!(
                "The agent `{}` began a conversation and did not say what it is called.",
                self.setup.agent
            );
            return out.fail(Code::ConnectionLost, message);
        };
        self.session = Some(session.to_owned());
        out.tell(FromAgent::Thread(session.to_owned()));
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.starts_fresh(&self.setup.agent);
        }
        self.opened(&result, out);
    }

    pub(super) fn took_up(&mut self, method: &str, answer: Result<Value, Fault>, out: &mut Out) {
        match answer {
            Ok(result) => {
                self.taken_up = true;
                self.opened(&result, out);
            }
            Err(fault) if login::is_needed(&fault, &self.offers.logins) => {
                self.unusable(method, &fault, out);
            }
            // Each agent has a code of its own for a conversation that it does not know.
            Err(_) => {
                self.session = None;
                self.begin(out);
            }
        }
    }

    fn opened(&mut self, result: &Value, out: &mut Out) {
        self.choices.learn(result);
        let mut lacks = Vec::new();
        let mut without = |missing: bool, word| {
            if missing {
                lacks.push(word);
            }
        };
        without(!self.choices.has_models(), "models");
        without(!self.offers.image, "images");
        without(!self.choices.has_modes(), "modes");
        without(self.offers.taking_up().is_none(), "resume");
        self.ready = true;
        out.ready(lacks);
        for early in std::mem::take(&mut self.early) {
            self.update(early, out);
        }
    }

    fn unusable(&self, method: &str, fault: &Fault, out: &mut Out) {
        let agent = &self.setup.agent;
        let message = if login::is_needed(fault, &self.offers.logins) {
            login::needed(agent, fault, &self.offers.logins)
        } else {
            let said = login::said(fault);
            format!("The agent `{agent}` refused `{method}`: {said}")
        };
        out.fail(Code::TaskFailed, message);
    }
}
