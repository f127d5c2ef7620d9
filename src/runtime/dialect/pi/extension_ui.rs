//! Extension UI: dialogs become questions, notifications become notices, the rest is passed on raw.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::{Actions, FromAgent, text_of};
use super::PROTOCOL;
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::{AnswerValue, Choice, Question, QuestionKind, Resolution, Severity};
use crate::runtime::open_questions::OpenQuestions;

/// The unanswered dialogs.
#[derive(Debug)]
pub(super) struct Dialogs {
    pending: OpenQuestions<PendingDialog>,
}

#[derive(Debug)]
struct PendingDialog {
    id: String,
    /// Of its options.
    labels: Vec<String>,
}

fn respond(id: &str, field: &str, value: impl Into<Value>, out: &mut Actions) {
    let mut line = json!({ "type": "extension_ui_response", "id": id });
    line[field] = value.into();
    out.write(line);
}

impl Default for Dialogs {
    fn default() -> Self {
        let pending = OpenQuestions::named("dialog");
        Self { pending }
    }
}

impl Dialogs {
    /// Asks the user. Without a run there is no one to ask: the dialog is cancelled.
    pub(super) fn ask(&mut self, event: &Value, run: Option<RunId>, out: &mut Actions) {
        let Some(question) = question(event) else {
            return show(event, out);
        };
        let id = text_of(&event["id"]);
        let Some(run) = run else {
            out.unexpected("a dialog while no run is under way");
            return respond(&id, "cancelled", true, out);
        };
        let labels = question.options.iter().map(|option| option.label.clone());
        let labels = labels.collect();
        out.emit(FromAgent::QuestionAsked {
            run,
            question: self.pending.add(PendingDialog { id, labels }),
            content: Box::new(question),
            timeout: event["timeout"].as_u64().map(Duration::from_millis),
        });
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.pending.names()
    }

    pub(super) fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(PendingDialog { id: dialog, labels }) = self.pending.take(question) else {
            return;
        };
        let label = |id: &String| {
            let index: usize = id.parse().ok()?;
            labels.get(index).cloned()
        };
        let said = match resolution {
            Resolution::Answered(answer) => Some(&answer.value),
            Resolution::Expired | Resolution::Cancelled => None,
        };
        let value = match said {
            Some(AnswerValue::Ok(true)) => return respond(&dialog, "confirmed", true, out),
            Some(AnswerValue::Text(text)) => text.clone(),
            Some(AnswerValue::Option(id)) => label(id),
            Some(AnswerValue::Ids(ids)) => ids.first().and_then(label),
            Some(AnswerValue::Ok(false)) | None => None,
        };
        match value {
            Some(value) => respond(&dialog, "value", value, out),
            None => respond(&dialog, "cancelled", true, out),
        }
    }
}

/// None if it is not a dialog.
fn question(event: &Value) -> Option<Question> {
    let (title, message) = (text_of(&event["title"]), text_of(&event["message"]));
    let new = |kind, severity| Question::new(kind, severity, &title, &message);
    let question = match event["method"].as_str()? {
        "select" => Question {
            options: choices(&event["options"]),
            ..new(QuestionKind::Pick, severity_of(&title))
        },
        "confirm" => new(
            QuestionKind::Confirm,
            severity_of(&format!("{title} {message}")),
        ),
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
    Some(question)
}

/// Extensions state the severity only in their text.
fn severity_of(text: &str) -> Severity {
    let text = text.to_lowercase();
    if ["danger", "critical"]
        .iter()
        .any(|word| text.contains(word))
    {
        Severity::Critical
    } else {
        Severity::Warn
    }
}

fn choices(options: &Value) -> Vec<Choice> {
    let options = options.as_array().into_iter().flatten().enumerate();
    let choice = |(index, label): (usize, &Value)| Choice {
        id: index.to_string(),
        label: text_of(label),
        detail: None,
        kind: None,
    };
    options.map(choice).collect()
}

fn show(event: &Value, out: &mut Actions) {
    if event["method"] != "notify" {
        return out.emit_raw(PROTOCOL.name, event.clone());
    }
    let level = match event["notifyType"].as_str() {
        Some("warning") => Level::Warn,
        Some("error") => Level::Error,
        _ => Level::Info,
    };
    out.emit_notice(level, text_of(&event["message"]));
}
