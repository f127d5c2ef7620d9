//! Tool call: one use of a tool by an agent, updated until it ends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call. The first update with its id creates it, later ones change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The agent's id of the call.
    #[serde(rename = "tool", alias = "id")]
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Text for people.
    pub title: String,
    /// Kind of effect: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch` or `other`.
    #[serde(
        rename = "tool_kind",
        default = "other",
        skip_serializing_if = "is_other"
    )]
    pub kind: String,
    /// `pending`, `running`, `completed`, `failed`, `denied`, `skipped` or `cancelled`.
    pub status: String,
    /// Arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

fn other() -> String {
    "other".into()
}

fn is_other(kind: &str) -> bool {
    kind == "other"
}

impl Tool {
    /// A new call of which only the name is known.
    pub fn new(id: impl Into<String>, name: impl Into<String>, status: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            id: id.into(),
            title: name.clone(),
            name,
            kind: other(),
            status: status.into(),
            input: None,
            output: None,
        }
    }

    /// True if it has not ended.
    pub fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "running")
    }

    /// A copy without arguments and result.
    #[must_use]
    pub fn without_payload(&self) -> Self {
        Self {
            id: self.id.clone(),
            name: self.name.clone(),
            title: self.title.clone(),
            kind: self.kind.clone(),
            status: self.status.clone(),
            input: None,
            output: None,
        }
    }

    /// Applies an update. It need not repeat arguments and result; a null counts as absent, because
    /// that is how it reads back from storage.
    #[must_use]
    pub fn merge(self, update: Self) -> Self {
        let update = update.storable();
        Self {
            input: update.input.or(self.input),
            output: update.output.or(self.output),
            ..update
        }
    }

    /// The call as it reads back from storage.
    #[must_use]
    pub fn storable(self) -> Self {
        let present = |value: Option<Value>| value.filter(|value| !value.is_null());
        Self {
            input: present(self.input),
            output: present(self.output),
            ..self
        }
    }
}
