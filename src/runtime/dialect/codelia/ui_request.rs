//! The questions that a runtime asks, and how their answers are put. Pure.

use serde_json::{Value, json};

use super::super::{Resolution, RunId, text_of};
use crate::domain::question::{Choice, ChoiceKind, Question, QuestionKind, Said, Severity};

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

/// An id that is longer does not come back whole.
const LONGEST_ID: usize = 256;

/// A question that waits for its answer.
#[derive(Debug)]
pub(super) struct Ask {
    /// The run that waits for it.
    pub(super) run: RunId,
    /// The id of the request, to be given back as it came.
    pub(super) id: Value,
    /// What is asked.
    pub(super) kind: Kind,
    /// The use of a tool that it is about.
    pub(super) tool: Option<String>,
}

/// The three kinds there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Confirm,
    Prompt,
    Pick,
}

impl Kind {
    /// The kind that a method asks for.
    pub(super) fn of(method: &str) -> Option<Self> {
        match method {
            "ui.confirm.request" => Some(Self::Confirm),
            "ui.prompt.request" => Some(Self::Prompt),
            "ui.pick.request" => Some(Self::Pick),
            _ => None,
        }
    }

    /// The question, as it is put to a human.
    pub(super) fn question(self, params: &Value) -> Question {
        let flag = |name: &str| params[name] == true;
        let word = |name: &str| params[name].as_str().map(str::to_owned);
        let title = text_of(&params["title"]);
        let message = match text_of(&params["message"]) {
            message if message.is_empty() => title.clone(),
            message => message,
        };
        match self {
            Self::Confirm => {
                let severity = if params["danger_level"] == "danger" {
                    Severity::Critical
                } else {
                    Severity::Warn
                };
                Question {
                    confirm_label: word("confirm_label"),
                    cancel_label: word("cancel_label"),
                    allow_remember: flag("allow_remember"),
                    allow_reason: flag("allow_reason"),
                    ..Question::new(QuestionKind::Confirm, severity, title, message)
                }
            }
            Self::Prompt => Question {
                default_value: word("default_value"),
                multiline: flag("multiline"),
                secret: flag("secret"),
                ..Question::new(QuestionKind::Prompt, Severity::Info, title, message)
            },
            Self::Pick => Question {
                options: items(&params["items"]),
                multi: flag("multi"),
                ..Question::new(QuestionKind::Pick, Severity::Info, title, message)
            },
        }
    }

    /// The answer, as the runtime reads it.
    pub(super) fn answer(self, resolution: &Resolution) -> Value {
        let Resolution::Answered(answer) = resolution else {
            return self.denial();
        };
        match (self, &answer.said) {
            (Self::Confirm, said) => {
                let (ok, always) = match said {
                    Said::Ok(ok) => (*ok, false),
                    Said::Option(id) => (id == ALLOW || id == ALLOW_ALWAYS, id == ALLOW_ALWAYS),
                    Said::Value(_) | Said::Ids(_) => (false, false),
                };
                let mut result = json!({ "ok": ok });
                if always || answer.remember {
                    result["remember"] = true.into();
                }
                if let Some(reason) = &answer.reason {
                    result["reason"] = reason.as_str().into();
                }
                result
            }
            (Self::Prompt, Said::Value(value)) => json!({ "value": value }),
            (Self::Pick, Said::Ids(ids)) => json!({ "ids": ids }),
            (Self::Pick, Said::Option(id)) => json!({ "ids": [id] }),
            (Self::Prompt | Self::Pick, _) => self.denial(),
        }
    }

    /// How a no is put.
    pub(super) fn denial(self) -> Value {
        match self {
            Self::Confirm => json!({ "ok": false }),
            Self::Prompt => json!({ "value": null }),
            Self::Pick => json!({ "ids": [] }),
        }
    }
}

/// The options of a question that turned out to be about a tool.
pub(super) fn permission_options(question: &Question) -> Vec<Choice> {
    let choice = |id: &str, label: Option<&str>, kind| Choice {
        id: id.into(),
        label: label.unwrap_or(id).into(),
        detail: None,
        kind: Some(kind),
    };
    let yes = question.confirm_label.as_deref().unwrap_or("Allow");
    let no = question.cancel_label.as_deref().unwrap_or("Deny");
    let mut options = vec![choice(ALLOW, Some(yes), ChoiceKind::AllowOnce)];
    if question.allow_remember {
        let always = Some("Always allow");
        options.push(choice(ALLOW_ALWAYS, always, ChoiceKind::AllowAlways));
    }
    options.push(choice(DENY, Some(no), ChoiceKind::RejectOnce));
    options
}

fn items(items: &Value) -> Vec<Choice> {
    let item = |item: &Value| {
        let fits = |id: &&str| id.len() <= LONGEST_ID && !id.contains('\0');
        let id = item["id"].as_str().filter(fits)?;
        Some(Choice {
            id: id.into(),
            label: item["label"].as_str().unwrap_or(id).into(),
            detail: item["detail"].as_str().map(str::to_owned),
            kind: None,
        })
    };
    let items = items.as_array();
    items.into_iter().flatten().filter_map(item).collect()
}
