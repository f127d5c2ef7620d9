//! Permission requests: the agent asks whether it may use a tool.

use serde_json::{Value, json};

use super::super::{Actions, FromAgent};
use super::{Acp, excerpt, option_scope};
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

/// A permission request that waits for its answer.
#[derive(Debug)]
pub(super) struct PendingPermission {
    /// The request's id, returned as it came.
    id: Value,
    /// The id of the tool call, if it has one.
    tool: Option<String>,
    /// The options that are offered.
    options: Vec<Choice>,
}

const ONLY_FOR_GOOD: &str = "offers only a yes that it would store beyond this session. That would \
    answer for all users who share its home, so it is not offered here.";

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
        let tool = self.tools.ask(&params["toolCall"]);
        if let Some(tool) = &tool {
            let tool = tool.clone();
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
        if is_cancelled {
            return out.write(jsonrpc::result(id, cancelled()));
        }
        let name = tool.as_ref().map(|tool| tool.id.clone());
        let mut question = Box::new(self.question(tool, params));
        if self.changes_mode(&question, &params["toolCall"]) {
            question.severity = Severity::Critical;
        }
        let options = question.options.clone();
        let pending = PendingPermission {
            id,
            tool: name,
            options,
        };
        out.emit(FromAgent::QuestionAsked {
            run,
            question: self.permissions.add(pending),
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
        let withdrawn = self
            .permissions
            .take_first(|pending| pending.id == *request);
        let Some((question, _)) = withdrawn else {
            return;
        };
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
        let Some(pending) = self.permissions.take(question) else {
            return;
        };
        let outcome = outcome(&pending.options, resolution);
        let is_denied = match &outcome {
            PermissionOutcome::Selected(option) => pending.rejects(option),
            // Not by a user, but with its run.
            PermissionOutcome::Cancelled => *resolution != Resolution::Cancelled,
            PermissionOutcome::NoAllowOnce => true,
        };
        let result = match outcome {
            PermissionOutcome::Selected(option) => {
                json!({ "outcome": { "outcome": "selected", "optionId": option } })
            }
            PermissionOutcome::Cancelled => cancelled(),
            PermissionOutcome::NoAllowOnce => {
                out.emit_notice(Level::Warn, self.no_allow_once(&pending));
                cancelled()
            }
        };
        out.write(jsonrpc::result(pending.id, result));
        if is_denied {
            self.deny_tool(pending.tool.as_deref(), out);
        }
    }

    fn no_allow_once(&self, pending: &PendingPermission) -> String {
        let agent = &self.setup.agent;
        if pending.options.iter().any(allows) {
            return format!(
                "The agent `{agent}` takes no yes for this one time. It was not allowed; choose one \
                 of its options instead."
            );
        }
        format!("It was not allowed. The agent `{agent}` {ONLY_FOR_GOOD}")
    }

    /// Shows a denied tool call as denied: agents call it failed, cancelled, or nothing at all.
    fn deny_tool(&mut self, tool: Option<&str>, out: &mut Actions) {
        let Some(run) = self.run.as_mut() else {
            return;
        };
        run.denied = true;
        let run = run.id;
        if let Some(tool) = tool.and_then(|id| self.tools.deny(id)) {
            out.emit(FromAgent::ToolUpdate { run, tool });
        }
    }

    /// The run is over, and its permission requests with it.
    pub(super) fn cancel_permissions(&mut self, out: &mut Actions) {
        for (_, pending) in self.permissions.take_all() {
            out.write(jsonrpc::result(pending.id, cancelled()));
        }
    }
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

impl PendingPermission {
    fn rejects(&self, option: &str) -> bool {
        let kind = self.options.iter().find(|known| known.id == option);
        let kind = kind.and_then(|known| known.kind);
        kind.is_some_and(|kind| !kind.allows())
    }
}

fn allows(option: &Choice) -> bool {
    option.kind.is_some_and(ChoiceKind::allows)
}

impl Acp {
    fn question(&self, tool: Option<Tool>, params: &Value) -> Question {
        let all = params["options"].as_array().into_iter().flatten();
        let all: Vec<Choice> = all.filter_map(parse_option).collect();
        let had_yes = all.iter().any(allows);
        let (agent, is_private) = (&self.capabilities.agent_name, self.setup.private_home);
        let options: Vec<Choice> = all
            .into_iter()
            .filter_map(|option| option_scope::offered(option, agent, is_private))
            .collect();
        let tool = tool.unwrap_or_else(|| Tool::new("", "tool", "pending"));
        let input = tool.input.as_ref();
        let command = input.and_then(|input| input["command"].as_str());
        let mut message = tool.title.clone();
        if let Some(command) = command.filter(|command| !tool.title.contains(command)) {
            message = format!("{message}\n\n{command}");
        }
        if had_yes && !options.iter().any(allows) {
            message = format!("{message}\n\nThe agent {ONLY_FOR_GOOD}");
        }
        let kind = QuestionKind::Permission;
        let mut question = Question::new(kind, severity(&tool.kind), &tool.title, message);
        question.allow_remember = options.iter().any(|option| {
            use ChoiceKind::{AllowAlways, RejectAlways};
            matches!(option.kind, Some(AllowAlways | RejectAlways))
        });
        question.options = options;
        question.tool = (!tool.id.is_empty()).then(|| ToolUse {
            tool: tool.id,
            name: tool.name,
            args: tool.input.unwrap_or_default(),
        });
        question
    }
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
