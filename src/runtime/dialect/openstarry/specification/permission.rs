//! Permission: a tool call that needs a confirmation (`onToolCallRequest`).

use serde_json::Value;

use crate::domain::question::{Choice, ChoiceKind, Question, QuestionKind, Severity, ToolUse};
use crate::domain::tool::Tool;
use crate::runtime::dialect::openstarry::tool_kind;
use crate::runtime::dialect::text_of;

pub(super) const ALLOW: &str = "allow";

#[derive(Debug)]
pub(super) struct Permission {
    pub(super) tool: Tool,
    severity: Severity,
    warning: String,
}

impl Permission {
    pub(super) fn read(id: &str, payload: &Value) -> Self {
        let name = match text_of(&payload["toolName"]) {
            name if name.is_empty() => "unknown".to_owned(),
            name => name,
        };
        let warning = &payload["security_warning"];
        let mut tool = Tool::new(id, name, "pending");
        tool.kind = tool_kind(&tool.name).into();
        tool.input = payload.get("args").cloned();
        Self {
            severity: severity_of(&warning["level"], &tool.kind),
            warning: text_of(&warning["message"]),
            tool: tool.storable(),
        }
    }

    pub(super) fn question(&self) -> Question {
        let choice = |id: &str, label: &str, kind| Choice {
            id: id.into(),
            label: label.into(),
            detail: None,
            kind: Some(kind),
        };
        let name = &self.tool.name;
        let title = format!("Use {name}?");
        let message = if self.warning.is_empty() {
            format!("The agent wants to use {name}.")
        } else {
            self.warning.clone()
        };
        Question {
            options: vec![
                choice(ALLOW, "Allow", ChoiceKind::AllowOnce),
                choice("deny", "Deny", ChoiceKind::RejectOnce),
            ],
            tool: Some(ToolUse {
                tool: self.tool.id.clone(),
                name: name.clone(),
                args: self.tool.input.clone().unwrap_or_default(),
            }),
            ..Question::new(QuestionKind::Permission, self.severity, title, message)
        }
    }
}

/// The level of the agent, but what executes or deletes is at least a warning.
fn severity_of(level: &Value, kind: &str) -> Severity {
    let least = match kind {
        "execute" | "delete" => Severity::Warn,
        _ => Severity::Info,
    };
    match level.as_str().unwrap_or_default() {
        "CRITICAL" => Severity::Critical,
        "INFO" => least,
        "" if kind == "read" => Severity::Info,
        // No level, or an unknown one.
        _ => Severity::Warn,
    }
}
