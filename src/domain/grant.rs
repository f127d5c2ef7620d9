//! Grant: a guest's role in a session, and the session's control mode.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Role of a guest in a session; each includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantRole {
    /// Reads.
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
    type Err = ParseGrantError;

    fn from_str(text: &str) -> Result<Self, ParseGrantError> {
        [Self::Viewer, Self::Editor]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or(ParseGrantError("a grant is `viewer` or `editor`"))
    }
}

/// Control mode: whose commands a session takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlMode {
    /// Those of every editor.
    #[default]
    Open,
    /// Those of the driver only.
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
    type Err = ParseGrantError;

    fn from_str(text: &str) -> Result<Self, ParseGrantError> {
        [Self::Open, Self::Exclusive]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or(ParseGrantError("control is `open` or `exclusive`"))
    }
}

/// A text that is no role or mode.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseGrantError(&'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_themselves() {
        for role in [GrantRole::Viewer, GrantRole::Editor] {
            assert_eq!(role.as_str().parse::<GrantRole>().unwrap(), role);
        }
        for mode in [ControlMode::Open, ControlMode::Exclusive] {
            assert_eq!(mode.as_str().parse::<ControlMode>().unwrap(), mode);
        }
        assert!(
            "owner".parse::<GrantRole>().is_err(),
            "no guest becomes the owner"
        );
    }
}
