//! Specification: the wire format of the written specification, JSON lines `{type, payload}`.
//!
//! It has no conversations (a connection is one), no run ids and no cancel. A run ends when the
//! agent waits for input again. After a cancel its output is dropped until then, and the next
//! prompt is held back.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::unsupported_request;
use super::{ImageSupport, PROTOCOL, prompt_text, warn_run_continues};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Activity, MessageDetails, TextFormat};
use crate::domain::id::RunId;
use crate::domain::question::{AnswerValue, Resolution};
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;
use crate::runtime::dialect::{
    Actions, Dialect, PromptContent, Setup, StreamKind, ToAgent, text_of, unsupported,
};
use crate::runtime::messages::FromAgent;
use crate::runtime::open_questions::OpenQuestions;

mod permission;

use permission::Permission;

/// The core denies silently after 30 s; our denial must come before.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(25);

pub(super) struct SpecificationWire {
    setup: Setup,
    /// `sessionId` of the events, if they have one.
    session: Option<String>,
    questions: OpenQuestions<Permission>,
    active: Option<ActivePrompt>,
    /// The prompt that waits for a cancelled run.
    held: Option<(RunId, Value)>,
}

/// A prompt from its input until the agent waits for input again.
struct ActivePrompt {
    run: RunId,
    /// Its run has ended for the user: all output is dropped.
    cancelled: bool,
    /// Until it works, waiting for input is not its end.
    has_begun: bool,
    /// Allowed tools that were not seen to end.
    allowed: Vec<Tool>,
    is_executing: bool,
}

impl SpecificationWire {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            session: None,
            questions: OpenQuestions::named("ask"),
            active: None,
            held: None,
        }
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        let text = match prompt_text(content, ImageSupport::Supported) {
            Ok(text) => text,
            Err(ability) => {
                return out.refuse_run(run, unsupported(agent, &ability));
            }
        };
        let image = |base64: &str| json!({ "type": "image", "data": base64 });
        let images = content.images.iter().map(|one| image(&one.base64));
        let payload = json!({ "text": text, "attachments": images.collect::<Vec<_>>() });
        match &self.active {
            None => self.submit(run, &payload, out),
            Some(active) if active.cancelled => self.held = Some((run, payload)),
            Some(_) => {
                let message = format!("The agent `{agent}` is busy with another prompt.");
                out.fail_run(run, ErrorCode::Busy, message);
            }
        }
    }

    fn submit(&mut self, run: RunId, payload: &Value, out: &mut Actions) {
        self.active = Some(ActivePrompt {
            run,
            cancelled: false,
            has_begun: false,
            allowed: Vec::new(),
            is_executing: false,
        });
        out.write(json!({ "type": "submitUserInput", "payload": payload }));
        // The wire does not acknowledge a prompt.
        out.emit(FromAgent::RunAccepted { run });
    }

    fn cancel(&mut self, run: RunId, out: &mut Actions) {
        if self.held.as_ref().is_some_and(|(held, _)| *held == run) {
            self.held = None;
            return out.end_run(run, RunOutcome::Cancelled, None);
        }
        if let Some(active) = &mut self.active
            && active.run == run
            && !active.cancelled
        {
            active.cancelled = true;
            warn_run_continues(&self.setup.agent, out);
            out.end_run(run, RunOutcome::Cancelled, None);
        }
    }

    fn answer_question(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(active) = &mut self.active else {
            return;
        };
        let Some(permission) = self.questions.take(question) else {
            return;
        };
        let approved = match resolution {
            Resolution::Answered(answer) => match &answer.value {
                AnswerValue::Ok(ok) => *ok,
                AnswerValue::Option(option) => option == permission::ALLOW,
                AnswerValue::Text(_) | AnswerValue::Ids(_) => false,
            },
            Resolution::Expired | Resolution::Cancelled => false,
        };
        let mut tool = permission.tool;
        out.write(confirmation(&tool.id, approved));
        tool.status = if approved { "running" } else { "denied" }.into();
        if approved {
            active.allowed.push(tool.clone());
        }
        let run = active.run;
        out.emit(FromAgent::ToolUpdate { run, tool });
    }

    fn handle_message(&mut self, payload: &Value, out: &mut Actions) {
        let Some(active) = &mut self.active else {
            return out.unexpected("`onNewMessage` with no run under way");
        };
        active.has_begun = true;
        if active.cancelled {
            return;
        }
        deny_all(&mut self.questions, active.run, out);
        active.complete_tools(out);
        let (run, text) = (active.run, text_of(&payload["content"]));
        if !text.is_empty() {
            out.emit(whole_message(run, text, payload));
        }
    }

    fn handle_tool_call_request(&mut self, payload: &Value, out: &mut Actions) {
        let Some(id) = payload["confirmationId"].as_str().map(str::to_owned) else {
            return out.unexpected("`onToolCallRequest` without its id");
        };
        let Some(active) = self.active.as_mut().filter(|active| !active.cancelled) else {
            // Without a run there is no user to ask.
            return out.write(confirmation(&id, false));
        };
        active.has_begun = true;
        if self
            .questions
            .iter()
            .any(|permission| permission.tool.id == id)
        {
            return out.unexpected(format!("`onToolCallRequest` {id:.64} again"));
        }
        let permission = Permission::read(&id, payload);
        let (run, timeout) = (active.run, Some(CONFIRMATION_TIMEOUT));
        let tool = permission.tool.clone();
        let asked = Box::new(permission.question());
        let question = self.questions.add(permission);
        out.emit(FromAgent::ToolUpdate { run, tool });
        out.emit(FromAgent::QuestionAsked {
            run,
            question,
            content: asked,
            timeout,
        });
    }

    fn handle_state(&mut self, payload: &Value, out: &mut Actions) {
        let state = payload
            .as_str()
            .or_else(|| payload["state"].as_str())
            .unwrap_or_default();
        let activity = match state {
            "thinking" => Activity::Thinking,
            "executing_tool" => Activity::ExecutingTool,
            "waiting_for_input" => Activity::WaitingForInput,
            "idle" => Activity::Idle,
            _ => return out.unexpected(format!("the state `{state:.64}`")),
        };
        let Some(active) = &mut self.active else {
            return;
        };
        let is_working = matches!(activity, Activity::Thinking | Activity::ExecutingTool);
        active.has_begun |= is_working;
        if active.is_over(activity) && self.questions.is_empty() {
            return self.end_run(out);
        }
        if active.cancelled || !active.has_begun {
            return;
        }
        // An allowed tool may run while another one waits for its answer.
        if is_working && (activity == Activity::Thinking || active.allowed.is_empty()) {
            deny_all(&mut self.questions, active.run, out);
        }
        if activity == Activity::Thinking && active.is_executing {
            active.complete_tools(out);
        }
        active.is_executing |= activity == Activity::ExecutingTool;
        out.emit(FromAgent::Activity(activity));
    }

    fn end_run(&mut self, out: &mut Actions) {
        if let Some(mut active) = self.active.take()
            && !active.cancelled
        {
            active.complete_tools(out);
            out.end_run(active.run, RunOutcome::Completed, None);
        }
        if let Some((run, payload)) = self.held.take() {
            self.submit(run, &payload, out);
        }
    }

    /// A second session id shows that the core serves other clients, and no event tells which one
    /// is ours.
    fn names_second_session(&mut self, payload: &Value) -> bool {
        let Some(named) = payload["sessionId"].as_str() else {
            return false;
        };
        let first = self.session.get_or_insert_with(|| named.to_owned());
        first != named
    }
}

impl Dialect for SpecificationWire {
    fn open(&mut self, out: &mut Actions) {
        if self.setup.thread.is_some() || !self.setup.history.is_empty() {
            out.notice_fresh_start(&self.setup.agent);
        }
        out.ready(vec!["thoughts", "resume"]);
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
            // Neither wire has queries.
            ToAgent::Request { id, request } => {
                out.decline_with(id, unsupported_request(&self.setup.agent, &request));
            }
            // The wire has no other commands.
            ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Settings(_)
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        let Some(kind) = line["type"].as_str() else {
            return out.unexpected("a line without its type");
        };
        let payload = &line["payload"];
        if self.names_second_session(payload) {
            let agent = &self.setup.agent;
            let message = format!(
                "The agent `{agent}` tells about several sessions over one socket. A core on the wire \
                 `document` can serve only one: give each session its own."
            );
            return out.fail(ErrorCode::Unsupported, message);
        }
        match kind {
            "onNewMessage" => self.handle_message(payload, out),
            "onToolCallRequest" => self.handle_tool_call_request(payload, out),
            "onAgentStateChange" => self.handle_state(payload, out),
            _ => out.emit_raw(PROTOCOL.name, line),
        }
    }

    fn open_questions(&self) -> Vec<String> {
        self.questions.names()
    }

    fn on_timer(&mut self, _timer: u64, _out: &mut Actions) {}
}

/// The agent works again: it has denied its open questions by itself.
fn deny_all(questions: &mut OpenQuestions<Permission>, run: RunId, out: &mut Actions) {
    for (question, permission) in questions.take_all() {
        let mut tool = permission.tool;
        tool.status = "denied".into();
        out.emit(FromAgent::QuestionWithdrawn { question });
        out.emit(FromAgent::ToolUpdate { run, tool });
    }
}

impl ActivePrompt {
    /// Unless the agent waits for an answer.
    fn is_over(&self, activity: Activity) -> bool {
        let is_waiting = matches!(activity, Activity::WaitingForInput | Activity::Idle);
        is_waiting && self.has_begun
    }

    /// The wire does not report how a tool ended, only that the agent continues.
    fn complete_tools(&mut self, out: &mut Actions) {
        self.is_executing = false;
        let run = self.run;
        for mut tool in self.allowed.drain(..) {
            tool.status = "completed".into();
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }
}

/// A message with its format and metadata, if the core names any.
fn whole_message(run: RunId, text: String, payload: &Value) -> FromAgent {
    let format = match payload["format"].as_str() {
        Some("markdown") => Some(TextFormat::Markdown),
        Some("text") => Some(TextFormat::Text),
        _ => None,
    };
    let metadata = payload["metadata"].as_object();
    if format.is_none() && metadata.is_none_or(Map::is_empty) {
        let text = Some(text);
        return FromAgent::MessageFinal { run, text };
    }
    let details = Box::new(MessageDetails {
        format: format.unwrap_or(TextFormat::Markdown),
        metadata: metadata.cloned().unwrap_or_default(),
    });
    FromAgent::MessageWhole { run, text, details }
}

fn confirmation(id: &str, approved: bool) -> Value {
    json!({
        "type": "provideConfirmation",
        "payload": { "confirmationId": id, "approved": approved },
    })
}
