//! Known keys: which keys exist and what each takes, derived from the built-in configuration.
//!
//! The typed configuration is serialised as JSON once; that is the list of keys. An unset optional key
//! appears as null, hence a section must serialise all its keys. Touches `key` only.

use serde_json::Value;

use super::key::{Key, Step};
use super::layers::Rules;

/// Suffix of the key that names a secret's file.
const FILE_SUFFIX: &str = "_file";

#[derive(Clone, Debug)]
pub(crate) struct Schema {
    root: Value,
    secrets: Vec<Key>,
    open_tables: Vec<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A table with known keys, or with any names if it is open.
    Table,
    /// Any value: inside an open table only the typed configuration knows.
    Open,
    /// An optional value of a type that only the typed configuration knows.
    Optional,
    Boolean,
    Integer,
    Float,
    Text,
    List,
    Secret,
    OptionalSecret,
}

impl Kind {
    /// The expected value, after "must be".
    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Self::Table => "a table",
            Self::Open | Self::Optional => "a value",
            Self::Boolean => "`true` or `false`",
            Self::Integer => "an integer",
            Self::Float => "a number",
            Self::Text | Self::Secret | Self::OptionalSecret => "a string",
            Self::List => "a list",
        }
    }
}

impl Schema {
    /// Derives the schema from a configuration serialised as JSON.
    pub(crate) fn new(root: Value, rules: &Rules<'_>) -> Self {
        let keys = |list: &[&str]| list.iter().copied().map(Key::dotted).collect();
        Self {
            root,
            secrets: keys(rules.secrets),
            open_tables: keys(rules.open_tables),
        }
    }

    pub(crate) fn kind(&self, key: &Key) -> Option<Kind> {
        let length = key.steps().len();
        if (0..length).any(|length| self.is_secret(&key.prefix(length))) {
            return None;
        }
        if self.is_secret(key) {
            let is_set = self.value(key).is_some_and(|value| !value.is_null());
            return Some(if is_set {
                Kind::Secret
            } else {
                Kind::OptionalSecret
            });
        }
        let is_open = |table: &Key| key.is_within(table) && key != table;
        if self.open_tables.iter().any(is_open) {
            return Some(Kind::Open);
        }
        let below_optional = |length| self.value(&key.prefix(length)).is_some_and(Value::is_null);
        if (0..length).any(below_optional) {
            return Some(Kind::Open);
        }
        self.value(key).map(kind_of)
    }

    pub(crate) fn is_secret(&self, key: &Key) -> bool {
        self.secrets.iter().any(|pattern| key.matches(pattern))
    }

    /// Is this key a secret, part of one, or meant to hold one?
    pub(crate) fn touches_secret(&self, key: &Key) -> bool {
        self.secrets.iter().any(|pattern| key.runs_along(pattern))
    }

    /// The secret that `admin.password_file` is the file of. A pattern that ends in `*` has no such form: below it,
    /// names are the operator's.
    pub(crate) fn secret_of_file(&self, key: &Key) -> Option<Key> {
        if self.is_secret(key) || self.value(key).is_some() {
            return None;
        }
        let (table, name) = key.split_last()?;
        let secret = table.child(name.strip_suffix(FILE_SUFFIX)?);
        let is_named = |pattern: &&Key| pattern.split_last().is_some_and(|(_, last)| last != "*");
        let mut named = self.secrets.iter().filter(is_named);
        named
            .any(|pattern| secret.matches(pattern))
            .then_some(secret)
    }

    /// The unit that is dropped with this key: itself, or the open table's entry that it belongs to.
    pub(crate) fn unit(&self, key: &Key) -> Key {
        let mut tables = self.open_tables.iter().filter(|table| key.is_within(table));
        match tables.next() {
            Some(table) => key.prefix(table.steps().len() + 1),
            None => without_positions(key),
        }
    }

    /// The names in a table, each secret also as its file.
    pub(crate) fn names(&self, table: &Key) -> Vec<String> {
        let Some(Value::Object(entries)) = self.value(table) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries.keys().cloned().collect();
        let files = entries.keys().map(|name| format!("{name}{FILE_SUFFIX}"));
        names.extend(files.filter(|file| self.secret_of_file(&table.child(file)).is_some()));
        names
    }

    /// Every key that is not a table.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut found = Vec::new();
        collect_keys(&self.root, &Key::default(), &mut found);
        found
    }

    fn value(&self, key: &Key) -> Option<&Value> {
        key.steps()
            .iter()
            .try_fold(&self.root, |value, step| match step {
                Step::Name(name) => value.as_object()?.get(name),
                Step::Index(index) => value.as_array()?.get(*index),
            })
    }
}

fn without_positions(key: &Key) -> Key {
    let is_position = |step: &Step| matches!(step, Step::Index(_));
    let length = key.steps().iter().position(is_position);
    key.prefix(length.unwrap_or(key.steps().len()))
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Optional,
        Value::Bool(_) => Kind::Boolean,
        Value::Number(number) if number.is_f64() => Kind::Float,
        Value::Number(_) => Kind::Integer,
        Value::String(_) => Kind::Text,
        Value::Array(_) => Kind::List,
        Value::Object(_) => Kind::Table,
    }
}

fn collect_keys(value: &Value, key: &Key, found: &mut Vec<Key>) {
    match value {
        Value::Object(entries) => {
            for (name, child) in entries {
                collect_keys(child, &key.child(name), found);
            }
        }
        _ => found.push(key.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let rules = Rules {
            secrets: &["admin.password", "agents.*.token", "agents.*.env.*"],
            open_tables: &["agents"],
        };
        let root = json!({
            "admin": { "username": null, "password": null },
            "server": { "listen": "x", "port": 1, "rate": 1.5, "tls": null },
            "agents": { "demo": { "enabled": true } },
        });
        Schema::new(root, &rules)
    }

    #[test]
    fn a_key_takes_what_its_built_in_value_is() {
        let kind = |key| schema().kind(&Key::dotted(key));
        assert_eq!(kind("server"), Some(Kind::Table));
        assert_eq!(kind("server.port"), Some(Kind::Integer));
        assert_eq!(kind("server.rate"), Some(Kind::Float));
        assert_eq!(kind("server.tls"), Some(Kind::Optional));
        assert_eq!(kind("server.tls.certificate"), Some(Kind::Open));
        assert_eq!(kind("server.listen.more"), None);
        assert_eq!(kind("agents.mine.command"), Some(Kind::Open));
        assert_eq!(kind("admin.password"), Some(Kind::OptionalSecret));
        assert_eq!(kind("admin.password.more"), None);
    }

    #[test]
    fn only_a_named_secret_can_come_from_a_file() {
        let secret = |key| schema().secret_of_file(&Key::dotted(key));
        assert_eq!(
            secret("admin.password_file"),
            Some(Key::dotted("admin.password"))
        );
        assert_eq!(
            secret("agents.a.token_file"),
            Some(Key::dotted("agents.a.token"))
        );
        assert_eq!(secret("agents.a.env.SSL_CERT_FILE"), None);
        assert_eq!(secret("admin.username_file"), None);
    }
}
