//! Schema check of a layer against the schema: unknown keys, wrong types, secrets in files.
//!
//! Invalid parts are reported and left out, so that the rest can still be checked. Touches `known_keys`,
//! `suggestion`, `secret_files` and `tree`.

use std::collections::BTreeMap;

use toml::Value;

use super::error::{Place, Problem};
use super::key::Key;
use super::known_keys::{Kind, Schema};
use super::tree::{Content, Node};
use super::{secret_files, suggestion};

pub(crate) struct Validation<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) problems: Vec<Problem>,
}

impl<'a> Validation<'a> {
    pub(crate) fn new(schema: &'a Schema) -> Self {
        Self {
            schema,
            problems: Vec::new(),
        }
    }

    pub(crate) fn admit(&mut self, node: Node, key: &Key) -> Option<Node> {
        if key.is_too_deep() {
            self.problems.push(suggestion::unknown(key, node.place));
            return None;
        }
        let Some(kind) = self.schema.kind(key) else {
            let problem = suggestion::unknown_key(self.schema, key, node.place);
            self.problems.push(problem);
            return None;
        };
        match (kind, node.content) {
            (Kind::Table | Kind::Open | Kind::Optional, Content::Table(entries)) => {
                let content = Content::Table(self.admit_entries(entries, key));
                Some(Node { content, ..node })
            }
            (kind, content) if takes(kind, &content) => Some(Node { content, ..node }),
            (kind, content) => {
                self.problems
                    .push(wrong_type(kind, &content, key, node.place));
                None
            }
        }
    }

    fn admit_entries(
        &mut self,
        entries: BTreeMap<String, Node>,
        table: &Key,
    ) -> BTreeMap<String, Node> {
        let mut admitted = BTreeMap::new();
        let mut files = Vec::new();
        for (name, node) in entries {
            let key = table.child(&name);
            match self.schema.secret_of_file(&key) {
                Some(secret) => files.push((key, secret, node)),
                None => admitted.extend(self.admit(node, &key).map(|node| (name, node))),
            }
        }
        for (key, secret, node) in files {
            let Some((_, name)) = secret.split_last() else {
                continue;
            };
            if admitted.contains_key(name) {
                self.problems
                    .push(secret_files::given_twice(&secret, &node.place));
            } else if let Some(node) = self.read_secret(&node, &key, &secret) {
                admitted.insert(name.to_owned(), node);
            }
        }
        admitted
    }

    fn read_secret(&mut self, file: &Node, key: &Key, secret: &Key) -> Option<Node> {
        let read = match &file.content {
            Content::Leaf(Value::String(path)) => secret_files::read(path, secret, &file.place),
            content => Err(wrong_type(Kind::Text, content, key, file.place.clone())),
        };
        read.map_err(|problem| self.problems.push(problem)).ok()
    }
}

fn wrong_type(kind: Kind, content: &Content, key: &Key, place: Place) -> Problem {
    let message = format!("must be {}, found {}", kind.wanted(), found(content));
    Problem::with_key(place, key, message).hinting(remedy(kind, content).map(str::to_owned))
}

fn takes(kind: Kind, content: &Content) -> bool {
    match kind {
        Kind::Open | Kind::Optional => true,
        Kind::Table => matches!(content, Content::Table(_)),
        Kind::List => matches!(content, Content::List(_)),
        Kind::Boolean => matches!(content, Content::Leaf(Value::Boolean(_))),
        Kind::Integer => matches!(content, Content::Leaf(Value::Integer(_))),
        Kind::Float => matches!(content, Content::Leaf(Value::Integer(_) | Value::Float(_))),
        Kind::Text | Kind::Secret | Kind::OptionalSecret => {
            matches!(content, Content::Leaf(Value::String(_)))
        }
    }
}

fn found(content: &Content) -> &'static str {
    match content {
        Content::List(_) => "a list",
        Content::Table(_) => "a table",
        Content::Leaf(value) => match value {
            Value::String(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Datetime(_) => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        },
    }
}

fn remedy(kind: Kind, content: &Content) -> Option<&'static str> {
    match (kind, content) {
        (Kind::Text | Kind::Secret | Kind::OptionalSecret, Content::Leaf(_)) => {
            Some("put it in quotes")
        }
        (Kind::List, Content::Leaf(_)) => Some("put it in square brackets"),
        (Kind::Boolean | Kind::Integer | Kind::Float, Content::Leaf(Value::String(text))) => {
            let plain = text.parse::<Value>().ok()?;
            takes(kind, &Content::Leaf(plain)).then_some("leave out the quotes")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::Rules;
    use super::*;

    fn problems_of(text: &str) -> Vec<String> {
        let rules = Rules {
            secrets: &["admin.password"],
            open_tables: &["agents"],
        };
        let root = serde_json::json!({
            "admin": { "password": null },
            "agents": {},
            "server": { "listen": "x", "port": 1, "rate": 1.5, "proxies": [], "quiet": true },
        });
        let schema = Schema::new(root, &rules);
        let mut validation = Validation::new(&schema);
        let table = Value::Table(text.parse().unwrap());
        validation.admit(Node::of_value(table, &Place::Default), &Key::default());
        let shown = |problem: &Problem| problem.to_string().replace("default: ", "");
        validation.problems.iter().map(shown).collect()
    }

    #[test]
    fn a_wrong_type_says_what_was_expected_and_found() {
        let text = "server = { listen = 1, port = 1.5, rate = 2, proxies = 'a', quiet = 'true' }";
        assert_eq!(
            problems_of(text),
            [
                "`server.listen` must be a string, found an integer\n  put it in quotes",
                "`server.port` must be an integer, found a float",
                "`server.proxies` must be a list, found a string\n  put it in square brackets",
                "`server.quiet` must be `true` or `false`, found a string\n  leave out the quotes",
            ]
        );
        assert_eq!(
            problems_of("server = 1"),
            ["`server` must be a table, found an integer"]
        );
    }

    #[test]
    fn an_unknown_section_is_one_problem_and_an_open_table_none() {
        let text = "agents.a.b.c = 1\nserve = { a = 1, b = 2 }";
        assert_eq!(
            problems_of(text),
            ["unknown key `serve`\n  did you mean `server`?"]
        );
    }

    #[test]
    fn a_secret_is_given_once_and_its_value_is_never_shown() {
        let both = problems_of("admin = { password = 'hunter2', password_file = '/dev/null' }");
        assert_eq!(both.len(), 1);
        assert!(
            both[0].contains("both directly and as `admin.password_file`"),
            "{both:?}"
        );
        let number = problems_of("admin.password = 271828");
        assert!(!number[0].contains("271828"), "{number:?}");
    }
}
