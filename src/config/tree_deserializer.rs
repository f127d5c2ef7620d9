//! Deserialisation: turns the tree into types and reports every value that its type refuses.
//!
//! A deserialiser stops at its first error, so the refused setting is reset to its default and the rest is
//! tried again until all errors are found. Touches `known_keys`, `suggestion`, `secret_files` and `tree`.

use serde::de::DeserializeOwned;

use super::error::{Place, Problem};
use super::key::Key;
use super::known_keys::{Kind, Schema};
use super::tree::{Content, Node};
use super::{secret_files, suggestion};

#[derive(Debug)]
pub(crate) struct TypeError {
    /// The setting, or a table around it.
    pub(crate) key: Key,
    pub(crate) message: String,
}

pub(crate) fn deserialise<T: DeserializeOwned>(tree: &Node) -> Result<T, TypeError> {
    serde_path_to_error::deserialize(tree.to_value()).map_err(|error| TypeError {
        key: Key::of_path(error.path()),
        message: error.inner().message().trim().replace('\n', " "),
    })
}

/// Deserialises the tree, or returns everything that is refused in it.
pub(crate) fn deserialise_all<T: DeserializeOwned>(
    tree: &mut Node,
    defaults: &Node,
    schema: &Schema,
) -> Result<T, Vec<Problem>> {
    let mut problems = Vec::new();
    loop {
        let refusal = match deserialise(tree) {
            Ok(value) if problems.is_empty() => return Ok(value),
            Ok(_) => return Err(problems),
            Err(refusal) => refusal,
        };
        let key = tree.deepest(&refusal.key);
        if read_again(tree, &key, schema) {
            continue;
        }
        problems.push(explain(&refusal.message, &key, tree, schema));
        if !restore(tree, &schema.unit(&key), defaults) {
            return Err(problems);
        }
    }
}

/// Only the refused text itself, or all of an open table's entry, whose types may not say which key they
/// refused.
fn read_again(tree: &mut Node, key: &Key, schema: &Schema) -> bool {
    let is_open = schema.kind(key) == Some(Kind::Open);
    let list = schema.unit(key);
    let key = if is_open { key } else { &list };
    tree.find_mut(key).is_some_and(|node| {
        let is_table = matches!(node.content, Content::Table(_));
        (is_open || !is_table) && node.read_again()
    })
}

/// Resets a key to its default; false if it has that already.
fn restore(tree: &mut Node, key: &Key, defaults: &Node) -> bool {
    let is_set = |node: &Node| node.origin() != Place::Default;
    if !tree.find(key).is_some_and(is_set) {
        return false;
    }
    match defaults.find(key) {
        Some(default) => tree.set(key, default.clone()),
        None => drop(tree.remove(key)),
    }
    true
}

fn explain(message: &str, key: &Key, tree: &Node, schema: &Schema) -> Problem {
    let node = tree.find(key);
    let place = node.map_or(Place::Default, Node::origin);
    if node.is_some_and(|node| secret_files::is_told_by(message, node, key, schema)) {
        return Problem::with_key(place, key, "has a value that is not accepted");
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let subject = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.collect();
    let slip = || suggestion::nearest(subject, known.iter().copied());
    if message.starts_with("missing field") {
        Problem::with_key(place, &key.child(subject), "is missing")
    } else if message.starts_with("unknown field") {
        unknown_field(key, subject, &known, place)
    } else if message.starts_with("unknown variant") {
        let message = format!("{}, found `{subject}`", must_be(message));
        Problem::with_key(place, key, message).hinting(slip().map(suggestion::did_you_mean))
    } else {
        Problem::with_key(place, key, in_plain_words(message))
    }
}

fn unknown_field(key: &Key, name: &str, known: &[&str], place: Place) -> Problem {
    let table = match key.split_last() {
        Some((table, last)) if last == name => table,
        _ => key.clone(),
    };
    let hint = match suggestion::nearest(name, known.iter().copied()) {
        Some(meant) => suggestion::did_you_mean(&table.child(meant).to_string()),
        None => format!("the keys of `{table}` are: {}", known.join(", ")),
    };
    suggestion::unknown(&table.child(name), place).hinting(hint)
}

/// Rephrases "invalid type: string, expected a map" as "must be a map, found string".
fn in_plain_words(message: &str) -> String {
    let shape = ["invalid type: ", "invalid value: "];
    let found = shape.iter().find_map(|shape| message.strip_prefix(shape));
    match found.and_then(|found| found.rsplit_once(", expected ")) {
        Some((found, _)) => format!("{}, found {found}", must_be(message)),
        None => format!("is not accepted: {message}"),
    }
}

fn must_be(message: &str) -> String {
    let wanted = message.rsplit_once(", expected ").map(|(_, wanted)| wanted);
    let wanted = match wanted.unwrap_or("something else") {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" => "an integer from 0 to 4294967295",
        "u64" | "usize" => "an integer from 0 up",
        "a nonzero u16" => "an integer from 1 to 65535",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "an integer from 1 up",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        other => other,
    };
    format!("must be {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_type_become_plain() {
        assert_eq!(
            in_plain_words("invalid value: integer `-1`, expected u16"),
            "must be an integer from 0 to 65535, found integer `-1`"
        );
        assert_eq!(
            in_plain_words("invalid socket address syntax"),
            "is not accepted: invalid socket address syntax"
        );
    }

    #[test]
    fn an_unknown_field_is_named_once_wherever_the_path_ends() {
        let known = ["protocol", "command"];
        for key in ["agents.a", "agents.a.comand"] {
            let problem = unknown_field(&Key::dotted(key), "comand", &known, Place::Default);
            assert_eq!(
                problem.to_string(),
                "default: unknown key `agents.a.comand`\n  did you mean `agents.a.command`?"
            );
        }
    }
}
