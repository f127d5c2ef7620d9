//! Laying the configuration's layers over one another: defaults, file, variables, flags.
//!
//! The only door to this folder for the root `Config`. The environment and the command line are
//! parameters; the files that are named are read.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::inspection::Inspection;
use super::key::Key;
use super::problem::{ConfigError, Place, Problem};
use super::refusal::{Refusal, deserialise, deserialise_all};
use super::schema::{Kind, Schema};
use super::tree::Node;
use super::{document, print};

/// Where settings come from; each source outranks the one before.
#[derive(Clone, Default)]
pub(crate) struct Sources<'a> {
    /// The built-in configuration, as TOML.
    pub(crate) defaults: &'a str,
    /// The configuration file, if one is used.
    pub(crate) file: Option<&'a Path>,
    /// The environment; names that are not ours are passed over.
    pub(crate) variables: Vec<(String, String)>,
    /// What was given on the command line.
    pub(crate) flags: Vec<Flag>,
}

/// A setting that was given on the command line.
#[derive(Clone)]
pub(crate) struct Flag {
    /// The dotted key that it sets.
    pub(crate) key: &'static str,
    /// What it sets it to.
    pub(crate) value: toml::Value,
    /// The flag as it is typed: `--listen`.
    pub(crate) name: &'static str,
}

/// What the engine has to know about keys beyond their types.
///
/// In a key, `*` stands for any one name: `agents.*.env.*`.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Keys whose values are never shown; each also as `<key>_file`, unless it ends in `*`.
    pub(crate) secrets: &'a [&'a str],
    /// Tables whose entries have names of the user's choice.
    pub(crate) open_tables: &'a [&'a str],
}

/// What a section says against values that have the right types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// The dotted key that it is about.
    pub(crate) key: String,
    /// What is wrong; never contains a secret.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

/// A typed configuration that remembers where its values come from.
pub(crate) struct Layered<T> {
    /// The configuration.
    pub(crate) value: T,
    values: serde_json::Value,
    tree: Node,
    schema: Schema,
}

/// Reads all layers into one typed configuration, or says everything that is wrong with them.
///
/// `T` must serialise every key it has: that is how the known keys are found.
pub(crate) fn load<T>(sources: &Sources<'_>, rules: &Rules<'_>) -> Result<Layered<T>, ConfigError>
where
    T: DeserializeOwned + Serialize,
{
    let defaults =
        document::parse(sources.defaults, |_| Place::Default).map_err(ConfigError::new)?;
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
    /// Where a key was set; a key inside an open table that is not there stands where its entry is.
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

    /// A complaint as a problem at the place where its key was set.
    pub(crate) fn problem(&self, complaint: Complaint) -> Problem {
        Problem {
            place: self.origin_of(&complaint.key),
            message: format!("`{}`: {}", complaint.key, complaint.message),
            key: Some(complaint.key),
            hint: complaint.hint,
        }
    }

    /// This configuration if its sections have no complaints.
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
        print::print(&self.values, &self.tree, &self.schema)
    }
}

/// Shows nothing of the values: there are secrets among them.
impl<T> fmt::Debug for Layered<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Layered").finish_non_exhaustive()
    }
}

/// All layers as one tree, and what the schema has against them.
///
/// A file that cannot be read ends it here: without its settings, types would only complain about
/// what it would have said.
fn lay(
    sources: &Sources<'_>,
    defaults: &Node,
    schema: &Schema,
) -> Result<(Node, Vec<Problem>), ConfigError> {
    let root = Key::default();
    let mut inspection = Inspection::new(schema);
    let admitted = inspection.admit(defaults.clone(), &root);
    let mut tree = admitted.unwrap_or_else(|| defaults.clone());
    let file = sources.file.map(read_file).transpose();
    if let Ok(Some(node)) = &file
        && let Some(node) = inspection.admit(node.clone(), &root)
    {
        tree.overlay(node);
    }
    inspection.admit_variables(&sources.variables, &mut tree);
    for flag in &sources.flags {
        let key = Key::dotted(flag.key);
        let node = Node::of_value(flag.value.clone(), &Place::Flag(flag.name.to_owned()));
        if let Some(node) = inspection.admit(node, &key) {
            tree.set(&key, node);
        }
    }
    match file {
        Ok(_) => Ok((tree, inspection.problems)),
        Err(mut problems) => {
            problems.append(&mut inspection.problems);
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
    document::parse(&text, place_of)
}

/// Adds what a type refused, unless it only follows from a problem that is already known.
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

fn broken_default(refusal: Refusal) -> ConfigError {
    let Refusal { key, message } = refusal;
    let message = format!("is not accepted: {message}");
    ConfigError::new(vec![Problem::with_key(Place::Default, &key, message)])
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
