//! Secrets: reads them from files and keeps them out of messages. Touches `known_keys`, `tree` and `error` only.

use super::error::{Place, Problem};
use super::key::Key;
use super::known_keys::Schema;
use super::tree::{Content, Node};

pub(crate) const HIDDEN: &str = "********";

/// A message with so many letters of a secret in a row gives it away.
const TELLING_LETTERS: usize = 4;

/// Reads the file that holds a secret, without its final line break. A relative path starts at the working
/// directory.
pub(crate) fn read(path: &str, secret: &Key, place: &Place) -> Result<Node, Problem> {
    let problem = |message: String| Problem::with_key(place.clone(), secret, message);
    let text = std::fs::read_to_string(path)
        .map_err(|error| problem(format!("cannot be read from `{path}`: {error}")))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(problem(format!("is empty in `{path}`")));
    }
    Ok(Node::of_value(text.into(), place))
}

pub(crate) fn given_twice(secret: &Key, place: &Place) -> Problem {
    let message = format!("is set both directly and as `{secret}_file`");
    Problem::with_key(place.clone(), secret, message).hinting("keep one of the two".to_owned())
}

/// Would a message give away a secret at or below a node?
pub(crate) fn is_told_by(message: &str, node: &Node, key: &Key, schema: &Schema) -> bool {
    match &node.content {
        Content::Leaf(value) => {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            // A message may show it as Rust's debug form.
            let escaped = text.escape_debug().to_string();
            schema.touches_secret(key)
                && (shares_letters(message, &text) || shares_letters(message, &escaped))
        }
        Content::List(items) => items
            .iter()
            .any(|item| is_told_by(message, item, key, schema)),
        Content::Table(entries) => entries
            .iter()
            .any(|(name, child)| is_told_by(message, child, &key.child(name), schema)),
    }
}

fn shares_letters(message: &str, secret: &str) -> bool {
    let letters: Vec<char> = secret.chars().collect();
    let length = TELLING_LETTERS.min(letters.len());
    length > 0
        && letters
            .windows(length)
            .any(|part| message.contains(&part.iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::layers::Rules;
    use super::*;

    fn read_holding(content: &str) -> Result<Node, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(content.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let key = Key::dotted("admin.password");
        read(path, &key, &Place::Default)
            .map_err(|problem| problem.to_string().replace(path, "FILE"))
    }

    #[test]
    fn one_line_break_at_the_end_does_not_belong_to_the_secret() {
        let text = |content| read_holding(content).unwrap().to_value();
        assert_eq!(text("hunter2\n"), "hunter2".into());
        assert_eq!(text("hunter2\n\n"), "hunter2\n".into());
        assert_eq!(text(" hunter2 "), " hunter2 ".into());
    }

    #[test]
    fn a_file_that_holds_nothing_or_is_not_there_is_a_problem() {
        let empty = read_holding("\n").unwrap_err();
        assert_eq!(empty, "default: `admin.password` is empty in `FILE`");
        let key = Key::dotted("admin.password");
        let missing = read("/no/such/file", &key, &Place::Default).unwrap_err();
        assert!(missing.message.contains("`/no/such/file`"), "{missing}");
    }

    #[test]
    fn a_part_of_a_secret_in_a_message_gives_it_away() {
        let rules = Rules {
            secrets: &["admin.password"],
            open_tables: &[],
        };
        let schema = Schema::new(serde_json::json!({}), &rules);
        let admin = "password = 'hunter2'\nname = 'alice'".parse().unwrap();
        let admin = Node::of_value(toml::Value::Table(admin), &Place::Default);
        let key = Key::dotted("admin");
        assert!(is_told_by("the word `unter` is bad", &admin, &key, &schema));
        let misplaced = Node::of_value("hunter2".into(), &Place::Default);
        assert!(is_told_by("found \"hunter2\"", &misplaced, &key, &schema));
        assert!(!is_told_by("`alice` is too short", &admin, &key, &schema));
    }
}
