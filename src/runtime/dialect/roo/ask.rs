//! Ask: a request of Roo to the user, and the reply to it. Pure.
//!
//! Over its socket Roo takes only messages. A message answers a follow-up question; as the answer
//! to an approval it is a denial with a reason, whatever it says. Approvals come from the
//! configuration beforehand, or from the editor.

use serde_json::Value;

use super::tool;
use crate::domain::question::{AnswerValue, Question, QuestionKind, Resolution, Severity};
use crate::domain::tool::Tool;
use crate::runtime::dialect::text_of;

#[derive(Debug)]
pub(super) struct Ask {
    /// Its id: the time of the message.
    pub(super) ts: u64,
    /// Roo's name of its kind.
    pub(super) kind: String,
    pub(super) text: String,
    /// `isProtected`: it touches a file that Roo protects.
    pub(super) protected: bool,
    /// Has the session been asked?
    pub(super) is_reported: bool,
}

impl Ask {
    pub(super) fn is_approval(&self) -> bool {
        matches!(self.kind.as_str(), "command" | "tool" | "use_mcp_server")
    }

    pub(super) fn is_question(&self) -> bool {
        matches!(self.kind.as_str(), "followup" | "mistake_limit_reached")
    }

    pub(super) fn name(&self) -> String {
        format!("ask-{}", self.ts)
    }

    pub(super) fn question(&self) -> Question {
        let (severity, title, message) = if self.is_approval() {
            let tool = tool::of_ask(String::new(), &self.kind, &self.text);
            let message = format!(
                "Roo waits for an approval of: {}\n\nIt cannot be approved from here, only in the \
                 editor. What you write is not an approval: Roo hears it as a no, with this reason.",
                tool.title
            );
            (self.severity(&tool), "Roo wants to use a tool", message)
        } else if self.kind == "followup" {
            (Severity::Info, "Roo asks", followup(&self.text))
        } else {
            let message = format!("Roo made too many mistakes. {}", self.text);
            (Severity::Warn, "Roo needs guidance", message)
        };
        Question {
            multiline: true,
            ..Question::new(QuestionKind::Prompt, severity, title, message)
        }
    }

    fn severity(&self, tool: &Tool) -> Severity {
        match tool.kind.as_str() {
            _ if self.protected => Severity::Critical,
            "read" | "search" => Severity::Info,
            _ => Severity::Warn,
        }
    }

    /// The message to send; `None` if the run is over anyway.
    pub(super) fn reply(&self, resolution: &Resolution) -> Option<String> {
        let said = match resolution {
            Resolution::Cancelled => return None,
            Resolution::Answered(answer) => match &answer.value {
                AnswerValue::Text(text) => text.as_deref(),
                _ => None,
            },
            Resolution::Expired => None,
        };
        // Roo ignores an empty message, and would wait on.
        let said = said.filter(|text| !text.trim().is_empty());
        Some(said.map_or_else(|| self.refusal().to_owned(), str::to_owned))
    }

    fn refusal(&self) -> &'static str {
        if self.is_approval() {
            "The user did not allow this."
        } else {
            "The user did not answer this question."
        }
    }
}

/// The question of a `followup`, with the suggested answers.
fn followup(text: &str) -> String {
    let asked = tool::parsed(text);
    let Some(question) = asked["question"].as_str() else {
        return text.to_owned();
    };
    let mut message = question.to_owned();
    for suggestion in asked["suggest"].as_array().into_iter().flatten() {
        let answer = match suggestion {
            Value::Object(suggestion) => suggestion.get("answer").map(text_of),
            other => Some(text_of(other)),
        };
        if let Some(answer) = answer {
            message.push_str("\n- ");
            message.push_str(&answer);
        }
    }
    message
}
