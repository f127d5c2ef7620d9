//! Tools as Roo writes them: a text that is a command, or JSON in a text. Pure.

use serde_json::{Value, json};

use crate::domain::event::PlanStep;
use crate::domain::tool::Tool;
use crate::runtime::dialect::text_of;

/// The use of a tool that Roo asks for (`ask` is the kind of the question, `text` what stands in it).
pub(super) fn of_ask(id: String, ask: &str, text: &str) -> Tool {
    match ask {
        "command" => command(id, text),
        "use_mcp_server" => remote(id, &parsed(text)),
        _ => local(id, &parsed(text)),
    }
}

/// A command for the shell.
pub(super) fn command(id: String, line: &str) -> Tool {
    Tool {
        title: line.to_owned(),
        kind: "execute".into(),
        input: Some(json!({ "command": line })),
        ..Tool::new(id, "execute_command", "pending")
    }
}

/// A tool of Roo's own: JSON with its name in `tool`.
pub(super) fn local(id: String, input: &Value) -> Tool {
    let name = input["tool"].as_str().unwrap_or("tool").to_owned();
    let title = match input["path"].as_str() {
        Some(path) => format!("{name} {path}"),
        None => name.clone(),
    };
    Tool {
        title,
        kind: kind(&name).into(),
        input: Some(input.clone()),
        ..Tool::new(id, name, "pending")
    }
}

/// A tool of an MCP server.
fn remote(id: String, input: &Value) -> Tool {
    let server = input["serverName"].as_str().unwrap_or("mcp");
    let what = input["toolName"].as_str().or(input["uri"].as_str());
    let name = what.unwrap_or("mcp_server").to_owned();
    Tool {
        title: format!("{server}: {name}"),
        input: Some(input.clone()),
        ..Tool::new(id, name, "pending")
    }
}

/// The same under the name that the CLI gives it, unless it has a better one.
pub(super) fn named(tool: Tool, name: &str) -> Tool {
    if tool.name != "tool" {
        return tool;
    }
    Tool {
        title: tool.title.replacen("tool", name, 1),
        kind: kind(name).into(),
        name: name.to_owned(),
        ..tool
    }
}

/// What a tool of Roo's own does.
fn kind(name: &str) -> &'static str {
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

/// The plan in a list of things to do, if it is one.
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

/// The JSON in a text; the text itself if there is none.
pub(super) fn parsed(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => value,
        _ => json!({ "text": text }),
    }
}
