//! Prompt files: checks the images and files that a prompt carries, before anything is queued.
//!
//! An agent must not get a picture that is none. Nothing is repaired: content is passed on as it came.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Rejected;
use super::message::AnyAttachment;
use crate::domain::command::{Attachment, Encoding};
use crate::domain::media_type::{MediaType, Sniffer};

const NO_BASE64: &str = "is not base64 (the standard alphabet, with padding)";
const NO_IMAGE: &str = "is not a PNG, JPEG, GIF or WebP image";

/// Applications whose files are not text.
const BINARY_APPLICATIONS: [&str; 8] = [
    "octet-stream",
    "pdf",
    "zip",
    "gzip",
    "x-gzip",
    "x-tar",
    "x-7z-compressed",
    "wasm",
];

pub(super) fn check_images(images: &[String]) -> Result<(), Rejected> {
    for (index, image) in images.iter().enumerate() {
        check_image(&format!("payload.images[{index}]"), image)?;
    }
    Ok(())
}

/// The attachment as the session keeps it, if its content is what it says.
pub(super) fn attachment(index: usize, given: AnyAttachment) -> Result<Attachment, Rejected> {
    let (name, media_type, content, encoding) = match given {
        AnyAttachment::Uploaded { attachment_id: id } => return Ok(Attachment::Named { id }),
        AnyAttachment::Inline {
            name,
            media_type,
            content,
            encoding,
        } => (name, media_type, content, encoding),
    };
    let path = format!("payload.attachments[{index}].content");
    let declared = Declared::from(media_type.as_str());
    let is_base64 = match encoding {
        Some(encoding) => encoding == Encoding::Base64,
        None => declared != Declared::Text,
    };
    if is_base64 && declared == Declared::Image {
        check_image(&path, &content)?;
    } else if is_base64 && STANDARD.decode(&content).is_err() {
        return Err(Rejected::field(&path, NO_BASE64));
    }
    let encoding = if is_base64 {
        Some(Encoding::Base64)
    } else {
        Some(Encoding::Text).filter(|_| declared != Declared::Text)
    };
    Ok(Attachment::Inline {
        name,
        media_type,
        content,
        encoding,
    })
}

/// What a media type says about the content.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Declared {
    Image,
    Binary,
    Text,
}

impl From<&str> for Declared {
    fn from(media_type: &str) -> Self {
        let media_type = media_type.to_ascii_lowercase();
        let mut parts = media_type.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let (class, kind) = essence.split_once('/').unwrap_or((essence, ""));
        let is_marked = parts.any(|parameter| parameter == "base64");
        match class {
            "image" if !kind.starts_with("svg") => Self::Image,
            "audio" | "video" | "font" => Self::Binary,
            "application" if BINARY_APPLICATIONS.contains(&kind) => Self::Binary,
            _ if is_marked => Self::Binary,
            _ => Self::Text,
        }
    }
}

fn check_image(path: &str, image: &str) -> Result<(), Rejected> {
    let base64 = match image.strip_prefix("data:") {
        Some(rest) => match rest.split_once(',') {
            Some((head, data)) if head.ends_with(";base64") => data,
            _ => return Err(Rejected::field(path, "is a data URL that is not in base64")),
        },
        None => image,
    };
    let Ok(bytes) = STANDARD.decode(base64) else {
        return Err(Rejected::field(path, NO_BASE64));
    };
    let mut sniffer = Sniffer::default();
    sniffer.feed(&bytes);
    if MediaType::is_image(sniffer.media_type().as_str()) {
        Ok(())
    } else {
        Err(Rejected::field(path, NO_IMAGE))
    }
}
