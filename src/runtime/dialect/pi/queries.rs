//! What pi tells about itself, in the shapes that clients know.

use serde_json::{Map, Value, json};

use super::super::text_of;
use crate::domain::event::AgentCommand;

fn each<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

/// How a model is called: several providers may have the same.
fn name(model: &Value) -> Option<String> {
    let (provider, id) = (model["provider"].as_str()?, model["id"].as_str()?);
    // So pi calls what it has none of.
    Some(format!("{provider}/{id}")).filter(|_| provider != "unknown")
}

/// The models that are offered, and the one in use.
pub(super) fn models(data: &Value, current: &Value, params: &Value) -> Value {
    let provider = params["provider"].as_str();
    let wanted = |model: &&Value| provider.is_none_or(|provider| model["provider"] == provider);
    let (mut names, mut details) = (Vec::new(), Map::new());
    for model in each(data, "models").filter(wanted) {
        let Some(name) = name(model) else { continue };
        let detail = json!({
            "context_window": model["contextWindow"], "max_output_tokens": model["maxTokens"],
        });
        details.insert(name.clone(), detail);
        names.push(name);
    }
    let provider = provider.map_or_else(|| text_of(&current["provider"]), str::to_owned);
    let mut told = json!({ "provider": provider, "models": names });
    if let Some(current) = name(current) {
        told["current"] = current.into();
    }
    if params["include_details"] == true {
        told["details"] = details.into();
    }
    told
}

/// The commands of extensions, prompt templates and skills.
pub(super) fn commands(data: &Value) -> Vec<AgentCommand> {
    let command = |command: &Value| AgentCommand {
        name: text_of(&command["name"]),
        description: text_of(&command["description"]),
    };
    each(data, "commands").map(command).collect()
}

/// The skills among the commands.
pub(super) fn skills(data: &Value) -> Value {
    let commands = each(data, "commands").filter(|command| command["source"] == "skill");
    let skills: Vec<Value> = commands.map(skill).collect();
    json!({ "skills": skills, "errors": [], "truncated": false })
}

fn skill(command: &Value) -> Value {
    let name = text_of(&command["name"]);
    let name = name.strip_prefix("skill:").unwrap_or(&name);
    // Where it comes from was beside the command before it got a place of its own.
    let source = &command["sourceInfo"];
    let path = source["path"].as_str().or(command["path"].as_str());
    let path = path.unwrap_or_default();
    let scope = source["scope"].as_str().or(command["location"].as_str());
    json!({
        "id": name,
        "name": name,
        "description": text_of(&command["description"]),
        "path": path,
        "dir": path.rsplit_once('/').map_or("", |(dir, _)| dir),
        "scope": if scope == Some("project") { "repo" } else { "user" },
        // pi does not tell how old it is.
        "mtime_ms": 0,
    })
}
