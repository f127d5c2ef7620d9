//! Items: classifies the items of a turn and turns those that are tools into tool updates.

use serde_json::{Value, json};

use super::super::text_of;
use crate::domain::event::PlanStep;
use crate::domain::tool::Tool;

pub(super) enum ItemKind {
    Tool(Tool),
    Message(String),
    Reasoning(String),
    Compaction,
    /// The user's own input, or visible elsewhere.
    Ignored,
    Unknown,
}

pub(super) fn classify(item: &Value) -> ItemKind {
    match item["type"].as_str().unwrap_or_default() {
        "agentMessage" | "plan" => ItemKind::Message(text_of(&item["text"])),
        "reasoning" => ItemKind::Reasoning(reasoning(item)),
        "contextCompaction" => ItemKind::Compaction,
        "userMessage" | "hookPrompt" | "functionCallOutput" | "subAgentActivity"
        | "enteredReviewMode" => ItemKind::Ignored,
        "exitedReviewMode" => ItemKind::Message(text_of(&item["review"])),
        kind => tool(kind, item).map_or(ItemKind::Unknown, ItemKind::Tool),
    }
}

fn reasoning(item: &Value) -> String {
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
            title: change_title(&item["changes"]),
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
        // The image itself would be too large: its path is enough.
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

pub(super) fn change_title(changes: &Value) -> String {
    let changes = changes.as_array().into_iter().flatten();
    let paths: Vec<String> = changes.map(|change| text_of(&change["path"])).collect();
    match paths.as_slice() {
        [] => "Change files".into(),
        paths => format!("Change {}", paths.join(", ")),
    }
}

pub(super) fn plan_steps(steps: &Value) -> Vec<PlanStep> {
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
