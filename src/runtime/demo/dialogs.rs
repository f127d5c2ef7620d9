//! The questions that the demo agent asks, and how it goes on. Pure.

use std::time::Duration;

use serde_json::json;

use super::super::FromAgent;
use super::script::{Step, Steps, answer};
use crate::domain::event::Activity;
use crate::domain::id::RunId;
use crate::domain::question::{
    Answer, Choice, ChoiceKind, Question, QuestionKind, Resolution, Said, Severity, ToolUse,
};
use crate::domain::tool::Tool;

/// The one tool that it has.
pub(super) const TOOL: &str = "date";
/// What the tool says: the same on every clock.
const TOOL_OUTPUT: &str = "Thu Jan  1 00:00:00 UTC 1970";
const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// What it was told once and holds on to.
#[derive(Debug, Default)]
pub(super) struct Habits {
    /// The tools that it may use; all if nobody has chosen.
    pub(super) tools: Option<Vec<String>>,
    /// May the tool be used without asking again?
    allowed: Option<bool>,
}

/// One occasion to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    Tool,
    Confirm,
    Prompt,
    Pick,
}

/// A question that was asked: its name, and what it was about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) name: String,
    scene: Scene,
    options: Vec<Choice>,
}

impl Scene {
    /// The scene that the first word of a prompt asks for.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "/tool" => Some(Self::Tool),
            "/confirm" => Some(Self::Confirm),
            "/prompt" => Some(Self::Prompt),
            "/pick" => Some(Self::Pick),
            _ => None,
        }
    }

    /// Asks. A number among the words is how many seconds it waits; `secret` and `multi` are other
    /// kinds of the same question.
    pub(super) fn play(self, run: RunId, words: &str, habits: &Habits) -> Steps {
        let has = |wanted: &str| words.split_whitespace().any(|word| word == wanted);
        let seconds = words.split_whitespace().find_map(|word| word.parse().ok());
        if self == Self::Tool {
            let chosen = habits.tools.as_ref();
            if chosen.is_some_and(|tools| !tools.iter().any(|tool| tool == TOOL)) {
                let skipped = Step::Tell(tool(run, "skipped", None));
                let text = format!("The tool `{TOOL}` is switched off.");
                return Box::new(std::iter::once(skipped).chain(answer(run, text)));
            }
            if let Some(allowed) = habits.allowed {
                return tool_decided(run, allowed, None);
            }
        }
        let question = self.question(run, has("secret"), has("multi"));
        let asked = Asked {
            name: self.name(run, question.secret),
            scene: self,
            options: question.options.clone(),
        };
        let wanted = (self == Self::Tool).then(|| Step::Tell(tool(run, "pending", None)));
        let asks = [
            Step::Tell(FromAgent::Activity(Activity::WaitingForInput)),
            Step::Tell(FromAgent::Asked {
                run,
                question: asked.name.clone(),
                asked: Box::new(question),
                patience: seconds.map(Duration::from_secs),
            }),
            Step::Await(asked),
        ];
        Box::new(wanted.into_iter().chain(asks))
    }

    /// Its own name for the question; says what it needs to know after a restart.
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
                choice("always", "Always allow", Some(ChoiceKind::AllowAlways)),
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
                args: arguments(),
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

impl Asked {
    /// The question that another life of this agent had asked under that name.
    pub(super) fn resumed(prompt: &str, name: &str) -> Option<Self> {
        let scene = Scene::of(prompt.split_whitespace().next()?)?;
        let options = scene.question(RunId::new(), false, false).options;
        Some(Self {
            name: name.to_owned(),
            scene,
            options,
        })
    }

    /// What follows from the answer.
    pub(super) fn answered(
        &self,
        run: RunId,
        resolution: &Resolution,
        habits: &mut Habits,
    ) -> Steps {
        let thinking = Step::Tell(FromAgent::Activity(Activity::Thinking));
        let given = match resolution {
            Resolution::Answered(given) => given,
            Resolution::Expired if self.scene == Scene::Tool => {
                return tool_decided(run, false, Some("nobody answered in time"));
            }
            Resolution::Expired => {
                let text = "Nobody answered in time; I take that as a no.".to_owned();
                return Box::new(std::iter::once(thinking).chain(answer(run, text)));
            }
            // The end of the run is on its way.
            Resolution::Cancelled => return Box::new(std::iter::once(Step::Hang)),
        };
        if self.scene == Scene::Tool {
            let (allowed, for_good) = self.decision(given);
            if for_good {
                habits.allowed = Some(allowed);
            }
            return tool_decided(run, allowed, given.reason.as_deref());
        }
        let text = self.reaction(given);
        Box::new(std::iter::once(thinking).chain(answer(run, text)))
    }

    /// Is it a yes, and for good?
    fn decision(&self, given: &Answer) -> (bool, bool) {
        let kind = match &given.said {
            Said::Ok(ok) => return (*ok, given.remember),
            Said::Option(id) => self
                .options
                .iter()
                .find(|option| option.id == *id)
                .and_then(|option| option.kind),
            Said::Value(_) | Said::Ids(_) => None,
        };
        let always = matches!(
            kind,
            Some(ChoiceKind::AllowAlways | ChoiceKind::RejectAlways)
        );
        let allowed = kind.is_some_and(ChoiceKind::allows);
        (allowed, always || given.remember)
    }

    fn reaction(&self, given: &Answer) -> String {
        let because = given
            .reason
            .as_ref()
            .map(|reason| format!(" Because: {reason}"))
            .unwrap_or_default();
        match (self.scene, &given.said) {
            (Scene::Confirm, Said::Ok(true)) => format!("You said yes.{because}"),
            (_, Said::Ok(_)) => format!("You said no.{because}"),
            (_, Said::Value(Some(text))) if self.name.ends_with("secret") => {
                format!("Your secret has {} characters.", text.chars().count())
            }
            (_, Said::Value(Some(text))) => format!("You said: {text}"),
            (_, Said::Value(None)) => "You said nothing.".into(),
            (_, Said::Option(id)) => format!("You picked: {id}"),
            (_, Said::Ids(ids)) if ids.is_empty() => "You picked nothing.".into(),
            (_, Said::Ids(ids)) => format!("You picked: {}", ids.join(", ")),
        }
    }
}

fn tool_decided(run: RunId, allowed: bool, reason: Option<&str>) -> Steps {
    if allowed {
        let done = [
            Step::Tell(FromAgent::Activity(Activity::ExecutingTool)),
            Step::Tell(tool(run, "running", None)),
            Step::Tell(tool(run, "completed", Some(TOOL_OUTPUT))),
            Step::Tell(FromAgent::Activity(Activity::Thinking)),
        ];
        let text = format!("I ran `{TOOL}`. It said: {TOOL_OUTPUT}");
        return Box::new(done.into_iter().chain(answer(run, text)));
    }
    let because = reason
        .map(|reason| format!(" Because: {reason}"))
        .unwrap_or_default();
    let denied = [
        Step::Tell(tool(run, "denied", None)),
        Step::Tell(FromAgent::Activity(Activity::Thinking)),
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
        input: Some(arguments()),
        output: output.map(|text| json!({ "text": text })),
    };
    FromAgent::Tool { run, tool }
}

fn tool_id(run: RunId) -> String {
    format!("{run}.{TOOL}")
}

fn arguments() -> serde_json::Value {
    json!({ "command": [TOOL] })
}
