//! Events of the CLI.

use std::time::Duration;

use serde_json::Value;

use super::{Cli, CliRun, timer};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Channel, Level};
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::roo::ask::Ask;
use crate::runtime::dialect::roo::message_buffer::MessageSnapshot;
use crate::runtime::dialect::roo::{PROTOCOL, tool};
use crate::runtime::dialect::{Actions, text_of};
use crate::runtime::messages::FromAgent;

/// The CLI picks its first suggestion after 60 s; our answer must come before.
const FOLLOWUP_TIMEOUT: Duration = Duration::from_secs(55);

impl Cli {
    pub(super) fn handle_event(&mut self, event: &Value, out: &mut Actions) {
        let Some(kind) = event["type"].as_str() else {
            return out.unexpected("an event without a type");
        };
        match kind {
            "system" => self.handshake_done(out),
            "control" => self.handle_control(event, out),
            // The gateway has its own queue and knows the prompts.
            "queue" | "user" => {}
            "assistant" | "thinking" | "tool_use" | "tool_result" | "error" | "result" => {
                self.handle_run_event(kind, event, out);
            }
            _ => out.emit_raw(PROTOCOL.name, event.clone()),
        }
    }

    fn handle_control(&mut self, event: &Value, out: &mut Actions) {
        self.handshake_done(out);
        let request = event["requestId"].as_str();
        let Some(current) = &mut self.run else { return };
        let is_cancel = request.is_some() && current.cancel_request.as_deref() == request;
        if !is_cancel && !current.owns_request(request) {
            return self.drop_stray(request, out);
        }
        match event["subtype"].as_str() {
            Some("ack") if !is_cancel => self.handle_ack(event, out),
            Some("done") if is_cancel => {
                current.is_stopping = true;
                if event["code"] == "no_active_task" {
                    self.end_run(RunOutcome::Cancelled, None, out);
                }
            }
            Some("done") if event["command"] == "start" => self.handle_done(event, out),
            Some("error") if !is_cancel => self.handle_refusal(event, out),
            _ => {}
        }
    }

    /// Late events are dropped silently; ids that were never sent are counted.
    fn drop_stray(&self, request: Option<&str>, out: &mut Actions) {
        let was_sent = |request: &&str| {
            let number = request.parse().ok();
            number.is_some_and(|number: u64| (1..=self.request_count).contains(&number))
        };
        if let Some(foreign) = request.filter(|request| !was_sent(request)) {
            out.misrouted(format!("request `{foreign:.64}`"));
        }
    }

    fn handle_ack(&mut self, event: &Value, out: &mut Actions) {
        self.has_task = true;
        let thread = event["taskId"].as_str();
        if let Some(thread) = thread.filter(|thread| self.thread.as_deref() != Some(*thread)) {
            self.thread = Some(thread.to_owned());
            out.emit(FromAgent::Thread(thread.to_owned()));
        }
        if let Some(current) = &mut self.run
            && current.run.accept()
        {
            out.clear_timer(timer::ACCEPT);
            out.emit(FromAgent::RunAccepted {
                run: current.run.id,
            });
        }
    }

    /// The end of a task that sent no `result`.
    fn handle_done(&mut self, event: &Value, out: &mut Actions) {
        if event["success"] == true {
            self.end_run(RunOutcome::Completed, None, out);
        } else if event["code"] == "task_aborted" {
            self.end_run(RunOutcome::Cancelled, None, out);
        } else {
            self.fail_run(text_or_default(event), out);
        }
    }

    fn handle_refusal(&mut self, event: &Value, out: &mut Actions) {
        if event["code"] == "no_active_task" && self.has_task {
            // The task is gone: the prompt starts a new one.
            self.has_task = false;
            if let Some(current) = self.run.take_if(|current| !current.run.cancelled) {
                out.notice_fresh_start(&self.setup.agent);
                return self.send_prompt(current.run, out);
            }
        }
        self.fail_run(text_or_default(event), out);
    }

    fn handle_run_event(&mut self, kind: &str, event: &Value, out: &mut Actions) {
        let request = event["requestId"].as_str();
        let Some(current) = &mut self.run else {
            return match request {
                // A late event of an ended run.
                Some(_) => {}
                None => out.unexpected(format!("`{kind}` without a run")),
            };
        };
        let is_cancel = request.is_some() && current.cancel_request.as_deref() == request;
        if request.is_some() && !is_cancel && !current.owns_request(request) {
            return self.drop_stray(request, out);
        }
        let ts = event["id"].as_u64();
        let is_new = ts.is_none_or(|ts| ts > self.latest_ts);
        let ts = ts.unwrap_or(self.latest_ts.saturating_add(1));
        self.latest_ts = self.latest_ts.max(ts);
        if is_new {
            // The run continues: its question is settled.
            current.run.settle_ask(out);
            if kind != "tool_result" {
                current.run.set_tool_status("completed", out);
            }
        }
        match kind {
            "assistant" => self.handle_assistant(ts, event, out),
            "thinking" => current.stream(Channel::Thought, ts, event, out),
            "tool_use" => current.handle_tool_use(ts, event, out),
            "tool_result" => current.handle_tool_result(event, out),
            "error" => out.emit_notice(Level::Error, text_or_default(event)),
            _ => self.handle_result(event, out),
        }
    }

    fn handle_assistant(&mut self, ts: u64, event: &Value, out: &mut Actions) {
        let Some(current) = &mut self.run else { return };
        let is_done = event["done"] == true;
        match event["subtype"].as_str() {
            None => current.stream(Channel::Text, ts, event, out),
            Some(_) if !is_done => {}
            Some("followup") => current.ask_followup(ts, event, out),
            Some("api_req_failed" | "mistake_limit_reached" | "auto_approval_max_req_reached") => {
                out.emit_notice(Level::Warn, text_or_default(event));
            }
            Some(_) => out.emit_raw(PROTOCOL.name, event.clone()),
        }
    }

    fn handle_result(&mut self, event: &Value, out: &mut Actions) {
        let usage = usage_of(&event["cost"]);
        if event["success"] != true {
            let (code, message) = (ErrorCode::TaskFailed, text_or_default(event));
            return self.end_run(RunOutcome::Failed { code, message }, usage, out);
        }
        if let Some(current) = &mut self.run {
            current.run.messages.finish(out);
            // A result without text of its own repeats the last message.
            let text = event["content"].as_str().filter(|text| !text.is_empty());
            let new = text.filter(|text| current.last_text.as_deref() != Some(*text));
            if let Some(text) = new {
                let (run, text) = (current.run.id, Some(text.to_owned()));
                out.emit(FromAgent::MessageFinal { run, text });
            }
        }
        self.end_run(RunOutcome::Completed, usage, out);
    }
}

impl CliRun {
    fn owns_request(&self, request: Option<&str>) -> bool {
        let mut requests = self.requests.iter();
        requests.any(|known| Some(known.as_str()) == request)
    }

    /// Pieces are increments; the last event repeats the whole text.
    fn stream(&mut self, channel: Channel, ts: u64, event: &Value, out: &mut Actions) {
        let (messages, content) = (&mut self.run.messages, event["content"].as_str());
        if event["done"] != true {
            return messages.append(channel, ts, content.unwrap_or_default(), out);
        }
        let whole = content.map_or_else(|| messages.reported(channel, ts), str::to_owned);
        let snapshot = MessageSnapshot {
            task: "",
            ts,
            text: &whole,
            partial: false,
        };
        messages.update(channel, &snapshot, out);
        if channel == Channel::Text {
            self.last_text = Some(whole);
        }
    }

    fn ask_followup(&mut self, ts: u64, event: &Value, out: &mut Actions) {
        let ask = Ask {
            ts,
            kind: "followup".into(),
            text: text_of(&event["content"]),
            protected: false,
            is_reported: true,
        };
        out.emit(FromAgent::QuestionAsked {
            run: self.run.id,
            question: ask.name(),
            content: Box::new(ask.question()),
            timeout: Some(FOLLOWUP_TIMEOUT),
        });
        self.run.ask = Some(ask);
    }

    fn handle_tool_use(&mut self, ts: u64, event: &Value, out: &mut Actions) {
        let (tool_use, is_done) = (&event["tool_use"], event["done"] == true);
        // Partial arguments are not reported.
        if !is_done && event["content"].is_string() {
            return;
        }
        let (id, input) = (ts.to_string(), &tool_use["input"]);
        if let Some(steps) = tool::plan(input) {
            return out.emit(FromAgent::PlanUpdated(steps));
        }
        let mut tool = match event["subtype"].as_str() {
            Some("command") => tool::command(id, &text_of(&input["command"])),
            Some("mcp") => tool::of_ask(id, "use_mcp_server", &text_of(&input["raw"])),
            _ => tool::builtin(id, input),
        };
        if let Some(name) = tool_use["name"].as_str() {
            tool = tool::with_name(tool, name);
        }
        tool.status = "running".into();
        self.run.messages.finish(out);
        self.run.start_tool(tool, out);
    }

    fn handle_tool_result(&mut self, event: &Value, out: &mut Actions) {
        let result = &event["tool_result"];
        let error = result["error"].as_str();
        // Only the results of commands come in pieces.
        let is_partial = event["subtype"] == "command" && event["done"] != true;
        let status = if error.is_some() || result["exitCode"].as_i64().is_some_and(|code| code != 0)
        {
            "failed"
        } else if is_partial {
            "running"
        } else {
            "completed"
        };
        let piece = error.or(result["output"].as_str()).unwrap_or_default();
        self.run.append_tool_output(status, piece, out);
    }
}

fn text_or_default(event: &Value) -> String {
    let content = event["content"].as_str().filter(|text| !text.is_empty());
    content.map_or_else(|| "It failed and did not say why.".into(), str::to_owned)
}

/// Usage of the last model request: the CLI reports no more.
fn usage_of(cost: &Value) -> Option<Usage> {
    let cost = cost.as_object()?;
    let count = |name: &str| cost.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cost: cost.get("totalCost").and_then(Value::as_f64),
    })
}
