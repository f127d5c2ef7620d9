//! A tool call that wants a confirmation, as the document writes it.

use serde_json::Value;

use crate::domain::question::{Choice, ChoiceKind, Question, QuestionKind, Severity, ToolUse};
use crate::domain::tool::Tool;
use crate::runtime::dialect::openstarry::kind_of_tool;
use crate::runtime::dialect::text_of;

/// The option that is a yes.
pub(super) const ALLOW: &str = "allow";

/// What is asked for.
#[derive(Debug)]
pub(super) struct Permission {
    /// The tool, as it waits for the answer.
    pub(super) tool: Tool,
    severity: Severity,
    warning: String,
}

impl Permission {
    /// Reads the payload of `onToolCallRequest`.
    pub(super) fn read(id: &str, payload: &Value) -> Self {
        let name = match text_of(&payload["toolName"]) {
            name if name.is_empty() => "unknown".to_owned(),
            name => name,
        };
        let warning = &payload["security_warning"];
        let mut tool = Tool::new(id, name, "pending");
        tool.kind = kind_of_tool(&tool.name).into();
        tool.input = payload.get("args").cloned();
        Self {
            severity: severity_of(&warning["level"], &tool.kind),
            warning: text_of(&warning["message"]),
            tool: tool.storable(),
        }
    }

    /// The question for it.
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

/// As the agent says; but what runs or deletes something is never harmless.
fn severity_of(level: &Value, kind: &str) -> Severity {
    let least = match kind {
        "execute" | "delete" => Severity::Warn,
        _ => Severity::Info,
    };
    match level.as_str().unwrap_or_default() {
        "CRITICAL" => Severity::Critical,
        "INFO" => least,
        "" if kind == "read" => Severity::Info,
        // No level, or one that nobody knows.
        _ => Severity::Warn,
    }
}
