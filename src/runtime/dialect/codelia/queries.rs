//! Queries: model, MCP and skill lists, and the choice of a model. Pure.

use std::path::{Component, Path};

use serde_json::{Map, Value, json};

use super::super::{Actions, AgentRequest, ErrorCode, unsupported};
use super::{Codelia, PendingRequest, QUERY_TIMEOUT};
use crate::domain::command::Topic;

/// Providers that may prefix the name of a model.
const PROVIDERS: [&str; 6] = [
    "openai",
    "anthropic",
    "openrouter",
    "moonshot",
    "zai",
    "xai",
];

impl Codelia {
    pub(super) fn query(&mut self, id: u64, request: AgentRequest, out: &mut Actions) {
        let agent = &self.setup.agent;
        let declined = match &request {
            AgentRequest::Extension { name, .. } => Some(format!("do `{name}`")),
            AgentRequest::Query { topic, .. } => match topic {
                Topic::Mcp if self.missing.contains("mcp") => Some("list its MCP servers".into()),
                Topic::Skills if self.missing.contains("skills") => Some("list its skills".into()),
                Topic::Models | Topic::Mcp | Topic::Skills => None,
                Topic::Commands => Some("list its commands".into()),
                Topic::Tree => Some("show how its conversation branches".into()),
            },
        };
        if let Some(ability) = declined {
            return out.decline_with(id, unsupported(agent, &ability));
        }
        let AgentRequest::Query { topic, params } = request else {
            return;
        };
        let (method, names): (_, &[&str]) = match topic {
            Topic::Mcp => ("mcp.list", &["scope"]),
            Topic::Skills => ("skills.list", &["cwd", "force_reload"]),
            _ => ("model.list", &["provider", "include_details"]),
        };
        // A client must not direct the agent to other folders.
        let directory = self.setup.directory.as_str();
        let cwd = params.get("cwd").filter(|_| topic == Topic::Skills);
        if cwd.is_some_and(|cwd| !is_within(directory, cwd)) {
            let message = format!("`cwd` must be a folder within `{directory}`.");
            return out.decline(id, ErrorCode::ValidationError, message);
        }
        // Parameters that the method does not have are not passed on.
        let filtered: Map<String, Value> = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), params.get(name)?.clone())))
            .collect();
        let number = self.request(
            PendingRequest::AgentRequest(id),
            method,
            Value::Object(filtered),
            out,
        );
        out.set_timer(number, QUERY_TIMEOUT);
    }

    /// Now, or after the current run.
    pub(super) fn set_model(&mut self, model: String, out: &mut Actions) {
        if self.run.is_some() {
            self.deferred_model = Some(model);
            return;
        }
        // Scope `session`: the operator's configuration stays as it is.
        let mut params = json!({ "name": model, "scope": "session" });
        if let Some((provider, name)) = model.split_once('/')
            && PROVIDERS.contains(&provider)
        {
            params["provider"] = provider.into();
            params["name"] = name.into();
        }
        self.request(PendingRequest::ModelSet(model), "model.set", params, out);
    }
}

/// Compares the paths only; the sandbox decides what the agent can read.
fn is_within(directory: &str, cwd: &Value) -> bool {
    let path = cwd.as_str().map(Path::new);
    path.is_some_and(|path| {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        path.starts_with(directory) && !climbs
    })
}
