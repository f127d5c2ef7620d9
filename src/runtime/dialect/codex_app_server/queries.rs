//! Queries: asks Codex for models, MCP servers and skills, and shapes its answers for clients.

use serde_json::{Value, json};

use super::super::{Actions, query_answers, text_of, unsupported};
use super::{Codex, PendingRequest};
use crate::domain::command::{AgentRequest, Topic};

impl Codex {
    pub(super) fn send_query(&mut self, id: u64, request: AgentRequest, out: &mut Actions) {
        let (topic, params) = match request {
            AgentRequest::Query { topic, params } => (topic, params),
            AgentRequest::Extension { name, .. } => {
                let what = format!("do `{name}`");
                return out.decline_with(id, unsupported(&self.setup.agent, &what));
            }
        };
        let (method, query_params) = match topic {
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
                let what = "tell that about itself";
                return out.decline_with(id, unsupported(&self.setup.agent, what));
            }
        };
        self.send_request(
            PendingRequest::Query { id, topic, params },
            method,
            query_params,
            out,
        );
    }
}

fn each(answer: &Value, name: &str) -> Vec<Value> {
    answer[name].as_array().cloned().unwrap_or_default()
}

pub(super) fn models(answer: &Value, provider: &str, current: Option<&str>) -> Value {
    let data = each(answer, "data");
    let shown = data.iter().filter(|model| model["hidden"] != true);
    let models: Vec<&str> = shown.filter_map(|model| model["model"].as_str()).collect();
    query_answers::models(provider, &models, current)
}

/// Without `scope: "configured"`, only the enabled ones.
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
    let mut answer = json!({
        "id": text_of(&server["name"]),
        "transport": if server["httpOrigin"].is_string() { "http" } else { "stdio" },
        "enabled": state != "disabled",
        "state": state,
    });
    if let Some(tools) = server["tools"].as_object() {
        answer["tools"] = tools.len().into();
    }
    if let Some(error) = error {
        answer["last_error"] = error.into();
    } else if server["runtimeStatus"] == "authenticationRequired" {
        answer["last_error"] = "It wants a login.".into();
    }
    answer
}

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
    query_answers::skills(&skills, &errors)
}

fn skill(skill: &Value) -> Value {
    query_answers::skill(
        &text_of(&skill["name"]),
        &text_of(&skill["description"]),
        &text_of(&skill["path"]),
        skill["scope"] == "repo",
    )
}
