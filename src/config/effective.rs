//! Effective configuration: TOML that names the origin of each value. Touches `known_keys`, `secret_files` and `tree`.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use super::error::Place;
use super::key::{Key, written};
use super::known_keys::Schema;
use super::secret_files::HIDDEN;
use super::tree::Node;

/// Writes a configuration as TOML, without its secrets.
pub(crate) fn print(values: &Value, tree: &Node, schema: &Schema) -> String {
    let mut page = Page {
        tree,
        schema,
        text: String::new(),
    };
    if let Value::Object(entries) = values {
        page.table(entries, &Key::default());
    }
    page.text
}

struct Page<'a> {
    tree: &'a Node,
    schema: &'a Schema,
    text: String,
}

impl Page<'_> {
    /// Values before tables: in TOML, what follows a table's header belongs to that table.
    fn table(&mut self, entries: &Map<String, Value>, key: &Key) {
        let is_table = |name: &str, value: &Value| {
            value.is_object() && !self.schema.is_secret(&key.child(name))
        };
        let (tables, values): (Vec<_>, Vec<_>) = entries
            .iter()
            .partition(|(name, value)| is_table(name, value));
        if *key != Key::default() && (tables.is_empty() || !values.is_empty()) {
            self.header(key);
        }
        for (name, value) in values {
            self.line(name, value, &key.child(name));
        }
        for (name, value) in tables {
            if let Value::Object(entries) = value {
                self.table(entries, &key.child(name));
            }
        }
    }

    fn header(&mut self, key: &Key) {
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.write(format_args!("{gap}[{key}]\n"));
    }

    fn line(&mut self, name: &str, value: &Value, key: &Key) {
        let name = written(name);
        let origin = self.origin(key);
        match value {
            Value::Null => self.write(format_args!("# {name} is not set\n")),
            _ if self.schema.is_secret(key) => {
                self.write(format_args!("{name} = \"{HIDDEN}\"{origin}\n"));
            }
            value => self.write(format_args!("{name} = {}{origin}\n", inline(value))),
        }
    }

    fn write(&mut self, text: fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("a string takes any text");
    }

    fn origin(&self, key: &Key) -> String {
        match self.tree.find(key).map_or(Place::Default, Node::origin) {
            Place::Default => String::new(),
            // A path may contain a line break, which would end the comment.
            place => format!("  # from {place}").replace(char::is_control, " "),
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        Value::Array(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            format!("[{}]", items.map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entries = entries.iter().filter(|(_, value)| !value.is_null());
            let entry =
                |(name, value): (&String, &Value)| format!("{} = {}", written(name), inline(value));
            format!(
                "{{ {} }}",
                entries.map(entry).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::layers::Rules;
    use super::*;

    #[test]
    fn each_value_says_where_it_comes_from_and_secrets_are_hidden() {
        let rules = Rules {
            secrets: &["admin.password", "agents.*.env.*"],
            open_tables: &["agents"],
        };
        let values = serde_json::json!({
            "admin": { "password": "hunter2", "username": null },
            "agents": { "a.b": { "command": ["x", "y"], "env": { "KEY": "sk-123" } } },
            "server": { "port": 80, "rate": 0.5 },
        });
        let schema = Schema::new(values.clone(), &rules);
        let mut tree = Node::of_value(toml::Value::Table(toml::Table::new()), &Place::Default);
        let place = Place::Variable("SWITCHBOARD__SERVER__PORT".into());
        tree.set(
            &Key::dotted("server.port"),
            Node::of_value(80.into(), &place),
        );
        let wanted = r#"[admin]
password = "********"
# username is not set

[agents."a.b"]
command = ["x", "y"]

[agents."a.b".env]
KEY = "********"

[server]
port = 80  # from SWITCHBOARD__SERVER__PORT
rate = 0.5
"#;
        let printed = print(&values, &tree, &schema);
        assert_eq!(printed, wanted);
        assert!(printed.parse::<toml::Table>().is_ok());
    }
}
