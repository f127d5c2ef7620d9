//! Tool calls as Roo writes them: a command line, or JSON in a string. Pure.

use serde_json::{Value, json};

use crate::domain::event::PlanStep;
use crate::domain::tool::Tool;
use crate::runtime::dialect::text_of;

pub(super) fn of_ask(id: String, ask: &str, text: &str) -> Tool {
    match ask {
        "command" => command(id, text),
        "use_mcp_server" => mcp(id, &parsed(text)),
        _ => builtin(id, &parsed(text)),
    }
}

pub(super) fn command(id: String, line: &str) -> Tool {
    Tool {
        title: line.to_owned(),
        kind: "execute".into(),
        input: Some(json!({ "command": line })),
        ..Tool::new(id, "execute_command", "pending")
    }
}

/// A built-in tool: JSON with its name in `tool`.
pub(super) fn builtin(id: String, input: &Value) -> Tool {
    let name = input["tool"].as_str().unwrap_or("tool").to_owned();
    let title = match input["path"].as_str() {
        Some(path) => format!("{name} {path}"),
        None => name.clone(),
    };
    Tool {
        title,
        kind: tool_kind(&name).into(),
        input: Some(input.clone()),
        ..Tool::new(id, name, "pending")
    }
}

fn mcp(id: String, input: &Value) -> Tool {
    let server = input["serverName"].as_str().unwrap_or("mcp");
    let what = input["toolName"].as_str().or(input["uri"].as_str());
    let name = what.unwrap_or("mcp_server").to_owned();
    Tool {
        title: format!("{server}: {name}"),
        input: Some(input.clone()),
        ..Tool::new(id, name, "pending")
    }
}

/// Uses the CLI's name for a tool without one.
pub(super) fn with_name(tool: Tool, name: &str) -> Tool {
    if tool.name != "tool" {
        return tool;
    }
    Tool {
        title: tool.title.replacen("tool", name, 1),
        kind: tool_kind(name).into(),
        name: name.to_owned(),
        ..tool
    }
}

fn tool_kind(name: &str) -> &'static str {
    match name {
        "readFile"
        | "read_file"
        | "listFilesTopLevel"
        | "listFilesRecursive"
        | "list_files"
        | "listCodeDefinitionNames"
        | "skill" => "read",
        "searchFiles" | "search_files" | "codebaseSearch" | "codebase_search" => "search",
        "editedExistingFile" | "appliedDiff" | "newFileCreated" | "insertContent"
        | "searchAndReplace" | "generateImage" | "write_to_file" | "apply_diff" => "edit",
        _ => "other",
    }
}

/// The plan of an `updateTodoList` call.
pub(super) fn plan(input: &Value) -> Option<Vec<PlanStep>> {
    if input["tool"] != "updateTodoList" {
        return None;
    }
    let step = |todo: &Value| PlanStep {
        title: text_of(&todo["content"]),
        status: match todo["status"].as_str() {
            Some("completed") => "completed".into(),
            Some("in_progress") => "running".into(),
            _ => "pending".into(),
        },
    };
    Some(input["todos"].as_array()?.iter().map(step).collect())
}

/// The object in a text, or the text itself.
pub(super) fn parsed(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({ "text": text }),
    }
}
