//! What Roo asks, and what an answer becomes. Pure.
//!
//! Over its socket Roo takes only messages. One that answers a question of its own is an answer; one
//! that answers "may I use this tool?" is a no with a reason, whatever it says. An approval can be
//! given beforehand, in the configuration, or in the editor, and nowhere else.

use serde_json::Value;

use super::tool;
use crate::domain::question::{Question, QuestionKind, Resolution, Said, Severity};
use crate::domain::tool::Tool;
use crate::runtime::dialect::text_of;

/// Something that Roo asked.
#[derive(Debug)]
pub(super) struct Ask {
    /// Its name: the time when it was asked.
    pub(super) at: u64,
    /// Which kind, in Roo's word.
    pub(super) kind: String,
    /// What stands in it.
    pub(super) text: String,
    /// Is it about something that Roo protects?
    pub(super) protected: bool,
    /// Has it been told as a question?
    pub(super) told: bool,
}

impl Ask {
    /// Does it want a tool to be approved?
    pub(super) fn is_approval(&self) -> bool {
        matches!(self.kind.as_str(), "command" | "tool" | "use_mcp_server")
    }

    /// Can a message answer it?
    pub(super) fn is_question(&self) -> bool {
        matches!(self.kind.as_str(), "followup" | "mistake_limit_reached")
    }

    /// The name of the question that is told for it.
    pub(super) fn name(&self) -> String {
        format!("ask-{}", self.at)
    }

    /// The question that people see.
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

    /// The message that an answer becomes; none if its run is over anyway.
    pub(super) fn reply(&self, resolution: &Resolution) -> Option<String> {
        let said = match resolution {
            Resolution::Cancelled => return None,
            Resolution::Answered(answer) => match &answer.said {
                Said::Value(text) => text.as_deref(),
                _ => None,
            },
            Resolution::Expired => None,
        };
        // Roo does not hear an empty message, and would wait on.
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

/// The question in a `followup`, with the answers that Roo suggests.
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
