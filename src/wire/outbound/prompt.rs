//! Prompt part: a prompt as members see it, with its files by reference.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::command::{Attachment, Encoding, Prompt};
use crate::domain::id::AttachmentId;
use crate::wire::enums::{self, WireEnum as _};

/// What was asked.
#[derive(Serialize, ToSchema)]
pub(super) struct Asked<'a> {
    text: &'a str,
    #[schema(schema_with = enums::mode)]
    mode: &'static str,
    /// Who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<File<'a>>,
}

/// A file, without what is in it: an event must not weigh what its prompt did.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AskedFile)]
struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    attachment_id: Option<AttachmentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(prompt: &'a Prompt, by: Option<&'a str>) -> Self {
        Self {
            by,
            text: &prompt.text,
            mode: prompt.mode.word(),
            attachments: prompt.attachments.iter().map(Into::into).collect(),
        }
    }
}

impl<'a> From<&'a Attachment> for File<'a> {
    fn from(attachment: &'a Attachment) -> Self {
        match attachment {
            Attachment::Stored {
                id,
                name,
                media_type,
                size,
                ..
            } => Self {
                attachment_id: Some(*id),
                name: Some(name),
                media_type: Some(media_type),
                size: Some(*size),
            },
            Attachment::Inline {
                name,
                media_type,
                content,
                encoding,
            } => Self {
                attachment_id: None,
                name: Some(name),
                media_type: Some(media_type),
                size: Some(content_bytes(content, *encoding)),
            },
            Attachment::Named { id } => Self {
                attachment_id: Some(*id),
                name: None,
                media_type: None,
                size: None,
            },
        }
    }
}

fn content_bytes(content: &str, encoding: Option<Encoding>) -> u64 {
    let bytes = match encoding {
        Some(Encoding::Base64) => {
            let padding = content.bytes().rev().take_while(|byte| *byte == b'=');
            (content.len() / 4 * 3).saturating_sub(padding.count())
        }
        Some(Encoding::Text) | None => content.len(),
    };
    bytes as u64
}
