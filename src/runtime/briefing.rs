//! A prompt with everything that belongs to it: uploaded files are read, images and files told apart.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::dialect::{Brief, Content, File, Image};
use crate::domain::command::{Attachment, Prompt};
use crate::domain::media::{Media, Sniffer};
use crate::store::Contents;

/// What a prompt becomes; a file that cannot be read is an error with its name.
pub(super) async fn brief(prompt: Prompt, contents: Option<&Contents>) -> Result<Brief, String> {
    let mut brief = Brief {
        images: prompt.images.iter().map(|image| image_of(image)).collect(),
        files: Vec::new(),
        text: prompt.text,
        mode: prompt.mode,
        context: prompt.context,
        meta: prompt.meta,
    };
    for attachment in prompt.attachments {
        match attachment {
            Attachment::Inline {
                name,
                media_type,
                content,
            } => add_inline(&mut brief, name, media_type, content),
            Attachment::Stored {
                name,
                media_type,
                sha256,
                ..
            } => {
                let missing = || format!("The file `{name}` cannot be read any more.");
                let contents = contents.ok_or_else(missing)?;
                let bytes = read(contents, &sha256).await.ok_or_else(missing)?;
                add_bytes(&mut brief, name, &media_type, bytes);
            }
            // Looked up before a session sees it.
            Attachment::Named { .. } => {}
        }
    }
    Ok(brief)
}

async fn read(contents: &Contents, sha256: &str) -> Option<Vec<u8>> {
    let hash = unhex(sha256)?;
    let mut file = contents.read(&hash).await.ok()??;
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    });
    reading.await.ok()?.ok()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(hash)
}

fn add_bytes(brief: &mut Brief, name: String, media_type: &str, bytes: Vec<u8>) {
    if Media::is_image(media_type) {
        brief.images.push(Image {
            media_type: media_type.to_owned(),
            base64: STANDARD.encode(bytes),
        });
        return;
    }
    let content = match String::from_utf8(bytes) {
        Ok(text) => Content::Text(text),
        Err(other) => Content::Base64(STANDARD.encode(other.as_bytes())),
    };
    let media_type = media_type.to_owned();
    brief.files.push(File {
        name,
        media_type,
        content,
    });
}

/// What came in the prompt itself is text, unless it says that it is an image.
fn add_inline(brief: &mut Brief, name: String, media_type: String, content: String) {
    if media_type.starts_with("image/") && !media_type.contains("svg") {
        brief.images.push(image_of(&content));
        return;
    }
    brief.files.push(File {
        name,
        media_type,
        content: Content::Text(content),
    });
}

/// An image as clients send it: base64, or a data URL of it. What it claims to be counts for nothing.
fn image_of(text: &str) -> Image {
    let base64 = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(',').map_or(rest, |(_, data)| data),
        None => text,
    };
    let head = base64.get(..64).unwrap_or(base64);
    let head = head.get(..head.len() / 4 * 4).unwrap_or_default();
    let mut sniffer = Sniffer::default();
    sniffer.look(&STANDARD.decode(head).unwrap_or_default());
    let media = sniffer.media().as_str();
    let media_type = if Media::is_image(media) {
        media
    } else {
        Media::Png.as_str()
    };
    Image {
        media_type: media_type.into(),
        base64: base64.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::Mode;

    #[tokio::test]
    async fn images_and_files_are_told_apart_by_what_they_are() {
        let mut prompt = Prompt::new("look", Mode::Act);
        let gif = STANDARD.encode(b"GIF89a and then some more of it, which nobody looks at here");
        prompt.images = vec![gif.clone(), format!("data:image/png;base64,{gif}")];
        let inline = |name: &str, media_type: &str, content: &str| Attachment::Inline {
            name: name.into(),
            media_type: media_type.into(),
            content: content.into(),
        };
        prompt.attachments = vec![
            inline("a.gif", "image/gif", &gif),
            inline("a.svg", "image/svg+xml", "<svg/>"),
            inline("a.txt", "text/plain", "hello"),
        ];
        let brief = brief(prompt, None).await.unwrap();
        assert_eq!(brief.images.len(), 3);
        assert!(
            brief
                .images
                .iter()
                .all(|image| image.media_type == "image/gif" && image.base64 == gif)
        );
        let names: Vec<_> = brief.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["a.svg", "a.txt"]);
    }

    #[tokio::test]
    async fn a_file_that_is_gone_is_named() {
        let mut prompt = Prompt::new("look", Mode::Act);
        prompt.attachments = vec![Attachment::Stored {
            id: crate::domain::id::AttachmentId::new(),
            name: "cat.png".into(),
            media_type: "image/png".into(),
            size: 1,
            sha256: "00".repeat(32),
        }];
        let dir = tempfile::tempdir().unwrap();
        let contents = Contents::open(dir.path()).unwrap();
        let error = brief(prompt, Some(&contents)).await.unwrap_err();
        assert!(error.contains("cat.png"));
    }
}
