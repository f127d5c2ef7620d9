//! One use of a tool, as far as it was seen.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One use of a tool. The first sight of its id creates it, later ones change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The agent's own id of this use.
    #[serde(rename = "tool", alias = "id")]
    pub id: String,
    /// What kind of tool.
    pub name: String,
    /// What a person reads.
    pub title: String,
    /// What it does: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch` or `other`.
    #[serde(
        rename = "tool_kind",
        default = "other",
        skip_serializing_if = "is_other"
    )]
    pub kind: String,
    /// `pending`, `running`, `completed`, `failed`, `denied`, `skipped` or `cancelled`.
    pub status: String,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// What a tool does whose agent does not say it.
fn other() -> String {
    "other".into()
}

fn is_other(kind: &str) -> bool {
    kind == "other"
}

impl Tool {
    /// The first sight of a use: nothing is known but what it is called.
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

    /// Is its end still to come?
    pub fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "running")
    }

    /// The same without what it was given and what came out.
    #[must_use]
    pub fn brief(&self) -> Self {
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

    /// What is known after another sight of it. An update need not repeat what it was given or what
    /// came out; a null counts as absent, because that is how it reads once stored.
    #[must_use]
    pub fn seen_again(self, seen: Self) -> Self {
        let seen = seen.storable();
        Self {
            input: seen.input.or(self.input),
            output: seen.output.or(self.output),
            ..seen
        }
    }

    /// The same as it reads once stored.
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
