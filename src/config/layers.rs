//! Layers: defaults, file, environment and flags merged into one typed configuration.
//!
//! The only entry point for the root `Config`. Environment and command line are parameters; the named files
//! are read here.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{ConfigError, Place, Problem};
use super::key::Key;
use super::known_keys::{Kind, Schema};
use super::schema_check::Validation;
use super::tree::Node;
use super::tree_deserializer::{TypeError, deserialise, deserialise_all};
use super::{effective, toml_document};

/// The sources of settings; each overrides the one before.
#[derive(Clone, Default)]
pub(crate) struct Sources<'a> {
    /// The built-in configuration, as TOML.
    pub(crate) defaults: &'a str,
    pub(crate) file: Option<&'a Path>,
    /// The environment; variables that are not ours are ignored.
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) flags: Vec<Flag>,
}

#[derive(Clone)]
pub(crate) struct Flag {
    pub(crate) key: &'static str,
    pub(crate) value: toml::Value,
    /// The flag: `--listen`.
    pub(crate) name: &'static str,
}

/// Rules for keys beyond their types. In a key, `*` stands for any one name:
/// `agents.*.env.*`.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Secret keys, never shown; each also as `<key>_file`, unless it ends in `*`.
    pub(crate) secrets: &'a [&'a str],
    /// Open tables: their entries have names chosen by the operator.
    pub(crate) open_tables: &'a [&'a str],
}

/// A section's objection to a value of the right type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) key: String,
    /// The problem; never contains a secret.
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

pub(crate) struct Layered<T> {
    pub(crate) value: T,
    values: serde_json::Value,
    tree: Node,
    schema: Schema,
}

/// Merges all layers into one typed configuration, or returns all problems.
///
/// `T` must serialise every key it has: that is how the known keys are found.
pub(crate) fn load<T>(sources: &Sources<'_>, rules: &Rules<'_>) -> Result<Layered<T>, ConfigError>
where
    T: DeserializeOwned + Serialize,
{
    let defaults =
        toml_document::parse(sources.defaults, |_| Place::Default).map_err(ConfigError::new)?;
    let built_in: T = deserialise(&defaults).map_err(broken_default)?;
    let schema = Schema::new(written_out(&built_in)?, rules);
    let (mut tree, mut problems) = lay(sources, &defaults, &schema)?;
    let typed = deserialise_all(&mut tree, &defaults, &schema);
    let value = typed.map_err(|refused| add_news(&mut problems, refused));
    match value {
        Ok(value) if problems.is_empty() => Ok(Layered {
            values: written_out(&value)?,
            value,
            tree,
            schema,
        }),
        _ => Err(ConfigError::new(problems)),
    }
}

impl<T> Layered<T> {
    /// The place of a key; a missing key inside an open table is at its entry.
    pub(crate) fn origin_of(&self, key: &str) -> Place {
        let key = Key::dotted(key);
        let is_open = self.schema.kind(&key) == Some(Kind::Open);
        let nearest = if is_open {
            self.tree.deepest(&key)
        } else {
            key
        };
        self.tree
            .find(&nearest)
            .map_or(Place::Default, Node::origin)
    }

    pub(crate) fn problem(&self, complaint: Complaint) -> Problem {
        Problem {
            place: self.origin_of(&complaint.key),
            message: format!("`{}`: {}", complaint.key, complaint.message),
            key: Some(complaint.key),
            hint: complaint.hint,
        }
    }

    /// Returns the configuration if its sections have no complaints.
    pub(crate) fn unless(
        self,
        complaints: impl IntoIterator<Item = Complaint>,
    ) -> Result<Self, ConfigError> {
        let complaints = complaints.into_iter();
        let problems: Vec<Problem> = complaints
            .map(|complaint| self.problem(complaint))
            .collect();
        if problems.is_empty() {
            Ok(self)
        } else {
            Err(ConfigError::new(problems))
        }
    }

    /// The effective configuration as TOML, with origins and without secrets.
    pub(crate) fn print(&self) -> String {
        effective::print(&self.values, &self.tree, &self.schema)
    }
}

/// Shows no values: some are secrets.
impl<T> fmt::Debug for Layered<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Layered").finish_non_exhaustive()
    }
}

/// Merges all layers into one tree and validates it. An unreadable file ends it here: without its settings,
/// type errors would only repeat that.
fn lay(
    sources: &Sources<'_>,
    defaults: &Node,
    schema: &Schema,
) -> Result<(Node, Vec<Problem>), ConfigError> {
    let root = Key::default();
    let mut validation = Validation::new(schema);
    let admitted = validation.admit(defaults.clone(), &root);
    let mut tree = admitted.unwrap_or_else(|| defaults.clone());
    let file = sources.file.map(read_file).transpose();
    if let Ok(Some(node)) = &file
        && let Some(node) = validation.admit(node.clone(), &root)
    {
        tree.overlay(node);
    }
    validation.admit_variables(&sources.variables, &mut tree);
    for flag in &sources.flags {
        let key = Key::dotted(flag.key);
        let node = Node::of_value(flag.value.clone(), &Place::Flag(flag.name.to_owned()));
        if let Some(node) = validation.admit(node, &key) {
            tree.set(&key, node);
        }
    }
    match file {
        Ok(_) => Ok((tree, validation.problems)),
        Err(mut problems) => {
            problems.append(&mut validation.problems);
            Err(ConfigError::new(problems))
        }
    }
}

fn read_file(path: &Path) -> Result<Node, Vec<Problem>> {
    let place_of = |line| Place::File {
        path: path.to_owned(),
        line,
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        let message = format!("cannot read the configuration file: {error}");
        vec![Problem::at(place_of(0), message)]
    })?;
    toml_document::parse(&text, place_of)
}

/// Adds a type error, unless it only follows from a known problem.
fn add_news(problems: &mut Vec<Problem>, refused: Vec<Problem>) {
    for problem in refused {
        let follows = |known: &Problem| match (&known.key, &problem.key) {
            (Some(known), Some(key)) => known
                .strip_prefix(key.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '['])),
            _ => false,
        };
        if !problems.iter().any(follows) {
            problems.push(problem);
        }
    }
}

fn written_out<T: Serialize>(value: &T) -> Result<serde_json::Value, ConfigError> {
    serde_json::to_value(value).map_err(|error| {
        let message = format!("the configuration cannot be written out: {error}");
        ConfigError::new(vec![Problem::at(Place::Default, message)])
    })
}

fn broken_default(refusal: TypeError) -> ConfigError {
    let TypeError { key, message } = refusal;
    let message = format!("is not accepted: {message}");
    ConfigError::new(vec![Problem::with_key(Place::Default, &key, message)])
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
