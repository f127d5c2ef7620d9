//! Daemon: the wire format of the real daemon, JSON-RPC without `jsonrpc`, and events beside it.
//!
//! The daemon has one loop for all its conversations and no command to stop it. A cancelled run
//! ends for the user at once, but its loop continues: its output is dropped until it is done, and
//! the next prompt is held back until then. Events name neither the prompt nor the tool call that
//! they belong to, so they are matched by order.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::unsupported_request;
use super::{ImageSupport, PROTOCOL, prompt_text, warn_run_continues};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Activity, Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::runtime::dialect::{
    Actions, Dialect, PromptContent, Setup, StreamKind, ToAgent, text_of, unsupported,
};
use crate::runtime::jsonrpc::{self, Message, RpcError};
use crate::runtime::messages::FromAgent;
use crate::runtime::pending_requests::PendingRequests;

mod tool_calls;

use tool_calls::ToolCalls;

/// As long as the daemon's own client waits.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Counted as the daemon does: the JSON string in UTF-16 units.
const MAX_INPUT_LENGTH: usize = 100 * 1024;

const ATTACH_TIMER: u64 = 1;
const INPUT_TIMER: u64 = 2;

pub(super) struct DaemonWire {
    setup: Setup,
    requests: PendingRequests<Request>,
    /// `sessionId` of the daemon, once attached.
    session: Option<String>,
    /// `agent.replay` arrived: the daemon remembers the conversation.
    was_replayed: bool,
    active: Option<ActivePrompt>,
    /// The prompt that waits for the loop of a cancelled run.
    held: Option<(RunId, String)>,
}

enum Request {
    Attach { wanted: Option<String> },
    Input { run: RunId },
    Detach,
}

/// A prompt from its input to the end of its loop.
struct ActivePrompt {
    run: RunId,
    /// Its run has ended for the user: all output is dropped.
    cancelled: bool,
    accepted: bool,
    loop_state: LoopState,
    has_open_message: bool,
    tools: ToolCalls,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopState {
    /// Waits for its loop. Events that come now belong to a loop that ended with an error.
    Queued,
    /// The same, but it starts with a slash: a command would be answered without a loop.
    MaybeCommand,
    Looping,
}

impl DaemonWire {
    pub(super) fn new(setup: Setup) -> Self {
        Self {
            setup,
            requests: PendingRequests::numbered_from(1), // 0 answers lines that the daemon could not parse.
            session: None,
            was_replayed: false,
            active: None,
            held: None,
        }
    }

    fn request(&mut self, request: Request, method: &str, params: Value, out: &mut Actions) {
        let id = self.requests.add(request);
        out.write(jsonrpc::unversioned(jsonrpc::request(id, method, params)));
    }

    fn attach(&mut self, wanted: Option<String>, out: &mut Actions) {
        let params = match &wanted {
            Some(session) => json!({ "sessionId": session }),
            None => json!({}),
        };
        self.request(Request::Attach { wanted }, "agent.attach", params, out);
        out.set_timer(ATTACH_TIMER, RESPONSE_TIMEOUT);
    }

    fn attached(&mut self, wanted: Option<&str>, result: &Value, out: &mut Actions) {
        let Some(session) = result["sessionId"].as_str() else {
            let agent = &self.setup.agent;
            let message = format!("The agent `{agent}` attached without naming the conversation.");
            return out.fail(ErrorCode::ConnectionLost, message);
        };
        out.clear_timer(ATTACH_TIMER);
        // A conversation that the daemon restored from disk gets a new id, and is empty.
        let is_same = wanted == Some(session) || self.was_replayed;
        let continues = is_same && result["isNew"] != true;
        self.session = Some(session.to_owned());
        out.emit(FromAgent::Thread(session.to_owned()));
        if !continues && (self.setup.thread.is_some() || !self.setup.history.is_empty()) {
            out.notice_fresh_start(&self.setup.agent);
        }
        out.ready(vec!["questions", "images"]);
    }

    fn prompt(&mut self, run: RunId, content: &PromptContent, out: &mut Actions) {
        let agent = &self.setup.agent;
        let text = match prompt_text(content, ImageSupport::Unsupported) {
            Ok(text) => text,
            Err(ability) => {
                return out.refuse_run(run, unsupported(agent, &ability));
            }
        };
        let length = Value::from(text.as_str())
            .to_string()
            .encode_utf16()
            .count();
        if length > MAX_INPUT_LENGTH {
            let message = format!(
                "The agent `{agent}` takes prompts of at most 100 KB, files included; this one has {} KB.",
                length.div_ceil(1024)
            );
            return out.fail_run(run, ErrorCode::ValidationError, message);
        }
        match &self.active {
            None => self.submit(run, &text, out),
            Some(active) if active.cancelled => self.held = Some((run, text)),
            Some(_) => {
                let message = format!("The agent `{agent}` is busy with another prompt.");
                out.fail_run(run, ErrorCode::Busy, message);
            }
        }
    }

    fn submit(&mut self, run: RunId, text: &str, out: &mut Actions) {
        self.active = Some(ActivePrompt {
            run,
            cancelled: false,
            accepted: false,
            loop_state: if text.starts_with('/') {
                LoopState::MaybeCommand
            } else {
                LoopState::Queued
            },
            has_open_message: false,
            tools: ToolCalls::default(),
        });
        let params = json!({
            "sessionId": self.session, "inputType": "user_input", "data": text,
        });
        self.request(Request::Input { run }, "agent.input", params, out);
        out.set_timer(INPUT_TIMER, RESPONSE_TIMEOUT);
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
            active.finish_message(out);
            warn_run_continues(&self.setup.agent, out);
            out.end_run(run, RunOutcome::Cancelled, None);
        }
    }

    /// The loop is done: ends the run and sends the prompt that was held back.
    fn end_run(&mut self, outcome: RunOutcome, out: &mut Actions) {
        if let Some(mut active) = self.active.take()
            && !active.cancelled
        {
            active.accept(out);
            active.finish_message(out);
            out.end_run(active.run, outcome, None);
        }
        if let Some((run, text)) = self.held.take() {
            self.submit(run, &text, out);
        }
    }

    fn handle_response(&mut self, id: &Value, answer: Result<Value, RpcError>, out: &mut Actions) {
        let request = id.as_u64().and_then(|id| self.requests.take(id));
        match (request, answer) {
            (Some(Request::Attach { wanted }), Ok(result)) => {
                self.attached(wanted.as_deref(), &result, out);
            }
            // The daemon loses the reason; most likely it has forgotten the conversation.
            (Some(Request::Attach { wanted: Some(_) }), Err(_)) => self.attach(None, out),
            (Some(Request::Attach { wanted: None }), Err(fault)) => {
                let reason = reason_suffix(&fault.message);
                let agent = &self.setup.agent;
                let message = format!("The agent `{agent}` refused to be attached to{reason}.");
                out.fail(ErrorCode::ConnectionLost, message);
            }
            (Some(Request::Input { run }), answer) => {
                out.clear_timer(INPUT_TIMER);
                self.handle_input_response(run, answer, out);
            }
            (Some(Request::Detach), _) => {}
            (None, Err(fault)) => {
                let code = fault.code;
                out.unexpected(format!("an error that answers nothing: {code}"));
            }
            (None, Ok(_)) => {
                let id = text_of(id);
                out.unexpected(format!("an answer to nothing: id {id:.64}"));
            }
        }
    }

    /// The loop may be well ahead of this response.
    fn handle_input_response(
        &mut self,
        run: RunId,
        answer: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        let Some(active) = self.active.as_mut().filter(|active| active.run == run) else {
            return;
        };
        let message = match answer {
            Ok(result) if result["success"] != false => return active.accept(out),
            Ok(_) => String::new(),
            Err(fault) => fault.message,
        };
        if active.loop_state == LoopState::Looping {
            return out.unexpected("a refusal of what is worked on");
        }
        let agent = &self.setup.agent;
        let message = format!(
            "The agent `{agent}` did not take the prompt{}.",
            reason_suffix(&message)
        );
        let code = ErrorCode::TaskFailed;
        active.accepted = true; // Suppresses `Accepted`: the prompt was refused.
        self.end_run(RunOutcome::Failed { code, message }, out);
    }

    fn handle_event(&mut self, kind: &str, line: &Value, out: &mut Actions) {
        let data = &line["data"];
        let named = data["sessionId"].as_str();
        if kind == "agent.replay" && self.session.is_none() {
            // Comes before the response that names the conversation.
            self.was_replayed = true;
            return;
        }
        match (named, self.session.as_deref()) {
            (Some(named), Some(ours)) if named == ours => {}
            (Some(named), _) => {
                return out.misrouted(format!("`{kind:.64}` of session {named:.64}"));
            }
            (None, _) => {
                return out.unexpected(format!("`{kind:.64}` of no session"));
            }
        }
        match kind {
            "agent.output" => self.handle_output(data, out),
            "agent.tool" => self.handle_tool(data, out),
            "agent.loop" => self.handle_loop(data, out),
            "agent.status" => out.emit_notice(Level::Info, text_of(&data["message"])),
            "agent.replay" => {}
            _ => out.emit_raw(PROTOCOL.name, line.clone()),
        }
    }

    fn handle_output(&mut self, data: &Value, out: &mut Actions) {
        let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.loop_state != LoopState::Queued)
        else {
            return out.unexpected("`agent.output` with no loop under way");
        };
        let channel = if data["isReasoning"] == true {
            Channel::Thought
        } else {
            Channel::Text
        };
        active.stream(channel, text_of(&data["text"]), out);
        if active.loop_state == LoopState::MaybeCommand {
            // A command answers once, and nothing follows.
            self.end_run(RunOutcome::Completed, out);
        }
    }

    fn handle_tool(&mut self, data: &Value, out: &mut Actions) {
        let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.loop_state == LoopState::Looping)
        else {
            return out.unexpected("`agent.tool` with no loop under way");
        };
        if active.cancelled {
            return;
        }
        let Some(tool) = active.tools.update(data) else {
            let status = text_of(&data["status"]);
            return out.unexpected(format!("`agent.tool` with the status {status:.64}"));
        };
        active.finish_message(out);
        if tool.is_open() {
            out.emit(FromAgent::Activity(Activity::ExecutingTool));
        }
        let run = active.run;
        out.emit(FromAgent::ToolUpdate { run, tool });
    }

    fn handle_loop(&mut self, data: &Value, out: &mut Actions) {
        let phase = data["phase"].as_str().unwrap_or_default();
        let is_looping = |active: &ActivePrompt| active.loop_state == LoopState::Looping;
        match (phase, &mut self.active) {
            ("started", Some(active)) => {
                active.loop_state = LoopState::Looping;
                active.accept(out);
            }
            ("awaiting_llm", Some(active)) if is_looping(active) => {
                if !active.cancelled {
                    out.emit(FromAgent::Activity(Activity::Thinking));
                }
            }
            ("finished", Some(active)) if is_looping(active) => {
                self.end_run(RunOutcome::Completed, out);
            }
            ("error", Some(active)) if active.loop_state != LoopState::Queued => {
                let message = match text_of(&data["error"]) {
                    error if error.is_empty() => "The agent failed without saying why.".into(),
                    error => error,
                };
                let code = ErrorCode::TaskFailed;
                self.end_run(RunOutcome::Failed { code, message }, out);
            }
            _ => out.unexpected(format!("`agent.loop` {phase:.64} at no time for it")),
        }
    }
}

impl Dialect for DaemonWire {
    fn open(&mut self, out: &mut Actions) {
        self.attach(self.setup.thread.clone(), out);
    }

    fn handle(&mut self, command: ToAgent, out: &mut Actions) {
        match command {
            ToAgent::Prompt { run, prompt } => self.prompt(run, &prompt, out),
            ToAgent::Resume { run, .. } => out.refuse_resume(run),
            ToAgent::Cancel { run } => self.cancel(run, out),
            // Neither wire has queries.
            ToAgent::Request { id, request } => {
                out.decline_with(id, unsupported_request(&self.setup.agent, &request));
            }
            // The daemon asks nothing and has no other commands.
            ToAgent::Answer { .. }
            | ToAgent::Steer { .. }
            | ToAgent::FollowUp { .. }
            | ToAgent::Settings(_)
            | ToAgent::Tools(_)
            | ToAgent::Context(_)
            | ToAgent::QueueModes(_) => {}
        }
    }

    fn read(&mut self, _stream: StreamKind, line: Value, out: &mut Actions) {
        if let Some(kind) = line["event"].as_str() {
            return self.handle_event(kind, &line, out);
        }
        match jsonrpc::parse(line) {
            Message::Response { id, result } => self.handle_response(&id, result, out),
            Message::Request { id, method, .. } => {
                let message = format!("no such method: {method}");
                let refusal = jsonrpc::error(id, jsonrpc::METHOD_NOT_FOUND, &message);
                out.write(jsonrpc::unversioned(refusal));
            }
            Message::Notification { method, params } => {
                out.emit_raw(PROTOCOL.name, json!({ "method": method, "params": params }));
            }
            Message::Invalid(_) => out.unexpected("a line that is neither event nor answer"),
        }
    }

    fn on_timer(&mut self, timer: u64, out: &mut Actions) {
        let agent = &self.setup.agent;
        let step = match timer {
            ATTACH_TIMER => "let itself be attached to",
            INPUT_TIMER => "take the prompt",
            _ => return,
        };
        let message = format!("The agent `{agent}` did not {step} within 10 s.");
        out.fail(ErrorCode::ConnectionLost, message);
    }

    fn close(&mut self, out: &mut Actions) {
        if let Some(session) = self.session.take() {
            let params = json!({ "sessionId": session });
            self.request(Request::Detach, "agent.detach", params, out);
        }
    }
}

impl ActivePrompt {
    fn accept(&mut self, out: &mut Actions) {
        if !self.accepted && !self.cancelled {
            out.emit(FromAgent::RunAccepted { run: self.run });
        }
        self.accepted = true;
    }

    fn stream(&mut self, channel: Channel, text: String, out: &mut Actions) {
        self.accept(out);
        if !self.cancelled {
            self.has_open_message |= channel == Channel::Text && !text.is_empty();
            out.emit_delta(self.run, channel, text);
        }
    }

    fn finish_message(&mut self, out: &mut Actions) {
        if std::mem::take(&mut self.has_open_message) {
            let (run, text) = (self.run, None);
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }
}

/// The reason as the end of a sentence; empty where the daemon lost it.
fn reason_suffix(message: &str) -> String {
    match message.trim().trim_end_matches('.') {
        "" | "[object Object]" => String::new(),
        message => format!(": {message}"),
    }
}
