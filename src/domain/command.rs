//! Command: what a client asks of a session.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::id::{AttachmentId, QuestionId, RunId};
use super::question::Answer;
use super::queue::QueueMode;

/// Mode of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Propose only.
    Plan,
    /// Act.
    Act,
}

/// How the content of a file is written in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As it is.
    Text,
    /// In base64.
    Base64,
}

/// A file of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Attachment {
    /// Uploaded before; its content is stored by its hash.
    Stored {
        /// Its id.
        id: AttachmentId,
        /// For display only.
        name: String,
        /// Media type, detected from its content.
        media_type: String,
        /// Size in bytes.
        size: u64,
        /// SHA-256 of its content.
        sha256: String,
    },
    /// In the prompt itself.
    Inline {
        /// For display only.
        name: String,
        /// Media type, as the client claims.
        media_type: String,
        /// Content, as the client sent it.
        content: String,
        /// How the content is written; absent: an image is base64, everything else is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encoding: Option<Encoding>,
    },
    /// Uploaded before and not looked up yet; never reaches a session.
    Named {
        /// Its id.
        id: AttachmentId,
    },
}

impl Attachment {
    /// Name and media type, if they are known.
    pub fn label(&self) -> Option<(&str, &str)> {
        match self {
            Self::Stored {
                name, media_type, ..
            }
            | Self::Inline {
                name, media_type, ..
            } => Some((name, media_type)),
            Self::Named { .. } => None,
        }
    }

    /// Bytes within the prompt itself.
    fn bytes(&self) -> usize {
        match self {
            Self::Inline { content, .. } => content.len(),
            Self::Stored { .. } | Self::Named { .. } => 0,
        }
    }
}

/// Treatment of a prompt while a run is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfBusy {
    /// It is queued.
    Queue,
    /// It is refused.
    Refuse,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Plan or act.
    pub mode: Mode,
    /// Images, base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// UI context that the client reported: open files, selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// The client's data about the prompt, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl Prompt {
    /// A prompt of text only.
    pub fn new(text: impl Into<String>, mode: Mode) -> Self {
        Self {
            text: text.into(),
            mode,
            images: Vec::new(),
            attachments: Vec::new(),
            context: None,
            meta: None,
        }
    }

    /// Approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let images: usize = self.images.iter().map(String::len).sum();
        let files: usize = self.attachments.iter().map(Attachment::bytes).sum();
        let size = |value: &Option<Value>| value.as_ref().map_or(0, |json| json.to_string().len());
        self.text.len() + images + files + size(&self.context) + size(&self.meta)
    }
}

/// Settings beyond those with a field of their own that a session keeps.
pub const MAX_OTHER_SETTINGS: usize = 64;

/// Some settings, chosen or reported; absent ones stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// Grant permissions below critical severity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_approve: Option<bool>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Maximum length of an answer, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The agent's own mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Settings that only this agent knows, by its own names.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub other: Map<String, Value>,
}

impl SettingsChange {
    /// True if it names no setting.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Applies the settings that `change` names. A temperature that is not finite has no stored form
    /// and is ignored.
    pub fn merge(&mut self, change: &Self) {
        let temperature = change.temperature.filter(|degree| degree.is_finite());
        self.auto_approve = change.auto_approve.or(self.auto_approve);
        self.max_tokens = change.max_tokens.or(self.max_tokens);
        self.temperature = temperature.or(self.temperature);
        for (kept, new) in [
            (&mut self.model, &change.model),
            (&mut self.mode, &change.mode),
        ] {
            if new.is_some() {
                kept.clone_from(new);
            }
        }
        for (name, value) in &change.other {
            if self.other.len() < MAX_OTHER_SETTINGS || self.other.contains_key(name) {
                self.other.insert(name.clone(), value.clone());
            }
        }
    }

    /// The settings that `known` lacks, or has with another value.
    #[must_use]
    pub fn without(mut self, known: &Self) -> Self {
        self.auto_approve = self
            .auto_approve
            .filter(|_| self.auto_approve != known.auto_approve);
        self.model = self
            .model
            .filter(|model| known.model.as_ref() != Some(model));
        self.max_tokens = self
            .max_tokens
            .filter(|_| self.max_tokens != known.max_tokens);
        self.temperature = self
            .temperature
            .filter(|_| self.temperature != known.temperature);
        self.mode = self.mode.filter(|mode| known.mode.as_ref() != Some(mode));
        self.other
            .retain(|name, value| known.other.get(name) != Some(value));
        self
    }
}

/// Topic of a query to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Available models.
    Models,
    /// Connected MCP servers.
    Mcp,
    /// Skills.
    Skills,
    /// Commands.
    Commands,
    /// Tree of its conversation.
    Tree,
}

/// A command to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Submit a prompt.
    SubmitPrompt {
        /// The prompt.
        prompt: Prompt,
        /// Treatment while a run is under way.
        if_busy: IfBusy,
    },
    /// Steer the run under way, or queue before all other prompts.
    Steer {
        /// The text.
        text: String,
    },
    /// Follow up once the run is done.
    FollowUp {
        /// The text.
        text: String,
    },
    /// Suggest something to the driver; not sent to the agent.
    Suggest {
        /// The text.
        text: String,
    },
    /// Cancel a run.
    Cancel {
        /// The run; the current one if absent.
        run: Option<RunId>,
    },
    /// Withdraw a queued prompt.
    Withdraw {
        /// The run that it would be.
        run: RunId,
    },
    /// Answer a question.
    Answer {
        /// The question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// Change settings.
    UpdateSettings(SettingsChange),
    /// Report the user's UI context.
    UpdateContext(Value),
    /// Change the queue modes; absent ones stay as they are.
    SetQueueMode {
        /// For steering prompts.
        steering: Option<QueueMode>,
        /// For follow-up prompts.
        follow_up: Option<QueueMode>,
    },
    /// Choose the tools that the agent may use.
    SetTools {
        /// Their names.
        tools: Vec<String>,
    },
}

impl Command {
    /// Name for traces and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SubmitPrompt { .. } => "submit_prompt",
            Self::Steer { .. } => "steer",
            Self::FollowUp { .. } => "follow_up",
            Self::Suggest { .. } => "suggest",
            Self::Cancel { .. } => "cancel",
            Self::Withdraw { .. } => "withdraw",
            Self::Answer { .. } => "answer",
            Self::UpdateSettings(_) => "update_settings",
            Self::UpdateContext(_) => "update_context",
            Self::SetQueueMode { .. } => "set_queue_mode",
            Self::SetTools { .. } => "set_tools",
        }
    }
}

/// A request to the agent itself; its answer goes to the sender only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentRequest {
    /// A query without side effects.
    Query {
        /// The topic.
        topic: Topic,
        /// Parameters.
        params: Value,
    },
    /// An action of this agent's own protocol.
    Extension {
        /// The agent's name for it.
        name: String,
        /// Parameters.
        payload: Value,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attachments_of_every_kind_read_back_as_they_were_stored() {
        let id = AttachmentId::new();
        let stored = Attachment::Stored {
            id,
            name: "cat.png".into(),
            media_type: "image/png".into(),
            size: 16,
            sha256: "ab".into(),
        };
        // The stored form from before there were uploads.
        let inline = json!({ "name": "a", "media_type": "text/plain", "content": "b" });
        let coded = Attachment::Inline {
            name: "a".into(),
            media_type: "text/plain".into(),
            content: "Yg==".into(),
            encoding: Some(Encoding::Base64),
        };
        let read: Attachment = serde_json::from_value(inline.clone()).unwrap();
        assert!(matches!(read, Attachment::Inline { .. }), "{read:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), inline);
        for attachment in [stored, coded, Attachment::Named { id }] {
            let text = serde_json::to_string(&attachment).unwrap();
            let read: Attachment = serde_json::from_str(&text).unwrap();
            assert_eq!(read, attachment);
        }
    }
}
