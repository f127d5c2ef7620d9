//! What Roo was asked about itself.
//!
//! Its answers carry no number, only the name of what was asked: one of each is on its way, and
//! whoever asks meanwhile gets the same answer.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::domain::code::Code;
use crate::domain::event::AgentCommand;
use crate::runtime::dialect::{Out, text_of};
use crate::runtime::talk::FromAgent;

/// How long an answer is waited for.
const WAIT: Duration = Duration::from_secs(10);

const MODELS: u64 = 10;
const COMMANDS: u64 = 11;
const MODES: u64 = 12;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The models, perhaps with what is known about each.
    Models {
        /// Is it?
        details: bool,
    },
    /// The commands that can stand in a prompt.
    Commands,
    /// The modes.
    Modes,
}

impl Wanted {
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

    fn answer(self, told: &Value) -> Value {
        match self {
            Self::Models { details } => models(told, details),
            Self::Commands => json!({ "commands": commands(told) }),
            Self::Modes => json!({ "modes": told }),
        }
    }
}

/// Those who wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Inquiries {
    waiting: Vec<(u64, Wanted)>,
}

impl Inquiries {
    /// Somebody asks; gives the command to send, unless it is on its way.
    pub(super) fn ask(&mut self, id: u64, wanted: Wanted, out: &mut Out) -> Option<&'static str> {
        let mut waiting = self.waiting.iter();
        let asked = waiting.any(|(_, other)| other.timer() == wanted.timer());
        self.waiting.push((id, wanted));
        if asked {
            return None;
        }
        out.timer(wanted.timer(), WAIT);
        Some(wanted.command())
    }

    /// Reads an answer; false if the event is none.
    pub(super) fn answered(&mut self, event: &str, told: &Value, out: &mut Out) -> bool {
        let timer = match event {
            "modelsResponse" => MODELS,
            "commandsResponse" => COMMANDS,
            "modesResponse" => MODES,
            _ => return false,
        };
        out.no_timer(timer);
        if timer == COMMANDS {
            out.tell(FromAgent::Commands(commands(told)));
        }
        for (id, wanted) in self.take(timer) {
            out.answer(id, wanted.answer(told));
        }
        true
    }

    /// No answer came in time.
    pub(super) fn late(&mut self, timer: u64, agent: &str, out: &mut Out) {
        for (id, _) in self.take(timer) {
            let message = format!("The agent `{agent}` did not answer.");
            out.decline(id, Code::ConnectionLost, message);
        }
    }

    fn take(&mut self, timer: u64) -> Vec<(u64, Wanted)> {
        let waiting = std::mem::take(&mut self.waiting);
        let (taken, left) = waiting
            .into_iter()
            .partition(|(_, wanted)| wanted.timer() == timer);
        self.waiting = left;
        taken
    }
}

/// Without the paths of their files: they are nobody's business.
fn commands(told: &Value) -> Vec<AgentCommand> {
    let each = told.as_array().into_iter().flatten();
    each.filter_map(|command| {
        Some(AgentCommand {
            name: command["name"].as_str()?.to_owned(),
            description: text_of(&command["description"]),
        })
    })
    .collect()
}

fn models(told: &Value, details: bool) -> Value {
    let none = Map::new();
    let known = told.as_object().unwrap_or(&none);
    let names: Vec<&String> = known.keys().collect();
    let mut answer = json!({ "provider": "roo", "models": names });
    if details {
        let each = known.iter().map(|(name, model)| {
            let mut about = Map::new();
            for (ours, theirs) in [
                ("context_window", "contextWindow"),
                ("max_output_tokens", "maxTokens"),
            ] {
                if let Some(count) = model[theirs].as_u64() {
                    about.insert(ours.into(), json!(count));
                }
            }
            (name.clone(), Value::Object(about))
        });
        answer["details"] = Value::Object(each.collect());
    }
    answer
}
