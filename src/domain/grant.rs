//! What an owner lets others do in a session, and who may drive there.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What somebody was granted in a session that is not theirs; the later includes the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantRole {
    /// Looks on.
    Viewer,
    /// Also prompts, answers, cancels and changes settings.
    Editor,
}

impl GrantRole {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
        }
    }
}

impl fmt::Display for GrantRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for GrantRole {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        [Self::Viewer, Self::Editor]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(BadWord("a grant is `viewer` or `editor`"))
    }
}

/// Whose commands a session takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlMode {
    /// Those of everybody who may.
    #[default]
    Open,
    /// Those of the one connection that has taken control.
    Exclusive,
}

impl ControlMode {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Exclusive => "exclusive",
        }
    }
}

impl FromStr for ControlMode {
    type Err = BadWord;

    fn from_str(text: &str) -> Result<Self, BadWord> {
        [Self::Open, Self::Exclusive]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or(BadWord("control is `open` or `exclusive`"))
    }
}

/// A text that is none of the words it should be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadWord(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_as_themselves() {
        for role in [GrantRole::Viewer, GrantRole::Editor] {
            assert_eq!(role.as_str().parse::<GrantRole>().unwrap(), role);
        }
        for mode in [ControlMode::Open, ControlMode::Exclusive] {
            assert_eq!(mode.as_str().parse::<ControlMode>().unwrap(), mode);
        }
        assert!(
            "owner".parse::<GrantRole>().is_err(),
            "nobody is granted that"
        );
    }
}
