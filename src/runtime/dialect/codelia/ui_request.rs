//! UI requests (`ui.confirm`, `ui.prompt`, `ui.pick`): the questions of a runtime and the responses
//! to them. Pure.

use serde_json::{Value, json};

use super::super::{Resolution, RunId, text_of};
use crate::domain::question::{AnswerValue, Choice, ChoiceKind, Question, QuestionKind, Severity};

const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

const STORED: &str =
    "Stored in the agent's home: holds in every session of this session's owner with this agent.";

/// Clients cannot return a longer id.
const MAX_ID_LENGTH: usize = 256;

#[derive(Debug)]
pub(super) struct PendingQuestion {
    /// The run that asks; none if the request names none.
    pub(super) run: Option<RunId>,
    /// The id of the request, returned unchanged.
    pub(super) id: Value,
    pub(super) kind: UiRequest,
    /// The tool call that it asks permission for.
    pub(super) tool: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UiRequest {
    Confirm,
    Prompt,
    Pick,
}

impl UiRequest {
    pub(super) fn from_method(method: &str) -> Option<Self> {
        match method {
            "ui.confirm.request" => Some(Self::Confirm),
            "ui.prompt.request" => Some(Self::Prompt),
            "ui.pick.request" => Some(Self::Pick),
            _ => None,
        }
    }

    /// The runtime stores what it remembers in its home, where it answers for everybody who shares
    /// that: so it is offered only in a home of one user.
    pub(super) fn question(self, params: &Value, private_home: bool) -> Question {
        let flag = |name: &str| params[name] == true;
        let field = |name: &str| params[name].as_str().map(str::to_owned);
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
                    confirm_label: field("confirm_label"),
                    cancel_label: field("cancel_label"),
                    allow_remember: private_home && flag("allow_remember"),
                    allow_reason: flag("allow_reason"),
                    ..Question::new(QuestionKind::Confirm, severity, title, message)
                }
            }
            Self::Prompt => Question {
                default_value: field("default_value"),
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

    pub(super) fn answer(self, resolution: &Resolution) -> Value {
        let Resolution::Answered(answer) = resolution else {
            return self.denial();
        };
        match (self, &answer.value) {
            (Self::Confirm, said) => {
                let (ok, always) = match said {
                    AnswerValue::Ok(ok) => (*ok, false),
                    AnswerValue::Option(id) => {
                        (id == ALLOW || id == ALLOW_ALWAYS, id == ALLOW_ALWAYS)
                    }
                    AnswerValue::Text(_) | AnswerValue::Ids(_) => (false, false),
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
            (Self::Prompt, AnswerValue::Text(value)) => json!({ "value": value }),
            (Self::Pick, AnswerValue::Ids(ids)) => json!({ "ids": ids }),
            (Self::Pick, AnswerValue::Option(id)) => json!({ "ids": [id] }),
            (Self::Prompt | Self::Pick, _) => self.denial(),
        }
    }

    pub(super) fn denial(self) -> Value {
        match self {
            Self::Confirm => json!({ "ok": false }),
            Self::Prompt => json!({ "value": null }),
            Self::Pick => json!({ "ids": [] }),
        }
    }
}

/// Options for a confirmation that asks for permission to use a tool.
pub(super) fn permission_options(question: &Question) -> Vec<Choice> {
    let choice = |id: &str, label: Option<&str>, kind| Choice {
        id: id.into(),
        label: label.unwrap_or(id).into(),
        detail: (kind == ChoiceKind::AllowAlways).then(|| STORED.to_owned()),
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
        let is_valid = |id: &&str| id.len() <= MAX_ID_LENGTH && !id.contains('\0');
        let id = item["id"].as_str().filter(is_valid)?;
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
