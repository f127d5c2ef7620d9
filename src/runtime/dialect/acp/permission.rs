//! Questions of the agent: may a tool be used?

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Act, FromAgent, Out};
use super::{Acp, short};
use crate::domain::command::Mode;
use crate::domain::event::Level;
use crate::domain::question::{
    Answer, Choice, ChoiceKind, Question, QuestionKind, Resolution, Said, Severity, ToolUse,
};
use crate::domain::tool::Tool;
use crate::runtime::jsonrpc;

/// A request that names something wrong.
const INVALID_PARAMS: i64 = -32602;

/// Ids of options are kept up to this length, in bytes.
const OPTION_ID: usize = 256;

/// The questions that wait for their answer, by the name that we gave them.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    asked: u64,
    open: BTreeMap<String, Open>,
}

/// One of them.
#[derive(Debug)]
struct Open {
    /// The agent's number for it, given back as it came.
    id: Value,
    options: Vec<Choice>,
}

/// What to answer.
enum Verdict {
    /// This option.
    Selected(String),
    /// None of them.
    Cancelled,
    /// None of them, although somebody said yes: only a yes for good is offered.
    OnlyForGood,
}

impl Acp {
    /// The agent asks.
    pub(super) fn permission(&mut self, id: Value, params: &Value, out: &mut Out) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if self.session.as_deref() != Some(session) {
            let what = format!("a permission for the session `{}`", short(session));
            out.act(Act::Stray(what));
            return out.write(jsonrpc::error(id, INVALID_PARAMS, "no such session here"));
        }
        let Some(run) = self.run.as_ref().filter(|run| !run.is_held()) else {
            out.act(Act::Odd("a permission outside of a run".into()));
            return out.write(jsonrpc::result(id, cancelled()));
        };
        let (run, over) = (run.id, run.cancelled);
        let tool = self.tools.mention(&params["toolCall"]);
        if let Some(tool) = &tool {
            let tool = tool.clone();
            out.tell(FromAgent::Tool { run, tool });
        }
        if over {
            return out.write(jsonrpc::result(id, cancelled()));
        }
        let mut asked = Box::new(question(tool, params));
        if self.is_departure(&asked, &params["toolCall"]) {
            asked.severity = Severity::Critical;
        }
        self.permissions.asked += 1;
        let name = format!("permission-{}", self.permissions.asked);
        let options = asked.options.clone();
        self.permissions
            .open
            .insert(name.clone(), Open { id, options });
        out.tell(FromAgent::Asked {
            run,
            question: name,
            asked,
            patience: None,
        });
    }

    /// Would a yes take the agent into another mode, or make deeds of a plan? Nobody but a human may
    /// say it then.
    fn is_departure(&self, asked: &Question, tool: &Value) -> bool {
        let id = tool["toolCallId"].as_str();
        let switches = id.is_some_and(|id| self.tools.switches_mode(id));
        let switches = switches || tool["kind"] == "switch_mode";
        let is_mode = |option: &Choice| self.choices.is_mode(&option.id);
        let plans = self.run.as_ref().is_some_and(|run| run.mode == Mode::Plan);
        let plans = plans || self.choices.is_planning();
        switches || asked.options.iter().any(is_mode) || plans && asked.severity > Severity::Info
    }

    /// The agent goes on without the answer.
    pub(super) fn taken_back(&mut self, request: &Value, out: &mut Out) {
        let mut open = self.permissions.open.iter();
        let found = open.find(|(_, open)| open.id == *request);
        let Some(question) = found.map(|(name, _)| name.clone()) else {
            return;
        };
        self.permissions.open.remove(&question);
        // Also who does not want to know any more gets an answer.
        out.write(jsonrpc::result(request.clone(), cancelled()));
        out.tell(FromAgent::Settled { question });
    }

    /// Somebody answered, or nobody did.
    pub(super) fn permitted(&mut self, name: &str, resolution: &Resolution, out: &mut Out) {
        let Some(open) = self.permissions.open.remove(name) else {
            return;
        };
        let outcome = match verdict(&open.options, resolution) {
            Verdict::Selected(option) => {
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            }
            Verdict::Cancelled => cancelled(),
            Verdict::OnlyForGood => {
                let text = format!(
                    "The agent `{}` takes no yes for this one time. It was not allowed; choose one \
                     of its options instead.",
                    self.setup.agent
                );
                out.notice(Level::Warn, text);
                cancelled()
            }
        };
        out.write(jsonrpc::result(open.id, outcome));
    }

    /// The run is over, and with it what it asked.
    pub(super) fn withdraw_questions(&mut self, out: &mut Out) {
        for open in std::mem::take(&mut self.permissions.open).into_values() {
            out.write(jsonrpc::result(open.id, cancelled()));
        }
    }
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

fn question(tool: Option<Tool>, params: &Value) -> Question {
    let options: Vec<Choice> = params["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(choice)
        .collect();
    let tool = tool.unwrap_or_else(|| Tool::new("", "tool", "pending"));
    let input = tool.input.as_ref();
    let command = input.and_then(|input| input["command"].as_str());
    let message = match command.filter(|command| !tool.title.contains(command)) {
        Some(command) => format!("{}\n\n{command}", tool.title),
        None => tool.title.clone(),
    };
    let kind = QuestionKind::Permission;
    let mut question = Question::new(kind, severity(&tool.kind), &tool.title, message);
    let for_good = |option: &Choice| {
        use ChoiceKind::{AllowAlways, RejectAlways};
        matches!(option.kind, Some(AllowAlways | RejectAlways))
    };
    question.allow_remember = options.iter().any(for_good);
    question.options = options;
    question.tool = (!tool.id.is_empty()).then(|| ToolUse {
        tool: tool.id,
        name: tool.name,
        args: tool.input.unwrap_or_default(),
    });
    question
}

/// Looking does no harm; everything else may.
fn severity(kind: &str) -> Severity {
    match kind {
        "read" | "search" | "fetch" | "think" => Severity::Info,
        _ => Severity::Warn,
    }
}

fn choice(option: &Value) -> Option<Choice> {
    let id = option["optionId"].as_str()?;
    // What cannot be kept as it is would not be known when it comes back.
    if id.len() > OPTION_ID || id.contains('\0') {
        return None;
    }
    let kind = option["kind"].as_str();
    Some(Choice {
        id: id.to_owned(),
        label: option["name"].as_str().unwrap_or(id).to_owned(),
        detail: None,
        kind: kind.and_then(meaning),
    })
}

/// What an option means, by the protocol's word for it.
fn meaning(word: &str) -> Option<ChoiceKind> {
    Some(match word {
        "allow_once" => ChoiceKind::AllowOnce,
        "allow_always" => ChoiceKind::AllowAlways,
        "reject_once" => ChoiceKind::RejectOnce,
        "reject_always" => ChoiceKind::RejectAlways,
        _ => return None,
    })
}

/// The option that says what was said, and never more than that.
fn verdict(options: &[Choice], resolution: &Resolution) -> Verdict {
    use ChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let of_kind = |kind| options.iter().find(|option| option.kind == Some(kind));
    let first = |kinds: &[ChoiceKind]| {
        let found = kinds.iter().find_map(|kind| of_kind(*kind));
        found.map_or(Verdict::Cancelled, |option| {
            Verdict::Selected(option.id.clone())
        })
    };
    match resolution {
        Resolution::Cancelled => Verdict::Cancelled,
        Resolution::Expired => first(&[RejectOnce]),
        Resolution::Answered(Answer { said, remember, .. }) => match (said, remember) {
            (Said::Option(name), _) => {
                let named = options.iter().find(|option| option.id == *name);
                let named = named.or_else(|| meaning(name).and_then(of_kind));
                named.map_or_else(
                    || first(&[RejectOnce]),
                    |option| Verdict::Selected(option.id.clone()),
                )
            }
            (Said::Ok(true), true) => first(&[AllowAlways, AllowOnce]),
            (Said::Ok(true), false) if of_kind(AllowOnce).is_none() => Verdict::OnlyForGood,
            (Said::Ok(true), false) => first(&[AllowOnce]),
            (Said::Ok(false), true) => first(&[RejectAlways, RejectOnce]),
            // Neither a text nor a list is a yes to a permission.
            _ => first(&[RejectOnce]),
        },
    }
}
