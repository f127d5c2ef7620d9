//! Todo lists: the runtime's `todos.*` notifications as the plan of the session. Pure.
//!
//! The protocol reserves the names without fixing their parameters: a list under `todos` or `items`
//! is read as the whole plan, anything else is passed on unchanged.

use serde_json::{Value, json};

use super::super::{Actions, FromAgent, text_of};
use super::{Codelia, PROTOCOL};
use crate::domain::event::PlanStep;

impl Codelia {
    pub(super) fn handle_todos(&self, method: &str, params: &Value, out: &mut Actions) {
        let named = params["run_id"].as_str();
        let current = self.run.as_ref().and_then(|run| run.native_id.as_deref());
        if named.is_some() && named != current {
            let named = named.unwrap_or_default();
            return out.misrouted(format!("`{method:.64}` of the run `{named:.64}`"));
        }
        let mut lists = ["todos", "items"].iter().map(|name| &params[*name]);
        let Some(items) = lists.find_map(Value::as_array) else {
            let value = json!({ "method": method, "params": params });
            return out.emit_raw(PROTOCOL.name, value);
        };
        out.emit(FromAgent::PlanUpdated(items.iter().map(step).collect()));
    }
}

fn step(item: &Value) -> PlanStep {
    let names = ["content", "title", "text"];
    let title = names.iter().find_map(|name| item[*name].as_str());
    let status = match item["status"].as_str().unwrap_or_default() {
        "in_progress" | "running" | "active" => "running",
        "completed" | "done" => "completed",
        _ if item["done"] == true => "completed",
        _ => "pending",
    };
    PlanStep {
        title: title.map_or_else(|| text_of(item), str::to_owned),
        status: status.into(),
    }
}
