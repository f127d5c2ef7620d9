//! Permission requests: the agent asks whether it may use a tool.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{Actions, FromAgent};
use super::{Acp, excerpt};
use crate::domain::command::Mode;
use crate::domain::event::Level;
use crate::domain::question::{
    Answer, AnswerValue, Choice, ChoiceKind, Question, QuestionKind, Resolution, Severity, ToolUse,
};
use crate::domain::tool::Tool;
use crate::runtime::jsonrpc;

const INVALID_PARAMS: i64 = -32602;

/// A longer id would not survive truncation, and its option could not be chosen.
const MAX_OPTION_ID_BYTES: usize = 256;

/// The permission requests that wait for an answer, by the question's id.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    count: u64,
    pending: BTreeMap<String, PendingPermission>,
}

#[derive(Debug)]
struct PendingPermission {
    /// The request's id, returned as it came.
    id: Value,
    options: Vec<Choice>,
}

enum PermissionOutcome {
    /// The id of an option.
    Selected(String),
    Cancelled,
    /// The user allowed it once, but only `allow_always` is offered.
    NoAllowOnce,
}

impl Acp {
    pub(super) fn request_permission(&mut self, id: Value, params: &Value, out: &mut Actions) {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if self.session.as_deref() != Some(session) {
            let what = format!("a permission for the session `{}`", excerpt(session));
            out.misrouted(what);
            return out.write(jsonrpc::error(id, INVALID_PARAMS, "no such session here"));
        }
        let Some(run) = self.run.as_ref().filter(|run| !run.is_unsent()) else {
            out.unexpected("a permission outside of a run");
            return out.write(jsonrpc::result(id, cancelled()));
        };
        let (run, is_cancelled) = (run.id, run.cancelled);
        let tool = self.tools.upsert(&params["toolCall"]);
        if let Some(tool) = &tool {
            let tool = tool.clone();
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
        if is_cancelled {
            return out.write(jsonrpc::result(id, cancelled()));
        }
        let mut question = Box::new(question(tool, params));
        if self.changes_mode(&question, &params["toolCall"]) {
            question.severity = Severity::Critical;
        }
        self.permissions.count += 1;
        let question_id = format!("permission-{}", self.permissions.count);
        let options = question.options.clone();
        let pending = PendingPermission { id, options };
        self.permissions
            .pending
            .insert(question_id.clone(), pending);
        out.emit(FromAgent::QuestionAsked {
            run,
            question: question_id,
            content: question,
            timeout: None,
        });
    }

    /// Whether allowing it would switch the agent's mode, or let it act while a plan was asked for: only
    /// a human may decide that.
    fn changes_mode(&self, question: &Question, tool: &Value) -> bool {
        let id = tool["toolCallId"].as_str();
        let switches_mode = id.is_some_and(|id| self.tools.switches_mode(id));
        let switches_mode = switches_mode || tool["kind"] == "switch_mode";
        let is_mode = |option: &Choice| self.config.is_mode(&option.id);
        let is_planning = self.run.as_ref().is_some_and(|run| run.mode == Mode::Plan);
        let is_planning = is_planning || self.config.is_planning();
        switches_mode
            || question.options.iter().any(is_mode)
            || is_planning && question.severity > Severity::Info
    }

    /// The agent cancelled its request.
    pub(super) fn withdraw_permission(&mut self, request: &Value, out: &mut Actions) {
        let mut pending = self.permissions.pending.iter();
        let found = pending.find(|(_, pending)| pending.id == *request);
        let Some(question) = found.map(|(name, _)| name.clone()) else {
            return;
        };
        self.permissions.pending.remove(&question);
        // A cancelled request needs its response too.
        out.write(jsonrpc::result(request.clone(), cancelled()));
        out.emit(FromAgent::QuestionWithdrawn { question });
    }

    pub(super) fn answer_permission(
        &mut self,
        question: &str,
        resolution: &Resolution,
        out: &mut Actions,
    ) {
        let Some(pending) = self.permissions.pending.remove(question) else {
            return;
        };
        let outcome = match outcome(&pending.options, resolution) {
            PermissionOutcome::Selected(option) => {
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            }
            PermissionOutcome::Cancelled => cancelled(),
            PermissionOutcome::NoAllowOnce => {
                let text = format!(
                    "The agent `{}` takes no yes for this one time. It was not allowed; choose one \
                     of its options instead.",
                    self.setup.agent
                );
                out.emit_notice(Level::Warn, text);
                cancelled()
            }
        };
        out.write(jsonrpc::result(pending.id, outcome));
    }

    /// The run is over, and its permission requests with it.
    pub(super) fn cancel_permissions(&mut self, out: &mut Actions) {
        for pending in std::mem::take(&mut self.permissions.pending).into_values() {
            out.write(jsonrpc::result(pending.id, cancelled()));
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
        .filter_map(parse_option)
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
    let is_lasting = |option: &Choice| {
        use ChoiceKind::{AllowAlways, RejectAlways};
        matches!(option.kind, Some(AllowAlways | RejectAlways))
    };
    question.allow_remember = options.iter().any(is_lasting);
    question.options = options;
    question.tool = (!tool.id.is_empty()).then(|| ToolUse {
        tool: tool.id,
        name: tool.name,
        args: tool.input.unwrap_or_default(),
    });
    question
}

fn severity(kind: &str) -> Severity {
    match kind {
        "read" | "search" | "fetch" | "think" => Severity::Info,
        _ => Severity::Warn,
    }
}

fn parse_option(option: &Value) -> Option<Choice> {
    let id = option["optionId"].as_str()?;
    if id.len() > MAX_OPTION_ID_BYTES || id.contains('\0') {
        return None;
    }
    let kind = option["kind"].as_str();
    Some(Choice {
        id: id.to_owned(),
        label: option["name"].as_str().unwrap_or(id).to_owned(),
        detail: None,
        kind: kind.and_then(option_kind),
    })
}

fn option_kind(word: &str) -> Option<ChoiceKind> {
    Some(match word {
        "allow_once" => ChoiceKind::AllowOnce,
        "allow_always" => ChoiceKind::AllowAlways,
        "reject_once" => ChoiceKind::RejectOnce,
        "reject_always" => ChoiceKind::RejectAlways,
        _ => return None,
    })
}

/// The option that grants or rejects what was answered, and never more than that.
fn outcome(options: &[Choice], resolution: &Resolution) -> PermissionOutcome {
    use ChoiceKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
    let of_kind = |kind| options.iter().find(|option| option.kind == Some(kind));
    let first = |kinds: &[ChoiceKind]| {
        let found = kinds.iter().find_map(|kind| of_kind(*kind));
        found.map_or(PermissionOutcome::Cancelled, |option| {
            PermissionOutcome::Selected(option.id.clone())
        })
    };
    match resolution {
        Resolution::Cancelled => PermissionOutcome::Cancelled,
        Resolution::Expired => first(&[RejectOnce]),
        Resolution::Answered(Answer {
            value, remember, ..
        }) => match (value, remember) {
            (AnswerValue::Option(name), _) => {
                let named = options.iter().find(|option| option.id == *name);
                let named = named.or_else(|| option_kind(name).and_then(of_kind));
                named.map_or_else(
                    || first(&[RejectOnce]),
                    |option| PermissionOutcome::Selected(option.id.clone()),
                )
            }
            (AnswerValue::Ok(true), true) => first(&[AllowAlways, AllowOnce]),
            (AnswerValue::Ok(true), false) if of_kind(AllowOnce).is_none() => {
                PermissionOutcome::NoAllowOnce
            }
            (AnswerValue::Ok(true), false) => first(&[AllowOnce]),
            (AnswerValue::Ok(false), true) => first(&[RejectAlways, RejectOnce]),
            // A text or a list allows nothing.
            _ => first(&[RejectOnce]),
        },
    }
}
