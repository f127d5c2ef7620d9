//! Key: the name of one setting, such as `server.listen` or `agents.demo.command[0]`.
//!
//! A list of steps, so that a name with a dot in it (`agents."my.agent"`) stays one step. Touches nothing else.

use std::fmt;

use serde_path_to_error::{Path, Segment};

pub(crate) const VARIABLE_PREFIX: &str = "SWITCHBOARD__";

/// Maximum depth; no key is deeper, not even inside an open table.
const DEEPEST_STEPS: usize = 16;

/// The position of a setting, from the root of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(Vec<Step>);

/// One step down: into a table or into a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
}

impl Key {
    /// Parses `section.key`, as written in code.
    pub(crate) fn dotted(text: &str) -> Self {
        Self(text.split('.').map(Step::name).collect())
    }

    pub(crate) fn of_variable(variable: &str) -> Option<Self> {
        let names = variable.strip_prefix(VARIABLE_PREFIX)?;
        let lower = names.to_lowercase();
        Some(Self(lower.split("__").map(Step::name).collect()))
    }

    pub(crate) fn of_path(path: &Path) -> Self {
        let step = |segment: &Segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key: name } | Segment::Enum { variant: name } => Some(Step::name(name)),
            Segment::Unknown => None,
        };
        Self(path.iter().filter_map(step).collect())
    }

    pub(crate) fn variable(&self) -> String {
        let names: Vec<String> = self.names().map(str::to_uppercase).collect();
        format!("{VARIABLE_PREFIX}{}", names.join("__"))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    pub(crate) fn child(&self, name: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::name(name));
        Self(steps)
    }

    pub(crate) fn prefix(&self, length: usize) -> Self {
        Self(self.0.iter().take(length).cloned().collect())
    }

    /// The key without its last step, and the name of that step.
    pub(crate) fn split_last(&self) -> Option<(Self, &str)> {
        match self.0.split_last()? {
            (Step::Name(name), rest) => Some((Self(rest.to_vec()), name)),
            (Step::Index(_), _) => None,
        }
    }

    pub(crate) fn is_too_deep(&self) -> bool {
        self.0.len() > DEEPEST_STEPS
    }

    /// Is it the other key, or below it?
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// Does a pattern such as `agents.*.token`, where `*` is any name, match it?
    pub(crate) fn matches(&self, pattern: &Self) -> bool {
        self.0.len() == pattern.0.len() && self.runs_along(pattern)
    }

    /// Does a prefix of the pattern match this key, or the pattern a prefix of it?
    pub(crate) fn runs_along(&self, pattern: &Self) -> bool {
        let same = |(step, wanted): (&Step, &Step)| {
            step == wanted || *wanted == Step::name("*") && matches!(step, Step::Name(_))
        };
        self.0.iter().zip(&pattern.0).all(same)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|step| match step {
            Step::Name(name) => Some(name.as_str()),
            Step::Index(_) => None,
        })
    }
}

impl Step {
    fn name(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(formatter, "[{index}]")?,
                Step::Name(name) => {
                    let dot = if position == 0 { "" } else { "." };
                    write!(formatter, "{dot}{}", written(name))?;
                }
            }
        }
        Ok(())
    }
}

/// A name in TOML: bare if possible, else quoted.
pub(crate) fn written(name: &str) -> String {
    let is_bare = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml::Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_and_a_dotted_key_name_the_same_setting() {
        let key = Key::of_variable("SWITCHBOARD__Server__MAX_CONNECTIONS").unwrap();
        assert_eq!(key, Key::dotted("server.max_connections"));
        assert_eq!(key.variable(), "SWITCHBOARD__SERVER__MAX_CONNECTIONS");
        assert_eq!(Key::of_variable("PATH"), None);
    }

    #[test]
    fn a_name_with_a_dot_is_shown_in_quotes() {
        let key = Key::dotted("agents").child("my.agent").child("command");
        assert_eq!(key.to_string(), r#"agents."my.agent".command"#);
    }

    #[test]
    fn a_star_in_a_pattern_stands_for_one_name() {
        let pattern = Key::dotted("agents.*.token");
        assert!(Key::dotted("agents.demo.token").matches(&pattern));
        assert!(!Key::dotted("agents.demo.tokens").matches(&pattern));
        assert!(!Key::dotted("agents.token").matches(&pattern));
    }
}
