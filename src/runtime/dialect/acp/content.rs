//! What people and agents say to each other, in blocks.

use serde_json::{Value, json};

use super::super::{Brief, Content, File, text_block};
use super::opening::Offers;

/// A prompt in blocks; what the agent cannot take is named, as completes "cannot …".
pub(super) fn blocks(brief: &Brief, offers: &Offers) -> Result<Vec<Value>, String> {
    if !brief.images.is_empty() && !offers.image {
        return Err("see images".into());
    }
    let (text, others) = if offers.embedded {
        (brief.text.clone(), Vec::new())
    } else {
        brief.text_with_files()
    };
    if let Some(name) = others.first() {
        return Err(format!("read files that are not text, such as `{name}`"));
    }
    let mut blocks = vec![text_block(&text)];
    for image in &brief.images {
        let (kind, data) = (&image.media_type, &image.base64);
        blocks.push(json!({ "type": "image", "mimeType": kind, "data": data }));
    }
    if offers.embedded {
        let files = brief.files.iter().enumerate();
        blocks.extend(files.map(|(place, file)| resource(place + 1, file)));
    }
    Ok(blocks)
}

/// A file inside a prompt. Its address only tells files apart: there is nothing behind it.
fn resource(place: usize, file: &File) -> Value {
    let uri = format!("attachment:///{place}/{}", escaped(&file.name));
    let mut resource = json!({ "uri": uri, "mimeType": file.media_type });
    match &file.content {
        Content::Text(text) => resource["text"] = json!(text),
        Content::Base64(blob) => resource["blob"] = json!(blob),
    }
    json!({ "type": "resource", "resource": resource })
}

/// The name as a part of an address.
fn escaped(name: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    name.bytes().map(escape).collect()
}

/// What a block of the agent says, as Markdown; nothing if there is no way to put it.
pub(super) fn said(block: &Value) -> Option<String> {
    let part = |name: &str| block[name].as_str();
    match part("type")? {
        "text" => part("text").map(str::to_owned),
        "image" => {
            let (kind, data) = (part("mimeType")?, part("data")?);
            Some(format!("![image](data:{kind};base64,{data})"))
        }
        "resource_link" => {
            let uri = part("uri")?;
            let name = part("title").or(part("name")).unwrap_or(uri);
            Some(format!("[{name}]({uri})"))
        }
        "resource" => block["resource"]["text"].as_str().map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_an_address() {
        assert_eq!(escaped("a b/ü?.txt"), "a%20b%2F%C3%BC%3F.txt");
    }
}
