//! Content blocks: a prompt as blocks, and the agent's blocks as Markdown.

use serde_json::{Value, json};

use super::super::{Content, File, PromptContent, text_block};
use super::handshake::AgentCapabilities;

/// The blocks of a prompt; or what the agent cannot take, completing "cannot …".
pub(super) fn prompt_blocks(
    content: &PromptContent,
    capabilities: &AgentCapabilities,
) -> Result<Vec<Value>, String> {
    if !content.images.is_empty() && !capabilities.image {
        return Err("see images".into());
    }
    let (text, binary_files) = if capabilities.embedded_context {
        (content.text.clone(), Vec::new())
    } else {
        content.text_with_files()
    };
    if let Some(name) = binary_files.first() {
        return Err(format!("read files that are not text, such as `{name}`"));
    }
    let mut blocks = vec![text_block(&text)];
    for image in &content.images {
        let (kind, data) = (&image.media_type, &image.base64);
        blocks.push(json!({ "type": "image", "mimeType": kind, "data": data }));
    }
    if capabilities.embedded_context {
        let files = content.files.iter().enumerate();
        blocks.extend(files.map(|(index, file)| resource(index + 1, file)));
    }
    Ok(blocks)
}

/// An embedded file. Its URI only tells files apart: it cannot be fetched.
fn resource(index: usize, file: &File) -> Value {
    let uri = format!("attachment:///{index}/{}", percent_encoded(&file.name));
    let mut resource = json!({ "uri": uri, "mimeType": file.media_type });
    match &file.content {
        Content::Text(text) => resource["text"] = json!(text),
        Content::Base64(blob) => resource["blob"] = json!(blob),
    }
    json!({ "type": "resource", "resource": resource })
}

fn percent_encoded(name: &str) -> String {
    let escape = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    name.bytes().map(escape).collect()
}

/// A block as Markdown; none if it has no such form.
pub(super) fn to_markdown(block: &Value) -> Option<String> {
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
    fn a_file_name_is_one_segment_of_its_uri() {
        assert_eq!(percent_encoded("a b/ü?.txt"), "a%20b%2F%C3%BC%3F.txt");
    }
}
