//! One run of a runtime, as far as it was seen. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::super::super::talk::FromAgent;
use super::super::{Channel, Level, Out, RunId, text_of};
use super::asking::{Kind, permission_options};
use crate::domain::event::Activity;
use crate::domain::question::{Question, QuestionKind, Severity, ToolUse};
use crate::domain::run::Progress;
use crate::domain::tool::Tool;

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    /// Its name here.
    pub(super) id: RunId,
    /// What it is begun with.
    pub(super) params: Value,
    /// The runtime's name of it, once it began.
    pub(super) native: Option<String>,
    /// The number of the request that is to begin it, while that waits.
    pub(super) started: Option<u64>,
    /// How often it was to begin before.
    pub(super) tries: u8,
    /// Is it to end?
    pub(super) cancelling: bool,
    /// Has it said its last word?
    pub(super) concluded: bool,
    /// The number of its last event.
    pub(super) seq: Option<i64>,
    /// All that was said aloud.
    said: String,
    /// Where the utterance before began in it.
    before: usize,
    /// Where the utterance under way begins in it.
    open: usize,
    tools: BTreeMap<String, Tool>,
    /// The uses of tools that the next questions are about.
    ready: VecDeque<String>,
    /// What each use would change.
    previews: BTreeMap<String, String>,
    denied: BTreeSet<String>,
    activity: Option<Activity>,
}

impl Run {
    /// Nothing was seen of it yet.
    pub(super) fn new(id: RunId, params: Value) -> Self {
        Self {
            id,
            params,
            native: None,
            started: None,
            tries: 0,
            cancelling: false,
            concluded: false,
            seq: None,
            said: String::new(),
            before: 0,
            open: 0,
            tools: BTreeMap::new(),
            ready: VecDeque::new(),
            previews: BTreeMap::new(),
            denied: BTreeSet::new(),
            activity: None,
        }
    }

    /// The agent does something else now.
    pub(super) fn does(&mut self, activity: Activity, out: &mut Out) {
        if self.activity.replace(activity) != Some(activity) {
            out.tell(FromAgent::Activity(activity));
        }
    }

    /// Tells an event; `false` if it is not known.
    pub(super) fn follow(&mut self, event: &Value, out: &mut Out) -> bool {
        match event["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = text_of(&event["content"]);
                self.said.push_str(&text);
                out.say(self.id, Channel::Text, text);
            }
            "reasoning" => out.say(self.id, Channel::Thought, text_of(&event["content"])),
            "final" => self.conclude(&text_of(&event["content"]), out),
            "step_start" => self.begin_step(event, out),
            "step_complete" => self.complete_step(event, out),
            "tool_call" => self.use_tool(event, out),
            "tool_result" => self.tool_done(event, out),
            "permission.preview" => self.preview(event),
            "permission.ready" => self.permission_ready(event, out),
            "llm.retry" => out.notice(Level::Warn, retry(event)),
            "compaction_start" => out.notice(Level::Info, "The agent sums up what was said."),
            "compaction_complete" => {
                if event["compacted"] == true {
                    out.notice(Level::Info, "The agent has summed up what was said.");
                }
            }
            // What the runtime says to itself in the name of the user.
            "hidden_user_message" => {}
            _ => return false,
        }
        true
    }

    /// What was said up to here is complete.
    pub(super) fn close_utterance(&mut self, out: &mut Out) {
        if self.open < self.said.len() {
            self.before = self.open;
            self.open = self.said.len();
            let (run, text) = (self.id, None);
            out.tell(FromAgent::Final { run, text });
        }
    }

    /// The last word. It may be the only one, or repeat what was said before: the utterance under
    /// way, the one before (if a tool ended the run), or everything.
    fn conclude(&mut self, text: &str, out: &mut Out) {
        let current = if self.open < self.said.len() {
            &self.said[self.open..]
        } else {
            &self.said[self.before..]
        };
        let new = !same(text, current) && !same(text, &self.said) && !text.trim().is_empty();
        self.close_utterance(out);
        if new {
            self.said.push_str(text);
            self.before = self.open;
            self.open = self.said.len();
            let (run, text) = (self.id, Some(text.to_owned()));
            out.tell(FromAgent::Final { run, text });
        }
    }

    fn begin_step(&mut self, event: &Value, out: &mut Out) {
        self.close_utterance(out);
        let total = event["step_number"].as_u64().unwrap_or(1).max(1);
        out.tell(FromAgent::Progress {
            run: self.id,
            progress: Progress {
                current: total - 1,
                total,
                description: text_of(&event["title"]),
            },
        });
    }

    /// A step is a use of a tool. One that failed without a result is over, too.
    fn complete_step(&mut self, event: &Value, out: &mut Out) {
        let id = text_of(&event["step_id"]);
        self.asks_no_more(&id);
        let open = self.tools.get_mut(&id);
        if let Some(tool) = open.filter(|tool| tool.is_open()) {
            let failed = event["status"] == "error";
            tool.status = if failed { "failed" } else { "completed" }.into();
            let (run, tool) = (self.id, tool.brief());
            out.tell(FromAgent::Tool { run, tool });
        }
    }

    fn use_tool(&mut self, event: &Value, out: &mut Out) {
        self.close_utterance(out);
        let name = text_of(&event["tool"]);
        let mut tool = Tool::new(text_of(&event["tool_call_id"]), name.as_str(), "running");
        tool.kind = kind_of(&name).into();
        tool.input = Some(event["args"].clone()).filter(|args| !args.is_null());
        if let Some(title) = event["display_name"].as_str() {
            tool.title = title.into();
        }
        self.tools.insert(tool.id.clone(), tool.clone());
        let run = self.id;
        out.tell(FromAgent::Tool { run, tool });
        self.does(Activity::ExecutingTool, out);
    }

    fn tool_done(&mut self, event: &Value, out: &mut Out) {
        let id = text_of(&event["tool_call_id"]);
        self.asks_no_more(&id);
        let failed = event["is_error"] == true;
        let status = match (failed, self.denied.remove(&id)) {
            (false, _) => "completed",
            (true, false) => "failed",
            (true, true) => "denied",
        };
        let mut tool = self.known(&id, &text_of(&event["tool"]));
        tool.status = status.into();
        self.tools.insert(id, tool.clone());
        tool.input = None;
        tool.output = Some(event["result"].clone());
        let run = self.id;
        out.tell(FromAgent::Tool { run, tool });
        self.does(Activity::Thinking, out);
    }

    fn known(&self, id: &str, name: &str) -> Tool {
        self.tools.get(id).cloned().unwrap_or_else(|| {
            let mut tool = Tool::new(id, name, "pending");
            tool.kind = kind_of(name).into();
            tool
        })
    }

    fn preview(&mut self, event: &Value) {
        let parts = ["summary", "diff"].map(|name| text_of(&event[name]));
        let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
        let shown = parts.join("\n\n").trim().to_owned();
        if let Some(id) = self.use_named_by(event) {
            self.previews.insert(id, shown);
        }
    }

    fn permission_ready(&mut self, event: &Value, out: &mut Out) {
        let Some(id) = self.use_named_by(event) else {
            return;
        };
        let mut tool = self.known(&id, &text_of(&event["tool"]));
        tool.status = "pending".into();
        self.tools.insert(id.clone(), tool.clone());
        self.ready.push_back(id);
        let run = self.id;
        out.tell(FromAgent::Tool { run, tool });
    }

    /// No question will be about this use of a tool any more.
    fn asks_no_more(&mut self, id: &str) {
        self.ready.retain(|ready| ready != id);
        self.previews.remove(id);
    }

    /// The use of a tool that the next question is about: one that is over needs no permission.
    fn next_ready(&mut self) -> Option<String> {
        let tools = &self.tools;
        let is_open = |id: &String| tools.get(id).is_some_and(Tool::is_open);
        let place = self.ready.iter().position(is_open)?;
        self.ready.drain(..=place).next_back()
    }

    /// The use of a tool that an event is about: it may name only the tool.
    fn use_named_by(&self, event: &Value) -> Option<String> {
        if let Some(id) = event["tool_call_id"].as_str() {
            return Some(id.to_owned());
        }
        let name = event["tool"].as_str()?;
        let mut open = self.tools.values().rev();
        let tool = open.find(|tool| tool.name == name && tool.is_open())?;
        Some(tool.id.clone())
    }

    /// The question, and the use of a tool that it is about.
    pub(super) fn question(
        &mut self,
        kind: Kind,
        params: &Value,
        out: &mut Out,
    ) -> (Question, Option<String>) {
        let mut question = kind.question(params);
        let tool = match kind {
            Kind::Confirm => self.next_ready(),
            Kind::Prompt | Kind::Pick => None,
        };
        self.does(Activity::WaitingForInput, out);
        let Some(tool) = tool.and_then(|id| self.tools.get(&id)) else {
            return (question, None);
        };
        question.kind = QuestionKind::Permission;
        question.options = permission_options(&question);
        if question.severity == Severity::Warn && is_harmless(&tool.kind) {
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

    /// Somebody said whether a tool may be used.
    pub(super) fn decided(&mut self, id: &str, granted: bool, out: &mut Out) {
        if !granted {
            self.denied.insert(id.to_owned());
            return;
        }
        if let Some(tool) = self.tools.get_mut(id).filter(|tool| tool.is_open()) {
            tool.status = "running".into();
            let (run, tool) = (self.id, tool.brief());
            out.tell(FromAgent::Tool { run, tool });
        }
    }
}

/// Do they say the same, but for spaces?
fn same(one: &str, other: &str) -> bool {
    one.split_whitespace()
        .flat_map(str::chars)
        .eq(other.split_whitespace().flat_map(str::chars))
}

fn retry(event: &Value) -> String {
    let word = |name: &str| match text_of(&event[name]) {
        text if text.is_empty() => "?".to_owned(),
        text => text,
    };
    let seconds = event["delay_ms"]
        .as_u64()
        .unwrap_or_default()
        .div_ceil(1000);
    format!(
        "The model provider `{}` failed ({}); try {} of {} follows in {seconds} s.",
        word("provider"),
        word("failure_kind"),
        word("next_attempt"),
        word("max_attempts"),
    )
}

/// What its tools do.
fn kind_of(name: &str) -> &'static str {
    match name {
        "shell" | "bash" => "execute",
        "read" | "read_line" | "view_image" => "read",
        "write" | "edit" | "apply_patch" => "edit",
        "search" | "grep" | "glob" | "glob_search" | "skill_search" => "search",
        "webfetch" | "web_search" => "fetch",
        _ => "other",
    }
}

fn is_harmless(kind: &str) -> bool {
    matches!(kind, "read" | "search" | "think")
}
