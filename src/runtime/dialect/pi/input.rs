//! What a prompt carries besides its text.

use serde_json::{Value, json};

use super::super::{Brief, Content, File};

fn is_image(file: &File) -> bool {
    file.media_type.starts_with("image/")
}

/// Can pi be given this file?
pub(super) fn is_carried(file: &File) -> bool {
    matches!(file.content, Content::Text(_)) || is_image(file)
}

/// All images of a prompt, as pi takes them: also those that came as files.
pub(super) fn images(brief: &Brief) -> Vec<Value> {
    let image = |media_type: &str, base64: &str| json!({ "type": "image", "data": base64, "mimeType": media_type });
    let given = brief.images.iter();
    let given = given.map(|given| image(&given.media_type, &given.base64));
    let files = brief.files.iter().filter(|file| is_image(file));
    let files = files.filter_map(|file| match &file.content {
        Content::Base64(base64) => Some(image(&file.media_type, base64)),
        Content::Text(_) => None,
    });
    given.chain(files).collect()
}
