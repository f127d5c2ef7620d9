//! pi in its RPC mode: commands and events as JSON lines, one conversation per process.
//!
//! `run_events` applies the events of the current run, `idle_check` finds its end, `extension_ui` asks the user
//! for extensions, `queries` shapes models, commands and skills for clients.

mod extension_ui;
mod idle_check;
mod queries;
mod run_events;
mod tool;

use std::time::Duration;

use serde_json::{Map, Value, json};

use self::extension_ui::Dialogs;
use self::run_events::{FollowUp, Run};
use super::{
    Actions, CarriedSettings, Dialect, Framing, FromAgent, PromptContent, Protocol, Setup,
    StreamKind, ToAgent, Transport, text_of, unsupported,
};
use crate::domain::command::{AgentRequest, Mode, SettingsChange, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::Resolution;
use crate::runtime::pending_requests::PendingRequests;

pub(super) const PROTOCOL: Protocol = Protocol {
    name: "pi",
    about: "pi, in its RPC mode",
    capabilities: "cancel thoughts usage tools questions queue steer followUp query models \
        skills commands branch images attachments resume",
    transport: Transport::Stdio,
    framing: Framing::Newline,
    resumes: true,
    shares: |_| false,
    restart_after: &[],
    options: &[],
    settings: CarriedSettings::Only(&["model"]),
    build: |setup| Box::new(Pi::new(setup)),
};

/// pi loads its extensions before its first response.
const STARTUP_TIMEOUT: Duration = Duration::from_mins(1);

const QUERY_TIMEOUT: Duration = Duration::from_secs(30);

const IDLE_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The timers of commands have their numbers.
const IDLE_CHECK_TIMER: u64 = u64::MAX;

/// pi starts at once on an accepted prompt, unless an extension handled it.
const IDLE_CHECK_AFTER_PROMPT: Duration = Duration::from_secs(2);

const IDLE_CHECK_RETRY: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum PendingCommand {
    SwitchSession,
    GetState,
    GetCommands,
    Prompt {
        run: RunId,
    },
    Steer,
    Abort {
        run: RunId,
    },
    CheckIdle {
        run: RunId,
    },
    SetModel,
    Query {
        id: u64,
        topic: Topic,
        params: Value,
    },
}

impl PendingCommand {
    fn name(&self) -> &'static str {
        match self {
            Self::SwitchSession => "switch_session",
            Self::GetState | Self::CheckIdle { .. } => "get_state",
            Self::Query { topic, .. } if *topic == Topic::Models => "get_available_models",
            // Skills are commands.
            Self::GetCommands | Self::Query { .. } => "get_commands",
            Self::Prompt { .. } => "prompt",
            Self::Steer => "steer",
            Self::Abort { .. } => "abort",
            Self::SetModel => "set_model",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::SwitchSession | Self::GetState => Some(STARTUP_TIMEOUT),
            Self::CheckIdle { .. } => Some(IDLE_CHECK_TIMEOUT),
            Self::Query { .. } => Some(QUERY_TIMEOUT),
            // Extensions may ask the user before a prompt is accepted; the others are not awaited.
            _ => None,
        }
    }
}

struct Pi {
    setup: Setup,
    pending: PendingRequests<PendingCommand>,
    /// The earlier conversation could not be resumed.
    starts_fresh: bool,
    /// Identifies the conversation. pi writes it only once it has content.
    session_file: Option<String>,
    session_file_reported: bool,
    /// As pi describes it.
    model: Value,
    run: Option<Run>,
    dialogs: Dialogs,
}

impl Pi {
    fn new(setup: Setup) -> Self {
        Self {
            pending: PendingRequests::numbered_from(1),
            starts_fresh: setup.thread.is_none() && !setup.history.is_empty(),
            session_file: None,
            session_file_reported: false,
            model: Value::Null,
            run: None,
            dialogs: Dialogs::default(),
            setup,
        }
    }

    fn send_command(&mut self, command: PendingCommand, params: Value, out: &mut Actions) {
        let (name, timeout) = (command.name(), command.timeout());
        let id = self.pending.add(command);
        let mut line = Map::new();
        line.insert("id".into(), format!("r{id}").into());
        line.insert("type".into(), name.into());
        if let Value::Object(params) = params {
            line.extend(params);
        }
        out.write(line.into());
        if let Some(timeout) = timeout {
            out.set_timer(id, timeout);
        }
    }

    fn handle_initial_state(&mut self, state: &Value, out: &mut Actions) {
        self.session_file = state["sessionFile"].as_str().map(str::to_owned);
        self.model = state["model"].clone();
        let resumed = self.setup.thread.is_some();
        // pi opens a missing file without an error.
        if self.starts_fresh || resumed && state["messageCount"].as_u64().unwrap_or_default() == 0 {
            out.notice_fresh_start(&self.setup.agent);
        }
        self.session_file_reported = resumed && self.session_file == self.setup.thread;
        let lacks = if self.session_file.is_some() {
            Vec::new()
        } else {
            vec!["resume"]
        };
        out.ready(lacks);
        self.send_command(PendingCommand::GetCommands, Value::Null, out);
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let refused = if content.mode == Mode::Plan {
            Some("plan without acting".to_owned())
        } else {
            let file = content.unsupported_file();
            file.map(|name| format!("read the file `{name}`: it takes text and images only"))
        };
        if let Some(what) = refused {
            return out.refuse_run(run, unsupported(&self.setup.agent, &what));
        }
        self.run = Some(Run::new(run));
        let mut params = json!({ "message": content.text_with_files().0 });
        let image = |(media_type, base64)| json!({ "type": "image", "data": base64, "mimeType": media_type });
        let images: Vec<Value> = content.all_images().map(image).collect();
        if !images.is_empty() {
            params["images"] = images.into();
        }
        self.send_command(PendingCommand::Prompt { run }, params, out);
    }

    fn current_run(&mut self, run: RunId) -> Option<&mut Run> {
        self.run.as_mut().filter(|current| current.id == run)
    }

    fn accept(&mut self, out: &mut Actions) {
        let Some(run) = self.run.as_mut().filter(|run| !run.accepted) else {
            return;
        };
        run.accepted = true;
        if let Some(file) = &self.session_file
            && !self.session_file_reported
        {
            self.session_file_reported = true;
            out.emit(FromAgent::Thread(file.clone()));
        }
        out.emit(FromAgent::RunAccepted { run: run.id });
    }

    fn follow_up(&mut self, next: FollowUp, out: &mut Actions) {
        match next {
            FollowUp::None => {}
            FollowUp::CheckIdle => self.check_idle(out),
            FollowUp::Abort => self.abort(out),
        }
    }

    fn abort(&mut self, out: &mut Actions) {
        if let Some(run) = self.run.as_ref().map(|run| run.id) {
            self.send_command(PendingCommand::Abort { run }, Value::Null, out);
        }
    }

    /// A dialog was answered. If pi waited for nothing else, the run may be over.
    fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        self.dialogs.answer(question, resolution, out);
        let is_waiting = |run: &Run| run.accepted && !run.is_busy();
        if self.run.as_ref().is_some_and(is_waiting) && !self.dialogs.has_pending() {
            out.set_timer(IDLE_CHECK_TIMER, IDLE_CHECK_RETRY);
        }
    }

    fn end_run(&mut self, out: &mut Actions) {
        if let Some(run) = self.run.take() {
            out.clear_timer(IDLE_CHECK_TIMER);
            run.end(&self.setup.agent, out);
        }
    }

    fn send_query(&mut self, id: u64, request: AgentRequest, out: &mut Actions) {
        let what = match request {
            AgentRequest::Query { topic, params } => match topic {
                Topic::Models | Topic::Commands | Topic::Skills => {
                    let query = PendingCommand::Query { id, topic, params };
                    return self.send_command(query, Value::Null, out);
                }
                Topic::Mcp | Topic::Tree => "tell that about itself".into(),
            },
            AgentRequest::Extension { name, .. } => format!("do `{name}`"),
        };
        out.decline_with(id, unsupported(&self.setup.agent, &what));
    }

    /// Models are named `provider/model`; the default provider is the current one.
    fn set_model(&mut self, model: &str, out: &mut Actions) {
        let provider = text_of(&self.model["provider"]);
        let (provider, model) = model.split_once('/').unwrap_or((&provider, model));
        let params = json!({ "provider": provider, "modelId": model });
        self.send_command(PendingCommand::SetModel, params, out);
    }

    fn handle_response(&mut self, mut line: Value, out: &mut Actions) {
        let id = line["id"].as_str().and_then(|id| id.strip_prefix('r'));
        let id: Option<u64> = id.and_then(|id| id.parse().ok());
        let Some((id, command)) = id.and_then(|id| Some((id, self.pending.take(id)?))) else {
            return out.unexpected("an answer to nothing that waits");
        };
        out.clear_timer(id);
        if line["success"] == true {
            self.handle_success(command, &line["data"].take(), out);
        } else {
            self.handle_failure(&command, &text_of(&line["error"]), out);
        }
    }

    fn handle_success(&mut self, command: PendingCommand, data: &Value, out: &mut Actions) {
        match command {
            PendingCommand::SwitchSession => {
                self.starts_fresh = data["cancelled"] == true;
                self.send_command(PendingCommand::GetState, Value::Null, out);
            }
            PendingCommand::GetState => self.handle_initial_state(data, out),
            PendingCommand::GetCommands => {
                out.emit(FromAgent::CommandsAvailable(queries::commands(data)));
            }
            PendingCommand::Prompt { run } => {
                if self.current_run(run).is_some() {
                    self.accept(out);
                    out.set_timer(IDLE_CHECK_TIMER, IDLE_CHECK_AFTER_PROMPT);
                }
            }
            PendingCommand::Abort { run } => {
                // It may have waited for a retry, whose cancellation raises no event.
                if self
                    .current_run(run)
                    .is_some_and(|run| run.accepted && !run.is_busy())
                {
                    self.check_idle(out);
                }
            }
            PendingCommand::CheckIdle { run } => self.handle_idle_state(run, data, out),
            PendingCommand::SetModel => self.model = data.clone(),
            PendingCommand::Query { id, topic, params } => {
                let answer = match topic {
                    Topic::Models => queries::models(data, &self.model, &params),
                    Topic::Skills => queries::skills(data),
                    _ => json!({ "commands": queries::commands(data) }),
                };
                out.respond(id, answer);
            }
            PendingCommand::Steer => {}
        }
    }

    fn handle_failure(&mut self, command: &PendingCommand, error: &str, out: &mut Actions) {
        let agent = &self.setup.agent;
        let error_message = format!("The agent `{agent}`: {error}");
        match command {
            PendingCommand::SwitchSession => {
                self.starts_fresh = true;
                self.send_command(PendingCommand::GetState, Value::Null, out);
            }
            PendingCommand::GetState => out.fail(ErrorCode::TaskFailed, error_message),
            &PendingCommand::Prompt { run } => {
                if let Some(run) = self.run.take_if(|current| current.id == run) {
                    out.clear_timer(IDLE_CHECK_TIMER);
                    run.reject(error, agent, out);
                }
            }
            &PendingCommand::CheckIdle { run } => {
                self.retry_idle_check(run, Some(IDLE_CHECK_RETRY), out);
            }
            PendingCommand::Steer | PendingCommand::SetModel => {
                out.emit_notice(Level::Warn, error_message);
            }
            &PendingCommand::Query { id, .. } => {
                out.decline(id, ErrorCode::TaskFailed, error_message);
            }
            PendingCommand::GetCommands | PendingCommand::Abort { .. } => {}
        }
    }

    fn handle_event(&mut self, kind: &str, event: &Value, out: &mut Actions) {
        match kind {
            "extension_ui_request" => {
                let run = self.run.as_ref().map(|run| run.id);
                self.dialogs.ask(event, run, out);
            }
            "extension_error" => {
                let error = text_of(&event["error"]);
                out.emit_notice(Level::Warn, format!("An extension has failed: {error}"));
            }
            "session_info_changed" => {
                if let Some(title) = event["name"].as_str() {
                    out.emit(FromAgent::TitleChanged(title.to_owned()));
                }
            }
            "queue_update" | "thinking_level_changed" => {}
            _ if run_events::RUN_EVENTS.contains(&kind) => {
                if kind == "agent_start" {
                    self.accept(out);
                    out.clear_timer(IDLE_CHECK_TIMER);
                }
                let window = self.model["contextWindow"].as_u64();
                match &mut self.run {
                    Some(run) => {
                        let next = run.apply(kind, event, window, out);
                        self.follow_up(next, out);
                    }
                    None => out.unexpected(format!("{kind} while no run is under way")),
                }
            }
            _ => out.emit_raw(PROTOCOL.name, event.clone()),
        }
    }
}

impl Dialect for Pi {
    fn open(&mut self, out: &mut Actions) {
        match self.setup.thread.clone() {
            Some(thread) => {
                let params = json!({ "sessionPath": thread });
                self.send_command(PendingCommand::SwitchSession, params, out);
            }
            None => self.send_command(PendingCommand::GetState, Value::Null, out),
        }
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Steer { run, text } => {
                if self.current_run(run).is_some() {
                    return self.send_command(
                        PendingCommand::Steer,
                        json!({ "message": text }),
                        out,
                    );
                }
                let agent = &self.setup.agent;
                out.emit_notice(
                    Level::Warn,
                    format!(
                        "The agent `{agent}` did not hear what was said to it: the run is over"
                    ),
                );
            }
            ToAgent::Cancel { run } => {
                if let Some(run) = self.current_run(run).filter(|run| !run.cancelled) {
                    run.cancelled = true;
                    self.abort(out);
                }
            }
            ToAgent::Answer {
                question,
                resolution,
            } => self.answer(&question, &resolution, out),
            ToAgent::Request { id, request } => self.send_query(id, request, out),
            ToAgent::Settings(change) => {
                if let Some(model) = change.model {
                    self.set_model(&model, out);
                }
            }
            // pi would store queue modes for all its conversations.
            ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::FollowUp { .. }
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        match line["type"].as_str() {
            Some("response") => self.handle_response(line, out),
            Some(kind) => self.handle_event(kind, &line, out),
            None => out.unexpected("a line of no kind"),
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.dialogs.names()
    }

    fn settings(&self) -> SettingsChange {
        SettingsChange {
            model: queries::model_name(&self.model),
            ..SettingsChange::default()
        }
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        if timer == IDLE_CHECK_TIMER {
            return self.check_idle(out);
        }
        let error_message = format!("The agent `{}`: no answer in time.", self.setup.agent);
        match self.pending.take(timer) {
            Some(PendingCommand::SwitchSession | PendingCommand::GetState) => {
                out.fail(ErrorCode::ConnectionLost, error_message);
            }
            Some(PendingCommand::Query { id, .. }) => {
                out.decline(id, ErrorCode::ConnectionLost, error_message);
            }
            Some(PendingCommand::CheckIdle { run }) => self.retry_idle_check(run, None, out),
            _ => {}
        }
    }
}
