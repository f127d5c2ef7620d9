//! Run events: turns the events of one run into what the session is told. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::super::super::messages::FromAgent;
use super::super::{Actions, Channel, Level, RunId, text_of};
use super::ui_request::{UiRequest, permission_options};
use crate::domain::event::Activity;
use crate::domain::question::{Question, QuestionKind, Severity, ToolUse};
use crate::domain::run::Progress;
use crate::domain::tool::Tool;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// Parameters of `run.start`.
    pub(super) params: Value,
    /// `run_id` of the runtime, once it has started.
    pub(super) native_id: Option<String>,
    /// The number of the `run.start` that waits for its response.
    pub(super) start_request: Option<u64>,
    pub(super) busy_retries: u8,
    pub(super) cancelling: bool,
    /// Has `final` arrived?
    pub(super) has_final: bool,
    /// `seq` of its last event.
    pub(super) seq: Option<i64>,
    /// The whole text of the run.
    text: String,
    /// Start of the previous message in `text`.
    previous_start: usize,
    /// Start of the current message in `text`.
    message_start: usize,
    tools: BTreeMap<String, Tool>,
    /// Tool calls that the next confirmations are about, in order.
    awaiting_permission: VecDeque<String>,
    /// Summary and diff per tool call.
    previews: BTreeMap<String, String>,
    denied: BTreeSet<String>,
    activity: Option<Activity>,
}

impl Run {
    pub(super) fn new(id: RunId, params: Value) -> Self {
        Self {
            id,
            params,
            native_id: None,
            start_request: None,
            busy_retries: 0,
            cancelling: false,
            has_final: false,
            seq: None,
            text: String::new(),
            previous_start: 0,
            message_start: 0,
            tools: BTreeMap::new(),
            awaiting_permission: VecDeque::new(),
            previews: BTreeMap::new(),
            denied: BTreeSet::new(),
            activity: None,
        }
    }

    pub(super) fn set_activity(&mut self, activity: Activity, out: &mut Actions) {
        if self.activity.replace(activity) != Some(activity) {
            out.emit(FromAgent::Activity(activity));
        }
    }

    /// Returns `false` for an unknown event.
    pub(super) fn handle_event(&mut self, event: &Value, out: &mut Actions) -> bool {
        match event["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = text_of(&event["content"]);
                self.text.push_str(&text);
                out.emit_delta(self.id, Channel::Text, text);
            }
            "reasoning" => out.emit_delta(self.id, Channel::Thought, text_of(&event["content"])),
            "final" => self.handle_final(&text_of(&event["content"]), out),
            "step_start" => self.begin_step(event, out),
            "step_complete" => self.complete_step(event, out),
            "tool_call" => self.handle_tool_call(event, out),
            "tool_result" => self.handle_tool_result(event, out),
            "permission.preview" => self.store_preview(event),
            "permission.ready" => self.permission_ready(event, out),
            "llm.retry" => out.emit_notice(Level::Warn, retry_notice(event)),
            "compaction_start" => out.emit_notice(Level::Info, "The agent sums up what was said."),
            "compaction_complete" => {
                if event["compacted"] == true {
                    out.emit_notice(Level::Info, "The agent has summed up what was said.");
                }
            }
            // The runtime's own input in the user's name.
            "hidden_user_message" => {}
            _ => return false,
        }
        true
    }

    pub(super) fn finish_message(&mut self, out: &mut Actions) {
        if self.message_start < self.text.len() {
            self.previous_start = self.message_start;
            self.message_start = self.text.len();
            let (run, text) = (self.id, None);
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    /// `final` may carry the only text, or repeat what was streamed: the current message, the
    /// previous one (if a tool ended the run), or the whole text.
    fn handle_final(&mut self, text: &str, out: &mut Actions) {
        let current = if self.message_start < self.text.len() {
            &self.text[self.message_start..]
        } else {
            &self.text[self.previous_start..]
        };
        let is_new =
            !same_words(text, current) && !same_words(text, &self.text) && !text.trim().is_empty();
        self.finish_message(out);
        if is_new {
            self.text.push_str(text);
            self.previous_start = self.message_start;
            self.message_start = self.text.len();
            let (run, text) = (self.id, Some(text.to_owned()));
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    fn begin_step(&mut self, event: &Value, out: &mut Actions) {
        self.finish_message(out);
        let total = event["step_number"].as_u64().unwrap_or(1).max(1);
        out.emit(FromAgent::RunProgress {
            run: self.id,
            progress: Progress {
                current: total - 1,
                total,
                description: text_of(&event["title"]),
            },
        });
    }

    /// A step is a tool call. One that failed without a result ends here.
    fn complete_step(&mut self, event: &Value, out: &mut Actions) {
        let id = text_of(&event["step_id"]);
        self.drop_permission(&id);
        let open = self.tools.get_mut(&id);
        if let Some(tool) = open.filter(|tool| tool.is_open()) {
            let failed = event["status"] == "error";
            tool.status = if failed { "failed" } else { "completed" }.into();
            let (run, tool) = (self.id, tool.without_payload());
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }

    fn handle_tool_call(&mut self, event: &Value, out: &mut Actions) {
        self.finish_message(out);
        let name = text_of(&event["tool"]);
        let mut tool = Tool::new(text_of(&event["tool_call_id"]), name.as_str(), "running");
        tool.kind = tool_kind(&name).into();
        tool.input = Some(event["args"].clone()).filter(|args| !args.is_null());
        if let Some(title) = event["display_name"].as_str() {
            tool.title = title.into();
        }
        self.tools.insert(tool.id.clone(), tool.clone());
        let run = self.id;
        out.emit(FromAgent::ToolUpdate { run, tool });
        self.set_activity(Activity::ExecutingTool, out);
    }

    fn handle_tool_result(&mut self, event: &Value, out: &mut Actions) {
        let id = text_of(&event["tool_call_id"]);
        self.drop_permission(&id);
        let failed = event["is_error"] == true;
        let status = match (failed, self.denied.remove(&id)) {
            (false, _) => "completed",
            (true, false) => "failed",
            (true, true) => "denied",
        };
        let mut tool = self.tool_or_new(&id, &text_of(&event["tool"]));
        tool.status = status.into();
        self.tools.insert(id, tool.clone());
        tool.input = None;
        tool.output = Some(event["result"].clone());
        let run = self.id;
        out.emit(FromAgent::ToolUpdate { run, tool });
        self.set_activity(Activity::Thinking, out);
    }

    fn tool_or_new(&self, id: &str, name: &str) -> Tool {
        self.tools.get(id).cloned().unwrap_or_else(|| {
            let mut tool = Tool::new(id, name, "pending");
            tool.kind = tool_kind(name).into();
            tool
        })
    }

    fn store_preview(&mut self, event: &Value) {
        let parts = ["summary", "diff"].map(|name| text_of(&event[name]));
        let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
        let shown = parts.join("\n\n").trim().to_owned();
        if let Some(id) = self.tool_call_of(event) {
            self.previews.insert(id, shown);
        }
    }

    fn permission_ready(&mut self, event: &Value, out: &mut Actions) {
        let Some(id) = self.tool_call_of(event) else {
            return;
        };
        let mut tool = self.tool_or_new(&id, &text_of(&event["tool"]));
        tool.status = "pending".into();
        self.tools.insert(id.clone(), tool.clone());
        self.awaiting_permission.push_back(id);
        let run = self.id;
        out.emit(FromAgent::ToolUpdate { run, tool });
    }

    /// The tool call is over: no confirmation is about it any more.
    fn drop_permission(&mut self, id: &str) {
        self.awaiting_permission.retain(|ready| ready != id);
        self.previews.remove(id);
    }

    /// Calls that are over need no permission and are skipped.
    fn next_permission(&mut self) -> Option<String> {
        let tools = &self.tools;
        let is_open = |id: &String| tools.get(id).is_some_and(Tool::is_open);
        let position = self.awaiting_permission.iter().position(is_open)?;
        self.awaiting_permission.drain(..=position).next_back()
    }

    /// The call that an event is about; the event may name only the tool.
    fn tool_call_of(&self, event: &Value) -> Option<String> {
        if let Some(id) = event["tool_call_id"].as_str() {
            return Some(id.to_owned());
        }
        let name = event["tool"].as_str()?;
        let mut open = self.tools.values().rev();
        let tool = open.find(|tool| tool.name == name && tool.is_open())?;
        Some(tool.id.clone())
    }

    /// The question, and the tool call that it is about.
    pub(super) fn question(
        &mut self,
        kind: UiRequest,
        params: &Value,
        private_home: bool,
        out: &mut Actions,
    ) -> (Question, Option<String>) {
        let mut question = kind.question(params, private_home);
        let tool = match kind {
            UiRequest::Confirm => self.next_permission(),
            UiRequest::Prompt | UiRequest::Pick => None,
        };
        self.set_activity(Activity::WaitingForInput, out);
        let Some(tool) = tool.and_then(|id| self.tools.get(&id)) else {
            return (question, None);
        };
        question.kind = QuestionKind::Permission;
        question.options = permission_options(&question);
        if question.severity == Severity::Warn && is_read_only(&tool.kind) {
            question.severity = Severity::Info;
        }
        if let Some(preview) = self.previews.remove(&tool.id) {
            question.message = format!("{}\n\n{preview}", question.message);
        }
        question.tool = Some(ToolUse {
            tool: tool.id.clone(),
            name: tool.name.clone(),
            args: tool.input.clone().unwrap_or_default(),
        });
        (question, Some(tool.id.clone()))
    }

    pub(super) fn record_decision(&mut self, id: &str, granted: bool, out: &mut Actions) {
        if !granted {
            self.denied.insert(id.to_owned());
            return;
        }
        if let Some(tool) = self.tools.get_mut(id).filter(|tool| tool.is_open()) {
            tool.status = "running".into();
            let (run, tool) = (self.id, tool.without_payload());
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }
}

/// Compares two texts and ignores whitespace.
fn same_words(one: &str, other: &str) -> bool {
    one.split_whitespace()
        .flat_map(str::chars)
        .eq(other.split_whitespace().flat_map(str::chars))
}

fn retry_notice(event: &Value) -> String {
    let field = |name: &str| match text_of(&event[name]) {
        text if text.is_empty() => "?".to_owned(),
        text => text,
    };
    let seconds = event["delay_ms"]
        .as_u64()
        .unwrap_or_default()
        .div_ceil(1000);
    format!(
        "The model provider `{}` failed ({}); try {} of {} follows in {seconds} s.",
        field("provider"),
        field("failure_kind"),
        field("next_attempt"),
        field("max_attempts"),
    )
}

fn tool_kind(name: &str) -> &'static str {
    match name {
        "shell" | "bash" => "execute",
        "read" | "read_line" | "view_image" => "read",
        "write" | "edit" | "apply_patch" => "edit",
        "search" | "grep" | "glob" | "glob_search" | "skill_search" => "search",
        "webfetch" | "web_search" => "fetch",
        _ => "other",
    }
}

fn is_read_only(kind: &str) -> bool {
    matches!(kind, "read" | "search" | "think")
}
