//! The run under way: what is said, thought and used in it, and whether it is over.
//!
//! The end of pi's loop is not the end of the run: it may try again, or sum up the conversation first.
//! So after each end it is asked whether it is idle.

use serde_json::Value;

use super::super::{FromAgent, Out, text_of};
use super::PROTOCOL;
use super::tool::Tools;
use crate::domain::code::Code;
use crate::domain::event::{Channel, Level};
use crate::domain::id::RunId;
use crate::domain::run::{RunOutcome, Usage};
use crate::domain::tool::Tool;

/// The events that are pieces of a run.
pub(super) const EVENTS: &[&str] = &[
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
    // As they were called before.
    "auto_compaction_start",
    "auto_compaction_end",
    "auto_retry_start",
    "auto_retry_end",
];

/// What is to be done after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Nothing,
    /// Ask whether it is idle.
    Look,
    /// Tell it to stop.
    Abort,
}

/// What pi does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// Nothing that we know of.
    Nothing,
    /// Its loop runs.
    Working,
    /// It will begin again by itself.
    Waiting,
    /// It sums up the conversation.
    Compacting,
}

/// A run.
#[derive(Debug)]
pub(super) struct Run {
    /// Its name.
    pub(super) id: RunId,
    /// Was it told that pi works on it?
    pub(super) accepted: bool,
    /// Somebody wants it to stop.
    pub(super) cancelled: bool,
    /// So often pi was asked in vain whether it is idle.
    pub(super) unclear: u8,
    doing: Doing,
    /// How the last message ended, if not well.
    bad_end: Option<BadEnd>,
    heard: Heard,
    tools: Tools,
}

/// What came in pieces.
#[derive(Debug, Default)]
struct Heard {
    /// Something was said, and the utterance is not complete.
    speech: bool,
    /// Something was thought in this message.
    thought: bool,
}

#[derive(Debug)]
enum BadEnd {
    Aborted,
    Failed(String),
}

impl Run {
    /// A run that was not taken yet.
    pub(super) fn new(id: RunId) -> Self {
        Self {
            id,
            accepted: false,
            cancelled: false,
            unclear: 0,
            doing: Doing::Nothing,
            bad_end: None,
            heard: Heard::default(),
            tools: Tools::default(),
        }
    }

    /// Is something to come of it without being asked?
    pub(super) fn is_busy(&self) -> bool {
        self.doing != Doing::Nothing
    }

    /// A piece of it. `window` is how much the model can read at all.
    pub(super) fn read(
        &mut self,
        kind: &str,
        event: &Value,
        window: Option<u64>,
        out: &mut Out,
    ) -> Next {
        match kind {
            "agent_start" => return self.began(out),
            "agent_end" => return self.paused(event),
            "message_start" => self.heard.thought = false,
            "message_update" => self.update(&event["assistantMessageEvent"], out),
            "message_end" => self.message(&event["message"], window, out),
            "tool_execution_start" => {
                let tool = self.tools.started(event);
                self.tell(tool, out);
            }
            "tool_execution_update" => {
                let tool = self.tools.wrote(event);
                self.tell(tool, out);
            }
            "tool_execution_end" => {
                let tool = self.tools.ended(event, self.cancelled);
                self.tell(tool, out);
            }
            "compaction_start" | "auto_compaction_start" => {
                self.doing = Doing::Compacting;
                out.notice(
                    Level::Info,
                    "The agent sums up the conversation to make room.",
                );
            }
            "compaction_end" | "auto_compaction_end" => return self.compacted(event, out),
            "auto_retry_start" => {
                self.doing = Doing::Waiting;
                out.notice(Level::Info, retry(event));
            }
            "auto_retry_end" if event["success"] != true => {
                self.doing = Doing::Nothing;
                return Next::Look;
            }
            _ => {}
        }
        Next::Nothing
    }

    fn tell(&self, tool: Option<Tool>, out: &mut Out) {
        if let Some(tool) = tool {
            out.tell(FromAgent::Tool { run: self.id, tool });
        }
    }

    fn began(&mut self, out: &mut Out) -> Next {
        self.doing = Doing::Working;
        self.bad_end = None;
        if self.heard.speech {
            // The message that failed is said again from the start.
            self.heard.speech = false;
            out.tell(FromAgent::Withdrawn { run: self.id });
        }
        // What was told to stop before it had begun has not heard it.
        if self.cancelled {
            Next::Abort
        } else {
            Next::Nothing
        }
    }

    fn paused(&mut self, event: &Value) -> Next {
        self.doing = Doing::Nothing;
        let messages = event["messages"].as_array().into_iter().flatten();
        let last = messages
            .rev()
            .find(|message| message["role"] == "assistant");
        if let Some(last) = last {
            self.bad_end = bad_end(last);
        }
        Next::Look
    }

    fn compacted(&mut self, event: &Value, out: &mut Out) -> Next {
        if let Some(error) = event["errorMessage"].as_str() {
            out.notice(Level::Warn, error);
        }
        if event["willRetry"] == true {
            self.doing = Doing::Waiting;
            return Next::Nothing;
        }
        self.doing = Doing::Nothing;
        // Before the prompt is taken, its turn is still to come.
        if self.accepted {
            Next::Look
        } else {
            Next::Nothing
        }
    }

    fn update(&mut self, update: &Value, out: &mut Out) {
        let delta = || text_of(&update["delta"]);
        match update["type"].as_str() {
            Some("text_delta") => {
                self.heard.speech |= !delta().is_empty();
                out.say(self.id, Channel::Text, delta());
            }
            Some("thinking_delta") => {
                self.heard.thought |= !delta().is_empty();
                out.say(self.id, Channel::Thought, delta());
            }
            Some("toolcall_end") => {
                let tool = self.tools.wanted(&update["toolCall"]);
                self.tell(tool, out);
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &Value, window: Option<u64>, out: &mut Out) {
        if message["role"] == "custom" && message["display"] == true {
            return out.raw(PROTOCOL.name, message.clone());
        }
        if message["role"] != "assistant" {
            return;
        }
        if !self.heard.thought {
            out.say(self.id, Channel::Thought, parts(message, "thinking"));
        }
        self.bad_end = bad_end(message);
        if !matches!(self.bad_end, Some(BadEnd::Failed(_))) {
            self.spoke(parts(message, "text"), out);
        }
        measure(&message["usage"], window, out);
    }

    fn spoke(&mut self, text: String, out: &mut Out) {
        let text = (!self.heard.speech).then_some(text);
        self.heard.speech = false;
        if text.as_ref().is_none_or(|text| !text.is_empty()) {
            out.tell(FromAgent::Final { run: self.id, text });
        }
    }

    /// The prompt was not taken.
    pub(super) fn refuse(mut self, error: &str, agent: &str, out: &mut Out) {
        self.bad_end = Some(BadEnd::Failed(error.to_owned()));
        self.end(agent, out);
    }

    /// It is over.
    pub(super) fn end(mut self, agent: &str, out: &mut Out) {
        if self.heard.speech {
            self.spoke(String::new(), out);
        }
        let outcome = match self.bad_end {
            _ if self.cancelled => RunOutcome::Cancelled,
            Some(BadEnd::Aborted) => RunOutcome::Cancelled,
            Some(BadEnd::Failed(error)) => RunOutcome::Failed {
                code: Code::TaskFailed,
                message: complaint(&error, agent),
            },
            None => RunOutcome::Completed,
        };
        out.end(self.id, outcome, None);
    }
}

/// What a person reads of a failure. What pi says about missing keys names files of its installation.
fn complaint(error: &str, agent: &str) -> String {
    let keyless = ["No API key", "No model selected", "/login"];
    if keyless.iter().any(|words| error.contains(words)) {
        return format!(
            "The agent `{agent}` has no access to a model: give it the API key of a provider in its \
             environment, or log in with `pi` as the user that it runs as."
        );
    }
    format!("The agent `{agent}`: {error}")
}

fn bad_end(message: &Value) -> Option<BadEnd> {
    match message["stopReason"].as_str() {
        Some("aborted") => Some(BadEnd::Aborted),
        Some("error") => {
            let error = message["errorMessage"].as_str();
            let error = error.unwrap_or("The model has failed.");
            Some(BadEnd::Failed(error.to_owned()))
        }
        _ => None,
    }
}

/// All parts of a message of this kind; they have their text under the name of their kind.
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

/// Tells what a message has used, and how much of the context is left.
fn measure(counts: &Value, window: Option<u64>, out: &mut Out) {
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
    out.tell(FromAgent::Usage(usage));
    if let Some(window @ 1..) = window {
        let left = u128::from(window.saturating_sub(usage.total())) * 100 / u128::from(window);
        out.tell(FromAgent::ContextLeft(u8::try_from(left).unwrap_or(100)));
    }
}
