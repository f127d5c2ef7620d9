//! Tool calls: the state of each tool call of the current run.
//!
//! The protocol sends a tool call once and then only what changes; a session wants all of it each time.
//! Some agents name a tool call first in a permission request, so every mention is an upsert.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::content;
use crate::domain::tool::Tool;

const DENIED: &str = "denied";

#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    states: HashMap<String, ToolState>,
}

/// One tool call, without its input.
#[derive(Debug)]
struct ToolState {
    tool: Tool,
    /// The parts of the output, each updated on its own.
    content: Value,
    locations: Value,
    raw_output: Value,
    switches_mode: bool,
    /// It was denied, whatever the agent calls its end.
    denied: bool,
}

impl ToolCalls {
    pub(super) fn clear(&mut self) {
        self.states.clear();
    }

    pub(super) fn is_new(&self, update: &Value) -> bool {
        let id = update["toolCallId"].as_str();
        id.is_some_and(|id| !self.states.contains_key(id))
    }

    /// The tool call after this update; none if it has no id.
    pub(super) fn upsert(&mut self, update: &Value) -> Option<Tool> {
        let id = update["toolCallId"].as_str()?;
        let state = self
            .states
            .entry(id.to_owned())
            .or_insert_with(|| ToolState::new(id, update));
        Some(state.update(update))
    }

    /// The tool call for which a permission is asked: what was denied before is open again.
    pub(super) fn ask(&mut self, update: &Value) -> Option<Tool> {
        let known = update["toolCallId"].as_str();
        if let Some(state) = known.and_then(|id| self.states.get_mut(id)) {
            state.denied = false;
        }
        self.upsert(update)
    }

    /// The tool call after its denial; none if it is not open.
    pub(super) fn deny(&mut self, id: &str) -> Option<Tool> {
        let state = self
            .states
            .get_mut(id)
            .filter(|state| state.tool.is_open())?;
        state.denied = true;
        DENIED.clone_into(&mut state.tool.status);
        Some(state.tool.clone())
    }

    /// Whether any update said that it switches the agent's mode.
    pub(super) fn switches_mode(&self, id: &str) -> bool {
        self.states.get(id).is_some_and(|state| state.switches_mode)
    }
}

impl ToolState {
    fn new(id: &str, update: &Value) -> Self {
        let title = update["title"].as_str().unwrap_or_default();
        // The protocol has no tool names: the kind says more than the title of one call.
        let name = match kind(update) {
            Some("other") | None if !title.is_empty() => title,
            Some(kind) => kind,
            None => "tool",
        };
        Self {
            tool: Tool::new(id, name, "pending"),
            content: Value::Null,
            locations: Value::Null,
            raw_output: Value::Null,
            switches_mode: false,
            denied: false,
        }
    }

    fn update(&mut self, update: &Value) -> Tool {
        // A denied call gets its reason after its end.
        let was_open = self.tool.is_open() || self.denied;
        self.switches_mode |= update["kind"] == "switch_mode";
        if let Some(kind) = kind(update) {
            kind.clone_into(&mut self.tool.kind);
        }
        if let Some(title) = update["title"].as_str().filter(|title| !title.is_empty()) {
            title.clone_into(&mut self.tool.title);
        }
        if let Some(status) = status(update) {
            // One that runs all the same was not stopped by the denial.
            self.denied &= status != "running";
            let status = if self.denied { DENIED } else { status };
            status.clone_into(&mut self.tool.status);
        }
        let mut tool = self.tool.clone();
        tool.input = non_empty(&update["rawInput"]);
        let mut output_changed = false;
        for (part, name) in [
            (&mut self.content, "content"),
            (&mut self.locations, "locations"),
            (&mut self.raw_output, "rawOutput"),
        ] {
            if let Some(value) = non_empty(&update[name]) {
                *part = value;
                // The output of an ended call was dropped here: a part must not replace all of it.
                output_changed |= was_open || name == "content";
            }
        }
        if output_changed {
            tool.output = self.output();
        }
        if !tool.is_open() && !self.denied {
            // It may be large, and was sent.
            (self.content, self.raw_output) = (Value::Null, Value::Null);
        }
        tool
    }

    /// Just the text or the raw output if there is nothing else, else all parts.
    fn output(&self) -> Option<Value> {
        let mut parts = Map::new();
        let (mut text, mut diffs, mut terminals) = (String::new(), Vec::new(), Vec::new());
        for block in self.content.as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("diff") => diffs.push(diff(block)),
                Some("terminal") => terminals.push(block["terminalId"].clone()),
                _ => text.push_str(&content::to_markdown(&block["content"]).unwrap_or_default()),
            }
        }
        let mut add_part = |name: &str, value: Value| {
            if non_empty(&value).is_some() {
                parts.insert(name.to_owned(), value);
            }
        };
        add_part("diffs", json!(diffs));
        add_part("terminals", json!(terminals));
        add_part("locations", self.locations.clone());
        let raw_output = non_empty(&self.raw_output);
        match (text.is_empty(), raw_output) {
            (true, raw_output) if parts.is_empty() => raw_output,
            (false, _) if parts.is_empty() => Some(json!(text)),
            (true, Some(raw_output)) => {
                parts.insert("raw".into(), raw_output);
                Some(Value::Object(parts))
            }
            (true, None) => Some(Value::Object(parts)),
            (false, _) => {
                parts.insert("text".into(), json!(text));
                Some(Value::Object(parts))
            }
        }
    }
}

fn non_empty(value: &Value) -> Option<Value> {
    let is_present = match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    is_present.then(|| value.clone())
}

fn diff(block: &Value) -> Value {
    json!({ "path": block["path"], "oldText": block["oldText"], "newText": block["newText"] })
}

fn kind(update: &Value) -> Option<&'static str> {
    Some(match update["kind"].as_str()? {
        "read" => "read",
        "edit" => "edit",
        "delete" => "delete",
        "move" => "move",
        "search" => "search",
        "execute" => "execute",
        "think" => "think",
        "fetch" => "fetch",
        _ => "other",
    })
}

/// Unknown statuses change nothing.
fn status(update: &Value) -> Option<&'static str> {
    Some(match update["status"].as_str()? {
        "pending" => "pending",
        "in_progress" => "running",
        "completed" => "completed",
        "failed" => "failed",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_changes_only_the_fields_it_carries() {
        let mut tools = ToolCalls::default();
        let first = json!({ "toolCallId": "c", "title": "Edit a", "kind": "edit",
            "locations": [{ "path": "/w/a" }], "rawInput": { "path": "a" } });
        let tool = tools.upsert(&first).unwrap();
        assert_eq!(
            (tool.name.as_str(), tool.status.as_str()),
            ("edit", "pending")
        );
        assert_eq!(tool.input, Some(json!({ "path": "a" })));

        let diff = json!({ "toolCallId": "c", "status": "in_progress",
            "content": [{ "type": "diff", "path": "/w/a", "oldText": null, "newText": "x" }] });
        assert_eq!(tools.upsert(&diff).unwrap().status, "running");

        let end = json!({ "toolCallId": "c", "status": "completed", "rawOutput": { "ok": true } });
        let tool = tools.upsert(&end).unwrap();
        assert_eq!(
            (tool.title.as_str(), tool.kind.as_str()),
            ("Edit a", "edit")
        );
        let output = tool.output.unwrap();
        assert_eq!(output["diffs"][0]["newText"], "x");
        assert_eq!(output["locations"][0]["path"], "/w/a");
        assert_eq!(output["raw"], json!({ "ok": true }));

        let odd = json!({ "toolCallId": "c", "status": "sleeping", "title": "", "kind": 3 });
        let tool = tools.upsert(&odd).unwrap();
        assert_eq!(
            (tool.title.as_str(), tool.status.as_str()),
            ("Edit a", "completed")
        );
        assert_eq!(tool.output, None);
    }

    #[test]
    fn a_partial_output_after_the_end_does_not_replace_the_whole() {
        let mut tools = ToolCalls::default();
        let text = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let mut output = |update: Value| tools.upsert(&update).unwrap().output;
        let end = json!({ "toolCallId": "c", "status": "completed", "content": text("all") });
        assert_eq!(output(end), Some(json!("all")));
        let raw_output = json!({ "toolCallId": "c", "rawOutput": { "exit": 0 } });
        assert_eq!(output(raw_output), None);
        let again = json!({ "toolCallId": "c", "content": text("all of it") });
        assert_eq!(output(again), Some(json!("all of it")));
    }
}
