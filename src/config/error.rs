//! Configuration errors: what is wrong, where, and how to fix it.
//!
//! All problems are collected, so that one start of the server shows all of them. Touches `key` only.

use std::fmt;
use std::path::PathBuf;

use super::key::Key;

/// Where a setting comes from; also the order in which problems are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A line of the configuration file; line 0 is the file as a whole.
    File {
        /// The file, as named on the command line.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag of the command line.
    Flag(String),
    /// The built-in default.
    Default,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its place.
    pub place: Place,
    /// The dotted key, if it concerns one.
    pub key: Option<String>,
    /// What is wrong, naming the key; never contains a secret.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

/// All problems of a configuration; never empty.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct ConfigError(pub Vec<Problem>);

impl ConfigError {
    /// Sorts the problems by place.
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|left, right| left.place.cmp(&right.place));
        Self(problems)
    }
}

impl Problem {
    /// A problem with a place as a whole, such as an unreadable file.
    pub(crate) fn at(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            key: None,
            message: message.into(),
            hint: None,
        }
    }

    /// A problem with one key, whose name begins the message: "`key` must be …".
    pub(crate) fn with_key(place: Place, key: &Key, message: impl fmt::Display) -> Self {
        Self {
            place,
            key: Some(key.to_string()),
            message: format!("`{key}` {message}"),
            hint: None,
        }
    }

    pub(crate) fn hinting(self, hint: impl Into<Option<String>>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line: 0 } => write!(formatter, "{}", path.display()),
            Self::File { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::Variable(name) | Self::Flag(name) => formatter.write_str(name),
            Self::Default => formatter.write_str("default"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.message)?;
        match &self.hint {
            Some(hint) => write!(formatter, "\n  {hint}"),
            None => Ok(()),
        }
    }
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_reads_place_first_and_the_hint_below() {
        let place = Place::File {
            path: "switchboard.toml".into(),
            line: 3,
        };
        let problem = Problem::at(place, "unknown key `server.lisen`")
            .hinting("did you mean `server.listen`?".to_owned());
        assert_eq!(
            problem.to_string(),
            "switchboard.toml:3: unknown key `server.lisen`\n  did you mean `server.listen`?"
        );
    }

    #[test]
    fn all_problems_are_listed_in_the_order_of_their_places() {
        let key = Key::dotted("server.listen");
        let error = ConfigError::new(vec![
            Problem::with_key(Place::Flag("--listen".into()), &key, "must be an address"),
            Problem::at(Place::Variable("SWITCHBOARD__X".into()), "unknown key `x`"),
        ]);
        assert_eq!(
            error.to_string(),
            "SWITCHBOARD__X: unknown key `x`\n--listen: `server.listen` must be an address"
        );
    }
}
