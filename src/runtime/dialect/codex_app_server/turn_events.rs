//! Turn events: applies the notifications of the current turn to its run.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::{Actions, FromAgent, text_of};
use super::PROTOCOL;
use super::item::{self, ItemKind};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;
use crate::runtime::event_truncation::excerpt;

/// Useless to clients, or visible elsewhere.
pub(super) const IGNORED_NOTIFICATIONS: &[&str] = &[
    "thread/status/changed",
    "thread/settings/updated",
    "thread/goal/cleared",
    "thread/readState/changed",
    "thread/queue/changed",
    "thread/closed",
    "thread/compacted",
    "turn/diff/updated",
    "turn/moderationMetadata",
    "hook/started",
    "hook/completed",
    "rawResponse/completed",
    "rawResponseItem/completed",
];

/// A command's output is reported again after so many new bytes: each report repeats all of it.
const OUTPUT_REPORT_BYTES: usize = 2048;

/// While a command runs only its last output is reported; all of it comes with its completion.
const OUTPUT_TAIL_BYTES: usize = 8192;

struct RunningTool {
    tool: Tool,
    output: String,
    unreported_bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptStage {
    Unsent,
    Sent,
    /// Codex works on it, and the session knows.
    Accepted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    None,
    /// The run was cancelled.
    Requested,
    /// `turn/interrupt` was sent.
    Sent,
}

pub(super) struct Turn {
    pub(super) run: RunId,
    /// Known once Codex has started it.
    pub(super) id: Option<String>,
    pub(super) stage: PromptStage,
    pub(super) interruption: Interruption,
    /// Steering texts that came before it had an id.
    pub(super) early_steers: Vec<String>,
    /// The item of the message that is streaming.
    message_item: Option<String>,
    reasoning_item: Option<String>,
    has_text: bool,
    running_tools: HashMap<String, RunningTool>,
    /// The last error, in case the end of the turn has none.
    error: Option<String>,
}

impl Turn {
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            id: None,
            stage: PromptStage::Unsent,
            interruption: Interruption::None,
            early_steers: Vec::new(),
            message_item: None,
            reasoning_item: None,
            has_text: false,
            running_tools: HashMap::new(),
            error: None,
        }
    }

    pub(super) fn has_id(&self, id: Option<&str>) -> bool {
        self.id.is_some() && self.id.as_deref() == id
    }

    /// Whether the next `turn/started` is about this turn.
    pub(super) fn awaits_id(&self) -> bool {
        self.stage == PromptStage::Sent && self.id.is_none()
    }

    /// Some requests do not say to which turn they belong.
    pub(super) fn can_ask(&self, id: Option<&str>) -> bool {
        id.is_none() || self.has_id(id)
    }

    pub(super) fn tool_input(&self, item: &str) -> Option<&Value> {
        self.running_tools.get(item)?.tool.input.as_ref()
    }

    pub(super) fn apply(&mut self, method: &str, params: &Value, out: &mut Actions) {
        let item = || text_of(&params["itemId"]);
        let delta = || text_of(&params["delta"]);
        match method {
            "item/agentMessage/delta" | "item/plan/delta" => {
                self.message_delta(item(), delta(), out);
            }
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.reasoning_item = Some(item());
                out.emit_delta(self.run, Channel::Thought, delta());
            }
            "item/reasoning/summaryPartAdded" => {
                if params["summaryIndex"].as_u64() > Some(0) {
                    out.emit_delta(self.run, Channel::Thought, "\n\n");
                }
            }
            "item/commandExecution/outputDelta" => self.command_output(&item(), &delta(), out),
            "item/fileChange/patchUpdated" => self.patch_updated(&item(), &params["changes"], out),
            "item/started" => self.item(&params["item"], ItemPhase::Started, out),
            "item/completed" => self.item(&params["item"], ItemPhase::Completed, out),
            "error" => self.turn_error(params, out),
            "item/fileChange/outputDelta"
            | "item/mcpToolCall/progress"
            | "item/commandExecution/terminalInteraction" => {}
            _ => out.emit_raw(PROTOCOL.name, json!({ "method": method, "params": params })),
        }
    }

    fn message_delta(&mut self, item: String, text: String, out: &mut Actions) {
        if text.is_empty() {
            return;
        }
        if self
            .message_item
            .as_ref()
            .is_some_and(|other| *other != item)
        {
            self.finish_message(out);
        }
        self.message_item = Some(item);
        self.has_text = true;
        out.emit_delta(self.run, Channel::Text, text);
    }

    fn finish_message(&mut self, out: &mut Actions) {
        if self.message_item.take().is_some() {
            let (run, text) = (self.run, None);
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    fn command_output(&mut self, item: &str, text: &str, out: &mut Actions) {
        let Some(running) = self.running_tools.get_mut(item) else {
            let item = excerpt(item);
            return out.unexpected(format!("output of {item}, which does not run"));
        };
        let first = running.output.is_empty();
        running.output.push_str(text);
        running.unreported_bytes += text.len();
        let excess = running.output.len().saturating_sub(OUTPUT_TAIL_BYTES);
        let excess = running.output.ceil_char_boundary(excess);
        running.output.drain(..excess);
        if first || running.unreported_bytes >= OUTPUT_REPORT_BYTES {
            running.unreported_bytes = 0;
            let tool = Tool {
                output: Some(json!({ "output": running.output })),
                ..running.tool.without_payload()
            };
            let run = self.run;
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }

    fn patch_updated(&mut self, item: &str, changes: &Value, out: &mut Actions) {
        if let Some(running) = self.running_tools.get_mut(item) {
            running.tool.title = item::change_title(changes);
            running.tool.input = Some(json!({ "changes": changes }));
            let (run, tool) = (self.run, running.tool.clone());
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }

    fn item(&mut self, item: &Value, phase: ItemPhase, out: &mut Actions) {
        let id = text_of(&item["id"]);
        match item::classify(item) {
            ItemKind::Tool(tool) => self.tool_item(tool, phase, out),
            ItemKind::Message(text) if phase == ItemPhase::Completed => {
                self.message_completed(&id, text, out);
            }
            ItemKind::Reasoning(text) if phase == ItemPhase::Completed => {
                if self.reasoning_item.take().as_ref() != Some(&id) {
                    out.emit_delta(self.run, Channel::Thought, text);
                }
            }
            ItemKind::Compaction if phase == ItemPhase::Completed => out.emit_notice(
                Level::Info,
                "The agent has summed up the conversation to make room.",
            ),
            ItemKind::Unknown => out.emit_raw(PROTOCOL.name, json!({ "item": item })),
            ItemKind::Message(_)
            | ItemKind::Reasoning(_)
            | ItemKind::Compaction
            | ItemKind::Ignored => {}
        }
    }

    fn message_completed(&mut self, item: &str, text: String, out: &mut Actions) {
        if self.message_item.as_deref() == Some(item) {
            return self.finish_message(out);
        }
        self.finish_message(out);
        if !text.is_empty() {
            self.has_text = true;
            let (run, text) = (self.run, Some(text));
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    fn tool_item(&mut self, mut tool: Tool, phase: ItemPhase, out: &mut Actions) {
        match phase {
            ItemPhase::Started => {
                let running = RunningTool {
                    tool: tool.clone(),
                    output: String::new(),
                    unreported_bytes: 0,
                };
                self.running_tools.insert(tool.id.clone(), running);
            }
            ItemPhase::Completed => {
                self.running_tools.remove(&tool.id);
                if tool.is_open() {
                    // Some kinds of items have no status of their own.
                    tool.status = "completed".into();
                }
            }
        }
        let run = self.run;
        out.emit(FromAgent::ToolUpdate { run, tool });
    }

    fn turn_error(&mut self, params: &Value, out: &mut Actions) {
        let message = text_of(&params["error"]["message"]);
        if params["willRetry"] == true {
            // The message starts again as another item.
            if self.message_item.take().is_some() {
                out.emit(FromAgent::MessageWithdrawn { run: self.run });
            }
            return out.emit_notice(Level::Info, message);
        }
        self.error = Some(message);
    }

    pub(super) fn fail(self, message: String, out: &mut Actions) {
        if self.interruption == Interruption::None {
            out.fail_run(self.run, ErrorCode::TaskFailed, message);
        } else {
            out.end_run(self.run, RunOutcome::Cancelled, None);
        }
    }

    /// It is over. `login` replaces the error message if Codex is not logged in.
    pub(super) fn end(
        mut self,
        turn: &Value,
        login: Option<String>,
        agent: &str,
        out: &mut Actions,
    ) {
        self.finish_message(out);
        if !self.has_text {
            self.last_message(&turn["items"], out);
        }
        let interrupted = turn["status"] == "interrupted";
        let outcome = if self.interruption != Interruption::None || interrupted {
            RunOutcome::Cancelled
        } else if turn["status"] == "failed" {
            let error = turn["error"]["message"].as_str().map(str::to_owned);
            let error = error.or(self.error).unwrap_or("The turn failed.".into());
            let message = login.unwrap_or_else(|| format!("The agent `{agent}`: {error}"));
            let code = ErrorCode::TaskFailed;
            RunOutcome::Failed { code, message }
        } else {
            RunOutcome::Completed
        };
        out.end_run(self.run, outcome, None);
    }

    /// The end repeats the last message, in case nothing streamed.
    fn last_message(&mut self, items: &Value, out: &mut Actions) {
        let mut items = items.as_array().into_iter().flatten();
        let last = items.rfind(|item| item["type"] == "agentMessage");
        if let Some(ItemKind::Message(text)) = last.map(item::classify) {
            self.message_completed("", text, out);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemPhase {
    Started,
    Completed,
}

pub(super) fn is_unauthorized(error: &Value) -> bool {
    let info = &error["codexErrorInfo"];
    let status = |fields: &Value| fields["httpStatusCode"] == 401;
    info == "unauthorized"
        || info
            .as_object()
            .is_some_and(|kinds| kinds.values().any(status))
}
