//! What extensions show: dialogs become questions, the rest is told or handed on.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Act, FromAgent, Out, text_of};
use super::PROTOCOL;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::{Choice, Question, QuestionKind, Resolution, Said, Severity};

/// The dialogs that wait for an answer, by the name that we gave the question: their ids may be
/// anything.
#[derive(Debug, Default)]
pub(super) struct Dialogs {
    asked: u64,
    open: HashMap<String, Open>,
}

/// A dialog.
#[derive(Debug)]
struct Open {
    id: String,
    /// What can be chosen in it.
    labels: Vec<String>,
}

fn respond(id: &str, field: &str, value: impl Into<Value>, out: &mut Out) {
    let mut line = json!({ "type": "extension_ui_response", "id": id });
    line[field] = value.into();
    out.write(line);
}

impl Dialogs {
    /// An extension shows something. Without a run nobody can be asked: the dialog is left.
    pub(super) fn ask(&mut self, event: &Value, run: Option<RunId>, out: &mut Out) {
        let Some(asked) = question(event) else {
            return show(event, out);
        };
        let id = text_of(&event["id"]);
        let Some(run) = run else {
            out.act(Act::Odd("a dialog while no run is under way".into()));
            return respond(&id, "cancelled", true, out);
        };
        let labels = asked.options.iter().map(|option| option.label.clone());
        let labels = labels.collect();
        self.asked += 1;
        let question = format!("dialog-{}", self.asked);
        self.open.insert(question.clone(), Open { id, labels });
        out.tell(FromAgent::Asked {
            run,
            question,
            asked: Box::new(asked),
            patience: event["timeout"].as_u64().map(Duration::from_millis),
        });
    }

    /// Does any wait?
    pub(super) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// A question has its end.
    pub(super) fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        let Some(Open { id: dialog, labels }) = self.open.remove(question) else {
            return;
        };
        let label = |id: &String| {
            let place: usize = id.parse().ok()?;
            labels.get(place).cloned()
        };
        let said = match resolution {
            Resolution::Answered(answer) => Some(&answer.said),
            Resolution::Expired | Resolution::Cancelled => None,
        };
        let value = match said {
            Some(Said::Ok(true)) => return respond(&dialog, "confirmed", true, out),
            Some(Said::Value(text)) => text.clone(),
            Some(Said::Option(id)) => label(id),
            Some(Said::Ids(ids)) => ids.first().and_then(label),
            Some(Said::Ok(false)) | None => None,
        };
        match value {
            Some(value) => respond(&dialog, "value", value, out),
            None => respond(&dialog, "cancelled", true, out),
        }
    }
}

/// The question that a dialog is, if it is one.
fn question(event: &Value) -> Option<Question> {
    let (title, message) = (text_of(&event["title"]), text_of(&event["message"]));
    let new = |kind, severity| Question::new(kind, severity, &title, &message);
    let asked = match event["method"].as_str()? {
        "select" => Question {
            options: choices(&event["options"]),
            ..new(QuestionKind::Pick, weight(&title))
        },
        "confirm" => new(QuestionKind::Confirm, weight(&format!("{title} {message}"))),
        "input" => Question {
            message: text_of(&event["placeholder"]),
            ..new(QuestionKind::Prompt, Severity::Info)
        },
        "editor" => Question {
            default_value: event["prefill"].as_str().map(str::to_owned),
            multiline: true,
            ..new(QuestionKind::Prompt, Severity::Info)
        },
        _ => return None,
    };
    Some(asked)
}

/// Extensions say in their own words how much hangs on it.
fn weight(words: &str) -> Severity {
    let words = words.to_lowercase();
    if ["danger", "critical"]
        .iter()
        .any(|word| words.contains(word))
    {
        Severity::Critical
    } else {
        Severity::Warn
    }
}

fn choices(options: &Value) -> Vec<Choice> {
    let options = options.as_array().into_iter().flatten().enumerate();
    let choice = |(place, label): (usize, &Value)| Choice {
        id: place.to_string(),
        label: text_of(label),
        detail: None,
        kind: None,
    };
    options.map(choice).collect()
}

fn show(event: &Value, out: &mut Out) {
    if event["method"] != "notify" {
        return out.raw(PROTOCOL.name, event.clone());
    }
    let level = match event["notifyType"].as_str() {
        Some("warning") => Level::Warn,
        Some("error") => Level::Error,
        _ => Level::Info,
    };
    out.notice(level, text_of(&event["message"]));
}
