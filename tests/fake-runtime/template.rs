//! Templates: `"$name"` is replaced by a variable; patterns are matched against inbound lines.

use serde_json::{Map, Value};

pub(crate) type Variables = Map<String, Value>;

/// Fills a template. A string that is only `$name` becomes the value with its type; inside a longer
/// string it is written out. `$$` is a dollar sign. Members without a value are left out.
pub(crate) fn fill(
    template: &Value,
    known: &mut dyn FnMut(&str) -> Option<Value>,
) -> Option<Value> {
    match template {
        Value::String(text) => fill_text(text, known),
        Value::Array(items) => Some(Value::Array(
            items.iter().filter_map(|item| fill(item, known)).collect(),
        )),
        Value::Object(members) => {
            let mut filled = Map::new();
            for (name, value) in members {
                if let Some(value) = fill(value, known) {
                    filled.insert(name.clone(), value);
                }
            }
            Some(Value::Object(filled))
        }
        other => Some(other.clone()),
    }
}

fn fill_text(text: &str, known: &mut dyn FnMut(&str) -> Option<Value>) -> Option<Value> {
    if !text.contains('$') {
        return Some(Value::String(text.to_owned()));
    }
    if let Some(name) = text.strip_prefix('$')
        && !name.is_empty()
        && name_length(name) == name.len()
    {
        return known(name);
    }
    let (mut filled, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let length = name_length(rest);
        if length > 0 {
            let value = known(&rest[..length]);
            filled.push_str(&value.as_ref().map_or_else(String::new, plain));
        } else {
            filled.push('$');
            rest = rest.strip_prefix('$').unwrap_or(rest);
        }
        rest = &rest[length..];
    }
    filled.push_str(rest);
    Some(Value::String(filled))
}

fn name_length(text: &str) -> usize {
    text.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_')
        .unwrap_or(text.len())
}

/// Does the template contain this variable?
pub(crate) fn mentions(template: &Value, name: &str) -> bool {
    let mut mentioned = false;
    fill(template, &mut |hole| {
        mentioned |= hole == name;
        None
    });
    mentioned
}

/// Matches a line: `"*"` is anything, `null` is nothing, and an object may have more members than
/// the pattern.
pub(crate) fn fits(pattern: &Value, line: Option<&Value>) -> bool {
    let line = line.filter(|value| !value.is_null());
    match (pattern, line) {
        (Value::Null, first_value) => first_value.is_none(),
        (Value::String(any), first_value) if any == "*" => first_value.is_some(),
        (Value::Object(pattern), Some(Value::Object(line))) => pattern
            .iter()
            .all(|(name, value)| fits(value, line.get(name))),
        (pattern, first_value) => Some(pattern) == first_value,
    }
}

/// A value as plain text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// All members named `text`, joined: a prompt may come in parts.
pub(crate) fn collect_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(collect_nested_text).collect();
            let said = parts.iter().filter(|part| !part.is_empty());
            said.cloned().collect::<Vec<_>>().join("\n")
        }
        other => collect_nested_text(other),
    }
}

fn collect_nested_text(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let parts = members.iter().map(|(name, value)| match value {
                Value::String(text) if name == "text" => text.clone(),
                Value::String(_) => String::new(),
                other => collect_nested_text(other),
            });
            parts.collect()
        }
        Value::Array(items) => items.iter().map(collect_nested_text).collect(),
        _ => String::new(),
    }
}
