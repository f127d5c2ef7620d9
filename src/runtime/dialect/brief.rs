//! A prompt as dialects get it: with everything that belongs to it.

use serde_json::Value;

use super::unsupported;
use crate::domain::command::Mode;
use crate::runtime::Declined;

/// A prompt with everything that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::runtime) struct Brief {
    /// What is asked.
    pub(in crate::runtime) text: String,
    /// Plan or act.
    pub(in crate::runtime) mode: Mode,
    /// Images.
    pub(in crate::runtime) images: Vec<Image>,
    /// Files.
    pub(in crate::runtime) files: Vec<File>,
    /// Where the user is.
    pub(in crate::runtime) context: Option<Value>,
    /// What the client wants the agent to know about the prompt itself.
    pub(in crate::runtime) meta: Option<Value>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct Image {
    /// Its media type.
    pub(in crate::runtime) media_type: String,
    /// What is in it, base64.
    pub(in crate::runtime) base64: String,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) struct File {
    /// For display only: a base name.
    pub(in crate::runtime) name: String,
    /// Its media type.
    pub(in crate::runtime) media_type: String,
    /// What is in it.
    pub(in crate::runtime) content: Content,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::runtime) enum Content {
    /// Text.
    Text(String),
    /// Anything else, base64.
    Base64(String),
}

impl Brief {
    /// Just a text.
    #[cfg(test)]
    pub(in crate::runtime) fn new(text: &str, mode: Mode) -> Self {
        Self {
            text: text.to_owned(),
            mode,
            images: Vec::new(),
            files: Vec::new(),
            context: None,
            meta: None,
        }
    }

    /// The text with the files that are text written behind it, for protocols without attachments;
    /// and the names of those that are not.
    pub(in crate::runtime) fn text_with_files(&self) -> (String, Vec<&str>) {
        let (mut text, mut others) = (self.text.clone(), Vec::new());
        for file in &self.files {
            match &file.content {
                Content::Text(content) => {
                    text.extend([
                        "\n\n<file name=\"",
                        file.name.as_str(),
                        "\">\n",
                        content,
                        "\n</file>",
                    ]);
                }
                Content::Base64(_) => others.push(file.name.as_str()),
            }
        }
        (text, others)
    }
}

impl Brief {
    /// All of it as one text, for protocols that carry nothing else and only act.
    pub(in crate::runtime) fn as_text(&self, agent: &str) -> Result<String, Declined> {
        let (text, others) = self.text_with_files();
        let cannot = if self.mode == Mode::Plan {
            "plan without acting".to_owned()
        } else if !self.images.is_empty() {
            "see images".to_owned()
        } else if let Some(name) = others.first() {
            format!("read `{name}`: it takes only files that are text")
        } else {
            return Ok(text);
        };
        Err(unsupported(agent, &cannot))
    }
}
