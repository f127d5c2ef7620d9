//! A prompt as the app server takes it.

use serde_json::{Value, json};

use super::super::{Brief, Content, File, text_block};

fn is_image(file: &File) -> bool {
    file.media_type.starts_with("image/")
}

/// Can all of it be carried? Otherwise the name of the first file that cannot.
pub(super) fn check(brief: &Brief) -> Result<(), &str> {
    let carried = |file: &&File| matches!(file.content, Content::Text(_)) || is_image(file);
    match brief.files.iter().find(|file| !carried(file)) {
        Some(file) => Err(&file.name),
        None => Ok(()),
    }
}

/// The text with the files that are text, then the images.
pub(super) fn of(brief: &Brief) -> Value {
    let image = |media_type: &str, base64: &str| json!({ "type": "image", "url": format!("data:{media_type};base64,{base64}") });
    let mut input = vec![text_block(&brief.text_with_files().0)];
    for given in &brief.images {
        input.push(image(&given.media_type, &given.base64));
    }
    for file in brief.files.iter().filter(|file| is_image(file)) {
        if let Content::Base64(base64) = &file.content {
            input.push(image(&file.media_type, base64));
        }
    }
    input.into()
}
