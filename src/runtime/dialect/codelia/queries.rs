//! What is asked of the runtime itself: lists, and another model. Pure.

use serde_json::{Map, Value, json};

use super::super::{Inquiry, Out, unsupported};
use super::{Codelia, INQUIRY, Waiting};
use crate::domain::command::Topic;

/// The providers that may stand before the name of a model.
const PROVIDERS: [&str; 6] = [
    "openai",
    "anthropic",
    "openrouter",
    "moonshot",
    "zai",
    "xai",
];

impl Codelia {
    pub(super) fn inquire(&mut self, id: u64, inquiry: Inquiry, out: &mut Out) {
        let agent = &self.setup.agent;
        let declined = match &inquiry {
            Inquiry::Extension { name, .. } => Some(format!("do `{name}`")),
            Inquiry::Query { topic, .. } => match topic {
                Topic::Mcp if self.lacks.contains("mcp") => Some("list its MCP servers".into()),
                Topic::Skills if self.lacks.contains("skills") => Some("list its skills".into()),
                Topic::Models | Topic::Mcp | Topic::Skills => None,
                Topic::Commands => Some("list its commands".into()),
                Topic::Tree => Some("show how its conversation branches".into()),
            },
        };
        if let Some(what) = declined {
            return out.decline_with(id, unsupported(agent, &what));
        }
        let Inquiry::Query { topic, params } = inquiry else {
            return;
        };
        let (method, names): (_, &[&str]) = match topic {
            Topic::Mcp => ("mcp.list", &["scope"]),
            Topic::Skills => ("skills.list", &["force_reload"]),
            _ => ("model.list", &["provider", "include_details"]),
        };
        // Nothing else is passed on: a client must not send the agent to other folders.
        let asked: Map<String, Value> = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), params.get(name)?.clone())))
            .collect();
        let number = self.request(Waiting::Inquiry(id), method, Value::Object(asked), out);
        out.timer(number, INQUIRY);
    }

    /// Chooses a model, now or once the run is over.
    pub(super) fn choose(&mut self, model: String, out: &mut Out) {
        if self.run.is_some() {
            self.model = Some(model);
            return;
        }
        // Only for this conversation: what is configured is not ours to change.
        let mut params = json!({ "name": model, "scope": "session" });
        if let Some((provider, name)) = model.split_once('/')
            && PROVIDERS.contains(&provider)
        {
            params["provider"] = provider.into();
            params["name"] = name.into();
        }
        self.request(Waiting::Model(model), "model.set", params, out);
    }
}
