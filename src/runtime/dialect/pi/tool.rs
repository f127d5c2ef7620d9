//! Tools: the tool calls of a run.

use std::collections::HashMap;

use serde_json::Value;

use super::super::text_of;
use crate::domain::tool::Tool;

/// Output is reported again after it grew by so much: each report repeats all of it.
const OUTPUT_REPORT_BYTES: usize = 2048;

/// The unfinished tool calls, and how many bytes of their output were reported.
#[derive(Debug, Default)]
pub(super) struct Tools {
    running: HashMap<String, (Tool, Option<usize>)>,
}

impl Tools {
    pub(super) fn requested(&mut self, call: &Value) -> Option<Tool> {
        let id = call["id"].as_str()?;
        Some(self.insert(id, &call["name"], &call["arguments"], "pending"))
    }

    pub(super) fn started(&mut self, event: &Value) -> Option<Tool> {
        let id = event["toolCallId"].as_str()?;
        Some(self.insert(id, &event["toolName"], &event["args"], "running"))
    }

    fn insert(&mut self, id: &str, name: &Value, args: &Value, status: &str) -> Tool {
        let name = text_of(name);
        let tool = Tool {
            title: title(&name, args),
            kind: kind(&name).into(),
            input: Some(args.clone()).filter(|args| !args.is_null()),
            ..Tool::new(id, name, status)
        };
        self.running.insert(id.to_owned(), (tool.clone(), None));
        tool
    }

    /// None if the output grew too little.
    pub(super) fn output_updated(&mut self, event: &Value) -> Option<Tool> {
        let (tool, reported) = self.running.get_mut(event["toolCallId"].as_str()?)?;
        let output = output(&event["partialResult"]);
        let length = output.as_str().map_or(OUTPUT_REPORT_BYTES, str::len);
        if length == 0 || reported.is_some_and(|reported| length < reported + OUTPUT_REPORT_BYTES) {
            return None;
        }
        *reported = Some(length);
        Some(Tool {
            output: Some(output),
            ..tool.without_payload()
        })
    }

    pub(super) fn ended(&mut self, event: &Value, cancelled: bool) -> Option<Tool> {
        let id = event["toolCallId"].as_str()?;
        let status = match event["isError"] == true {
            true if cancelled => "cancelled",
            true => "failed",
            false => "completed",
        };
        let known = self
            .running
            .remove(id)
            .map(|(tool, _)| tool.without_payload());
        let new = || self.insert(id, &event["toolName"], &Value::Null, status);
        let tool = known.unwrap_or_else(new);
        self.running.remove(id);
        Some(Tool {
            status: status.into(),
            output: Some(output(&event["result"])),
            ..tool
        })
    }
}

/// The text, if the result has nothing else.
fn output(result: &Value) -> Value {
    let Some(content) = result["content"].as_array() else {
        return result.clone();
    };
    let texts: Option<Vec<&str>> = content.iter().map(|part| part["text"].as_str()).collect();
    texts.map_or_else(|| content.clone().into(), |texts| texts.concat().into())
}

fn kind(name: &str) -> &'static str {
    match name {
        "bash" => "execute",
        "read" => "read",
        "edit" | "write" => "edit",
        "grep" | "find" | "ls" => "search",
        _ => "other",
    }
}

fn title(name: &str, args: &Value) -> String {
    match (args["command"].as_str(), args["path"].as_str()) {
        (Some(command), _) if name == "bash" => command.to_owned(),
        (_, Some(path)) => format!("{name} {path}"),
        _ => name.to_owned(),
    }
}
