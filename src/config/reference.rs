//! Reference page: every setting, from the defaults and the comments beside them. Pure.

use std::fmt::Write as _;

use super::layers::Rules;

#[derive(Debug, Default, PartialEq, Eq)]
struct Setting {
    section: String,
    key: String,
    /// The value as written; an example if it is optional.
    value: String,
    optional: bool,
    about: String,
}

const BEGINNING: &str = "# Configuration

Every setting, made by `switchboard config reference` from \
[`config/default.toml`](../config/default.toml); a test compares the two. How the layers work and where \
files are looked for: [operations](operations.md#configuration).

A variable outranks the file. A **secret** is never printed; it can also be read from a file: its key and \
its variable with `_file` or `_FILE` behind them name it.
";

pub(super) fn page(defaults: &str, rules: &Rules<'_>) -> String {
    let mut page = BEGINNING.to_owned();
    let mut section = String::new();
    for setting in settings(defaults) {
        if setting.section != section {
            section.clone_from(&setting.section);
            write!(
                page,
                "\n## `[{section}]`\n\n| key | type | default | variable | |\n|---|---|---|---|---|\n"
            )
            .expect("a string takes it");
        }
        let path = format!("{}.{}", setting.section, setting.key);
        let secret = rules.secrets.contains(&path.as_str());
        page.push_str(&setting.row(secret));
    }
    for table in rules.open_tables {
        write!(
            page,
            "\n## `[{table}.NAME]`\n\nAny number of tables, each with its own name: every key is in [agents](agents.md#every-key-of-agentsname).\n"
        )
        .expect("a string takes it");
    }
    page
}

/// Every setting in the file's order. One without a comment shares the one above.
fn settings(defaults: &str) -> Vec<Setting> {
    let (mut found, mut section, mut about) = (Vec::new(), String::new(), String::new());
    let mut begins = true;
    for line in defaults.lines() {
        let words = line.strip_prefix("# ");
        if let Some(name) = line.strip_prefix('[') {
            name.trim_end_matches(']').clone_into(&mut section);
            about.clear();
        } else if let Some((key, value)) = assignment(words.unwrap_or(line)) {
            found.push(Setting {
                section: section.clone(),
                key: key.to_owned(),
                value: value.to_owned(),
                optional: words.is_some(),
                about: about.trim_start_matches("SECRET.").trim().to_owned(),
            });
            begins = true;
        } else if let Some(words) = words {
            if std::mem::take(&mut begins) {
                about.clear();
            }
            about.push_str(words);
            about.push(' ');
        } else {
            about.clear();
        }
    }
    found.retain(|setting| !setting.section.is_empty());
    found
}

/// Parses `key = value`, but not a sentence that contains an equals sign.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(" = ")?;
    let is_key = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_key.then_some((key, value))
}

impl Setting {
    fn kind(&self) -> &'static str {
        match self.value.as_bytes().first() {
            Some(b'"') => "text",
            Some(b'[') => "list of texts",
            Some(b't' | b'f') => "true or false",
            _ => "number",
        }
    }

    fn row(&self, secret: bool) -> String {
        let variable = format!(
            "SWITCHBOARD__{}__{}",
            self.section.to_ascii_uppercase(),
            self.key.to_ascii_uppercase()
        );
        let default = match (self.optional, self.value.as_str()) {
            (true, "\"\"") => "not set".to_owned(),
            (true, example) => format!("not set; like `{example}`"),
            (false, value) => format!("`{value}`"),
        };
        let mark = if secret { "**Secret.** " } else { "" };
        let about = self.about.replace('|', "\\|");
        let (key, kind) = (&self.key, self.kind());
        format!("| `{key}` | {kind} | {default} | `{variable}` | {mark}{about} |\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_the_words_above_it_or_shares_them() {
        let found = settings(
            "# a head = of no interest\n\n[one]\n# First.\n# More of it.\na = 1\nb = \"x\"\n# SECRET. Hidden.\n# c = \"\"\n",
        );
        let told: Vec<(&str, &str, bool)> = found
            .iter()
            .map(|setting| {
                (
                    setting.key.as_str(),
                    setting.about.as_str(),
                    setting.optional,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("a", "First. More of it.", false),
                ("b", "First. More of it.", false),
                ("c", "Hidden.", true)
            ]
        );
    }

    #[test]
    fn no_setting_is_without_words() {
        for setting in settings(super::super::DEFAULTS) {
            let bare = setting.about.is_empty() && setting.key != "password";
            assert!(!bare, "{setting:?}");
        }
    }
}
