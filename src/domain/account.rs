//! Accounts: the stored user, its role, and the principal acting now.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::id::{LoginId, SessionId, UserId};

/// Role of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Manages users and the gateway.
    Admin,
    /// Uses agents.
    Member,
}

impl Role {
    /// The name in the database, on the wire and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Member => "member",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that names no role.
#[derive(Debug, thiserror::Error)]
#[error("a role is `admin` or `member`")]
pub struct BadRole;

impl FromStr for Role {
    type Err = BadRole;

    fn from_str(text: &str) -> Result<Self, BadRole> {
        match text {
            "admin" => Ok(Self::Admin),
            "member" => Ok(Self::Member),
            _ => Err(BadRole),
        }
    }
}

/// Login name, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Username(String);

/// A text that cannot be a user name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a user name has 1 to 64 letters, digits or . _ - @ and begins with a letter or digit")]
pub struct BadUsername;

impl Username {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Username {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Username {
    type Err = BadUsername;

    fn from_str(text: &str) -> Result<Self, BadUsername> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
        let begins_well = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins_well && text.len() <= Self::MAX_BYTES && text.bytes().all(allowed) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(BadUsername)
        }
    }
}

impl<'de> Deserialize<'de> for Username {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// A stored account.
#[derive(Clone, Debug)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The name it logs in with.
    pub username: Username,
    /// Its role.
    pub role: Role,
    /// Cannot log in; all its logins have ended.
    pub disabled: bool,
    /// Has no password yet.
    pub invited: bool,
    /// Grows with every change that revokes older tokens.
    pub generation: i64,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The authenticated user acting now.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The account.
    pub user: UserId,
    /// Its name when the token was issued.
    pub username: Username,
    /// Its role when the token was issued; a role change revokes the token.
    pub role: Role,
    /// The token's login.
    pub login: LoginId,
    /// The account's generation when the token was issued.
    pub generation: i64,
    /// The only session the token is valid for, if bound.
    pub session: Option<SessionId>,
    /// Expiry of the token.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_username_has_one_spelling() {
        assert_eq!("Mia".parse::<Username>(), "mia".parse());
        assert_eq!(
            "mia@example.org".parse::<Username>().unwrap().as_str(),
            "mia@example.org"
        );
    }

    #[test]
    fn invalid_usernames_are_refused() {
        let long = "a".repeat(65);
        for text in [
            "",
            " mia",
            "mia\n",
            "-mia",
            "mia/..",
            "mïa",
            "a b",
            "\0",
            long.as_str(),
        ] {
            assert_eq!(text.parse::<Username>(), Err(BadUsername), "{text:?}");
        }
    }
}
