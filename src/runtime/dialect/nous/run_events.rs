//! Run events: turns the events of one run into what the session is told. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::super::super::messages::FromAgent;
use super::super::{
    Actions, AgentError, Channel, ErrorCode, Level, RunId, RunOutcome, Usage, text_of,
};
use crate::domain::event::Activity;
use crate::domain::tool::Tool;

/// How much of a turn's text is kept, to tell what of it was missed.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Whether events of the current turn may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    None,
    /// The turn's text is compared with the core's record when the turn is over.
    Open,
    /// The record was asked for.
    Closing,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    /// `run_id` of the core, once it is known.
    pub(super) native_id: Option<String>,
    /// Events that came before `native_id` was known.
    pub(super) held: Vec<Value>,
    pub(super) cancelling: bool,
    has_open_message: bool,
    /// Ids of messages that are not from the assistant.
    foreign_messages: BTreeSet<String>,
    tools: BTreeMap<String, Tool>,
    /// The core runs one tool at a time, and its warnings do not name it.
    current_tool: Option<String>,
    /// The last error of the current turn.
    failure: Option<(String, AgentError)>,
    activity: Option<Activity>,
    /// Turns that ended with an answer, all of it told.
    turns: usize,
    /// The text of the current turn's messages: of those that ended, and of the one under way.
    told: String,
    open: String,
    pub(super) gap: Gap,
    /// What was missed is being asked for; events are held meanwhile.
    pub(super) is_catching_up: bool,
}

impl Run {
    pub(super) fn new(id: RunId) -> Self {
        Self {
            id,
            native_id: None,
            held: Vec::new(),
            cancelling: false,
            has_open_message: false,
            foreign_messages: BTreeSet::new(),
            tools: BTreeMap::new(),
            current_tool: None,
            failure: None,
            activity: None,
            turns: 0,
            told: String::new(),
            open: String::new(),
            gap: Gap::None,
            is_catching_up: false,
        }
    }

    /// The core does not report how a run ended.
    pub(super) fn outcome(&mut self, out: &mut Actions) -> RunOutcome {
        match self.failure.take() {
            _ if self.cancelling => RunOutcome::Cancelled,
            Some((message, error)) => {
                if !error.code.is_null() {
                    out.keep_error(self.id, error);
                }
                RunOutcome::Failed {
                    code: ErrorCode::TaskFailed,
                    message,
                }
            }
            None => RunOutcome::Completed,
        }
    }

    /// Whether this event closes a turn of which something may be missing.
    pub(super) fn closes_gap(&self, kind: &str) -> bool {
        self.gap == Gap::Open && matches!(kind, "turn_start" | "agent_end")
    }

    /// Tells what the core has recorded of this run and was not heard. Returns whether all that the run
    /// said is in the record.
    pub(super) fn catch_up(&mut self, messages: &Value, out: &mut Actions) -> bool {
        let Some(native_id) = self.native_id.clone() else {
            return false;
        };
        let entries = messages.as_array().into_iter().flatten();
        let answers = entries
            .filter(|entry| entry["role"] == "assistant" && entry["run_id"] == *native_id)
            .filter_map(|entry| entry["text"].as_str());
        for answer in answers.skip(self.turns) {
            self.complete_turn(answer, out);
        }
        if self.gap == Gap::Closing {
            self.gap = Gap::None;
        }
        self.turns > 0 && !self.has_open_message && self.told.is_empty()
    }

    /// Tells the rest of a turn's text and ends its message.
    fn complete_turn(&mut self, text: &str, out: &mut Actions) {
        let text = text.strip_prefix(self.told.as_str()).unwrap_or(text);
        let rest = if let Some(rest) = text.strip_prefix(self.open.as_str()) {
            rest
        } else {
            // Something is missing in the middle: it is told again, whole.
            out.emit(FromAgent::MessageWithdrawn { run: self.id });
            self.has_open_message = false;
            text
        };
        self.has_open_message |= !rest.is_empty();
        out.emit_delta(self.id, Channel::Text, rest);
        self.finish_message(out);
        self.end_turn();
    }

    fn end_turn(&mut self) {
        self.turns += 1;
        self.told.clear();
    }

    /// Returns `false` for an unknown event.
    pub(super) fn apply(&mut self, kind: &str, payload: &Value, out: &mut Actions) -> bool {
        match kind {
            "agent_start" => self.set_activity(Activity::Thinking, out),
            "turn_start" => {
                self.finish_message(out);
                self.told.clear();
                // The run continues: the earlier error was not its end.
                self.failure = None;
            }
            // Its text is compared with the core's record first.
            "turn_end" | "message_end" if self.gap == Gap::Open => {}
            "message_end" => self.finish_message(out),
            "turn_end" => {
                self.finish_message(out);
                if self.failure.is_none() {
                    self.end_turn();
                }
            }
            "message_start" => {
                if self.gap != Gap::Open {
                    self.finish_message(out);
                }
                let role = payload["role"].as_str();
                if role.is_some_and(|role| role != "assistant") {
                    self.foreign_messages
                        .insert(text_of(&payload["message_id"]));
                }
            }
            "message_update" => self.stream_text(payload, out),
            "tool_execution_start" => self.begin_tool(payload, out),
            "tool_execution_update" => {
                let output = non_null(&payload["delta"]);
                self.update_tool(payload, None, output, out);
            }
            "tool_execution_end" => self.end_tool(payload, out),
            "status" => return report_usage(payload, out),
            "warning" => self.warn(payload, out),
            "error" => {
                let text = error_text(payload);
                self.mark_current_tool("failed", &text);
                self.failure = Some((text, agent_error(payload)));
            }
            _ => return false,
        }
        true
    }

    pub(super) fn finish_message(&mut self, out: &mut Actions) {
        let ended = std::mem::take(&mut self.open);
        if self.told.len() < MAX_KEPT_BYTES {
            self.told.push_str(&ended);
        }
        if std::mem::take(&mut self.has_open_message) {
            let (run, text) = (self.id, None);
            out.emit(FromAgent::MessageFinal { run, text });
        }
    }

    fn set_activity(&mut self, activity: Activity, out: &mut Actions) {
        if self.activity.replace(activity) != Some(activity) {
            out.emit(FromAgent::Activity(activity));
        }
    }

    fn stream_text(&mut self, payload: &Value, out: &mut Actions) {
        let text = text_of(&payload["delta"]);
        if !text.is_empty()
            && !self
                .foreign_messages
                .contains(&text_of(&payload["message_id"]))
        {
            self.has_open_message = true;
            if self.open.len() < MAX_KEPT_BYTES {
                self.open.push_str(&text);
            }
            out.emit_delta(self.id, Channel::Text, text);
        }
    }

    fn begin_tool(&mut self, payload: &Value, out: &mut Actions) {
        self.finish_message(out);
        self.current_tool = Some(text_of(&payload["tool_call_id"]));
        self.update_tool(payload, None, None, out);
        self.set_activity(Activity::ExecutingTool, out);
    }

    /// The last output replaces the others: a core sends the whole result after its pieces.
    fn update_tool(
        &mut self,
        payload: &Value,
        status: Option<&str>,
        output: Option<Value>,
        out: &mut Actions,
    ) {
        let id = text_of(&payload["tool_call_id"]);
        let name = text_of(&payload["tool_name"]);
        let tool = self.tools.entry(id.clone()).or_insert_with(|| {
            let mut tool = Tool::new(id, name.as_str(), "running");
            tool.kind = tool_kind(&name).into();
            tool
        });
        if let Some(status) = status {
            tool.status = status.into();
        }
        if output.is_some() {
            tool.output = output;
        }
        let (run, tool) = (self.id, tool.clone());
        out.emit(FromAgent::ToolUpdate { run, tool });
    }

    fn end_tool(&mut self, payload: &Value, out: &mut Actions) {
        let id = text_of(&payload["tool_call_id"]);
        self.current_tool.take_if(|current| *current == id);
        let known = self.tools.get(&id).filter(|tool| !tool.is_open());
        // A warning may have reported its end already.
        let status = known.map_or("completed".to_owned(), |tool| tool.status.clone());
        let output = non_null(&payload["result"]);
        self.update_tool(payload, Some(&status), output, out);
        self.set_activity(Activity::Thinking, out);
    }

    fn warn(&mut self, payload: &Value, out: &mut Actions) {
        let text = error_text(payload);
        match payload["code"].as_str().unwrap_or_default() {
            // Expected after our abort.
            "provider_aborted" if self.cancelling => return,
            "tool_execution_skipped" => self.mark_current_tool("skipped", &text),
            "tool_blocked" => self.mark_current_tool("denied", &text),
            "tool_validation_error"
            | "tool_not_found"
            | "tool_not_active"
            | "tool_execution_error" => self.mark_current_tool("failed", &text),
            _ => {}
        }
        out.emit_notice(Level::Warn, text);
    }

    /// Sets how the current tool will end.
    fn mark_current_tool(&mut self, status: &str, text: &str) {
        let current_tool = self.current_tool.as_ref();
        if let Some(tool) = current_tool.and_then(|id| self.tools.get_mut(id)) {
            tool.status = status.into();
            tool.output = Some(text.into());
        }
    }
}

/// The core's own words: `code`, `message`, and the optional `cause`.
pub(super) fn agent_error(error: &Value) -> AgentError {
    let cause = &error["cause"];
    AgentError {
        code: error["code"].clone(),
        message: text_of(&error["message"]),
        data: match cause {
            Value::Null => Value::Null,
            cause => json!({ "cause": cause }),
        },
    }
}

pub(super) fn error_text(payload: &Value) -> String {
    let field = |name: &str| text_of(&payload[name]);
    let text = match field("message") {
        message if message.is_empty() => field("code"),
        message => message,
    };
    match field("cause") {
        _ if text.is_empty() => "It does not say what is wrong.".to_owned(),
        cause if cause.is_empty() => text,
        cause => format!("{text} ({cause})"),
    }
}

/// Usage comes as the text of a status: `provider_usage: input=1 output=2 total=3`. Other statuses
/// are passed on raw.
fn report_usage(payload: &Value, out: &mut Actions) -> bool {
    let message = text_of(&payload["message"]);
    let Some(numbers) = message.strip_prefix("provider_usage:") else {
        return false;
    };
    let number = |name: &str| {
        let mut pairs = numbers
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='));
        let (_, number) = pairs.find(|(found, _)| *found == name)?;
        number.parse::<u64>().ok()
    };
    let (Some(input), Some(output)) = (number("input"), number("output")) else {
        return false;
    };
    let cost = None;
    out.emit(FromAgent::Usage(Usage {
        input,
        output,
        cost,
    }));
    true
}

fn non_null(value: &Value) -> Option<Value> {
    Some(value.clone()).filter(|value| !value.is_null())
}

fn tool_kind(name: &str) -> &'static str {
    match name {
        "bash" => "execute",
        "read" | "ls" => "read",
        "write" | "edit" => "edit",
        "find" | "grep" => "search",
        _ => "other",
    }
}
