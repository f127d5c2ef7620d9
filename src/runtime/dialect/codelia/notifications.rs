//! Notifications and UI requests of the runtime. Pure.

use serde_json::{Map, Value, json};

use super::super::super::jsonrpc;
use super::super::super::messages::{FromAgent, SessionQuestion};
use super::super::{Action, Actions, ErrorCode, Resolution, RunOutcome, Usage, text_of};
use super::ui_request::{PendingQuestion, UiRequest};
use super::{Codelia, PROTOCOL, RUN_END_TIMEOUT, RUN_END_TIMER, USER_CANCELLED, meta};
use crate::domain::event::Activity;
use crate::domain::question::Question;

impl Codelia {
    pub(super) fn handle_notification(&mut self, method: &str, params: Value, out: &mut Actions) {
        if method.starts_with("todos.") {
            return self.handle_todos(method, &params, out);
        }
        self.sends_run_status |= method == "run.status";
        if !matches!(
            method,
            "agent.event" | "run.status" | "run.context" | "run.diagnostics"
        ) {
            let value = json!({ "method": method, "params": params });
            return out.emit_raw(PROTOCOL.name, value);
        }
        let named = text_of(&params["run_id"]);
        if self.run.as_ref().and_then(|run| run.native_id.as_ref()) != Some(&named) {
            let what = format!("`{method}` of the run `{named:.64}`");
            let has_ended = self.previous_run.as_ref() == Some(&named);
            return out.push(if has_ended {
                Action::Unexpected(format!("{what}, which is over"))
            } else {
                Action::Misrouted(what)
            });
        }
        self.restart_run_end_timer(out);
        let unknown = match method {
            "run.diagnostics" => Map::new(),
            _ => meta::unknown_fields(method, &params),
        };
        let from = out.count();
        let message = if unknown.is_empty() {
            Value::Null
        } else {
            params.clone()
        };
        match method {
            "agent.event" => self.handle_agent_event(params, out),
            "run.status" => self.handle_run_status(&params, out),
            "run.context" => {
                if let Some(percent) = params["context_left_percent"].as_f64() {
                    out.emit(FromAgent::ContextLeft(to_percent(percent)));
                }
            }
            _ => report_llm_usage(&params, out),
        }
        // What is passed on as a whole has them already.
        if !unknown.is_empty() && !out.has_raw_since(from) {
            meta::deliver((method, &message), unknown, from, out);
        }
    }

    fn handle_agent_event(&mut self, mut params: Value, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        if let Some(seq) = params["seq"].as_i64().filter(|seq| *seq >= 0) {
            if run.seq.is_some_and(|last| seq <= last) {
                return out.unexpected(format!("an event out of order, number {seq}"));
            }
            run.seq = Some(seq);
        }
        let event = params["event"].take();
        let is_final = event["type"] == "final";
        if is_final {
            run.has_final = true;
            out.set_timer(RUN_END_TIMER, RUN_END_TIMEOUT);
        }
        if !run.handle_event(&event, out) {
            params["event"] = event;
            out.emit_raw(
                PROTOCOL.name,
                json!({ "method": "agent.event", "params": params }),
            );
        }
        if is_final && !self.sends_run_status {
            self.end_silent_run(out);
        }
    }

    /// After `final` a run counts as completed once the runtime is silent for a while.
    fn restart_run_end_timer(&self, out: &mut Actions) {
        if self.run.as_ref().is_some_and(|run| run.has_final) {
            out.set_timer(RUN_END_TIMER, RUN_END_TIMEOUT);
        }
    }

    /// The silence has lasted long enough, unless the runtime waits for the user.
    pub(super) fn end_silent_run(&mut self, out: &mut Actions) {
        if self.has_open_question() {
            return self.restart_run_end_timer(out);
        }
        self.end_run(RunOutcome::Completed, out);
    }

    /// Questions of earlier runs do not count; those of the session may hold up any run.
    pub(super) fn has_open_question(&self) -> bool {
        let run = self.run.as_ref().map(|run| run.id);
        let holds_up = |question: &PendingQuestion| question.run.is_none() || question.run == run;
        self.questions.iter().any(holds_up)
    }

    fn handle_run_status(&mut self, params: &Value, out: &mut Actions) {
        let Some(run) = &mut self.run else { return };
        match params["status"].as_str().unwrap_or_default() {
            "running" => run.set_activity(Activity::Thinking, out),
            "awaiting_ui" => run.set_activity(Activity::WaitingForInput, out),
            "completed" => self.end_run(RunOutcome::Completed, out),
            "cancelled" => self.end_run(RunOutcome::Cancelled, out),
            "error" if run.cancelling => self.end_run(RunOutcome::Cancelled, out),
            "error" => {
                let agent = &self.setup.agent;
                let message = match text_of(&params["message"]) {
                    message if message.is_empty() => format!("The agent `{agent}` failed."),
                    message => message,
                };
                let code = ErrorCode::TaskFailed;
                self.end_run(RunOutcome::Failed { code, message }, out);
            }
            _ => out.emit_raw(
                PROTOCOL.name,
                json!({ "method": "run.status", "params": params }),
            ),
        }
    }

    pub(super) fn handle_ui_request(
        &mut self,
        id: Value,
        kind: UiRequest,
        params: &Value,
        out: &mut Actions,
    ) {
        if self.questions.iter().any(|question| question.id == id) {
            let named = text_of(&id);
            out.write(refusal(id, "that id is taken by a question that waits"));
            return out.unexpected(format!("a second question `{named:.64}`"));
        }
        let private_home = self.setup.private_home;
        let Some(named) = params["run_id"].as_str() else {
            let content = kind.question(params, private_home);
            return self.ask_session(id, kind, content, out);
        };
        let current = self.run.as_mut();
        let Some(run) = current.filter(|run| run.native_id.as_deref() == Some(named)) else {
            out.write(refusal(id, "that run is not under way"));
            return out.misrouted(format!("a question of the run `{named:.64}`"));
        };
        if run.cancelling {
            return out.write(jsonrpc::result(id, kind.denial()));
        }
        let (asked, tool) = run.question(kind, params, private_home, out);
        let run = run.id;
        let pending = PendingQuestion {
            run: Some(run),
            id,
            kind,
            tool,
        };
        out.emit(FromAgent::QuestionAsked {
            run,
            question: self.questions.add(pending),
            content: Box::new(asked),
            timeout: None,
        });
        self.restart_run_end_timer(out);
    }

    /// Asks what no run waits for, also while there is none.
    fn ask_session(&mut self, id: Value, kind: UiRequest, content: Question, out: &mut Actions) {
        let pending = PendingQuestion {
            run: None,
            id,
            kind,
            tool: None,
        };
        out.emit(FromAgent::SessionQuestion(Box::new(SessionQuestion {
            question: self.questions.add(pending),
            content,
            timeout: None,
        })));
        self.restart_run_end_timer(out);
    }

    pub(super) fn answer_question(
        &mut self,
        name: &str,
        resolution: &Resolution,
        out: &mut Actions,
    ) {
        let Some(pending) = self.questions.take(name) else {
            return;
        };
        let answer = pending.kind.answer(resolution);
        let run = self.run.as_mut().filter(|run| Some(run.id) == pending.run);
        if let (Some(tool), Some(run)) = (&pending.tool, run) {
            run.record_decision(tool, answer["ok"] == true, out);
        }
        out.write(jsonrpc::result(pending.id, answer));
        self.restart_run_end_timer(out);
    }
}

/// An error response counts as a denial.
fn refusal(id: Value, why: &str) -> Value {
    jsonrpc::error(id, USER_CANCELLED, why)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 100 by then"
)]
fn to_percent(number: f64) -> u8 {
    number.clamp(0.0, 100.0).round() as u8
}

/// `run.diagnostics` of one model call; sent only by runtimes started with diagnostics.
fn report_llm_usage(params: &Value, out: &mut Actions) {
    let usage = &params["call"]["usage"];
    let tokens = |name: &str| usage[name].as_u64().unwrap_or_default();
    if params["kind"] == "llm_call" && usage.is_object() {
        out.emit(FromAgent::Usage(Usage {
            input: tokens("input_tokens"),
            output: tokens("output_tokens"),
            cost: params["call"]["cost_usd"].as_f64(),
        }));
    }
}
