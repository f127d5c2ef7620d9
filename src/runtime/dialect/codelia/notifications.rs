//! What the runtime says by itself: what happens in a run, and what it asks. Pure.

use serde_json::{Value, json};

use super::super::super::jsonrpc;
use super::super::super::talk::FromAgent;
use super::super::{Act, Code, Level, Out, Resolution, RunOutcome, Usage, text_of};
use super::asking::{Ask, Kind};
use super::run::Run;
use super::{Codelia, PROTOCOL, SETTLED, SETTLING, USER_CANCELLED};
use crate::domain::event::Activity;

impl Codelia {
    pub(super) fn noted(&mut self, method: &str, params: Value, out: &mut Out) {
        if !matches!(
            method,
            "agent.event" | "run.status" | "run.context" | "run.diagnostics"
        ) {
            let value = json!({ "method": method, "params": params });
            return out.raw(PROTOCOL.name, value);
        }
        let named = text_of(&params["run_id"]);
        if self.run.as_ref().and_then(|run| run.native.as_ref()) != Some(&named) {
            let what = format!("`{method}` of the run `{named:.64}`");
            let over = self.ended.as_ref() == Some(&named);
            return out.act(if over {
                Act::Odd(format!("{what}, which is over"))
            } else {
                Act::Stray(what)
            });
        }
        self.put_off_settling(out);
        match method {
            "agent.event" => self.happened(params, out),
            "run.status" => self.stands(&params, out),
            "run.context" => {
                if let Some(percent) = params["context_left_percent"].as_f64() {
                    out.tell(FromAgent::ContextLeft(percent_of(percent)));
                }
            }
            _ => used(&params, out),
        }
    }

    fn happened(&mut self, mut params: Value, out: &mut Out) {
        let Some(run) = &mut self.run else { return };
        if let Some(seq) = params["seq"].as_i64().filter(|seq| *seq >= 0) {
            if run.seq.is_some_and(|last| seq <= last) {
                return out.act(Act::Odd(format!("an event out of order, number {seq}")));
            }
            run.seq = Some(seq);
        }
        let event = params["event"].take();
        if event["type"] == "final" {
            run.concluded = true;
            out.timer(SETTLED, SETTLING);
        }
        if !run.follow(&event, out) {
            params["event"] = event;
            out.raw(
                PROTOCOL.name,
                json!({ "method": "agent.event", "params": params }),
            );
        }
    }

    /// A run that has said its last word counts as over when nothing more comes for a while.
    fn put_off_settling(&self, out: &mut Out) {
        if self.run.as_ref().is_some_and(|run| run.concluded) {
            out.timer(SETTLED, SETTLING);
        }
    }

    /// Nothing more came; but whoever waits for a human is not done.
    pub(super) fn settle(&mut self, out: &mut Out) {
        if self.is_asking() {
            return self.put_off_settling(out);
        }
        self.finish(RunOutcome::Completed, out);
    }

    /// Does the run under way wait for an answer? What runs before it asked does not count.
    pub(super) fn is_asking(&self) -> bool {
        let asks = |run: &Run| self.questions.values().any(|ask| ask.run == run.id);
        self.run.as_ref().is_some_and(asks)
    }

    fn stands(&mut self, params: &Value, out: &mut Out) {
        let Some(run) = &mut self.run else { return };
        match params["status"].as_str().unwrap_or_default() {
            "running" => run.does(Activity::Thinking, out),
            "awaiting_ui" => run.does(Activity::WaitingForInput, out),
            "completed" => self.finish(RunOutcome::Completed, out),
            "cancelled" => self.finish(RunOutcome::Cancelled, out),
            "error" if run.cancelling => self.finish(RunOutcome::Cancelled, out),
            "error" => {
                let agent = &self.setup.agent;
                let message = match text_of(&params["message"]) {
                    said if said.is_empty() => format!("The agent `{agent}` failed."),
                    said => said,
                };
                let code = Code::TaskFailed;
                self.finish(RunOutcome::Failed { code, message }, out);
            }
            _ => out.raw(
                PROTOCOL.name,
                json!({ "method": "run.status", "params": params }),
            ),
        }
    }

    pub(super) fn asked(&mut self, id: Value, kind: Kind, params: &Value, out: &mut Out) {
        let agent = &self.setup.agent;
        let named = params["run_id"].as_str();
        let Some(run) = &mut self.run else {
            let title = text_of(&params["title"]);
            out.write(refusal(id, "no run is under way"));
            let text = format!(
                "The agent `{agent}` asked while no run was under way, and was told no: {title}"
            );
            return out.notice(Level::Warn, text);
        };
        if named.is_some() && named != run.native.as_deref() {
            out.write(refusal(id, "that run is not under way"));
            let named = named.unwrap_or_default();
            return out.act(Act::Stray(format!("a question of the run `{named:.64}`")));
        }
        if run.cancelling {
            return out.write(jsonrpc::result(id, kind.denial()));
        }
        if self.questions.values().any(|ask| ask.id == id) {
            let named = text_of(&id);
            out.write(refusal(id, "that id is taken by a question that waits"));
            return out.act(Act::Odd(format!("a second question `{named:.64}`")));
        }
        let (asked, tool) = run.question(kind, params, out);
        let run = run.id;
        // A name of our own: the id of the request may be of any length.
        self.asked += 1;
        let question = format!("ask-{}", self.asked);
        let ask = Ask {
            run,
            id,
            kind,
            tool,
        };
        self.questions.insert(question.clone(), ask);
        out.tell(FromAgent::Asked {
            run,
            question,
            asked: Box::new(asked),
            patience: None,
        });
        self.put_off_settling(out);
    }

    pub(super) fn answer(&mut self, name: &str, resolution: &Resolution, out: &mut Out) {
        let Some(ask) = self.questions.remove(name) else {
            return;
        };
        let answer = ask.kind.answer(resolution);
        let run = self.run.as_mut().filter(|run| run.id == ask.run);
        if let (Some(tool), Some(run)) = (&ask.tool, run) {
            run.decided(tool, answer["ok"] == true, out);
        }
        out.write(jsonrpc::result(ask.id, answer));
        self.put_off_settling(out);
    }
}

/// An error counts as no.
fn refusal(id: Value, why: &str) -> Value {
    jsonrpc::error(id, USER_CANCELLED, why)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 100 by then"
)]
fn percent_of(number: f64) -> u8 {
    number.clamp(0.0, 100.0).round() as u8
}

/// Tokens of one call of the model, as runtimes tell that are started with diagnostics.
fn used(params: &Value, out: &mut Out) {
    let usage = &params["call"]["usage"];
    let tokens = |name: &str| usage[name].as_u64().unwrap_or_default();
    if params["kind"] == "llm_call" && usage.is_object() {
        out.tell(FromAgent::Usage(Usage {
            input: tokens("input_tokens"),
            output: tokens("output_tokens"),
            cost: params["call"]["cost_usd"].as_f64(),
        }));
    }
}
