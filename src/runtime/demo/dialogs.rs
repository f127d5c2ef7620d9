//! Dialogs: the questions of the demo agent and how it continues. Pure.

use std::time::Duration;

use serde_json::json;

use super::super::FromAgent;
use super::script::{Step, Steps, answer};
use crate::domain::event::Activity;
use crate::domain::id::RunId;
use crate::domain::question::{
    Answer, AnswerValue, Choice, ChoiceKind, Question, QuestionKind, Resolution, Severity, ToolUse,
};
use crate::domain::tool::Tool;

pub(super) const TOOL: &str = "date";
/// Output of the tool: the same on every clock.
const TOOL_OUTPUT: &str = "Thu Jan  1 00:00:00 UTC 1970";
const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// Choices that outlive a run.
#[derive(Debug, Default)]
pub(super) struct Preferences {
    /// Enabled tools; `None` for all.
    pub(super) tools: Option<Vec<String>>,
    allowed: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialog {
    Tool,
    Confirm,
    Prompt,
    Pick,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PendingQuestion {
    pub(super) name: String,
    dialog: Dialog,
    options: Vec<Choice>,
}

impl Dialog {
    pub(super) fn from_command(word: &str) -> Option<Self> {
        match word {
            "/tool" => Some(Self::Tool),
            "/confirm" => Some(Self::Confirm),
            "/prompt" => Some(Self::Prompt),
            "/pick" => Some(Self::Pick),
            _ => None,
        }
    }

    /// The steps that ask. A number is the timeout in seconds; `secret` and `multi` are variants of
    /// the question.
    pub(super) fn steps(self, run: RunId, arguments: &str, preferences: &Preferences) -> Steps {
        let has = |name: &str| arguments.split_whitespace().any(|word| word == name);
        let seconds = arguments
            .split_whitespace()
            .find_map(|word| word.parse().ok());
        if self == Self::Tool {
            let chosen = preferences.tools.as_ref();
            if chosen.is_some_and(|tools| !tools.iter().any(|tool| tool == TOOL)) {
                let skipped = Step::Emit(tool(run, "skipped", None));
                let text = format!("The tool `{TOOL}` is switched off.");
                return Box::new(std::iter::once(skipped).chain(answer(run, text)));
            }
            if let Some(allowed) = preferences.allowed {
                return decided_tool_steps(run, allowed, None);
            }
        }
        let question = self.question(run, has("secret"), has("multi"));
        let asked = PendingQuestion {
            name: self.name(run, question.secret),
            dialog: self,
            options: question.options.clone(),
        };
        let pending_tool = (self == Self::Tool).then(|| Step::Emit(tool(run, "pending", None)));
        let ask = [
            Step::Emit(FromAgent::Activity(Activity::WaitingForInput)),
            Step::Emit(FromAgent::QuestionAsked {
                run,
                question: asked.name.clone(),
                content: Box::new(question),
                timeout: seconds.map(Duration::from_secs),
            }),
            Step::Await(asked),
        ];
        Box::new(pending_tool.into_iter().chain(ask))
    }

    /// The question's id; it carries what is needed after a restart.
    fn name(self, run: RunId, secret: bool) -> String {
        let kind = if secret { ".secret" } else { "" };
        format!("{run}.{self:?}{kind}").to_lowercase()
    }

    fn question(self, run: RunId, secret: bool, multi: bool) -> Question {
        let choice = |id: &str, label: &str, kind| Choice {
            id: id.into(),
            label: label.into(),
            detail: None,
            kind,
        };
        let (kind, title, message) = match self {
            Self::Tool => (
                QuestionKind::Permission,
                "Run `date`?",
                "The demo agent would like to run `date`.",
            ),
            Self::Confirm => (
                QuestionKind::Confirm,
                "Go on?",
                "The demo agent wants to know whether to go on. Nothing will happen either way.",
            ),
            Self::Prompt if secret => (
                QuestionKind::Prompt,
                "A secret, please",
                "The demo agent tells how long it is, and nothing else. It is stored nowhere.",
            ),
            Self::Prompt => (
                QuestionKind::Prompt,
                "What is your name?",
                "The demo agent would like to greet you.",
            ),
            Self::Pick => (
                QuestionKind::Pick,
                "Which colour?",
                "The demo agent likes them all.",
            ),
        };
        let options = match self {
            Self::Tool => vec![
                choice("allow", "Allow", Some(ChoiceKind::AllowOnce)),
                Choice {
                    detail: Some("Holds in this session, until its agent is restarted.".into()),
                    ..choice("always", "Always allow", Some(ChoiceKind::AllowAlways))
                },
                choice("deny", "Deny", Some(ChoiceKind::RejectOnce)),
            ],
            Self::Pick => COLOURS
                .iter()
                .map(|colour| choice(colour, colour, None))
                .collect(),
            Self::Confirm | Self::Prompt => Vec::new(),
        };
        let severity = match self {
            Self::Tool => Severity::Warn,
            Self::Confirm => Severity::Critical,
            Self::Prompt | Self::Pick => Severity::Info,
        };
        Question {
            options,
            tool: (self == Self::Tool).then(|| ToolUse {
                tool: tool_id(run),
                name: TOOL.into(),
                args: tool_arguments(),
            }),
            confirm_label: (self == Self::Confirm).then(|| "Go on".into()),
            cancel_label: (self == Self::Confirm).then(|| "Stop".into()),
            allow_remember: self == Self::Tool,
            allow_reason: matches!(self, Self::Tool | Self::Confirm),
            default_value: (self == Self::Prompt && !secret).then(|| "Ada".into()),
            secret: self == Self::Prompt && secret,
            multi: self == Self::Pick && multi,
            ..Question::new(kind, severity, title, message)
        }
    }
}

impl PendingQuestion {
    /// A question that was asked before a restart.
    pub(super) fn resumed(prompt: &str, name: &str) -> Option<Self> {
        let dialog = Dialog::from_command(prompt.split_whitespace().next()?)?;
        let options = dialog.question(RunId::new(), false, false).options;
        Some(Self {
            name: name.to_owned(),
            dialog,
            options,
        })
    }

    pub(super) fn steps_after(
        &self,
        run: RunId,
        resolution: &Resolution,
        preferences: &mut Preferences,
    ) -> Steps {
        let thinking = Step::Emit(FromAgent::Activity(Activity::Thinking));
        let given = match resolution {
            Resolution::Answered(given) => given,
            Resolution::Expired if self.dialog == Dialog::Tool => {
                return decided_tool_steps(run, false, Some("nobody answered in time"));
            }
            Resolution::Expired => {
                let text = "Nobody answered in time; I take that as a no.".to_owned();
                return Box::new(std::iter::once(thinking).chain(answer(run, text)));
            }
            // The end of the run follows.
            Resolution::Cancelled => return Box::new(std::iter::once(Step::Hang)),
        };
        if self.dialog == Dialog::Tool {
            let (allowed, remember) = self.decision(given);
            if remember {
                preferences.allowed = Some(allowed);
            }
            return decided_tool_steps(run, allowed, given.reason.as_deref());
        }
        let text = self.reply_text(given);
        Box::new(std::iter::once(thinking).chain(answer(run, text)))
    }

    /// Returns whether it is allowed, and whether to remember that.
    fn decision(&self, given: &Answer) -> (bool, bool) {
        let kind = match &given.value {
            AnswerValue::Ok(ok) => return (*ok, given.remember),
            AnswerValue::Option(id) => self
                .options
                .iter()
                .find(|option| option.id == *id)
                .and_then(|option| option.kind),
            AnswerValue::Text(_) | AnswerValue::Ids(_) => None,
        };
        let always = matches!(
            kind,
            Some(ChoiceKind::AllowAlways | ChoiceKind::RejectAlways)
        );
        let allowed = kind.is_some_and(ChoiceKind::allows);
        (allowed, always || given.remember)
    }

    fn reply_text(&self, given: &Answer) -> String {
        let because = given
            .reason
            .as_ref()
            .map(|reason| format!(" Because: {reason}"))
            .unwrap_or_default();
        match (self.dialog, &given.value) {
            (Dialog::Confirm, AnswerValue::Ok(true)) => format!("You said yes.{because}"),
            (_, AnswerValue::Ok(_)) => format!("You said no.{because}"),
            (_, AnswerValue::Text(Some(text))) if self.name.ends_with("secret") => {
                format!("Your secret has {} characters.", text.chars().count())
            }
            (_, AnswerValue::Text(Some(text))) => format!("You said: {text}"),
            (_, AnswerValue::Text(None)) => "You said nothing.".into(),
            (_, AnswerValue::Option(id)) => format!("You picked: {id}"),
            (_, AnswerValue::Ids(ids)) if ids.is_empty() => "You picked nothing.".into(),
            (_, AnswerValue::Ids(ids)) => format!("You picked: {}", ids.join(", ")),
        }
    }
}

fn decided_tool_steps(run: RunId, allowed: bool, reason: Option<&str>) -> Steps {
    if allowed {
        let done = [
            Step::Emit(FromAgent::Activity(Activity::ExecutingTool)),
            Step::Emit(tool(run, "running", None)),
            Step::Emit(tool(run, "completed", Some(TOOL_OUTPUT))),
            Step::Emit(FromAgent::Activity(Activity::Thinking)),
        ];
        let text = format!("I ran `{TOOL}`. It said: {TOOL_OUTPUT}");
        return Box::new(done.into_iter().chain(answer(run, text)));
    }
    let because = reason
        .map(|reason| format!(" Because: {reason}"))
        .unwrap_or_default();
    let denied = [
        Step::Emit(tool(run, "denied", None)),
        Step::Emit(FromAgent::Activity(Activity::Thinking)),
    ];
    let text = format!("I did not run `{TOOL}`.{because}");
    Box::new(denied.into_iter().chain(answer(run, text)))
}

fn tool(run: RunId, status: &str, output: Option<&str>) -> FromAgent {
    let tool = Tool {
        kind: "other".into(),
        id: tool_id(run),
        name: TOOL.into(),
        title: format!("Run `{TOOL}`"),
        status: status.into(),
        input: Some(tool_arguments()),
        output: output.map(|text| json!({ "text": text })),
    };
    FromAgent::ToolUpdate { run, tool }
}

fn tool_id(run: RunId) -> String {
    format!("{run}.{TOOL}")
}

fn tool_arguments() -> serde_json::Value {
    json!({ "command": [TOOL] })
}
