//! Codelia: its UI protocol, JSON-RPC over the standard streams of one runtime per session.
//!
//! The runtime has one run at a time and asks the user through requests of its own. No response
//! names its conversation (`session_id`): only `session.list` does, by the last run in it. The list
//! is therefore requested after a run has started, and again after its end.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use self::run_events::Run;
use self::ui_request::{PendingQuestion, UiRequest};
use super::super::jsonrpc::{self, Message, RpcError};
use super::super::open_questions::OpenQuestions;
use super::super::pending_requests::PendingRequests;
use super::{
    Actions, CarriedSettings, Dialect, ErrorCode, Framing, FromAgent, Level, Protocol, Setup,
    StreamKind, ToAgent, Transport, text_of,
};
use crate::domain::command::SettingsChange;

mod meta;
mod notifications;
mod queries;
mod run_events;
mod run_requests;
mod todos;
mod ui_request;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "codelia",
    about: "Codelia's UI protocol, over the standard streams",
    capabilities: "cancel thoughts tools questions queue followUp context query models mcp \
        skills branch attachments resume",
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[(
        "questions",
        "which questions the runtime may ask: `all` (the default) or `confirm`",
    )],
    settings: CarriedSettings::Only(&["model"]),
    build: |setup| Box::new(Codelia::new(setup)),
};

const VERSION: &str = "0";
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The runtime starts its MCP servers before it answers `run.start`.
const RUN_START_TIMEOUT: Duration = Duration::from_mins(1);
const QUERY_TIMEOUT: Duration = Duration::from_secs(15);
/// After the end of a run the runtime still cleans up, and answers `run.start` with BUSY.
const BUSY_RETRY_DELAY: Duration = Duration::from_millis(250);
const MAX_BUSY_RETRIES: u8 = 8;
/// Counted from the last line after `final`: the runtime need not report the end of a run.
const RUN_END_TIMEOUT: Duration = Duration::from_secs(30);

// A timer has the number of the request that it watches; these two watch none.
const BUSY_RETRY_TIMER: u64 = 0;
const RUN_END_TIMER: u64 = u64::MAX;

const BUSY: i64 = -32001;
const RUN_NOT_FOUND: i64 = -32002;
const USER_CANCELLED: i64 = -32003;
const SESSION_NOT_FOUND: i64 = -32004;
const SESSION_NOT_LOADED: i64 = -32005;
const INVALID_PARAMS: i64 = -32602;

#[derive(Debug)]
enum PendingRequest {
    Initialize,
    RunStart,
    RunCancel(String),
    /// The list in which the run with this id names the conversation.
    SessionList(String),
    AgentRequest(u64),
    ModelSet(String),
}

struct Codelia {
    setup: Setup,
    pending: PendingRequests<PendingRequest>,
    /// `session_id` of the runtime.
    thread: Option<String>,
    run: Option<Run>,
    /// `run_id` of the run before.
    previous_run: Option<String>,
    questions: OpenQuestions<PendingQuestion>,
    /// Sent after the run: the runtime accepts `model.set` only between runs.
    deferred_model: Option<String>,
    missing: BTreeSet<&'static str>,
    /// Has it ever sent `run.status`? If not, `final` is the end of a run.
    sends_run_status: bool,
    /// The model in force, as the runtime has reported it.
    model: Option<String>,
}

impl Dialect for Codelia {
    fn open(&mut self, out: &mut Actions) {
        let only_confirm = self.setup.option("questions") == Some("confirm");
        let params = json!({
            "protocol_version": VERSION,
            "client": { "name": "switchboard", "version": self.setup.version },
            "ui_capabilities": {
                "supports_confirm": true,
                "supports_prompt": !only_confirm,
                "supports_pick": !only_confirm,
                "supports_markdown": true,
                "supports_images": true,
                "supports_permission_preflight_events": true,
            },
        });
        let number = self.request(PendingRequest::Initialize, "initialize", params, out);
        out.set_timer(number, HANDSHAKE_TIMEOUT);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            ToAgent::Answer {
                question,
                resolution,
            } => self.answer_question(&question, &resolution, out),
            ToAgent::Request { id, request } => self.query(id, request, out),
            ToAgent::Settings(change) => {
                if let Some(model) = change.model {
                    self.set_model(model, out);
                }
            }
            ToAgent::Context(context) => {
                let context = self.ui_context(&context);
                out.write(jsonrpc::notification("ui.context.update", context));
            }
            // Not among the capabilities; the gateway keeps the queue itself.
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Tools(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        match jsonrpc::parse(line) {
            Message::Response { id, result } => self.handle_response(&id, result, out),
            Message::Notification { method, params } => {
                self.handle_notification(&method, params, out);
            }
            Message::Request { id, method, params } => {
                if let Some(request) = UiRequest::from_method(&method) {
                    let (from, unknown) = (out.count(), meta::unknown_fields(&method, &params));
                    self.handle_ui_request(id, request, &params, out);
                    if !unknown.is_empty() {
                        // A request that is refused asks nobody.
                        out.attach_meta(from, unknown, FromAgent::is_question);
                    }
                    return;
                }
                let message = format!("`{method}` is not known here");
                out.write(jsonrpc::error(id, jsonrpc::METHOD_NOT_FOUND, &message));
            }
            Message::Invalid(_) => {
                out.unexpected("a line that is not JSON-RPC");
            }
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.questions.names_of(|question| question.run.is_some())
    }

    fn has_session_question(&self) -> bool {
        self.questions.iter().any(|question| question.run.is_none())
    }

    fn settings(&self) -> SettingsChange {
        SettingsChange {
            model: self.model.clone(),
            ..SettingsChange::default()
        }
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        match timer {
            BUSY_RETRY_TIMER => return self.send_run_start(out),
            RUN_END_TIMER => return self.end_silent_run(out),
            _ => {}
        }
        // The runtime may ask before it starts the run, and the user may be slow to answer.
        let start_request = self.run.as_ref().and_then(|run| run.start_request);
        if start_request == Some(timer) && self.has_open_question() {
            return out.set_timer(timer, RUN_START_TIMEOUT);
        }
        let agent = self.setup.agent.clone();
        match self.pending.take(timer) {
            Some(PendingRequest::Initialize) => self.fail_timeout("introduce itself", out),
            Some(PendingRequest::RunStart) => self.fail_timeout("begin the run", out),
            Some(PendingRequest::AgentRequest(id)) => {
                let message = format!("The agent `{agent}` did not answer in time.");
                out.decline(id, ErrorCode::ConnectionLost, message);
            }
            _ => {}
        }
    }
}

impl Codelia {
    fn new(setup: Setup) -> Self {
        Self {
            pending: PendingRequests::numbered_from(1),
            thread: setup.thread.clone(),
            run: None,
            previous_run: None,
            questions: OpenQuestions::named("ask"),
            deferred_model: None,
            missing: BTreeSet::new(),
            sends_run_status: false,
            model: None,
            setup,
        }
    }

    fn request(
        &mut self,
        purpose: PendingRequest,
        method: &str,
        params: Value,
        out: &mut Actions,
    ) -> u64 {
        let number = self.pending.add(purpose);
        out.write(jsonrpc::request(number.to_string(), method, params));
        number
    }

    fn handle_response(&mut self, id: &Value, answer: Result<Value, RpcError>, out: &mut Actions) {
        // Ids are strings; a numeric one is accepted as well.
        let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
        let pending = number.and_then(|number| Some((number, self.pending.take(number)?)));
        let Some((number, pending)) = pending else {
            let id = text_of(id);
            return out.unexpected(format!("an answer to nothing: {id:.64}"));
        };
        match pending {
            PendingRequest::Initialize => {
                out.clear_timer(number);
                self.initialized(answer, out);
            }
            PendingRequest::RunStart => {
                out.clear_timer(number);
                match answer {
                    Ok(result) => self.run_started(&result, out),
                    Err(fault) => self.run_start_failed(fault, out),
                }
            }
            PendingRequest::RunCancel(native_id) => {
                self.handle_cancel_response(&native_id, &answer, out);
            }
            PendingRequest::SessionList(native_id) => match answer {
                Ok(list) => self.find_thread(&native_id, &list, out),
                Err(fault) => out.unexpected(format!("no sessions: error {}", fault.code)),
            },
            PendingRequest::AgentRequest(id) => {
                out.clear_timer(number);
                match answer {
                    Ok(answer) => {
                        self.learn_model(&answer["current"]);
                        out.respond(id, answer);
                    }
                    Err(fault) => out.decline(id, error_code(fault.code), fault.message),
                }
            }
            PendingRequest::ModelSet(model) => match answer {
                Ok(result) => self.learn_model(&result["name"]),
                Err(fault) => {
                    let agent = &self.setup.agent;
                    let text = format!(
                        "The agent `{agent}` did not take the model `{model}`: {}",
                        fault.message
                    );
                    out.emit_notice(Level::Warn, text);
                }
            },
        }
    }

    fn initialized(&mut self, answer: Result<Value, RpcError>, out: &mut Actions) {
        let agent = self.setup.agent.clone();
        let result = match answer {
            Ok(result) => result,
            Err(fault) => {
                let message = format!("The agent `{agent}` refused to begin: {}", fault.message);
                return out.fail(error_code(fault.code), message);
            }
        };
        let version = text_of(&result["protocol_version"]);
        if version != VERSION {
            let message = format!(
                "The agent `{agent}` speaks version `{version}` of its protocol; `{VERSION}` is needed."
            );
            return out.fail(ErrorCode::Unsupported, message);
        }
        let supports = |name: &str| result["server_capabilities"][name].as_bool();
        for (capability, is_present) in [
            ("cancel", supports("supports_run_cancel") != Some(false)),
            ("questions", supports("supports_ui_requests") != Some(false)),
            ("mcp", supports("supports_mcp_list") == Some(true)),
            ("skills", supports("supports_skills_list") == Some(true)),
        ] {
            if !is_present {
                self.missing.insert(capability);
            }
        }
        let ui_context = self.ui_context(&Value::Null);
        out.write(jsonrpc::notification("ui.context.update", ui_context));
        out.ready(self.missing.iter().copied().collect());
        if self.thread.is_none() && !self.setup.history.is_empty() {
            out.notice_fresh_start(&self.setup.agent);
        }
    }

    /// `model.list` names the current model, `model.set` the one that it chose.
    fn learn_model(&mut self, name: &Value) {
        if let Some(name) = name.as_str().filter(|name| !name.is_empty()) {
            self.model = Some(name.to_owned());
        }
    }

    fn fail_timeout(&mut self, what: &str, out: &mut Actions) {
        self.run = None;
        let message = format!("The agent `{}` did not {what} in time.", self.setup.agent);
        out.fail(ErrorCode::ConnectionLost, message);
    }

    /// The context that the client reports. The working directory is not for clients to set.
    fn ui_context(&self, context: &Value) -> Value {
        let mut ui_context = context.as_object().cloned().unwrap_or_default();
        for name in ["cwd", "workspace_root"] {
            ui_context.insert(name.into(), self.setup.directory.clone().into());
        }
        Value::Object(ui_context)
    }
}

fn error_code(code: i64) -> ErrorCode {
    match code {
        jsonrpc::METHOD_NOT_FOUND => ErrorCode::Unsupported,
        INVALID_PARAMS => ErrorCode::ValidationError,
        BUSY => ErrorCode::Busy,
        RUN_NOT_FOUND | SESSION_NOT_FOUND => ErrorCode::NotFound,
        _ => ErrorCode::TaskFailed,
    }
}
