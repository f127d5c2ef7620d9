//! The uses of tools in a run, as pi tells them.

use std::collections::HashMap;

use serde_json::Value;

use super::super::text_of;
use crate::domain::tool::Tool;

/// What a tool has written is told again after it grew by so much: each time it is told from the start.
const OUTPUT_STEP: usize = 2048;

/// The tools whose end is to come, and how much of their output was told.
#[derive(Debug, Default)]
pub(super) struct Tools {
    open: HashMap<String, (Tool, Option<usize>)>,
}

impl Tools {
    /// The model wants to use it.
    pub(super) fn wanted(&mut self, call: &Value) -> Option<Tool> {
        let id = call["id"].as_str()?;
        Some(self.note(id, &call["name"], &call["arguments"], "pending"))
    }

    /// It is used.
    pub(super) fn started(&mut self, event: &Value) -> Option<Tool> {
        let id = event["toolCallId"].as_str()?;
        Some(self.note(id, &event["toolName"], &event["args"], "running"))
    }

    fn note(&mut self, id: &str, name: &Value, args: &Value, status: &str) -> Tool {
        let name = text_of(name);
        let tool = Tool {
            title: title(&name, args),
            kind: kind(&name).into(),
            input: Some(args.clone()).filter(|args| !args.is_null()),
            ..Tool::new(id, name, status)
        };
        self.open.insert(id.to_owned(), (tool.clone(), None));
        tool
    }

    /// It has written something; told if it is worth it.
    pub(super) fn wrote(&mut self, event: &Value) -> Option<Tool> {
        let (tool, told) = self.open.get_mut(event["toolCallId"].as_str()?)?;
        let output = output(&event["partialResult"]);
        let length = output.as_str().map_or(OUTPUT_STEP, str::len);
        if length == 0 || told.is_some_and(|told| length < told + OUTPUT_STEP) {
            return None;
        }
        *told = Some(length);
        Some(Tool {
            output: Some(output),
            ..tool.brief()
        })
    }

    /// It is done.
    pub(super) fn ended(&mut self, event: &Value, cancelled: bool) -> Option<Tool> {
        let id = event["toolCallId"].as_str()?;
        let status = match event["isError"] == true {
            true if cancelled => "cancelled",
            true => "failed",
            false => "completed",
        };
        let known = self.open.remove(id).map(|(tool, _)| tool.brief());
        let new = || self.note(id, &event["toolName"], &Value::Null, status);
        let tool = known.unwrap_or_else(new);
        self.open.remove(id);
        Some(Tool {
            status: status.into(),
            output: Some(output(&event["result"])),
            ..tool
        })
    }
}

/// The text of it if that is all there is.
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
