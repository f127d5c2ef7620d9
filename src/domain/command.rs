//! What a human wants of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{AttachmentId, QuestionId, RunId};
use super::question::Answer;
use super::queue::Take;

/// Shall the agent only plan, or act?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Think and propose.
    Plan,
    /// Do it.
    Act,
}

/// A file or image that comes with a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Attachment {
    /// Uploaded before; its content is kept by its hash.
    Stored {
        /// Its id.
        id: AttachmentId,
        /// For display only.
        name: String,
        /// Its media type, by its content.
        media_type: String,
        /// How large it is, in bytes.
        size: u64,
        /// The hash of its content.
        sha256: String,
    },
    /// In the prompt itself.
    Inline {
        /// For display only.
        name: String,
        /// Its media type, as the client claims.
        media_type: String,
        /// What is in it, as the client sent it.
        content: String,
    },
    /// Uploaded before, and not looked up yet: no session sees this.
    Named {
        /// Its id.
        id: AttachmentId,
    },
}

impl Attachment {
    /// What a person reads of it: its name and its media type, if they are known.
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

    /// How much of it is in the prompt itself.
    fn bytes(&self) -> usize {
        match self {
            Self::Inline { content, .. } => content.len(),
            Self::Stored { .. } | Self::Named { .. } => 0,
        }
    }
}

/// What to do with a prompt while a run is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IfBusy {
    /// Let it wait for its turn.
    Queue,
    /// Say no.
    Refuse,
}

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// What is asked.
    pub text: String,
    /// Plan or act.
    pub mode: Mode,
    /// Images, base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Where the user is: files, selection, whatever the client told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// What the client wants the agent to know about the prompt itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl Prompt {
    /// Just a text.
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

    /// About how much room it takes.
    pub fn bytes(&self) -> usize {
        let images: usize = self.images.iter().map(String::len).sum();
        let files: usize = self.attachments.iter().map(Attachment::bytes).sum();
        let told = |value: &Option<Value>| value.as_ref().map_or(0, |told| told.to_string().len());
        self.text.len() + images + files + told(&self.context) + told(&self.meta)
    }
}

/// Settings that a client may change; absent ones stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// Answer harmless permissions without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_approve: Option<bool>,
    /// Which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long an answer may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// How adventurous the model is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Which of the agent's own modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// What of an agent is asked for, without changing anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Which models there are.
    Models,
    /// Which MCP servers it is connected to.
    Mcp,
    /// Which skills it has.
    Skills,
    /// Which commands it understands.
    Commands,
    /// How its conversation branches.
    Tree,
}

/// What a human wants of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ask the agent for something.
    SubmitPrompt {
        /// What.
        prompt: Prompt,
        /// And if it is busy?
        if_busy: IfBusy,
    },
    /// Say something to what is under way, before all that waits.
    Steer {
        /// What.
        text: String,
    },
    /// Say something once it is done.
    FollowUp {
        /// What.
        text: String,
    },
    /// Propose something to whoever drives; the agent does not hear it.
    Suggest {
        /// What.
        text: String,
    },
    /// Stop a run, or the current one.
    Cancel {
        /// Which run.
        run: Option<RunId>,
    },
    /// Take back what waits for its turn.
    Withdraw {
        /// The run that it would be.
        run: RunId,
    },
    /// Answer a question.
    Answer {
        /// Which.
        question: QuestionId,
        /// How.
        answer: Answer,
    },
    /// Change settings of the session.
    UpdateSettings(SettingsChange),
    /// Tell where the user is.
    UpdateContext(Value),
    /// Change how the queue is emptied; absent ones stay as they are.
    SetQueueMode {
        /// What steers.
        steering: Option<Take>,
        /// What follows.
        follow_up: Option<Take>,
    },
    /// Choose the tools that the agent may use.
    SetTools {
        /// Their names.
        tools: Vec<String>,
    },
}

impl Command {
    /// What kind of command it is, in a word.
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

/// What is asked of the agent itself; its answer goes to the asker only.
#[derive(Clone, Debug, PartialEq)]
pub enum Inquiry {
    /// Tell something.
    Query {
        /// What.
        topic: Topic,
        /// Which of it.
        params: Value,
    },
    /// Do something that only this agent knows.
    Extension {
        /// What it calls it.
        name: String,
        /// What it needs for that.
        payload: Value,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_every_kind_read_back_as_they_were_stored() {
        let id = AttachmentId::new();
        let stored = Attachment::Stored {
            id,
            name: "cat.png".into(),
            media_type: "image/png".into(),
            size: 16,
            sha256: "ab".into(),
        };
        // The form that prompts were stored in before there were uploads.
        let inline = json!({ "name": "a", "media_type": "text/plain", "content": "b" });
        let read: Attachment = serde_json::from_value(inline.clone()).unwrap();
        assert!(matches!(read, Attachment::Inline { .. }), "{read:?}");
        assert_eq!(serde_json::to_value(&read).unwrap(), inline);
        for attachment in [stored, Attachment::Named { id }] {
            let text = serde_json::to_string(&attachment).unwrap();
            let read: Attachment = serde_json::from_str(&text).unwrap();
            assert_eq!(read, attachment);
        }
    }
}
