//! Queries about Roo itself.
//!
//! Responses carry no id, only their kind: one query of each kind is in flight, and later ones
//! share its response.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::domain::error_code::ErrorCode;
use crate::domain::event::AgentCommand;
use crate::runtime::dialect::{Actions, query_answers, text_of};
use crate::runtime::messages::FromAgent;

const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

const MODELS: u64 = 10;
const COMMANDS: u64 = 11;
const MODES: u64 = 12;

#[derive(Clone, Copy, Debug)]
pub(super) enum Query {
    Models { details: bool },
    Commands,
    Modes,
}

impl Query {
    fn timer(self) -> u64 {
        match self {
            Self::Models { .. } => MODELS,
            Self::Commands => COMMANDS,
            Self::Modes => MODES,
        }
    }

    fn command(self) -> &'static str {
        match self {
            Self::Models { .. } => "GetModels",
            Self::Commands => "GetCommands",
            Self::Modes => "GetModes",
        }
    }

    fn answer(self, response: &Value) -> Value {
        match self {
            Self::Models { details } => models(response, details),
            Self::Commands => json!({ "commands": commands(response) }),
            Self::Modes => json!({ "modes": response }),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct PendingQueries {
    waiting: Vec<(u64, Query)>,
}

impl PendingQueries {
    /// Adds a query; returns the command to send, unless one is in flight.
    pub(super) fn add(&mut self, id: u64, query: Query, out: &mut Actions) -> Option<&'static str> {
        let mut waiting = self.waiting.iter();
        let is_in_flight = waiting.any(|(_, other)| other.timer() == query.timer());
        self.waiting.push((id, query));
        if is_in_flight {
            return None;
        }
        out.set_timer(query.timer(), QUERY_TIMEOUT);
        Some(query.command())
    }

    /// Returns `false` if the event is no response.
    pub(super) fn handle_response(
        &mut self,
        event: &str,
        response: &Value,
        out: &mut Actions,
    ) -> bool {
        let timer = match event {
            "modelsResponse" => MODELS,
            "commandsResponse" => COMMANDS,
            "modesResponse" => MODES,
            _ => return false,
        };
        out.clear_timer(timer);
        if timer == COMMANDS {
            out.emit(FromAgent::CommandsAvailable(commands(response)));
        }
        for (id, query) in self.take(timer) {
            out.respond(id, query.answer(response));
        }
        true
    }

    pub(super) fn timed_out(&mut self, timer: u64, agent: &str, out: &mut Actions) {
        for (id, _) in self.take(timer) {
            let message = format!("The agent `{agent}` did not answer.");
            out.decline(id, ErrorCode::ConnectionLost, message);
        }
    }

    fn take(&mut self, timer: u64) -> Vec<(u64, Query)> {
        let waiting = std::mem::take(&mut self.waiting);
        let (taken, left) = waiting
            .into_iter()
            .partition(|(_, query)| query.timer() == timer);
        self.waiting = left;
        taken
    }
}

/// Without the paths of their files, which are private.
fn commands(response: &Value) -> Vec<AgentCommand> {
    let each = response.as_array().into_iter().flatten();
    each.filter_map(|command| {
        Some(AgentCommand {
            name: command["name"].as_str()?.to_owned(),
            description: text_of(&command["description"]),
        })
    })
    .collect()
}

fn models(response: &Value, details: bool) -> Value {
    let none = Map::new();
    let known = response.as_object().unwrap_or(&none);
    let names: Vec<&String> = known.keys().collect();
    let mut answer = query_answers::models("roo", &names, None);
    if details {
        let each = known.iter().map(|(name, model)| {
            let mut info = Map::new();
            for (ours, theirs) in [
                ("context_window", "contextWindow"),
                ("max_output_tokens", "maxTokens"),
            ] {
                if let Some(count) = model[theirs].as_u64() {
                    info.insert(ours.into(), json!(count));
                }
            }
            (name.clone(), Value::Object(info))
        });
        answer["details"] = Value::Object(each.collect());
    }
    answer
}
