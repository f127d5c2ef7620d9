//! Run events: applies the events of the current run, from its prompt to its end.
//!
//! The end of pi's loop is not the end of the run: pi may retry or compact the conversation. So each end
//! is followed by an idle check.

use serde_json::Value;

use super::super::usage::context_left;
use super::super::{Actions, FromAgent, text_of};
use super::PROTOCOL;
use super::tool::Tools;
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::{RunOutcome, Usage};
use crate::domain::tool::Tool;

pub(super) const RUN_EVENTS: &[&str] = &[
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "compaction_start",
    "compaction_end",
    // Their former names.
    "auto_compaction_start",
    "auto_compaction_end",
    "auto_retry_start",
    "auto_retry_end",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FollowUp {
    None,
    CheckIdle,
    Abort,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoopState {
    Idle,
    Running,
    /// pi will start its loop again by itself.
    Retrying,
    Compacting,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) accepted: bool,
    pub(super) cancelled: bool,
    pub(super) failed_idle_checks: u8,
    loop_state: LoopState,
    /// Of the last message.
    failure: Option<MessageFailure>,
    message: MessageProgress,
    tools: Tools,
}

#[derive(Debug, Default)]
struct MessageProgress {
    has_text: bool,
    has_thought: bool,
}

#[derive(Debug)]
enum MessageFailure {
    Aborted,
    Failed(String),
}

impl Run {
    pub(super) fn new(id: RunId) -> Self {
        Self {
            id,
            accepted: false,
            cancelled: false,
            failed_idle_checks: 0,
            loop_state: LoopState::Idle,
            failure: None,
            message: MessageProgress::default(),
            tools: Tools::default(),
        }
    }

    /// Whether pi will send further events without a command.
    pub(super) fn is_busy(&self) -> bool {
        self.loop_state != LoopState::Idle
    }

    /// `window` is the size of the model's context, in tokens.
    pub(super) fn apply(
        &mut self,
        kind: &str,
        event: &Value,
        window: Option<u64>,
        out: &mut Actions,
    ) -> FollowUp {
        match kind {
            "agent_start" => return self.loop_started(out),
            "agent_end" => return self.loop_ended(event),
            "message_start" => self.message.has_thought = false,
            "message_update" => self.update(&event["assistantMessageEvent"], out),
            "message_end" => self.message(&event["message"], window, out),
            "tool_execution_start" => {
                let tool = self.tools.started(event);
                self.report_tool(tool, out);
            }
            "tool_execution_update" => {
                let tool = self.tools.output_updated(event);
                self.report_tool(tool, out);
            }
            "tool_execution_end" => {
                let tool = self.tools.ended(event, self.cancelled);
                self.report_tool(tool, out);
            }
            "compaction_start" | "auto_compaction_start" => {
                self.loop_state = LoopState::Compacting;
                out.emit_notice(
                    Level::Info,
                    "The agent sums up the conversation to make room.",
                );
            }
            "compaction_end" | "auto_compaction_end" => return self.compaction_ended(event, out),
            "auto_retry_start" => {
                self.loop_state = LoopState::Retrying;
                out.emit_notice(Level::Info, retry(event));
            }
            "auto_retry_end" if event["success"] != true => {
                self.loop_state = LoopState::Idle;
                return FollowUp::CheckIdle;
            }
            _ => {}
        }
        FollowUp::None
    }

    fn report_tool(&self, tool: Option<Tool>, out: &mut Actions) {
        if let Some(tool) = tool {
            out.emit(FromAgent::ToolUpdate { run: self.id, tool });
        }
    }

    fn loop_started(&mut self, out: &mut Actions) -> FollowUp {
        self.loop_state = LoopState::Running;
        self.failure = None;
        if self.message.has_text {
            // The failed message starts again.
            self.message.has_text = false;
            out.emit(FromAgent::MessageWithdrawn { run: self.id });
        }
        // pi ignored an abort that came before it started.
        if self.cancelled {
            FollowUp::Abort
        } else {
            FollowUp::None
        }
    }

    fn loop_ended(&mut self, event: &Value) -> FollowUp {
        self.loop_state = LoopState::Idle;
        let messages = event["messages"].as_array().into_iter().flatten();
        let last = messages
            .rev()
            .find(|message| message["role"] == "assistant");
        if let Some(last) = last {
            self.failure = failure(last);
        }
        FollowUp::CheckIdle
    }

    fn compaction_ended(&mut self, event: &Value, out: &mut Actions) -> FollowUp {
        if let Some(error) = event["errorMessage"].as_str() {
            out.emit_notice(Level::Warn, error);
        }
        if event["willRetry"] == true {
            self.loop_state = LoopState::Retrying;
            return FollowUp::None;
        }
        self.loop_state = LoopState::Idle;
        // A prompt that is not accepted yet is still to come.
        if self.accepted {
            FollowUp::CheckIdle
        } else {
            FollowUp::None
        }
    }

    fn update(&mut self, update: &Value, out: &mut Actions) {
        let delta = || text_of(&update["delta"]);
        match update["type"].as_str() {
            Some("text_delta") => {
                self.message.has_text |= !delta().is_empty();
                out.emit_delta(self.id, Channel::Text, delta());
            }
            Some("thinking_delta") => {
                self.message.has_thought |= !delta().is_empty();
                out.emit_delta(self.id, Channel::Thought, delta());
            }
            Some("toolcall_end") => {
                let tool = self.tools.requested(&update["toolCall"]);
                self.report_tool(tool, out);
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &Value, window: Option<u64>, out: &mut Actions) {
        if message["role"] == "custom" && message["display"] == true {
            return out.emit_raw(PROTOCOL.name, message.clone());
        }
        if message["role"] != "assistant" {
            return;
        }
        if !self.message.has_thought {
            out.emit_delta(self.id, Channel::Thought, parts(message, "thinking"));
        }
        self.failure = failure(message);
        if !matches!(self.failure, Some(MessageFailure::Failed(_))) {
            self.finish_message(parts(message, "text"), out);
        }
        report_usage(&message["usage"], window, out);
    }

    fn finish_message(&mut self, text: String, out: &mut Actions) {
        let text = (!self.message.has_text).then_some(text);
        self.message.has_text = false;
        if text.as_ref().is_none_or(|text| !text.is_empty()) {
            out.emit(FromAgent::MessageFinal { run: self.id, text });
        }
    }

    pub(super) fn reject(mut self, error: &str, agent: &str, out: &mut Actions) {
        self.failure = Some(MessageFailure::Failed(error.to_owned()));
        self.end(agent, out);
    }

    pub(super) fn end(mut self, agent: &str, out: &mut Actions) {
        if self.message.has_text {
            self.finish_message(String::new(), out);
        }
        let outcome = match self.failure {
            _ if self.cancelled => RunOutcome::Cancelled,
            Some(MessageFailure::Aborted) => RunOutcome::Cancelled,
            Some(MessageFailure::Failed(error)) => RunOutcome::Failed {
                code: ErrorCode::TaskFailed,
                message: error_message(&error, agent),
            },
            None => RunOutcome::Completed,
        };
        out.end_run(self.id, outcome, None);
    }
}

/// pi's own message about a missing key names files of its installation.
fn error_message(error: &str, agent: &str) -> String {
    let keyless = ["No API key", "No model selected", "/login"];
    if keyless.iter().any(|words| error.contains(words)) {
        return format!(
            "The agent `{agent}` has no access to a model: give it the API key of a provider in its \
             environment, or log in with `pi` as the user that it runs as."
        );
    }
    format!("The agent `{agent}`: {error}")
}

fn failure(message: &Value) -> Option<MessageFailure> {
    match message["stopReason"].as_str() {
        Some("aborted") => Some(MessageFailure::Aborted),
        Some("error") => {
            let error = message["errorMessage"].as_str();
            let error = error.unwrap_or("The model has failed.");
            Some(MessageFailure::Failed(error.to_owned()))
        }
        _ => None,
    }
}

/// The text of all parts of this type; each has it in the field of the same name.
fn parts(message: &Value, kind: &str) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let parts = parts.filter(|part| part["type"] == kind);
    let texts: Vec<&str> = parts.filter_map(|part| part[kind].as_str()).collect();
    texts.join("\n\n")
}

fn retry(event: &Value) -> String {
    format!(
        "The model has failed, the agent tries again ({} of {}): {}",
        text_of(&event["attempt"]),
        text_of(&event["maxAttempts"]),
        text_of(&event["errorMessage"])
    )
}

fn report_usage(counts: &Value, window: Option<u64>, out: &mut Actions) {
    let count = |name: &str| counts[name].as_u64().unwrap_or_default();
    let read = count("input").saturating_add(count("cacheRead"));
    let usage = Usage {
        input: read.saturating_add(count("cacheWrite")),
        output: count("output"),
        cost: counts["cost"]["total"].as_f64(),
    };
    if usage.total() == 0 {
        return;
    }
    out.emit(FromAgent::Usage(usage));
    if let Some(left) = window.and_then(|window| context_left(usage.total(), window)) {
        out.emit(FromAgent::ContextLeft(left));
    }
}
