//! The items of a turn: which of them are tools, and what is to be seen of those.

use serde_json::{Value, json};

use super::super::text_of;
use crate::domain::event::PlanStep;
use crate::domain::tool::Tool;

/// What an item is to us.
pub(super) enum Seen {
    /// A tool that is used.
    Tool(Tool),
    /// Something said aloud: the text of it.
    Speech(String),
    /// Something thought.
    Thought(String),
    /// The agent shortens what it remembers.
    Compaction,
    /// Nothing that is told: what the user said, or what is seen elsewhere.
    Nothing,
    /// Something that we have no word for.
    Unknown,
}

/// Looks at an item.
pub(super) fn look(item: &Value) -> Seen {
    match item["type"].as_str().unwrap_or_default() {
        "agentMessage" | "plan" => Seen::Speech(text_of(&item["text"])),
        "reasoning" => Seen::Thought(thought(item)),
        "contextCompaction" => Seen::Compaction,
        "userMessage" | "hookPrompt" | "functionCallOutput" | "subAgentActivity"
        | "enteredReviewMode" => Seen::Nothing,
        "exitedReviewMode" => Seen::Speech(text_of(&item["review"])),
        kind => tool(kind, item).map_or(Seen::Unknown, Seen::Tool),
    }
}

fn thought(item: &Value) -> String {
    let texts = |name: &str| -> Vec<String> {
        let parts = item[name].as_array().into_iter().flatten();
        parts.map(text_of).filter(|text| !text.is_empty()).collect()
    };
    let summary = texts("summary");
    let parts = if summary.is_empty() {
        texts("content")
    } else {
        summary
    };
    parts.join("\n\n")
}

fn tool(kind: &str, item: &Value) -> Option<Tool> {
    let id = item["id"].as_str()?;
    let new = |name: &str| Tool::new(id, name, status(item));
    let tool = match kind {
        "commandExecution" => Tool {
            title: text_of(&item["command"]),
            kind: "execute".into(),
            input: Some(json!({ "command": item["command"], "cwd": item["cwd"] })),
            output: command_output(item),
            ..new("shell")
        },
        "fileChange" => Tool {
            title: files(&item["changes"]),
            kind: if deletes(&item["changes"]) {
                "delete"
            } else {
                "edit"
            }
            .into(),
            input: Some(json!({ "changes": item["changes"] })),
            ..new("apply_patch")
        },
        "mcpToolCall" => {
            let name = format!("{}.{}", text_of(&item["server"]), text_of(&item["tool"]));
            Tool {
                kind: if item["readOnlyHint"] == true {
                    "read"
                } else {
                    "other"
                }
                .into(),
                input: present(&item["arguments"]),
                output: present(&item["error"]).or(present(&item["result"])),
                ..new(&name)
            }
        }
        "dynamicToolCall" => Tool {
            input: present(&item["arguments"]),
            output: present(&item["contentItems"]),
            ..new(&text_of(&item["tool"]))
        },
        "collabAgentToolCall" => Tool {
            input: Some(json!({ "prompt": item["prompt"], "model": item["model"] })),
            output: present(&item["agentsStates"]),
            ..new(&format!("agents.{}", text_of(&item["tool"])))
        },
        "webSearch" => Tool {
            title: text_of(&item["query"]),
            kind: "search".into(),
            input: Some(json!({ "query": item["query"], "action": item["action"] })),
            output: present(&item["results"]),
            ..new("web_search")
        },
        "imageView" => Tool {
            title: text_of(&item["path"]),
            kind: "read".into(),
            input: Some(json!({ "path": item["path"] })),
            ..new("view_image")
        },
        // The image itself would be too much: where it lies is enough.
        "imageGeneration" => Tool {
            input: present(&item["revisedPrompt"]),
            output: present(&item["savedPath"]),
            ..new("image_generation")
        },
        "sleep" => Tool {
            input: Some(json!({ "durationMs": item["durationMs"] })),
            ..new("sleep")
        },
        _ => return None,
    };
    Some(tool)
}

fn present(value: &Value) -> Option<Value> {
    Some(value.clone()).filter(|value| !value.is_null())
}

fn status(item: &Value) -> &'static str {
    match item["status"].as_str() {
        Some("completed") => "completed",
        Some("failed") => "failed",
        Some("declined") => "denied",
        Some("interrupted") => "cancelled",
        _ => "running",
    }
}

fn command_output(item: &Value) -> Option<Value> {
    if item["aggregatedOutput"].is_null() && item["exitCode"].is_null() {
        return None;
    }
    let output = text_of(&item["aggregatedOutput"]);
    Some(json!({ "output": output, "exitCode": item["exitCode"] }))
}

fn deletes(changes: &Value) -> bool {
    let mut changes = changes.as_array().into_iter().flatten().peekable();
    changes.peek().is_some() && changes.all(|change| change["kind"]["type"] == "delete")
}

/// The names of the files that are changed, for people.
pub(super) fn files(changes: &Value) -> String {
    let changes = changes.as_array().into_iter().flatten();
    let paths: Vec<String> = changes.map(|change| text_of(&change["path"])).collect();
    match paths.as_slice() {
        [] => "Change files".into(),
        paths => format!("Change {}", paths.join(", ")),
    }
}

/// The steps of a plan.
pub(super) fn plan(steps: &Value) -> Vec<PlanStep> {
    let steps = steps.as_array().into_iter().flatten();
    let step = |step: &Value| PlanStep {
        title: text_of(&step["step"]),
        status: match step["status"].as_str() {
            Some("inProgress") => "running",
            Some("completed") => "completed",
            _ => "pending",
        }
        .into(),
    };
    steps.map(step).collect()
}
