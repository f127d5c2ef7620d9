//! Codex app-server: one thread per session, one turn per run. JSON-RPC without `jsonrpc`.
//!
//! `handshake` opens the thread, `notifications` routes them, `turn_events` applies those of the current turn,
//! `item` reads its items, `approval` asks the user, `queries` asks about models, MCP and skills.

mod approval;
mod handshake;
mod item;
mod notifications;
mod permission_text;
mod queries;
mod turn_events;
mod usage;

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use self::approval::Approvals;
use self::turn_events::{Interruption, PromptStage, Turn};
use self::usage::UsageMeter;
use super::{
    Actions, CarriedSettings, Dialect, Framing, FromAgent, PromptContent, Protocol, Setup,
    StreamKind, ToAgent, Transport, unsupported,
};
use crate::domain::command::{Mode, SettingsChange, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::runtime::jsonrpc::{self, Message, RpcError};
use crate::runtime::pending_requests::PendingRequests;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "codex-app-server",
    about: "Codex, as its app server speaks",
    capabilities: "cancel thoughts plan usage tools questions queue steer followUp query models \
        mcp skills branch images attachments modes resume",
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
    settings: CarriedSettings::Only(&["model"]),
    build: |setup| Box::new(Codex::new(setup)),
};

/// Generous: starting a thread may start MCP servers.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

const NO_ANSWER: &str = "no answer in time.";

/// The oldest is forgotten first.
const MAX_CHILD_THREADS: usize = 256;

#[derive(Debug)]
enum PendingRequest {
    Initialize,
    ReadAccount,
    ResumeThread,
    StartThread,
    /// The prompt follows its response.
    SetMode {
        run: RunId,
        content: Box<PromptContent>,
    },
    StartTurn {
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

struct Codex {
    setup: Setup,
    pending: PendingRequests<PendingRequest>,
    thread: Option<String>,
    /// Reported with its first turn: Codex keeps no thread without one, so it could not be resumed.
    thread_reported: bool,
    /// Threads of sub-agents that our thread started, the newest last. They may outlive their turn.
    child_threads: VecDeque<String>,
    provider: String,
    model: Option<String>,
    /// Sent with the next turn.
    requested_model: Option<String>,
    /// Unknown for a resumed thread.
    mode: Option<Mode>,
    needs_login: bool,
    turn: Option<Turn>,
    usage: UsageMeter,
    approvals: Approvals,
}

impl Codex {
    fn new(setup: Setup) -> Self {
        Self {
            pending: PendingRequests::numbered_from(0),
            thread: None,
            thread_reported: false,
            child_threads: VecDeque::new(),
            provider: "openai".into(),
            model: None,
            requested_model: None,
            mode: None,
            needs_login: false,
            turn: None,
            usage: UsageMeter::default(),
            approvals: Approvals::default(),
            setup,
        }
    }

    fn send_request(
        &mut self,
        request: PendingRequest,
        method: &str,
        params: Value,
        out: &mut Actions,
    ) {
        let timeout = match request {
            PendingRequest::Query { .. } => QUERY_TIMEOUT,
            _ => REQUEST_TIMEOUT,
        };
        let id = self.pending.add(request);
        out.write(jsonrpc::unversioned(jsonrpc::request(id, method, params)));
        out.set_timer(id, timeout);
    }

    fn prompt(&mut self, run: RunId, content: PromptContent, out: &mut Actions) {
        if let Some(name) = content.unsupported_file() {
            let what = format!("read the file `{name}`: it takes text and images only");
            return out.refuse_run(run, unsupported(&self.setup.agent, &what));
        }
        self.turn = Some(Turn::new(run));
        if self.mode == Some(content.mode) {
            return self.start_turn(run, &content, out);
        }
        // A request of its own: an agent that does not know it answers with an error, but it would ignore
        // an unknown field of `turn/start`, and act.
        let mode = match content.mode {
            Mode::Plan => "plan",
            Mode::Act => "default",
        };
        let model = self.requested_model.as_ref().or(self.model.as_ref());
        let params = json!({
            "threadId": self.thread,
            "collaborationMode": { "mode": mode, "settings": {
                "model": model, "reasoning_effort": self.setup.option("effort"),
                "developer_instructions": null,
            } },
        });
        let content = Box::new(content);
        let request = PendingRequest::SetMode { run, content };
        self.send_request(request, "thread/settings/update", params, out);
    }

    fn start_turn(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        if let Some(turn) = &mut self.turn {
            turn.stage = PromptStage::Sent;
        }
        let mut params = json!({ "threadId": self.thread, "input": input(content) });
        if let Some(model) = self.requested_model.take() {
            params["model"] = model.as_str().into();
            self.model = Some(model);
        }
        if let Some(effort) = self.setup.option("effort") {
            params["effort"] = effort.into();
        }
        self.send_request(PendingRequest::StartTurn { run }, "turn/start", params, out);
    }

    fn handle_mode_set(
        &mut self,
        run: RunId,
        content: &PromptContent,
        answer: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        let Some(turn) = self.turn.as_ref().filter(|turn| turn.run == run) else {
            return;
        };
        match answer {
            Ok(_) => self.mode = Some(content.mode),
            // A Codex without plan mode acts.
            Err(_) if self.mode.is_none() && content.mode == Mode::Act => {
                self.mode = Some(Mode::Act);
            }
            Err(error) => {
                let what = format!("change between planning and acting: {}", error.message);
                let declined = unsupported(&self.setup.agent, &what);
                self.drop_early_steers(out);
                self.turn = None;
                return out.refuse_run(run, declined);
            }
        }
        if turn.interruption != Interruption::None {
            self.drop_early_steers(out);
            self.turn = None;
            return out.end_run(run, RunOutcome::Cancelled, None);
        }
        self.start_turn(run, content, out);
    }

    /// Codex works on our prompt, in the turn of this id.
    fn turn_started(&mut self, id: &str, out: &mut Actions) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        if let Some(thread) = self.thread.clone().filter(|_| !self.thread_reported) {
            self.thread_reported = true;
            out.emit(FromAgent::Thread(thread));
        }
        turn.id = Some(id.to_owned());
        if turn.stage != PromptStage::Accepted {
            turn.stage = PromptStage::Accepted;
            out.emit(FromAgent::RunAccepted { run: turn.run });
        }
        if turn.interruption != Interruption::None {
            self.drop_early_steers(out);
            return self.interrupt(out);
        }
        for text in std::mem::take(&mut turn.early_steers) {
            self.steer(text, out);
        }
    }

    fn steer(&mut self, text: String, out: &mut Actions) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        let Some(id) = turn.id.clone() else {
            return turn.early_steers.push(text);
        };
        let params = json!({
            "threadId": self.thread, "expectedTurnId": id, "input": [super::text_block(&text)],
        });
        self.send_request(PendingRequest::Steer, "turn/steer", params, out);
    }

    /// The turn ends before its early steers could be sent.
    fn drop_early_steers(&mut self, out: &mut Actions) {
        let turn = self.turn.as_mut();
        let dropped = turn.map(|turn| std::mem::take(&mut turn.early_steers));
        if dropped.is_some_and(|dropped| !dropped.is_empty()) {
            self.warn_steer_missed(out);
        }
    }

    fn warn_steer_missed(&self, out: &mut Actions) {
        let agent = &self.setup.agent;
        let text = format!("The agent `{agent}` did not hear what was said to it: the run is over");
        out.emit_notice(Level::Warn, text);
    }

    fn interrupt(&mut self, out: &mut Actions) {
        let Some(turn) = self.turn.as_mut() else {
            return;
        };
        // Without an id there is nothing to interrupt: `turn_started` tries again.
        if turn.interruption == Interruption::Requested
            && let Some(id) = turn.id.clone()
        {
            turn.interruption = Interruption::Sent;
            let params = json!({ "threadId": self.thread, "turnId": id });
            self.send_request(PendingRequest::Interrupt, "turn/interrupt", params, out);
        }
    }

    fn handle_response(
        &mut self,
        request: PendingRequest,
        answer: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        match (request, answer) {
            (PendingRequest::Initialize, Ok(_)) => self.handle_initialized(out),
            (PendingRequest::ResumeThread, Err(_)) => {
                self.thread = None;
                let params = self.thread_params();
                self.start_thread(params, out);
            }
            (PendingRequest::ResumeThread | PendingRequest::StartThread, Ok(answer)) => {
                self.thread_opened(&answer, out);
            }
            (PendingRequest::Initialize | PendingRequest::StartThread, Err(error)) => {
                let message = self.agent_message(&error.message);
                out.fail(ErrorCode::TaskFailed, message);
            }
            (PendingRequest::ReadAccount, Ok(answer)) => {
                self.needs_login =
                    answer["account"].is_null() && answer["requiresOpenaiAuth"] == true;
                if self.needs_login {
                    out.emit_notice(Level::Warn, self.login_hint());
                }
            }
            (PendingRequest::SetMode { run, content }, answer) => {
                self.handle_mode_set(run, &content, answer, out);
            }
            (PendingRequest::StartTurn { run }, Ok(answer)) => {
                let ours = self.turn.as_ref().is_some_and(|turn| turn.run == run);
                if let Some(id) = answer["turn"]["id"].as_str().filter(|_| ours) {
                    self.turn_started(id, out);
                }
            }
            (PendingRequest::StartTurn { run }, Err(error)) => {
                let ours = self.turn.as_ref().is_some_and(|turn| turn.run == run);
                if ours {
                    self.drop_early_steers(out);
                }
                if let Some(turn) = self.turn.take_if(|_| ours) {
                    let message = self.agent_message(&error.message);
                    turn.fail(message, out);
                }
            }
            (PendingRequest::Steer, Err(error)) => {
                let message = self.agent_message(&format!("did not hear that: {}", error.message));
                out.emit_notice(Level::Warn, message);
            }
            (PendingRequest::Query { id, topic, params }, Ok(answer)) => {
                let model = self.requested_model.as_deref().or(self.model.as_deref());
                let answer = match topic {
                    Topic::Models => queries::models(&answer, &self.provider, model),
                    Topic::Mcp => queries::servers(&answer, &params),
                    _ => queries::skills(&answer),
                };
                out.respond(id, answer);
            }
            (PendingRequest::Query { id, .. }, Err(error)) => {
                out.decline(
                    id,
                    ErrorCode::TaskFailed,
                    self.agent_message(&error.message),
                );
            }
            // The end of the turn shows the result of an interruption.
            (PendingRequest::ReadAccount | PendingRequest::Interrupt, _)
            | (PendingRequest::Steer, Ok(_)) => {}
        }
    }

    fn agent_message(&self, message: &str) -> String {
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
    fn open(&mut self, out: &mut Actions) {
        let params = json!({
            "clientInfo": {
                "name": "switchboard", "title": "Switchboard", "version": self.setup.version,
            },
            // Plan mode needs it.
            "capabilities": { "experimentalApi": true },
        });
        self.send_request(PendingRequest::Initialize, "initialize", params, out);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Steer { run, text } => {
                if self.turn.as_ref().is_some_and(|turn| turn.run == run) {
                    self.steer(text, out);
                } else {
                    self.warn_steer_missed(out);
                }
            }
            ToAgent::Cancel { run } => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.run == run) {
                    if turn.interruption == Interruption::None {
                        turn.interruption = Interruption::Requested;
                    }
                    self.interrupt(out);
                }
            }
            ToAgent::Answer {
                question,
                resolution,
            } => self.approvals.answer(&question, &resolution, out),
            ToAgent::Request { id, request } => self.send_query(id, request, out),
            ToAgent::Settings(change) => {
                if change.model.is_some() {
                    self.requested_model = change.model;
                }
            }
            ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::FollowUp { .. }
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        match jsonrpc::parse(line) {
            Message::Request { id, method, params } => {
                self.handle_request(id, &method, &params, out);
            }
            Message::Notification { method, params } => {
                self.handle_notification(&method, &params, out);
            }
            Message::Response { id, result } => {
                let Some((number, request)) = self.pending.take_answered(&id) else {
                    let id = notifications::id_excerpt(&id);
                    return out.unexpected(format!("an answer to nothing: {id}"));
                };
                out.clear_timer(number);
                self.handle_response(request, result, out);
            }
            Message::Invalid(_) => {
                out.unexpected("a line that is not a message");
            }
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.approvals.names()
    }

    fn settings(&self) -> SettingsChange {
        SettingsChange {
            model: self.model.clone(),
            ..SettingsChange::default()
        }
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        match self.pending.take(timer) {
            Some(PendingRequest::Query { id, .. }) => {
                out.decline(id, ErrorCode::ConnectionLost, self.agent_message(NO_ANSWER));
            }
            Some(
                PendingRequest::ReadAccount | PendingRequest::Steer | PendingRequest::Interrupt,
            )
            | None => {}
            Some(_) => {
                self.turn = None;
                out.fail(ErrorCode::ConnectionLost, self.agent_message(NO_ANSWER));
            }
        }
    }
}

/// The text with the text files, then the images.
fn input(content: &PromptContent) -> Value {
    let image = |(media_type, base64)| json!({ "type": "image", "url": format!("data:{media_type};base64,{base64}") });
    let mut input = vec![super::text_block(&content.text_with_files().0)];
    input.extend(content.all_images().map(image));
    input.into()
}
