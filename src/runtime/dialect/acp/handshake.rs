//! Handshake: initialize, authenticate, then a new or resumed session.

use serde_json::{Value, json};

use super::super::{Actions, FromAgent, text_of};
use super::auth_errors;
use super::{Acp, PendingRequest};
use crate::domain::error_code::ErrorCode;
use crate::runtime::jsonrpc::RpcError;

const PROTOCOL_VERSION: u64 = 1;

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own, as in the protocol"
)]
#[derive(Debug, Default)]
pub(super) struct AgentCapabilities {
    pub(super) image: bool,
    pub(super) embedded_context: bool,
    resume: bool,
    /// Like `resume`, but the agent replays the history as updates.
    load: bool,
    pub(super) close: bool,
    /// `agentInfo.name`; empty if it has none.
    pub(super) agent_name: String,
    /// Names and descriptions, for people.
    pub(super) auth_methods: Vec<String>,
}

impl AgentCapabilities {
    fn parse(result: &Value) -> Self {
        let all = &result["agentCapabilities"];
        let (prompt, session) = (&all["promptCapabilities"], &all["sessionCapabilities"]);
        // A capability is an object, mostly an empty one; some agents say true.
        let offered = |value: &Value| value.is_object() || value == true;
        Self {
            image: prompt["image"] == true,
            embedded_context: prompt["embeddedContext"] == true,
            resume: offered(&session["resume"]),
            load: all["loadSession"] == true,
            close: offered(&session["close"]),
            agent_name: text_of(&result["agentInfo"]["name"]),
            auth_methods: auth_errors::method_names(&result["authMethods"]),
        }
    }

    fn resume_method(&self) -> Option<&'static str> {
        match self {
            Self { resume: true, .. } => Some("session/resume"),
            Self { load: true, .. } => Some("session/load"),
            _ => None,
        }
    }
}

impl Acp {
    /// Declares neither `fs` nor `terminal`: the agent works in its own directory, with its own tools.
    pub(super) fn initialize(&mut self, out: &mut Actions) {
        if let Err(why) = self.mcp_servers() {
            return out.fail(ErrorCode::ValidationError, why);
        }
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
            },
            "clientInfo": {
                "name": "switchboard", "title": "Switchboard", "version": self.setup.version,
            },
        });
        self.send_request(PendingRequest::Initialize, params, out);
    }

    pub(super) fn handle_initialized(
        &mut self,
        response: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        let result = match response {
            Ok(result) => result,
            Err(error) => return self.fail_startup("initialize", &error, out),
        };
        let version = &result["protocolVersion"];
        if version.as_u64() != Some(PROTOCOL_VERSION) {
            let spoken = match version {
                Value::Number(number) => format!("version {number}"),
                _ => "an unknown version".into(),
            };
            let message = format!(
                "The agent `{}` speaks {spoken} of the Agent Client Protocol, and only version \
                 {PROTOCOL_VERSION} is understood here. Install a version of it that speaks {PROTOCOL_VERSION}.",
                self.setup.agent
            );
            return out.fail(ErrorCode::Unsupported, message);
        }
        self.capabilities = AgentCapabilities::parse(&result);
        match self.setup.option("auth_method") {
            Some(method) => {
                let params = json!({ "methodId": method });
                self.send_request(PendingRequest::Authenticate, params, out);
            }
            None => self.open_session(out),
        }
    }

    pub(super) fn handle_authenticated(
        &mut self,
        response: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        match response {
            Ok(_) => self.open_session(out),
            Err(error) => {
                let message = auth_errors::login_message(
                    &self.setup.agent,
                    &error,
                    &self.capabilities.auth_methods,
                );
                out.fail(ErrorCode::TaskFailed, message);
            }
        }
    }

    /// Resumes the session of `setup.thread`, or begins a new one.
    fn open_session(&mut self, out: &mut Actions) {
        match (self.setup.thread.clone(), self.capabilities.resume_method()) {
            (Some(thread), Some(method)) => {
                let mut params = self.session_params();
                params["sessionId"] = json!(thread);
                self.session = Some(thread);
                self.send_request(PendingRequest::ResumeSession { method }, params, out);
            }
            _ => self.new_session(out),
        }
    }

    fn new_session(&mut self, out: &mut Actions) {
        let params = self.session_params();
        self.send_request(PendingRequest::NewSession, params, out);
    }

    fn session_params(&self) -> Value {
        json!({
            "cwd": self.setup.directory,
            "mcpServers": self.mcp_servers().unwrap_or_default(),
        })
    }

    /// The option `mcp_servers`: a list, or a list as JSON text.
    fn mcp_servers(&self) -> Result<Vec<Value>, String> {
        let given = match self.setup.options.get("mcp_servers") {
            None => return Ok(Vec::new()),
            Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
            Some(value) => value.clone(),
        };
        let agent = &self.setup.agent;
        match given {
            Value::Array(servers) => Ok(servers),
            _ => Err(format!(
                "The option `mcp_servers` of the agent `{agent}` is not a list of servers."
            )),
        }
    }

    pub(super) fn session_created(&mut self, response: Result<Value, RpcError>, out: &mut Actions) {
        let result = match response {
            Ok(result) => result,
            Err(error) => return self.fail_startup("session/new", &error, out),
        };
        let Some(session) = result["sessionId"].as_str() else {
            let message = format!(
                "The agent `{}` began a conversation and did not say what it is called.",
                self.setup.agent
            );
            return out.fail(ErrorCode::ConnectionLost, message);
        };
        self.session = Some(session.to_owned());
        out.emit(FromAgent::Thread(session.to_owned()));
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.notice_fresh_start(&self.setup.agent);
        }
        self.session_opened(&result, out);
    }

    pub(super) fn session_resumed(
        &mut self,
        method: &str,
        response: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        match response {
            Ok(result) => {
                self.resumed = true;
                self.session_opened(&result, out);
            }
            Err(error) if auth_errors::is_auth_error(&error, &self.capabilities.auth_methods) => {
                self.fail_startup(method, &error, out);
            }
            // Each agent has a code of its own for an unknown session.
            Err(_) => {
                self.session = None;
                self.new_session(out);
            }
        }
    }

    fn session_opened(&mut self, result: &Value, out: &mut Actions) {
        self.config.read_session(result);
        let mut lacks = Vec::new();
        let mut lacks_if = |is_missing: bool, capability| {
            if is_missing {
                lacks.push(capability);
            }
        };
        lacks_if(!self.config.has_models(), "models");
        lacks_if(!self.capabilities.image, "images");
        lacks_if(!self.config.has_modes(), "modes");
        lacks_if(self.capabilities.resume_method().is_none(), "resume");
        self.ready = true;
        out.ready(lacks);
        for update in std::mem::take(&mut self.early_updates) {
            self.update(update, out);
        }
    }

    fn fail_startup(&self, method: &str, error: &RpcError, out: &mut Actions) {
        let agent = &self.setup.agent;
        let message = if auth_errors::is_auth_error(error, &self.capabilities.auth_methods) {
            auth_errors::login_message(agent, error, &self.capabilities.auth_methods)
        } else {
            let reason = auth_errors::error_text(error);
            format!("The agent `{agent}` refused `{method}`: {reason}")
        };
        out.fail(ErrorCode::TaskFailed, message);
    }
}
