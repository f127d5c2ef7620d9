//! Queries: shapes pi's models, commands and skills for clients.

use serde_json::{Map, Value, json};

use super::super::{query_answers, text_of};
use crate::domain::event::AgentCommand;

fn each<'a>(data: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    data[name].as_array().into_iter().flatten()
}

/// With its provider: several may have the same model.
pub(super) fn model_name(model: &Value) -> Option<String> {
    let (provider, id) = (model["provider"].as_str()?, model["id"].as_str()?);
    // pi's placeholder for no model.
    Some(format!("{provider}/{id}")).filter(|_| provider != "unknown")
}

pub(super) fn models(data: &Value, current: &Value, params: &Value) -> Value {
    let provider = params["provider"].as_str();
    let is_wanted = |model: &&Value| provider.is_none_or(|provider| model["provider"] == provider);
    let (mut names, mut details) = (Vec::new(), Map::new());
    for model in each(data, "models").filter(is_wanted) {
        let Some(name) = model_name(model) else {
            continue;
        };
        let detail = json!({
            "context_window": model["contextWindow"], "max_output_tokens": model["maxTokens"],
        });
        details.insert(name.clone(), detail);
        names.push(name);
    }
    let provider = provider.map_or_else(|| text_of(&current["provider"]), str::to_owned);
    let mut answer = query_answers::models(&provider, &names, model_name(current).as_deref());
    if params["include_details"] == true {
        answer["details"] = details.into();
    }
    answer
}

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
    query_answers::skills(&skills, &[])
}

fn skill(command: &Value) -> Value {
    let name = text_of(&command["name"]);
    let name = name.strip_prefix("skill:").unwrap_or(&name);
    // Older versions have `path` and `location` beside the command.
    let source = &command["sourceInfo"];
    let path = source["path"].as_str().or(command["path"].as_str());
    let path = path.unwrap_or_default();
    let scope = source["scope"].as_str().or(command["location"].as_str());
    let description = text_of(&command["description"]);
    query_answers::skill(name, &description, path, scope == Some("project"))
}
