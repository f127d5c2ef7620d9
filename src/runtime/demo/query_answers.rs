//! Query answers: the demo agent about itself. Pure.

use serde_json::{Value, json};

use super::super::Declined;
use super::dialogs::TOOL;
use crate::domain::command::{AgentRequest, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::AgentCommand;

/// Prompts that it understands, with their descriptions.
const COMMANDS: [(&str, &str); 18] = [
    ("/echo TEXT", "Says the text"),
    (
        "/stream N [MS]",
        "Says N numbered words, MS milliseconds apart",
    ),
    ("/chunks N BYTES", "Says N chunks of BYTES bytes"),
    ("/tool [SECONDS]", "Asks for permission and uses a tool"),
    ("/confirm [SECONDS]", "Asks yes or no"),
    ("/prompt [secret] [SECONDS]", "Asks for a text"),
    ("/pick [multi] [SECONDS]", "Asks for a choice"),
    ("/think", "Thinks before it answers"),
    ("/plan", "Makes a plan and follows it"),
    ("/edit", "Changes a file, and shows how"),
    ("/markdown", "Shows an answer with all kinds of markup"),
    ("/usage", "Reports its token usage"),
    ("/fail", "Fails"),
    ("/crash", "Crashes in the middle of an answer"),
    ("/hang", "Does nothing until cancelled"),
    ("/image", "Shows an image"),
    ("/commands", "Announces these commands"),
    ("/title TEXT", "Gives the session a title"),
];

pub(super) fn commands() -> Vec<AgentCommand> {
    COMMANDS
        .iter()
        .map(|(name, description)| AgentCommand {
            name: (*name).into(),
            description: (*description).into(),
        })
        .collect()
}

pub(super) fn answer(inquiry: &AgentRequest) -> Result<Value, Declined> {
    match inquiry {
        AgentRequest::Query { topic, params } => Ok(query_answer(*topic, params)),
        AgentRequest::Extension { name, payload } if name == "echo" => Ok(payload.clone()),
        AgentRequest::Extension { name, .. } => Err(Declined {
            code: ErrorCode::Unsupported,
            message: format!("The demo agent knows the extension `echo`, not `{name}`."),
        }),
    }
}

fn query_answer(topic: Topic, params: &Value) -> Value {
    match topic {
        Topic::Models => {
            let details = params["include_details"] == true;
            let mut models = json!({
                "provider": "demo",
                "models": ["default", "patient"],
                "current": "default",
            });
            if details {
                models["details"] = json!({
                    "default": { "context_window": 8192 },
                    "patient": { "context_window": 8192 },
                });
            }
            models
        }
        Topic::Mcp => json!({
            "servers": [{
                "id": "demo-clock",
                "transport": "stdio",
                "source": "global",
                "enabled": true,
                "state": "ready",
                "tools": 1,
            }],
        }),
        Topic::Skills => json!({
            "skills": [{
                "id": "greet",
                "name": "Greet",
                "description": "Says hello, as the demo agent does with every prompt it does not know.",
                "path": "demo/greet/SKILL.md",
                "dir": "demo/greet",
                "scope": "user",
                "mtime_ms": 0,
            }],
            "errors": [],
            "truncated": false,
        }),
        Topic::Commands => {
            let commands: Vec<Value> = COMMANDS
                .iter()
                .map(|(name, description)| json!({ "name": name, "description": description }))
                .collect();
            json!({ "commands": commands, "tools": [TOOL] })
        }
        Topic::Tree => json!({ "nodes": [], "leaf": null }),
    }
}
