//! The events of the CLI.

use std::time::Duration;

use serde_json::Value;

use super::{Cli, Job, timer};
use crate::domain::code::Code;
use crate::domain::event::{Channel, Level};
use crate::domain::run::{RunOutcome, Usage};
use crate::runtime::dialect::roo::ask::Ask;
use crate::runtime::dialect::roo::speech::Said;
use crate::runtime::dialect::roo::{PROTOCOL, tool};
use crate::runtime::dialect::{Act, Out, text_of};
use crate::runtime::talk::FromAgent;

/// After a minute the CLI takes the first answer that it suggested itself; ours must come before.
const FOLLOWUP_PATIENCE: Duration = Duration::from_secs(55);

impl Cli {
    /// Reads an event, whatever it is.
    pub(super) fn event(&mut self, event: &Value, out: &mut Out) {
        let Some(kind) = event["type"].as_str() else {
            return out.act(Act::Odd("an event without a type".into()));
        };
        match kind {
            "system" => self.greeted(out),
            "control" => self.control(event, out),
            // The gateway has a queue of its own, and knows what the user said.
            "queue" | "user" => {}
            "assistant" | "thinking" | "tool_use" | "tool_result" | "error" | "result" => {
                self.of_run(kind, event, out);
            }
            _ => out.raw(PROTOCOL.name, event.clone()),
        }
    }

    fn control(&mut self, event: &Value, out: &mut Out) {
        self.greeted(out);
        let request = event["requestId"].as_str();
        let Some(job) = &mut self.job else { return };
        let of_cancel = request.is_some() && job.cancel.as_deref() == request;
        if !of_cancel && !job.came_from(request) {
            return self.stray(request, out);
        }
        match event["subtype"].as_str() {
            Some("ack") if !of_cancel => self.acknowledged(event, out),
            Some("done") if of_cancel => {
                job.stopping = true;
                if event["code"] == "no_active_task" {
                    self.end(RunOutcome::Cancelled, None, out);
                }
            }
            Some("done") if event["command"] == "start" => self.done(event, out),
            Some("error") if !of_cancel => self.refused(event, out),
            _ => {}
        }
    }

    /// A line about a request that is not the one at hand: late, or never made here.
    fn stray(&self, request: Option<&str>, out: &mut Out) {
        let made = |request: &&str| {
            let number = request.parse().ok();
            number.is_some_and(|number: u64| (1..=self.requests).contains(&number))
        };
        if let Some(foreign) = request.filter(|request| !made(request)) {
            out.act(Act::Stray(format!("request `{foreign:.64}`")));
        }
    }

    fn acknowledged(&mut self, event: &Value, out: &mut Out) {
        self.open = true;
        let thread = event["taskId"].as_str();
        if let Some(thread) = thread.filter(|thread| self.thread.as_deref() != Some(*thread)) {
            self.thread = Some(thread.to_owned());
            out.tell(FromAgent::Thread(thread.to_owned()));
        }
        if let Some(job) = &mut self.job
            && job.work.accept()
        {
            out.no_timer(timer::TAKEN);
            out.tell(FromAgent::Accepted { run: job.work.run });
        }
    }

    /// The end of a new task, for one that did not bring a result.
    fn done(&mut self, event: &Value, out: &mut Out) {
        if event["success"] == true {
            self.end(RunOutcome::Completed, None, out);
        } else if event["code"] == "task_aborted" {
            self.end(RunOutcome::Cancelled, None, out);
        } else {
            self.fail(said(event), out);
        }
    }

    fn refused(&mut self, event: &Value, out: &mut Out) {
        if event["code"] == "no_active_task" && self.open {
            // The task is gone: what was to be a message becomes a new one.
            self.open = false;
            if let Some(job) = self.job.take_if(|job| !job.work.cancelled) {
                self.starts_fresh(out);
                return self.dispatch(job.work, out);
            }
        }
        self.fail(said(event), out);
    }

    fn of_run(&mut self, kind: &str, event: &Value, out: &mut Out) {
        let request = event["requestId"].as_str();
        let Some(job) = &mut self.job else {
            return match request {
                // Of a run that has had its end.
                Some(_) => {}
                None => out.act(Act::Odd(format!("`{kind}` without a run"))),
            };
        };
        let of_cancel = request.is_some() && job.cancel.as_deref() == request;
        if request.is_some() && !of_cancel && !job.came_from(request) {
            return self.stray(request, out);
        }
        let at = event["id"].as_u64();
        let is_new = at.is_none_or(|at| at > self.latest);
        let at = at.unwrap_or(self.latest.saturating_add(1));
        self.latest = self.latest.max(at);
        if is_new {
            // It goes on: whatever it had asked is settled.
            job.work.settle(out);
            if kind != "tool_result" {
                job.work.tool_is("completed", out);
            }
        }
        match kind {
            "assistant" => self.assistant(at, event, out),
            "thinking" => job.grow(Channel::Thought, at, event, out),
            "tool_use" => job.tool_use(at, event, out),
            "tool_result" => job.tool_result(event, out),
            "error" => out.notice(Level::Error, said(event)),
            _ => self.result(event, out),
        }
    }

    fn assistant(&mut self, at: u64, event: &Value, out: &mut Out) {
        let Some(job) = &mut self.job else { return };
        let done = event["done"] == true;
        match event["subtype"].as_str() {
            None => job.grow(Channel::Text, at, event, out),
            Some(_) if !done => {}
            Some("followup") => job.followup(at, event, out),
            Some("api_req_failed" | "mistake_limit_reached" | "auto_approval_max_req_reached") => {
                out.notice(Level::Warn, said(event));
            }
            Some(_) => out.raw(PROTOCOL.name, event.clone()),
        }
    }

    fn result(&mut self, event: &Value, out: &mut Out) {
        let used = usage(&event["cost"]);
        if event["success"] != true {
            let (code, message) = (Code::TaskFailed, said(event));
            return self.end(RunOutcome::Failed { code, message }, used, out);
        }
        if let Some(job) = &mut self.job {
            job.work.speech.finish(out);
            // What was said last is repeated here if there is nothing else to say.
            let text = event["content"].as_str().filter(|text| !text.is_empty());
            let new = text.filter(|text| job.last.as_deref() != Some(*text));
            if let Some(text) = new {
                let (run, text) = (job.work.run, Some(text.to_owned()));
                out.tell(FromAgent::Final { run, text });
            }
        }
        self.end(RunOutcome::Completed, used, out);
    }
}

impl Job {
    /// Is that the number of one of its commands?
    fn came_from(&self, request: Option<&str>) -> bool {
        let mut requests = self.requests.iter();
        requests.any(|known| Some(known.as_str()) == request)
    }

    /// A piece is what is new; the last one is everything again.
    fn grow(&mut self, channel: Channel, at: u64, event: &Value, out: &mut Out) {
        let (speech, content) = (&mut self.work.speech, event["content"].as_str());
        if event["done"] != true {
            return speech.add(channel, at, content.unwrap_or_default(), out);
        }
        let whole = content.map_or_else(|| speech.told(channel, at), str::to_owned);
        let said = Said {
            task: "",
            at,
            text: &whole,
            partial: false,
        };
        speech.hear(channel, &said, out);
        if channel == Channel::Text {
            self.last = Some(whole);
        }
    }

    fn followup(&mut self, at: u64, event: &Value, out: &mut Out) {
        let ask = Ask {
            at,
            kind: "followup".into(),
            text: text_of(&event["content"]),
            protected: false,
            told: true,
        };
        out.tell(FromAgent::Asked {
            run: self.work.run,
            question: ask.name(),
            asked: Box::new(ask.question()),
            patience: Some(FOLLOWUP_PATIENCE),
        });
        self.work.ask = Some(ask);
    }

    fn tool_use(&mut self, at: u64, event: &Value, out: &mut Out) {
        let (used, done) = (&event["tool_use"], event["done"] == true);
        // Pieces of what it is given are not worth telling.
        if !done && event["content"].is_string() {
            return;
        }
        let (id, input) = (at.to_string(), &used["input"]);
        if let Some(steps) = tool::plan(input) {
            return out.tell(FromAgent::Plan(steps));
        }
        let mut tool = match event["subtype"].as_str() {
            Some("command") => tool::command(id, &text_of(&input["command"])),
            Some("mcp") => tool::of_ask(id, "use_mcp_server", &text_of(&input["raw"])),
            _ => tool::local(id, input),
        };
        if let Some(name) = used["name"].as_str() {
            tool = tool::named(tool, name);
        }
        tool.status = "running".into();
        self.work.speech.finish(out);
        self.work.use_tool(tool, out);
    }

    fn tool_result(&mut self, event: &Value, out: &mut Out) {
        let result = &event["tool_result"];
        let error = result["error"].as_str();
        let failed = error.is_some() || result["exitCode"].as_i64().is_some_and(|code| code != 0);
        // Only the results of commands come in pieces.
        let status = match (
            failed,
            event["subtype"] == "command" && event["done"] != true,
        ) {
            (true, _) => "failed",
            (false, true) => "running",
            (false, false) => "completed",
        };
        let piece = error.or(result["output"].as_str()).unwrap_or_default();
        self.work.tool_adds(status, piece, out);
    }
}

fn said(event: &Value) -> String {
    let content = event["content"].as_str().filter(|text| !text.is_empty());
    content.map_or_else(|| "It failed and did not say why.".into(), str::to_owned)
}

/// Of the last request to the model: the CLI tells no more.
fn usage(cost: &Value) -> Option<Usage> {
    let cost = cost.as_object()?;
    let count = |name: &str| cost.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cost: cost.get("totalCost").and_then(Value::as_f64),
    })
}
