//! What the app server is asked about itself, and what it tells, in the shapes that clients know.

use serde_json::{Value, json};

use super::super::{Out, text_of, unsupported};
use super::{Asked, Codex};
use crate::domain::command::{Inquiry, Topic};

impl Codex {
    /// Asks the agent about itself.
    pub(super) fn inquire(&mut self, id: u64, inquiry: Inquiry, out: &mut Out) {
        let (topic, params) = match inquiry {
            Inquiry::Query { topic, params } => (topic, params),
            Inquiry::Extension { name, .. } => {
                return out
                    .decline_with(id, unsupported(&self.setup.agent, &format!("do `{name}`")));
            }
        };
        let (method, asks) = match topic {
            Topic::Models => ("model/list", json!({ "limit": 100 })),
            Topic::Mcp => (
                "mcpServerStatus/list",
                json!({ "threadId": self.thread, "detail": "toolsAndAuthOnly", "limit": 100 }),
            ),
            Topic::Skills => (
                "skills/list",
                json!({
                    "cwds": [self.setup.directory],
                    "forceReload": params["force_reload"] == true,
                }),
            ),
            Topic::Commands | Topic::Tree => {
                return out
                    .decline_with(id, unsupported(&self.setup.agent, "tell that about itself"));
            }
        };
        self.ask(Asked::Query { id, topic, params }, method, asks, out);
    }
}

fn each(answer: &Value, name: &str) -> Vec<Value> {
    answer[name].as_array().cloned().unwrap_or_default()
}

/// The models that are offered, and the one in use.
pub(super) fn models(answer: &Value, provider: &str, current: Option<&str>) -> Value {
    let data = each(answer, "data");
    let shown = data.iter().filter(|model| model["hidden"] != true);
    let models: Vec<&str> = shown.filter_map(|model| model["model"].as_str()).collect();
    let mut told = json!({ "provider": provider, "models": models });
    if let Some(current) = current {
        told["current"] = current.into();
    }
    told
}

/// The MCP servers: by default those that are in use, with `scope: "configured"` all.
pub(super) fn servers(answer: &Value, params: &Value) -> Value {
    let all = params["scope"] == "configured";
    let data = each(answer, "data");
    let servers: Vec<Value> = data
        .iter()
        .map(server)
        .filter(|server| all || server["enabled"] == true)
        .collect();
    json!({ "servers": servers })
}

fn server(server: &Value) -> Value {
    let error = server["toolsError"].as_str();
    let state = match server["runtimeStatus"].as_str() {
        Some("disabled") => "disabled",
        Some("notStarted" | "starting") => "connecting",
        Some("failed" | "cancelled" | "authenticationRequired") => "error",
        _ if error.is_some() => "error",
        _ => "ready",
    };
    let mut told = json!({
        "id": text_of(&server["name"]),
        "transport": if server["httpOrigin"].is_string() { "http" } else { "stdio" },
        "enabled": state != "disabled",
        "state": state,
    });
    if let Some(tools) = server["tools"].as_object() {
        told["tools"] = tools.len().into();
    }
    if let Some(error) = error {
        told["last_error"] = error.into();
    } else if server["runtimeStatus"] == "authenticationRequired" {
        told["last_error"] = "It wants a login.".into();
    }
    told
}

/// The skills that may be used.
pub(super) fn skills(answer: &Value) -> Value {
    let (mut skills, mut errors) = (Vec::new(), Vec::new());
    for entry in each(answer, "data") {
        let enabled = each(&entry, "skills");
        let enabled = enabled.iter().filter(|skill| skill["enabled"] != false);
        skills.extend(enabled.map(skill));
        errors.extend(each(&entry, "errors").iter().map(|error| {
            json!({ "path": text_of(&error["path"]), "message": text_of(&error["message"]) })
        }));
    }
    json!({ "skills": skills, "errors": errors, "truncated": false })
}

fn skill(skill: &Value) -> Value {
    let path = text_of(&skill["path"]);
    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
    json!({
        "id": text_of(&skill["name"]),
        "name": text_of(&skill["name"]),
        "description": text_of(&skill["description"]),
        "dir": dir,
        "path": path,
        "scope": if skill["scope"] == "repo" { "repo" } else { "user" },
        // The app server does not tell how old it is.
        "mtime_ms": 0,
    })
}
