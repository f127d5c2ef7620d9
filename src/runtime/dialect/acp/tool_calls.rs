//! The tools of the run under way, as far as they were seen.
//!
//! The protocol tells a tool once and then only what changes, sessions want to see all of it each
//! time. Some agents mention a tool first in a question about it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::content;
use crate::domain::tool::Tool;

/// What is known of each.
#[derive(Debug, Default)]
pub(super) struct Tools {
    seen: HashMap<String, Seen>,
}

/// One tool, without what it was given.
#[derive(Debug)]
struct Seen {
    tool: Tool,
    /// What came out, in the parts that change on their own.
    content: Value,
    locations: Value,
    raw: Value,
    /// Does it take the agent into another mode?
    switches_mode: bool,
}

impl Tools {
    /// Another run begins.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Is this the first mention of a tool?
    pub(super) fn is_new(&self, told: &Value) -> bool {
        let id = told["toolCallId"].as_str();
        id.is_some_and(|id| !self.seen.contains_key(id))
    }

    /// A tool as it looks after this mention of it; none if it has no id.
    pub(super) fn mention(&mut self, told: &Value) -> Option<Tool> {
        let id = told["toolCallId"].as_str()?;
        let seen = self
            .seen
            .entry(id.to_owned())
            .or_insert_with(|| Seen::first(id, told));
        Some(seen.again(told))
    }

    /// Was it ever said of this tool that it takes the agent into another mode?
    pub(super) fn switches_mode(&self, id: &str) -> bool {
        self.seen.get(id).is_some_and(|seen| seen.switches_mode)
    }
}

impl Seen {
    fn first(id: &str, told: &Value) -> Self {
        let title = told["title"].as_str().unwrap_or_default();
        // The protocol has no names of tools: what it does says more than how this use is called.
        let name = match kind(told) {
            Some("other") | None if !title.is_empty() => title,
            Some(kind) => kind,
            None => "tool",
        };
        Self {
            tool: Tool::new(id, name, "pending"),
            content: Value::Null,
            locations: Value::Null,
            raw: Value::Null,
            switches_mode: false,
        }
    }

    fn again(&mut self, told: &Value) -> Tool {
        let was_open = self.tool.is_open();
        self.switches_mode |= told["kind"] == "switch_mode";
        if let Some(kind) = kind(told) {
            kind.clone_into(&mut self.tool.kind);
        }
        if let Some(title) = told["title"].as_str().filter(|title| !title.is_empty()) {
            title.clone_into(&mut self.tool.title);
        }
        if let Some(status) = status(told) {
            status.clone_into(&mut self.tool.status);
        }
        let mut tool = self.tool.clone();
        tool.input = given(&told["rawInput"]);
        let mut news = false;
        for (part, name) in [
            (&mut self.content, "content"),
            (&mut self.locations, "locations"),
            (&mut self.raw, "rawOutput"),
        ] {
            if let Some(value) = given(&told[name]) {
                *part = value;
                // What came out of a tool that has ended is not known here any more: a part of it
                // must not take the place of all.
                news |= was_open || name == "content";
            }
        }
        if news {
            tool.output = self.output();
        }
        if !tool.is_open() {
            // It may be large, and is told now.
            (self.content, self.raw) = (Value::Null, Value::Null);
        }
        tool
    }

    /// What came out: just the text or what the tool itself gave back if that is all, else its parts.
    fn output(&self) -> Option<Value> {
        let mut parts = Map::new();
        let (mut text, mut diffs, mut terminals) = (String::new(), Vec::new(), Vec::new());
        for piece in self.content.as_array().into_iter().flatten() {
            match piece["type"].as_str() {
                Some("diff") => diffs.push(diff(piece)),
                Some("terminal") => terminals.push(piece["terminalId"].clone()),
                _ => text.push_str(&content::said(&piece["content"]).unwrap_or_default()),
            }
        }
        let mut put = |name: &str, value: Value| {
            if given(&value).is_some() {
                parts.insert(name.to_owned(), value);
            }
        };
        put("diffs", json!(diffs));
        put("terminals", json!(terminals));
        put("locations", self.locations.clone());
        let raw = given(&self.raw);
        match (text.is_empty(), raw) {
            (true, raw) if parts.is_empty() => raw,
            (false, _) if parts.is_empty() => Some(json!(text)),
            (true, Some(raw)) => {
                parts.insert("raw".into(), raw);
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

/// A value that says something.
fn given(value: &Value) -> Option<Value> {
    let says = match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    says.then(|| value.clone())
}

fn diff(piece: &Value) -> Value {
    json!({ "path": piece["path"], "oldText": piece["oldText"], "newText": piece["newText"] })
}

/// What it does, in the words that sessions know, which are the protocol's.
fn kind(told: &Value) -> Option<&'static str> {
    Some(match told["kind"].as_str()? {
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

/// How far it is; what an unknown word means is not guessed.
fn status(told: &Value) -> Option<&'static str> {
    Some(match told["status"].as_str()? {
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
    fn an_update_changes_only_what_it_says() {
        let mut tools = Tools::default();
        let first = json!({ "toolCallId": "c", "title": "Edit a", "kind": "edit",
            "locations": [{ "path": "/w/a" }], "rawInput": { "path": "a" } });
        let tool = tools.mention(&first).unwrap();
        assert_eq!(
            (tool.name.as_str(), tool.status.as_str()),
            ("edit", "pending")
        );
        assert_eq!(tool.input, Some(json!({ "path": "a" })));

        let diff = json!({ "toolCallId": "c", "status": "in_progress",
            "content": [{ "type": "diff", "path": "/w/a", "oldText": null, "newText": "x" }] });
        assert_eq!(tools.mention(&diff).unwrap().status, "running");

        let end = json!({ "toolCallId": "c", "status": "completed", "rawOutput": { "ok": true } });
        let tool = tools.mention(&end).unwrap();
        assert_eq!(
            (tool.title.as_str(), tool.kind.as_str()),
            ("Edit a", "edit")
        );
        let output = tool.output.unwrap();
        assert_eq!(output["diffs"][0]["newText"], "x");
        assert_eq!(output["locations"][0]["path"], "/w/a");
        assert_eq!(output["raw"], json!({ "ok": true }));

        let odd = json!({ "toolCallId": "c", "status": "sleeping", "title": "", "kind": 3 });
        let tool = tools.mention(&odd).unwrap();
        assert_eq!(
            (tool.title.as_str(), tool.status.as_str()),
            ("Edit a", "completed")
        );
        assert_eq!(tool.output, None);
    }

    #[test]
    fn what_came_out_is_not_replaced_by_a_part_of_it_after_the_end() {
        let mut tools = Tools::default();
        let text = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let mut output = |told: Value| tools.mention(&told).unwrap().output;
        let end = json!({ "toolCallId": "c", "status": "completed", "content": text("all") });
        assert_eq!(output(end), Some(json!("all")));
        let raw = json!({ "toolCallId": "c", "rawOutput": { "exit": 0 } });
        assert_eq!(output(raw), None);
        let again = json!({ "toolCallId": "c", "content": text("all of it") });
        assert_eq!(output(again), Some(json!("all of it")));
    }
}
