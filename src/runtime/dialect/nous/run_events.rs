//! One run of a core, as far as it was seen. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::super::talk::FromAgent;
use super::super::{Channel, Code, Level, Out, RunId, RunOutcome, Usage, text_of};
use crate::domain::event::Activity;
use crate::domain::tool::Tool;

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    /// Its name here.
    pub(super) id: RunId,
    /// The core's name of it, once it began.
    pub(super) native: Option<String>,
    /// What came before that name was known.
    pub(super) held: Vec<Value>,
    /// Is it to end?
    pub(super) cancelling: bool,
    /// Was something said since the last complete utterance?
    speaking: bool,
    /// The messages that are not the agent's.
    others: BTreeSet<String>,
    tools: BTreeMap<String, Tool>,
    /// The use of a tool under way: the core has one at a time, and its warnings do not name it.
    using: Option<String>,
    /// What went wrong last, in the turn under way.
    failure: Option<String>,
    activity: Option<Activity>,
}

impl Run {
    /// Nothing was seen of it yet.
    pub(super) fn new(id: RunId) -> Self {
        Self {
            id,
            native: None,
            held: Vec::new(),
            cancelling: false,
            speaking: false,
            others: BTreeSet::new(),
            tools: BTreeMap::new(),
            using: None,
            failure: None,
            activity: None,
        }
    }

    /// How it ended: the core itself does not say it.
    pub(super) fn outcome(&mut self) -> RunOutcome {
        match self.failure.take() {
            _ if self.cancelling => RunOutcome::Cancelled,
            Some(message) => RunOutcome::Failed {
                code: Code::TaskFailed,
                message,
            },
            None => RunOutcome::Completed,
        }
    }

    /// Tells an event; `false` if it is not known.
    pub(super) fn follow(&mut self, kind: &str, payload: &Value, out: &mut Out) -> bool {
        match kind {
            "agent_start" => self.does(Activity::Thinking, out),
            "turn_start" => {
                self.close_utterance(out);
                // It goes on: what went wrong before was not the end.
                self.failure = None;
            }
            "turn_end" | "message_end" => self.close_utterance(out),
            "message_start" => {
                self.close_utterance(out);
                let role = payload["role"].as_str();
                if role.is_some_and(|role| role != "assistant") {
                    self.others.insert(text_of(&payload["message_id"]));
                }
            }
            "message_update" => self.say(payload, out),
            "tool_execution_start" => self.begin_tool(payload, out),
            "tool_execution_update" => {
                let output = present(&payload["delta"]);
                self.see_tool(payload, None, output, out);
            }
            "tool_execution_end" => self.end_tool(payload, out),
            "status" => return tell_usage(payload, out),
            "warning" => self.warn(payload, out),
            "error" => {
                let text = words(payload);
                self.blame_tool("failed", &text);
                self.failure = Some(text);
            }
            _ => return false,
        }
        true
    }

    /// What was said up to here is complete.
    pub(super) fn close_utterance(&mut self, out: &mut Out) {
        if std::mem::take(&mut self.speaking) {
            let (run, text) = (self.id, None);
            out.tell(FromAgent::Final { run, text });
        }
    }

    fn does(&mut self, activity: Activity, out: &mut Out) {
        if self.activity.replace(activity) != Some(activity) {
            out.tell(FromAgent::Activity(activity));
        }
    }

    fn say(&mut self, payload: &Value, out: &mut Out) {
        let text = text_of(&payload["delta"]);
        if !text.is_empty() && !self.others.contains(&text_of(&payload["message_id"])) {
            self.speaking = true;
            out.say(self.id, Channel::Text, text);
        }
    }

    fn begin_tool(&mut self, payload: &Value, out: &mut Out) {
        self.close_utterance(out);
        self.using = Some(text_of(&payload["tool_call_id"]));
        self.see_tool(payload, None, None, out);
        self.does(Activity::ExecutingTool, out);
    }

    /// The last output counts: a core sends the whole result after the pieces on the way.
    fn see_tool(
        &mut self,
        payload: &Value,
        status: Option<&str>,
        output: Option<Value>,
        out: &mut Out,
    ) {
        let id = text_of(&payload["tool_call_id"]);
        let name = text_of(&payload["tool_name"]);
        let tool = self.tools.entry(id.clone()).or_insert_with(|| {
            let mut tool = Tool::new(id, name.as_str(), "running");
            tool.kind = kind_of(&name).into();
            tool
        });
        if let Some(status) = status {
            tool.status = status.into();
        }
        if output.is_some() {
            tool.output = output;
        }
        let (run, tool) = (self.id, tool.clone());
        out.tell(FromAgent::Tool { run, tool });
    }

    fn end_tool(&mut self, payload: &Value, out: &mut Out) {
        let id = text_of(&payload["tool_call_id"]);
        self.using.take_if(|using| *using == id);
        let known = self.tools.get(&id).filter(|tool| !tool.is_open());
        // Its end may be known from a warning.
        let status = known.map_or("completed".to_owned(), |tool| tool.status.clone());
        let output = present(&payload["result"]);
        self.see_tool(payload, Some(&status), output, out);
        self.does(Activity::Thinking, out);
    }

    fn warn(&mut self, payload: &Value, out: &mut Out) {
        let text = words(payload);
        match payload["code"].as_str().unwrap_or_default() {
            // It was told to.
            "provider_aborted" if self.cancelling => return,
            "tool_execution_skipped" => self.blame_tool("skipped", &text),
            "tool_blocked" => self.blame_tool("denied", &text),
            "tool_validation_error"
            | "tool_not_found"
            | "tool_not_active"
            | "tool_execution_error" => self.blame_tool("failed", &text),
            _ => {}
        }
        out.notice(Level::Warn, text);
    }

    /// The tool under way will end like this.
    fn blame_tool(&mut self, status: &str, text: &str) {
        let using = self.using.as_ref();
        if let Some(tool) = using.and_then(|using| self.tools.get_mut(using)) {
            tool.status = status.into();
            tool.output = Some(text.into());
        }
    }
}

/// What a person reads of an error or a warning.
pub(super) fn words(payload: &Value) -> String {
    let word = |name: &str| text_of(&payload[name]);
    let text = match word("message") {
        message if message.is_empty() => word("code"),
        message => message,
    };
    match word("cause") {
        _ if text.is_empty() => "It does not say what is wrong.".to_owned(),
        cause if cause.is_empty() => text,
        cause => format!("{text} ({cause})"),
    }
}

/// Tokens are told in the words of a status: `provider_usage: input=1 output=2 total=3`. Other words
/// are only the protocol's own.
fn tell_usage(payload: &Value, out: &mut Out) -> bool {
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
    out.tell(FromAgent::Usage(Usage {
        input,
        output,
        cost,
    }));
    true
}

fn present(value: &Value) -> Option<Value> {
    Some(value.clone()).filter(|value| !value.is_null())
}

/// What its tools do.
fn kind_of(name: &str) -> &'static str {
    match name {
        "bash" => "execute",
        "read" | "ls" => "read",
        "write" | "edit" => "edit",
        "find" | "grep" => "search",
        _ => "other",
    }
}
