//! Meta: the fields of the runtime's messages that the protocol's specification does not name. Pure.

use serde_json::{Map, Value, json};

use super::super::{Actions, FromAgent};
use super::PROTOCOL;

/// Everything in the message that is not known here, by its own name: the entries of `meta`, and the
/// unknown fields of the parameters and of the event in them.
pub(super) fn unknown_fields(method: &str, params: &Value) -> Map<String, Value> {
    let mut meta = match &params["meta"] {
        Value::Object(meta) => meta.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("meta".to_owned(), other.clone())]),
    };
    let event = &params["event"];
    let parts = [
        (params, known_parameters(method)),
        (event, known_of_event(event)),
    ];
    for (part, known) in parts {
        let fields = part.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(name, _)| !known.contains(&name.as_str())) {
            // A name in `meta` wins; the other one gets a longer name.
            let name = if meta.contains_key(name) {
                format!("event.{name}")
            } else {
                name.clone()
            };
            meta.insert(name, value.clone());
        }
    }
    meta
}

/// Delivers the fields with what the message became; as a whole if it became nothing.
pub(super) fn deliver(
    (method, params): (&str, &Value),
    meta: Map<String, Value>,
    from: usize,
    out: &mut Actions,
) {
    // The end of a run is told by its status alone.
    let is_status = method == "run.status";
    let is_about_it = |event: &FromAgent| match event {
        FromAgent::Activity(_) | FromAgent::RunEnded { .. } => is_status,
        _ => true,
    };
    if !out.attach_meta(from, meta, is_about_it) {
        let value = json!({ "method": method, "params": params });
        out.emit_raw(PROTOCOL.name, value);
    }
}

fn known_parameters(method: &str) -> &'static [&'static str] {
    match method {
        "agent.event" => &["run_id", "seq", "event", "meta"],
        "run.status" => &["run_id", "status", "message", "meta"],
        "run.context" => &["run_id", "context_left_percent", "meta"],
        "ui.confirm.request" => &[
            "run_id",
            "title",
            "message",
            "confirm_label",
            "cancel_label",
            "danger_level",
            "allow_remember",
            "allow_reason",
            "meta",
        ],
        "ui.prompt.request" => &[
            "run_id",
            "title",
            "message",
            "default_value",
            "multiline",
            "secret",
            "meta",
        ],
        "ui.pick.request" => &["run_id", "title", "message", "items", "multi", "meta"],
        _ => &["run_id", "todos", "items", "meta"],
    }
}

fn known_of_event(event: &Value) -> &'static [&'static str] {
    match event["type"].as_str().unwrap_or_default() {
        "step_start" => &["type", "timestamp", "step_id", "title", "step_number"],
        "step_complete" => &["type", "timestamp", "step_id", "status"],
        "tool_call" => &[
            "type",
            "timestamp",
            "tool",
            "args",
            "raw_args",
            "tool_call_id",
            "display_name",
        ],
        "tool_result" => &[
            "type",
            "timestamp",
            "tool",
            "result",
            "tool_call_id",
            "is_error",
        ],
        "permission.preview" => &[
            "type",
            "timestamp",
            "tool",
            "tool_call_id",
            "summary",
            "diff",
        ],
        "permission.ready" => &["type", "timestamp", "tool", "tool_call_id"],
        "llm.retry" => &[
            "type",
            "timestamp",
            "provider",
            "failure_kind",
            "next_attempt",
            "max_attempts",
            "delay_ms",
        ],
        "compaction_complete" => &["type", "timestamp", "compacted"],
        _ => &["type", "timestamp", "content"],
    }
}
