//! The messages of a task: what it says, thinks, uses and asks.

use serde_json::Value;

use super::ask::Ask;
use super::speech::Said;
use super::{PROTOCOL, Roo, Standing, timer, tool};
use crate::domain::event::{Channel, Level};
use crate::domain::run::RunOutcome;
use crate::runtime::dialect::{Act, Out};
use crate::runtime::talk::FromAgent;

/// A message of a task, as it is at the moment.
struct Message<'a> {
    task: &'a str,
    at: u64,
    text: &'a str,
    partial: bool,
    whole: &'a Value,
}

impl Message<'_> {
    fn said(&self) -> Said<'_> {
        Said {
            task: self.task,
            at: self.at,
            text: self.text,
            partial: self.partial,
        }
    }
}

impl Roo {
    /// Reads a message of one of our tasks.
    pub(super) fn task_message(&mut self, task: &str, whole: &Value, out: &mut Out) {
        let Some(at) = whole["ts"].as_u64() else {
            return out.act(Act::Odd("a message without a time".into()));
        };
        let message = Message {
            task,
            at,
            text: whole["text"].as_str().unwrap_or_default(),
            partial: whole["partial"] == true,
            whole,
        };
        let is_new = at > self.latest;
        self.latest = self.latest.max(at);
        match (whole["type"].as_str(), &whole["ask"], &whole["say"]) {
            (Some("ask"), Value::String(ask), _) => self.asks(ask, &message, out),
            (Some("say"), _, Value::String(say)) => self.says(say, &message, is_new, out),
            _ => out.act(Act::Odd("a message that neither says nor asks".into())),
        }
    }

    fn says(&mut self, say: &str, message: &Message<'_>, is_new: bool, out: &mut Out) {
        if matches!(say, "api_req_started" | "user_feedback") {
            // It goes on by itself, so it has not handed over.
            self.delegating = false;
        }
        let Some(work) = self.work.as_mut().filter(|work| work.is_sent()) else {
            if is_new {
                out.act(Act::Odd(format!("`{say:.64}` without a run")));
            }
            return;
        };
        if say == "text" && work.echo.as_deref().map(str::trim) == Some(message.text.trim()) {
            work.echo = None;
            return;
        }
        self.accepted(out);
        let Some(work) = &mut self.work else { return };
        if is_new && !goes_with_a_tool(say) {
            work.tool_is("completed", out);
        }
        let once = is_new && !message.text.is_empty();
        match say {
            "text" | "completion_result" => work.speech.hear(Channel::Text, &message.said(), out),
            "reasoning" => work.speech.hear(Channel::Thought, &message.said(), out),
            "command_output" if message.partial => work.tool_grows(message.text, out),
            "command_output" => work.tool_said("running", message.text, out),
            "mcp_server_response" => work.tool_said("completed", message.text, out),
            "error" | "diff_error" | "rooignore_error" if once => {
                out.notice(Level::Error, message.text);
            }
            "api_req_retry_delayed"
            | "condense_context_error"
            | "shell_integration_warning"
            | "too_many_tools_warning"
                if once =>
            {
                out.notice(Level::Warn, message.text);
            }
            // Known, and of no use to anybody, or told already.
            "error"
            | "diff_error"
            | "rooignore_error"
            | "api_req_retry_delayed"
            | "condense_context_error"
            | "shell_integration_warning"
            | "too_many_tools_warning"
            | "api_req_started"
            | "api_req_finished"
            | "api_req_retried"
            | "api_req_deleted"
            | "api_req_rate_limit_wait"
            | "checkpoint_saved"
            | "user_feedback"
            | "user_feedback_diff"
            | "mcp_server_request_started" => {}
            _ if message.partial => {}
            _ => out.raw(PROTOCOL.name, message.whole.clone()),
        }
    }

    fn asks(&mut self, ask: &str, message: &Message<'_>, out: &mut Out) {
        if matches!(ask, "resume_task" | "resume_completed_task") {
            return self.is_back(out);
        }
        let Some(work) = self.work.as_mut().filter(|work| work.is_sent()) else {
            return;
        };
        // What is asked grows, too, and is repeated when it was answered.
        if message.partial || message.at <= work.asked_at || ask == "command_output" {
            return;
        }
        self.delegating = false;
        work.asked_at = message.at;
        work.settle(out);
        work.ask = Some(Ask {
            at: message.at,
            kind: ask.to_owned(),
            text: message.text.to_owned(),
            protected: message.whole["isProtected"] == true,
            told: false,
        });
        self.accepted(out);
        match ask {
            "completion_result" if self.task.as_deref() == Some(message.task) => {
                self.end(RunOutcome::Completed, None, out);
            }
            "command" | "tool" | "use_mcp_server" => self.wants_tool(ask, message, out),
            _ => {}
        }
    }

    fn wants_tool(&mut self, ask: &str, message: &Message<'_>, out: &mut Out) {
        let Some(work) = &mut self.work else { return };
        let input = tool::parsed(message.text);
        if ask == "tool" {
            if let Some(steps) = tool::plan(&input) {
                work.tool_is("completed", out);
                return out.tell(FromAgent::Plan(steps));
            }
            if input["tool"] == "newTask" {
                self.delegating = true;
            }
        }
        work.speech.finish(out);
        let tool = tool::of_ask(message.at.to_string(), ask, message.text);
        work.use_tool(tool, out);
    }

    /// The task is there again and waits for a message.
    fn is_back(&mut self, out: &mut Out) {
        self.standing = Standing::Open;
        out.no_timer(timer::WAKE);
        if self.work.as_ref().is_some_and(|work| !work.is_sent()) {
            self.speak(out);
        }
    }
}

/// These do not end the use of a tool.
fn goes_with_a_tool(say: &str) -> bool {
    matches!(
        say,
        "command_output"
            | "mcp_server_request_started"
            | "mcp_server_response"
            | "checkpoint_saved"
            | "shell_integration_warning"
            | "error"
            | "diff_error"
            | "rooignore_error"
    )
}
