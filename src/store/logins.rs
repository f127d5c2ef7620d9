//! Logins: one row per authenticated browser or program.

use std::net::IpAddr;
use std::str::FromStr;

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::{StoreError, UnknownValue};
use crate::domain::account::User;
use crate::domain::audit::{AuditContext, AuditEntry};
use crate::domain::id::{LoginId, SessionId, UserId};

/// Kind of login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// Password login; renewed by its refresh token.
    Browser,
    /// Created on the command line; lives as long as its one token.
    Token,
}

impl LoginKind {
    /// The name in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Token => "token",
        }
    }
}

impl FromStr for LoginKind {
    type Err = UnknownValue;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "browser" => Ok(Self::Browser),
            "token" => Ok(Self::Token),
            _ => Err(UnknownValue),
        }
    }
}

/// A new login.
#[derive(Clone, Debug)]
pub struct NewLogin {
    /// Its id.
    pub id: LoginId,
    /// The account.
    pub user: UserId,
    /// Generation of the account when the password was checked.
    pub generation: i64,
    /// Its kind.
    pub kind: LoginKind,
    /// The only session it may use, if bound.
    pub session: Option<SessionId>,
    /// Hash and expiry of its first refresh token.
    pub refresh: Option<([u8; 32], Timestamp)>,
    /// Expiry of its first access token.
    pub token_expires_at: Timestamp,
    /// Address of the client.
    pub address: Option<IpAddr>,
    /// User agent of the client.
    pub user_agent: Option<String>,
    /// The client's device, if it has a cookie that names it.
    pub device: Option<String>,
}

/// An active login.
#[derive(Clone, Debug)]
pub struct LoginRow {
    /// Its id.
    pub id: LoginId,
    /// Its kind.
    pub kind: LoginKind,
    /// Address of the client.
    pub address: Option<String>,
    /// User agent of the client.
    pub user_agent: Option<String>,
    /// When it started.
    pub created_at: Timestamp,
    /// When it was last refreshed.
    pub last_used_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// Why a login was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StartLoginError {
    /// The account was disabled, removed or changed meanwhile.
    #[error("the account changed while logging in")]
    AccountChanged,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Exchange of a refresh token for the next one.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Hash of the presented token.
    pub presented: [u8; 32],
    /// Hash of the new token: always the same for the presented one.
    pub next: [u8; 32],
    /// Expiry of the new token.
    pub next_expires_at: Timestamp,
    /// Expiry of the access token issued with it.
    pub token_expires_at: Timestamp,
    /// The client's device, if it has a cookie that names it.
    pub device: Option<String>,
    /// A token that was exchanged after this moment may be presented again, from its login's device and
    /// as long as its successor was not used: the answer got lost.
    pub repeatable_since: Timestamp,
}

/// A refreshed login.
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// Which one.
    pub login: LoginId,
    /// The account as it is now.
    pub user: User,
    /// The only session it may use, if bound.
    pub session: Option<SessionId>,
}

/// Why a login was not refreshed.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// No active login has that token.
    #[error("unknown or expired refresh token")]
    Unknown,
    /// The token was exchanged before: its login has been ended.
    #[error("the refresh token was used twice")]
    Reused {
        /// The account.
        user: UserId,
        /// The login that was ended.
        login: LoginId,
    },
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Starting, refreshing and ending logins.
#[async_trait]
pub trait Logins: Send + Sync {
    /// Stores a new login, unless the account changed since its password was checked.
    async fn start_login(&self, new: &NewLogin, entry: &AuditEntry) -> Result<(), StartLoginError>;

    /// Exchanges a refresh token. Presenting an exchanged one ends its login, unless it is a repetition
    /// of an exchange whose answer got lost.
    async fn refresh_login(
        &self,
        rotation: &Rotation,
        context: &AuditContext,
    ) -> Result<Refreshed, RefreshError>;

    /// Ends a login of that user; false if there is none.
    async fn end_login(
        &self,
        login: LoginId,
        user: UserId,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError>;

    /// Active logins of an account, newest first.
    async fn logins(&self, user: UserId, now: Timestamp) -> Result<Vec<LoginRow>, StoreError>;
}
