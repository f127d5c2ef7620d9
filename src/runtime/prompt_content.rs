//! Prompt content: a prompt as an agent gets it, with its images and files.
//!
//! A prompt leaves the session with its uploaded files named by their hash. The side that holds the
//! uploads calls [`PromptContent::resolve`], which puts their bytes in place; from then on the prompt
//! carries everything that it needs, also to another process.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dialect::unsupported;
use super::messages::Declined;
use crate::domain::command::{Attachment, Encoding, Mode, Prompt};
use crate::domain::media_type::{MediaType, Sniffer};
use crate::store::Blobs;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PromptContent {
    pub(crate) text: String,
    pub(crate) mode: Mode,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<Image>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<File>,
    /// Uploaded files that were not read yet. Empty whenever a dialect sees the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stored: Vec<StoredFile>,
    /// The client's position: open files, selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Value>,
    /// The client's own data about the prompt, for the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Image {
    pub(crate) media_type: String,
    pub(crate) base64: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct File {
    /// A base name, for display only.
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    Text(String),
    /// Bytes that are not UTF-8.
    Base64(String),
}

/// An uploaded file, named by the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredFile {
    pub(crate) name: String,
    pub(crate) media_type: String,
    /// In hexadecimal digits.
    pub(crate) sha256: String,
    /// Its index among the images or the files once it is read, so that attachments keep their order.
    pub(crate) index: usize,
}

impl From<Prompt> for PromptContent {
    fn from(prompt: Prompt) -> Self {
        let mut content = Self {
            images: prompt.images.iter().map(|image| image_of(image)).collect(),
            files: Vec::new(),
            stored: Vec::new(),
            text: prompt.text,
            mode: prompt.mode,
            context: prompt.context,
            meta: prompt.meta,
        };
        for attachment in prompt.attachments {
            content.add(attachment);
        }
        content
    }
}

impl File {
    fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

impl PromptContent {
    pub(crate) fn new(text: &str, mode: Mode) -> Self {
        Prompt::new(text, mode).into()
    }

    fn add(&mut self, attachment: Attachment) {
        match attachment {
            Attachment::Inline {
                media_type,
                content,
                encoding: None | Some(Encoding::Base64),
                ..
            } if media_type.starts_with("image/") && !media_type.contains("svg") => {
                self.images.push(image_of(&content));
            }
            Attachment::Inline {
                name,
                media_type,
                content,
                encoding,
            } => self.files.push(File {
                name,
                media_type,
                content: inline_content(content, encoding),
            }),
            Attachment::Stored {
                name,
                media_type,
                sha256,
                ..
            } => {
                let is_image = MediaType::is_image(&media_type);
                let before = self.stored.iter();
                let before =
                    before.filter(|stored| MediaType::is_image(&stored.media_type) == is_image);
                let present = if is_image {
                    self.images.len()
                } else {
                    self.files.len()
                };
                let index = present + before.count();
                self.stored.push(StoredFile {
                    name,
                    media_type,
                    sha256,
                    index,
                });
            }
            // The session never sees one: it is looked up before.
            Attachment::Named { .. } => {}
        }
    }

    /// Reads the uploaded files into the prompt. A file that cannot be read is an error that names it.
    pub(super) async fn resolve(&mut self, blobs: Option<&Blobs>) -> Result<(), String> {
        for stored in std::mem::take(&mut self.stored) {
            let missing = || format!("The file `{}` cannot be read any more.", stored.name);
            let blobs = blobs.ok_or_else(missing)?;
            let bytes = read(blobs, &stored.sha256).await.ok_or_else(missing)?;
            self.insert(stored, bytes);
        }
        Ok(())
    }

    fn insert(&mut self, stored: StoredFile, bytes: Vec<u8>) {
        let StoredFile {
            name,
            media_type,
            index,
            ..
        } = stored;
        if MediaType::is_image(&media_type) {
            let base64 = STANDARD.encode(bytes);
            let image = Image { media_type, base64 };
            self.images.insert(index.min(self.images.len()), image);
            return;
        }
        let content = match String::from_utf8(bytes) {
            Ok(text) => Content::Text(text),
            Err(other) => Content::Base64(STANDARD.encode(other.as_bytes())),
        };
        let file = File {
            name,
            media_type,
            content,
        };
        self.files.insert(index.min(self.files.len()), file);
    }

    /// The text followed by the text files, for protocols without attachments; and the names of the
    /// other files.
    pub(super) fn text_with_files(&self) -> (String, Vec<&str>) {
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

    /// The first file that is neither text nor an image.
    pub(super) fn unsupported_file(&self) -> Option<&str> {
        let is_supported =
            |file: &&File| matches!(file.content, Content::Text(_)) || file.is_image();
        let file = self.files.iter().find(|file| !is_supported(file))?;
        Some(&file.name)
    }

    /// The media type and base64 of every image, also of those that came as files.
    pub(super) fn all_images(&self) -> impl Iterator<Item = (&str, &str)> {
        let images = self.images.iter();
        let images = images.map(|image| (image.media_type.as_str(), image.base64.as_str()));
        let files = self.files.iter().filter(|file| file.is_image());
        let files = files.filter_map(|file| match &file.content {
            Content::Base64(base64) => Some((file.media_type.as_str(), base64.as_str())),
            Content::Text(_) => None,
        });
        images.chain(files)
    }

    /// The whole prompt as one text, for protocols that carry only text and only act.
    pub(super) fn as_text(&self, agent: &str) -> Result<String, Declined> {
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

/// Bytes that are text are text, however they were sent.
fn inline_content(content: String, encoding: Option<Encoding>) -> Content {
    if encoding != Some(Encoding::Base64) {
        return Content::Text(content);
    }
    let decoded = STANDARD.decode(&content).map(String::from_utf8);
    match decoded {
        Ok(Ok(text)) => Content::Text(text),
        Ok(Err(_)) | Err(_) => Content::Base64(content),
    }
}

async fn read(blobs: &Blobs, sha256: &str) -> Option<Vec<u8>> {
    let hash = unhex(sha256)?;
    let mut file = blobs.read(&hash).await.ok()??;
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

/// An image as clients send it: base64, or a data URL. Its media type comes from its bytes, not from
/// the client's claim.
fn image_of(text: &str) -> Image {
    let base64 = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(',').map_or(rest, |(_, data)| data),
        None => text,
    };
    let head = base64.get(..64).unwrap_or(base64);
    let head = head.get(..head.len() / 4 * 4).unwrap_or_default();
    let mut sniffer = Sniffer::default();
    sniffer.feed(&STANDARD.decode(head).unwrap_or_default());
    let media = sniffer.media_type().as_str();
    let media_type = if MediaType::is_image(media) {
        media
    } else {
        MediaType::Png.as_str()
    };
    Image {
        media_type: media_type.into(),
        base64: base64.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::AttachmentId;

    fn inline(name: &str, media_type: &str, content: &str) -> Attachment {
        Attachment::Inline {
            name: name.into(),
            media_type: media_type.into(),
            content: content.into(),
            encoding: None,
        }
    }

    fn encoded(name: &str, media_type: &str, content: &str) -> Attachment {
        Attachment::Inline {
            name: name.into(),
            media_type: media_type.into(),
            content: content.into(),
            encoding: Some(Encoding::Base64),
        }
    }

    fn stored(name: &str, media_type: &str, sha256: &str) -> Attachment {
        Attachment::Stored {
            id: AttachmentId::new(),
            name: name.into(),
            media_type: media_type.into(),
            size: 1,
            sha256: sha256.into(),
        }
    }

    fn names(prompt: &PromptContent) -> Vec<&str> {
        prompt.files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn images_and_files_are_told_apart_by_their_bytes() {
        let mut prompt = Prompt::new("look", Mode::Act);
        let gif = STANDARD.encode(b"GIF89a and then some more of it, which nobody looks at here");
        prompt.images = vec![gif.clone(), format!("data:image/png;base64,{gif}")];
        prompt.attachments = vec![
            inline("a.gif", "image/gif", &gif),
            inline("a.svg", "image/svg+xml", "<svg/>"),
            inline("a.txt", "text/plain", "hello"),
        ];
        let prompt = PromptContent::from(prompt);
        assert_eq!(prompt.images.len(), 3);
        assert!(
            prompt
                .images
                .iter()
                .all(|image| image.media_type == "image/gif" && image.base64 == gif)
        );
        assert_eq!(names(&prompt), ["a.svg", "a.txt"]);
    }

    #[test]
    fn a_file_in_base64_is_decoded_if_it_is_text() {
        let mut prompt = Prompt::new("look", Mode::Act);
        prompt.attachments = vec![
            encoded("a.txt", "text/plain", "aGVsbG8="),
            encoded("a.bin", "application/octet-stream", "AP8="),
            encoded("a.png", "image/png", "iVBORw0KGgo="),
        ];
        let prompt = PromptContent::from(prompt);
        let contents: Vec<&Content> = prompt.files.iter().map(|file| &file.content).collect();
        let (text, bytes) = (
            Content::Text("hello".into()),
            Content::Base64("AP8=".into()),
        );
        assert_eq!(contents, [&text, &bytes]);
        assert_eq!(prompt.images.len(), 1);
    }

    #[tokio::test]
    async fn a_missing_upload_is_named_in_the_error() {
        let mut prompt = Prompt::new("look", Mode::Act);
        prompt.attachments = vec![stored("cat.png", "image/png", &"00".repeat(32))];
        let dir = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(dir.path()).unwrap();
        let mut prompt = PromptContent::from(prompt);
        let error = prompt.resolve(Some(&blobs)).await.unwrap_err();
        assert!(error.contains("cat.png"));
    }

    #[test]
    fn resolved_files_keep_the_order_of_the_attachments() {
        let mut prompt = Prompt::new("look", Mode::Act);
        prompt.attachments = vec![
            stored("1.txt", "text/plain", ""),
            inline("2.txt", "text/plain", "b"),
            stored("p.png", "image/png", ""),
            stored("3.txt", "text/plain", ""),
            inline("4.txt", "text/plain", "d"),
        ];
        let mut prompt = PromptContent::from(prompt);
        for stored in std::mem::take(&mut prompt.stored) {
            prompt.insert(stored, b"x".to_vec());
        }
        assert_eq!(names(&prompt), ["1.txt", "2.txt", "3.txt", "4.txt"]);
        assert_eq!(prompt.images.len(), 1);
    }
}
