//! The turn under way: what is said, thought and used in it, until its end.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::{Act, FromAgent, Out, text_of};
use super::item::{self, Seen};
use super::{PROTOCOL, events};
use crate::domain::code::Code;
use crate::domain::event::{Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::RunOutcome;
use crate::domain::tool::Tool;

/// What is of no use to a client, or is seen elsewhere.
pub(super) const IGNORED: &[&str] = &[
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

/// What a command has written is told again after so many bytes: each time it is told from the start.
const OUTPUT_STEP: usize = 2048;

/// So much of the end of it is told while the command runs; all of it comes when it is done.
const OUTPUT_TAIL: usize = 8192;

/// A tool whose end is to come.
struct Open {
    tool: Tool,
    written: String,
    untold: usize,
}

/// How far a prompt has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is not written yet.
    Prepared,
    /// It is written.
    HandedOver,
    /// The agent works on it, and that was told.
    Accepted,
}

/// Shall a turn stop?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// No.
    No,
    /// Somebody wants that.
    Wanted,
    /// The agent was told.
    Told,
}

/// A turn.
pub(super) struct Turn {
    /// The run that it is to us.
    pub(super) run: RunId,
    /// Its name, once the agent has told it.
    pub(super) id: Option<String>,
    /// How far the prompt has come.
    pub(super) stage: Stage,
    /// Shall it stop?
    pub(super) stop: Stop,
    /// What was said to it before it had a name.
    pub(super) unsaid: Vec<String>,
    /// The item that is being said.
    speaking: Option<String>,
    /// The item that was thought last.
    thinking: Option<String>,
    /// Was anything said?
    said: bool,
    tools: HashMap<String, Open>,
    /// What went wrong, if the end does not say it.
    error: Option<String>,
}

impl Turn {
    /// A turn that was not begun yet.
    pub(super) fn new(run: RunId) -> Self {
        Self {
            run,
            id: None,
            stage: Stage::Prepared,
            stop: Stop::No,
            unsaid: Vec::new(),
            speaking: None,
            thinking: None,
            said: false,
            tools: HashMap::new(),
            error: None,
        }
    }

    /// Is this its name?
    pub(super) fn is(&self, id: Option<&str>) -> bool {
        self.id.is_some() && self.id.as_deref() == id
    }

    /// Is a turn that begins now this one?
    pub(super) fn waits_for_name(&self) -> bool {
        self.stage == Stage::HandedOver && self.id.is_none()
    }

    /// May this turn ask? Some questions do not say in which turn they arose.
    pub(super) fn may_ask(&self, id: Option<&str>) -> bool {
        id.is_none() || self.is(id)
    }

    /// The changes to files that an item is about.
    pub(super) fn input_of(&self, item: &str) -> Option<&Value> {
        self.tools.get(item)?.tool.input.as_ref()
    }

    /// A piece of it.
    pub(super) fn read(&mut self, method: &str, params: &Value, out: &mut Out) {
        let item = || text_of(&params["itemId"]);
        let delta = || text_of(&params["delta"]);
        match method {
            "item/agentMessage/delta" | "item/plan/delta" => self.speak(item(), delta(), out),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.thinking = Some(item());
                out.say(self.run, Channel::Thought, delta());
            }
            "item/reasoning/summaryPartAdded" => {
                if params["summaryIndex"].as_u64() > Some(0) {
                    out.say(self.run, Channel::Thought, "\n\n");
                }
            }
            "item/commandExecution/outputDelta" => self.wrote(&item(), &delta(), out),
            "item/fileChange/patchUpdated" => self.patched(&item(), &params["changes"], out),
            "item/started" => self.item(&params["item"], Sight::First, out),
            "item/completed" => self.item(&params["item"], Sight::Last, out),
            "error" => self.erred(params, out),
            "item/fileChange/outputDelta"
            | "item/mcpToolCall/progress"
            | "item/commandExecution/terminalInteraction" => {}
            _ => out.raw(PROTOCOL.name, json!({ "method": method, "params": params })),
        }
    }

    fn speak(&mut self, item: String, text: String, out: &mut Out) {
        if text.is_empty() {
            return;
        }
        if self.speaking.as_ref().is_some_and(|other| *other != item) {
            self.fall_silent(out);
        }
        self.speaking = Some(item);
        self.said = true;
        out.say(self.run, Channel::Text, text);
    }

    fn fall_silent(&mut self, out: &mut Out) {
        if self.speaking.take().is_some() {
            let (run, text) = (self.run, None);
            out.tell(FromAgent::Final { run, text });
        }
    }

    fn wrote(&mut self, item: &str, text: &str, out: &mut Out) {
        let Some(open) = self.tools.get_mut(item) else {
            let item = events::shortened(item);
            return out.act(Act::Odd(format!("output of {item}, which does not run")));
        };
        let first = open.written.is_empty();
        open.written.push_str(text);
        open.untold += text.len();
        let surplus = open.written.len().saturating_sub(OUTPUT_TAIL);
        let surplus = open.written.ceil_char_boundary(surplus);
        open.written.drain(..surplus);
        if first || open.untold >= OUTPUT_STEP {
            open.untold = 0;
            let tool = Tool {
                output: Some(json!({ "output": open.written })),
                ..open.tool.brief()
            };
            let run = self.run;
            out.tell(FromAgent::Tool { run, tool });
        }
    }

    fn patched(&mut self, item: &str, changes: &Value, out: &mut Out) {
        if let Some(open) = self.tools.get_mut(item) {
            open.tool.title = item::files(changes);
            open.tool.input = Some(json!({ "changes": changes }));
            let (run, tool) = (self.run, open.tool.clone());
            out.tell(FromAgent::Tool { run, tool });
        }
    }

    fn item(&mut self, item: &Value, sight: Sight, out: &mut Out) {
        let id = text_of(&item["id"]);
        match item::look(item) {
            Seen::Tool(tool) => self.tool(tool, sight, out),
            Seen::Speech(text) if sight == Sight::Last => self.spoke(&id, text, out),
            Seen::Thought(text) if sight == Sight::Last => {
                if self.thinking.take().as_ref() != Some(&id) {
                    out.say(self.run, Channel::Thought, text);
                }
            }
            Seen::Compaction if sight == Sight::Last => out.notice(
                Level::Info,
                "The agent has summed up the conversation to make room.",
            ),
            Seen::Unknown => out.raw(PROTOCOL.name, json!({ "item": item })),
            Seen::Speech(_) | Seen::Thought(_) | Seen::Compaction | Seen::Nothing => {}
        }
    }

    fn spoke(&mut self, item: &str, text: String, out: &mut Out) {
        if self.speaking.as_deref() == Some(item) {
            return self.fall_silent(out);
        }
        self.fall_silent(out);
        if !text.is_empty() {
            self.said = true;
            let (run, text) = (self.run, Some(text));
            out.tell(FromAgent::Final { run, text });
        }
    }

    fn tool(&mut self, mut tool: Tool, sight: Sight, out: &mut Out) {
        match sight {
            Sight::First => {
                let open = Open {
                    tool: tool.clone(),
                    written: String::new(),
                    untold: 0,
                };
                self.tools.insert(tool.id.clone(), open);
            }
            Sight::Last => {
                self.tools.remove(&tool.id);
                if tool.is_open() {
                    // Some kinds of items have no status of their own.
                    tool.status = "completed".into();
                }
            }
        }
        let run = self.run;
        out.tell(FromAgent::Tool { run, tool });
    }

    fn erred(&mut self, params: &Value, out: &mut Out) {
        let message = text_of(&params["error"]["message"]);
        if params["willRetry"] == true {
            // What was begun is said again from the start, as another item.
            if self.speaking.take().is_some() {
                out.tell(FromAgent::Withdrawn { run: self.run });
            }
            return out.notice(Level::Info, message);
        }
        self.error = Some(message);
    }

    /// It could not begin.
    pub(super) fn fail(self, message: String, out: &mut Out) {
        if self.stop == Stop::No {
            out.fail_run(self.run, Code::TaskFailed, message);
        } else {
            out.end(self.run, RunOutcome::Cancelled, None);
        }
    }

    /// It is over. `login` is what is said of a failure if the agent is not logged in.
    pub(super) fn end(mut self, turn: &Value, login: Option<String>, agent: &str, out: &mut Out) {
        self.fall_silent(out);
        if !self.said {
            self.repeat(&turn["items"], out);
        }
        let interrupted = turn["status"] == "interrupted";
        let outcome = if self.stop != Stop::No || interrupted {
            RunOutcome::Cancelled
        } else if turn["status"] == "failed" {
            let error = turn["error"]["message"].as_str().map(str::to_owned);
            let error = error.or(self.error).unwrap_or("The turn failed.".into());
            let message = login.unwrap_or_else(|| format!("The agent `{agent}`: {error}"));
            let code = Code::TaskFailed;
            RunOutcome::Failed { code, message }
        } else {
            RunOutcome::Completed
        };
        out.end(self.run, outcome, None);
    }

    /// The end repeats the last thing that was said, for those who have heard nothing.
    fn repeat(&mut self, items: &Value, out: &mut Out) {
        let mut items = items.as_array().into_iter().flatten();
        let last = items.rfind(|item| item["type"] == "agentMessage");
        if let Some(Seen::Speech(text)) = last.map(item::look) {
            self.spoke("", text, out);
        }
    }
}

/// Which sight of an item it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    First,
    Last,
}

/// Does the agent lack a login?
pub(super) fn is_unauthorized(error: &Value) -> bool {
    let info = &error["codexErrorInfo"];
    let status = |fields: &Value| fields["httpStatusCode"] == 401;
    info == "unauthorized"
        || info
            .as_object()
            .is_some_and(|kinds| kinds.values().any(status))
}
