//! What a human wants of a session.

use serde::{Deserialize, Serialize};

use super::id::{AttachmentId, RunId};

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
    /// Stop a run, or the current one.
    Cancel {
        /// Which run.
        run: Option<RunId>,
    },
    /// Change settings of the session.
    UpdateSettings(SettingsChange),
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
