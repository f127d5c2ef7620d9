//! Messages of a task: text, thoughts, tools and asks.

use serde_json::Value;

use super::ask::Ask;
use super::message_buffer::MessageSnapshot;
use super::{PROTOCOL, Roo, TaskState, timer, tool};
use crate::domain::event::{Channel, Level};
use crate::domain::run::RunOutcome;
use crate::runtime::dialect::Actions;
use crate::runtime::messages::FromAgent;

struct Message<'a> {
    task: &'a str,
    ts: u64,
    text: &'a str,
    partial: bool,
    whole: &'a Value,
}

impl Message<'_> {
    fn snapshot(&self) -> MessageSnapshot<'_> {
        MessageSnapshot {
            task: self.task,
            ts: self.ts,
            text: self.text,
            partial: self.partial,
        }
    }
}

impl Roo {
    pub(super) fn handle_message(&mut self, task: &str, whole: &Value, out: &mut Actions) {
        let Some(ts) = whole["ts"].as_u64() else {
            return out.unexpected("a message without a time");
        };
        let message = Message {
            task,
            ts,
            text: whole["text"].as_str().unwrap_or_default(),
            partial: whole["partial"] == true,
            whole,
        };
        let is_new = ts > self.latest_ts;
        self.latest_ts = self.latest_ts.max(ts);
        match (whole["type"].as_str(), &whole["ask"], &whole["say"]) {
            (Some("ask"), Value::String(ask), _) => self.handle_ask(ask, &message, out),
            (Some("say"), _, Value::String(say)) => self.handle_say(say, &message, is_new, out),
            _ => out.unexpected("a message that neither says nor asks"),
        }
    }

    fn handle_say(&mut self, say: &str, message: &Message<'_>, is_new: bool, out: &mut Actions) {
        if matches!(say, "api_req_started" | "user_feedback") {
            // The task works itself, so no subtask runs.
            self.delegating = false;
        }
        let Some(current) = self.run.as_mut().filter(|current| current.is_sent()) else {
            if is_new {
                out.unexpected(format!("`{say:.64}` without a run"));
            }
            return;
        };
        if say == "text" && current.echo.as_deref().map(str::trim) == Some(message.text.trim()) {
            current.echo = None;
            return;
        }
        self.accept_prompt(out);
        let Some(current) = &mut self.run else { return };
        if is_new && !continues_tool(say) {
            current.set_tool_status("completed", out);
        }
        let messages = &mut current.messages;
        let is_first = is_new && !message.text.is_empty();
        match say {
            "text" | "completion_result" => {
                messages.update(Channel::Text, &message.snapshot(), out);
            }
            "reasoning" => messages.update(Channel::Thought, &message.snapshot(), out),
            "command_output" if message.partial => current.grow_tool_output(message.text, out),
            "command_output" => current.set_tool_output("running", message.text, out),
            "mcp_server_response" => current.set_tool_output("completed", message.text, out),
            "error" | "diff_error" | "rooignore_error" if is_first => {
                out.emit_notice(Level::Error, message.text);
            }
            "api_req_retry_delayed"
            | "condense_context_error"
            | "shell_integration_warning"
            | "too_many_tools_warning"
                if is_first =>
            {
                out.emit_notice(Level::Warn, message.text);
            }
            // Known and not shown, or reported already.
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
            _ => out.emit_raw(PROTOCOL.name, message.whole.clone()),
        }
    }

    fn handle_ask(&mut self, ask: &str, message: &Message<'_>, out: &mut Actions) {
        if matches!(ask, "resume_task" | "resume_completed_task") {
            return self.task_resumed(out);
        }
        let Some(current) = self.run.as_mut().filter(|current| current.is_sent()) else {
            return;
        };
        // Asks grow, too, and are repeated after their answer.
        if message.partial || message.ts <= current.last_ask_ts || ask == "command_output" {
            return;
        }
        self.delegating = false;
        current.last_ask_ts = message.ts;
        current.settle_ask(out);
        current.ask = Some(Ask {
            ts: message.ts,
            kind: ask.to_owned(),
            text: message.text.to_owned(),
            protected: message.whole["isProtected"] == true,
            is_reported: false,
        });
        self.accept_prompt(out);
        match ask {
            "completion_result" if self.task.as_deref() == Some(message.task) => {
                self.end_run(RunOutcome::Completed, None, out);
            }
            "command" | "tool" | "use_mcp_server" => self.handle_tool_ask(ask, message, out),
            _ => {}
        }
    }

    fn handle_tool_ask(&mut self, ask: &str, message: &Message<'_>, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        let input = tool::parsed(message.text);
        if ask == "tool" {
            if let Some(steps) = tool::plan(&input) {
                current.set_tool_status("completed", out);
                return out.emit(FromAgent::PlanUpdated(steps));
            }
            if input["tool"] == "newTask" {
                self.delegating = true;
            }
        }
        current.messages.finish(out);
        let tool = tool::of_ask(message.ts.to_string(), ask, message.text);
        current.start_tool(tool, out);
    }

    /// The task is back and waits for a message.
    fn task_resumed(&mut self, out: &mut Actions) {
        self.task_state = TaskState::Open;
        out.clear_timer(timer::RESUME);
        if self.run.as_ref().is_some_and(|current| !current.is_sent()) {
            self.send_prompt(out);
        }
    }
}

/// These messages leave the current tool running.
fn continues_tool(say: &str) -> bool {
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
