//! What the demo agent tells about itself when asked. Pure.

use serde_json::{Value, json};

use super::super::Declined;
use super::scene::TOOL;
use crate::domain::code::Code;
use crate::domain::command::{Inquiry, Topic};
use crate::domain::event::AgentCommand;

/// The prompts that it understands, and what they make it do.
const COMMANDS: [(&str, &str); 18] = [
    ("/echo TEXT", "Says the text"),
    (
        "/stream N [MS]",
        "Says N numbered words, MS milliseconds apart",
    ),
    ("/chunks N BYTES", "Says N pieces of that size"),
    ("/tool [SECONDS]", "Asks for permission and uses a tool"),
    ("/confirm [SECONDS]", "Asks yes or no"),
    ("/prompt [secret] [SECONDS]", "Asks for a text"),
    ("/pick [multi] [SECONDS]", "Asks for a choice"),
    ("/think", "Thinks before it answers"),
    ("/plan", "Makes a plan and follows it"),
    ("/edit", "Changes a file, and shows how"),
    ("/markdown", "Shows what an answer can look like"),
    ("/usage", "Tells what it used"),
    ("/fail", "Fails"),
    ("/crash", "Ends without a word"),
    ("/hang", "Does nothing until cancelled"),
    ("/image", "Shows an image"),
    ("/commands", "Announces these commands"),
    ("/title TEXT", "Gives the session a title"),
];

/// The prompts that it understands.
pub(super) fn commands() -> Vec<AgentCommand> {
    COMMANDS
        .iter()
        .map(|(name, description)| AgentCommand {
            name: (*name).into(),
            description: (*description).into(),
        })
        .collect()
}

/// The answer to an inquiry.
pub(super) fn answer(inquiry: &Inquiry) -> Result<Value, Declined> {
    match inquiry {
        Inquiry::Query { topic, params } => Ok(tell(*topic, params)),
        Inquiry::Extension { name, payload } if name == "echo" => Ok(payload.clone()),
        Inquiry::Extension { name, .. } => Err(Declined {
            code: Code::Unsupported,
            message: format!("The demo agent knows the extension `echo`, not `{name}`."),
        }),
    }
}

fn tell(topic: Topic, params: &Value) -> Value {
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
