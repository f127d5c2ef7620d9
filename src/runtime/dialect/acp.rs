//! ACP: the Agent Client Protocol, version 1. JSON-RPC, one message per line, requests in both
//! directions.
//!
//! The agent keeps the conversation under a session id of its own. A prompt is a request whose response
//! ends the run; everything in between comes as `session/update`. Each side numbers its own requests:
//! ours are in `pending`, the agent's in `permissions`.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Actions, CarriedSettings, Dialect, Framing, Protocol, Setup, StreamKind, ToAgent, Transport,
    unsupported,
};
use crate::domain::command::{AgentRequest, SettingsChange, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{AgentCommand, Level};
use crate::domain::id::RunId;
use crate::runtime::event_truncation::excerpt;
use crate::runtime::jsonrpc::{self, METHOD_NOT_FOUND, Message, RpcError};
use crate::runtime::open_questions::OpenQuestions;
use crate::runtime::pending_requests::PendingRequests;

mod auth_errors;
mod config_options;
mod content;
mod handshake;
mod option_scope;
mod permission;
mod run;
mod tool_calls;
mod update;
mod usage;

use config_options::{ConfigKind, ConfigOptions, ConfigTarget};
use handshake::AgentCapabilities;
use permission::PendingPermission;
use run::Run;
use tool_calls::ToolCalls;
use usage::UsageMeter;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "acp",
    about: "Agent Client Protocol, version 1",
    capabilities: "cancel thoughts plan usage tools questions queue followUp branch query models \
        commands images attachments modes resume",
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
    settings: CarriedSettings::Only(&["model", "mode"]),
    build: |setup| Box::new(Acp::new(setup)),
};

#[derive(Debug)]
enum PendingRequest {
    Initialize,
    Authenticate,
    NewSession,
    /// `session/resume` or `session/load`.
    ResumeSession {
        method: &'static str,
    },
    Prompt {
        run: RunId,
    },
    SetConfig {
        target: ConfigTarget,
        value: String,
    },
    CloseSession,
}

impl PendingRequest {
    fn method(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Authenticate => "authenticate",
            Self::NewSession => "session/new",
            Self::ResumeSession { method } => method,
            Self::Prompt { .. } => "session/prompt",
            Self::SetConfig { target, .. } => target.method(),
            Self::CloseSession => "session/close",
        }
    }

    /// A prompt may take any time; the response to a close is not awaited.
    fn deadline(&self) -> Option<Duration> {
        match self {
            // Agents are slow to start: they load models, plug-ins, a whole Node.
            Self::Initialize | Self::Authenticate => Some(Duration::from_secs(30)),
            Self::NewSession | Self::ResumeSession { .. } => Some(Duration::from_mins(1)),
            Self::SetConfig { .. } => Some(Duration::from_secs(15)),
            Self::Prompt { .. } | Self::CloseSession => None,
        }
    }
}

struct Acp {
    setup: Setup,
    capabilities: AgentCapabilities,
    /// The agent's session id, once it is known.
    session: Option<String>,
    ready: bool,
    /// The session was begun by an earlier process of the agent.
    resumed: bool,
    /// Updates that came before the session id was known.
    early_updates: Vec<Value>,
    pending: PendingRequests<PendingRequest>,
    /// Unanswered changes of mode or model: prompts are sent after them.
    pending_sets: usize,
    config: ConfigOptions,
    commands: Vec<AgentCommand>,
    usage: UsageMeter,
    run: Option<Run>,
    tools: ToolCalls,
    permissions: OpenQuestions<PendingPermission>,
}

impl Acp {
    fn new(setup: Setup) -> Self {
        Self {
            setup,
            capabilities: AgentCapabilities::default(),
            session: None,
            ready: false,
            resumed: false,
            early_updates: Vec::new(),
            pending: PendingRequests::numbered_from(0),
            pending_sets: 0,
            config: ConfigOptions::default(),
            commands: Vec::new(),
            usage: UsageMeter::default(),
            run: None,
            tools: ToolCalls::default(),
            permissions: OpenQuestions::named("permission"),
        }
    }

    fn send_request(&mut self, request: PendingRequest, params: Value, out: &mut Actions) {
        let (method, deadline) = (request.method(), request.deadline());
        let id = self.pending.add(request);
        out.write(jsonrpc::request(id, method, params));
        if let Some(deadline) = deadline {
            out.set_timer(id, deadline);
        }
    }

    fn session_id(&self) -> &str {
        self.session.as_deref().unwrap_or_default()
    }

    fn apply_settings(&mut self, change: SettingsChange, out: &mut Actions) {
        if let Some(mode) = change.mode {
            // Applied with the next prompt: the current run keeps its mode.
            if !self.config.request_mode(&mode) {
                self.warn_unknown("mode", &mode, out);
            }
        }
        let Some(model) = change.model else {
            return;
        };
        let Some(value) = self.config.find_model(&model) else {
            if self.config.has_models() {
                self.warn_unknown("model", &model, out);
            }
            return;
        };
        if !self.config.is_current_model(&value) {
            self.set_config(ConfigKind::Model, value, out);
        }
    }

    fn warn_unknown(&self, what: &str, name: &str, out: &mut Actions) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` has no {what} called `{name}`; it stays as it is.");
        out.emit_notice(Level::Warn, text);
    }

    fn set_config(&mut self, kind: ConfigKind, value: String, out: &mut Actions) {
        let target = self.config.target(kind);
        let params = target.params(self.session_id(), &value);
        self.pending_sets += 1;
        self.send_request(PendingRequest::SetConfig { target, value }, params, out);
    }

    /// A change of mode or model was answered, or failed for a reason.
    fn config_set(
        &mut self,
        target: &ConfigTarget,
        value: &str,
        result: Result<Value, String>,
        out: &mut Actions,
    ) {
        self.pending_sets = self.pending_sets.saturating_sub(1);
        match result {
            Ok(result) => self.config.applied(target, value, &result),
            Err(why) => {
                self.config.forget_current(target.kind);
                let (agent, what) = (&self.setup.agent, target.noun());
                let text =
                    format!("The agent `{agent}` did not change its {what} to `{value}`: {why}");
                out.emit_notice(Level::Warn, text);
            }
        }
        self.send_prompt(out);
    }

    fn answer_query(&self, id: u64, request: &AgentRequest, out: &mut Actions) {
        let agent = &self.setup.agent;
        let refuse = |out: &mut Actions, what: &str| out.decline_with(id, unsupported(agent, what));
        match request {
            AgentRequest::Query { topic, .. } => match topic {
                Topic::Models if self.config.has_models() => {
                    out.respond(id, self.config.list_models(agent));
                }
                Topic::Models => refuse(out, "tell which models it has"),
                Topic::Commands => out.respond(id, json!({ "commands": self.commands })),
                Topic::Mcp => refuse(out, "tell which MCP servers it is connected to"),
                Topic::Skills => refuse(out, "tell which skills it has"),
                Topic::Tree => refuse(out, "tell how its conversation branches"),
            },
            AgentRequest::Extension { .. } => refuse(out, "do anything special"),
        }
    }

    fn handle_response(
        &mut self,
        request: PendingRequest,
        response: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        match request {
            PendingRequest::Initialize => self.handle_initialized(response, out),
            PendingRequest::Authenticate => self.handle_authenticated(response, out),
            PendingRequest::NewSession => self.session_created(response, out),
            PendingRequest::ResumeSession { method } => self.session_resumed(method, response, out),
            PendingRequest::Prompt { run } => self.handle_prompt_response(run, response, out),
            PendingRequest::SetConfig { target, value } => {
                let result = response.map_err(|error| auth_errors::error_text(&error));
                self.config_set(&target, &value, result, out);
            }
            PendingRequest::CloseSession => {}
        }
    }

    fn handle_request(&mut self, id: Value, method: &str, params: &Value, out: &mut Actions) {
        if method == "session/request_permission" {
            self.request_permission(id, params, out);
        } else {
            // We declared neither `fs` nor `terminal`.
            out.write(jsonrpc::error(id, METHOD_NOT_FOUND, "method not found"));
        }
    }

    fn handle_notification(&mut self, method: &str, params: Value, out: &mut Actions) {
        match method {
            "session/update" => self.update(params, out),
            "$/cancel_request" => self.withdraw_permission(&params["requestId"], out),
            // Vendor extensions.
            other if other.starts_with("$/") || other.starts_with('_') => {}
            other => out.unexpected(format!("a notification `{}`", excerpt(other))),
        }
    }
}

impl Dialect for Acp {
    fn open(&mut self, out: &mut Actions) {
        self.initialize(out);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Answer {
                question,
                resolution,
            } => self.answer_permission(&question, &resolution, out),
            ToAgent::Request { id, request } => self.answer_query(id, &request, out),
            ToAgent::Settings(change) => self.apply_settings(change, out),
            // Not in the protocol.
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        match jsonrpc::parse(line) {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, out);
            }
            Message::Notification { method, params } => {
                self.handle_notification(&method, params, out);
            }
            Message::Response { id, result } => {
                let Some((number, request)) = self.pending.take_answered(&id) else {
                    return out.unexpected("an answer to nothing that waits");
                };
                if request.deadline().is_some() {
                    out.clear_timer(number);
                }
                self.handle_response(request, result, out);
            }
            Message::Invalid(_) => {
                out.unexpected("a line that is not a message");
            }
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.permissions.names()
    }

    fn settings(&self) -> SettingsChange {
        self.config.settings()
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        let Some(request) = self.pending.take(timer) else {
            return;
        };
        let waited = request.deadline().unwrap_or_default().as_secs();
        if let PendingRequest::SetConfig { target, value } = &request {
            let why = format!("it did not answer within {waited} s.");
            return self.config_set(target, value, Err(why), out);
        }
        let message = format!(
            "The agent `{}` did not answer `{}` within {waited} s.",
            self.setup.agent,
            request.method()
        );
        out.fail(ErrorCode::ConnectionLost, message);
    }

    fn close(&mut self, out: &mut Actions) {
        if self.capabilities.close && self.session.is_some() {
            let params = json!({ "sessionId": self.session_id() });
            self.send_request(PendingRequest::CloseSession, params, out);
        }
    }
}
