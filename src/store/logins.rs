//! Logins, as stored: one row per browser or program that proved who it is.

use std::net::IpAddr;
use std::str::FromStr;

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::{StoreError, StoredWord};
use crate::domain::account::User;
use crate::domain::act::{Act, By};
use crate::domain::id::{LoginId, SessionId, UserId};

/// How a login came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginKind {
    /// With a password; lives by refreshing.
    Browser,
    /// On the command line; lives as long as its one token.
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
    type Err = StoredWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "browser" => Ok(Self::Browser),
            "token" => Ok(Self::Token),
            _ => Err(StoredWord),
        }
    }
}

/// A login to be stored.
#[derive(Clone, Debug)]
pub struct NewLogin {
    /// Its id.
    pub id: LoginId,
    /// Whose it is.
    pub user: UserId,
    /// The account's generation when its password was checked.
    pub generation: i64,
    /// How it came to be.
    pub kind: LoginKind,
    /// The one session it is good for, if bound.
    pub session: Option<SessionId>,
    /// The hash of its first refresh token and when that ends.
    pub refresh: Option<([u8; 32], Timestamp)>,
    /// When its first access token ends.
    pub token_expires_at: Timestamp,
    /// Where it came from.
    pub address: Option<IpAddr>,
    /// What the program calls itself.
    pub user_agent: Option<String>,
}

/// A live login, as its owner sees it.
#[derive(Clone, Debug)]
pub struct LoginRow {
    /// Its id.
    pub id: LoginId,
    /// How it came to be.
    pub kind: LoginKind,
    /// Where it came from.
    pub address: Option<String>,
    /// What the program calls itself.
    pub user_agent: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last refreshed.
    pub last_used_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

/// Why a login was not stored.
#[derive(Debug, thiserror::Error)]
pub enum StartLoginError {
    /// The account was disabled, removed or changed in the meantime.
    #[error("the account changed while logging in")]
    AccountChanged,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The exchange of one refresh token for the next.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// The hash of the token that was presented.
    pub presented: [u8; 32],
    /// The hash of the one to be handed out.
    pub next: [u8; 32],
    /// When the next one ends.
    pub next_expires_at: Timestamp,
    /// When the access token handed out with it ends.
    pub token_expires_at: Timestamp,
}

/// A login that was refreshed.
#[derive(Clone, Debug)]
pub struct Refreshed {
    /// Which one.
    pub login: LoginId,
    /// The account as it is now.
    pub user: User,
    /// The one session it is good for, if bound.
    pub session: Option<SessionId>,
}

/// Why a login was not refreshed.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// Nothing live belongs to that token.
    #[error("unknown or expired refresh token")]
    Unknown,
    /// The token had been exchanged before: its login has been ended.
    #[error("the refresh token was used twice")]
    Reused,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Starting, refreshing and ending logins.
#[async_trait]
pub trait Logins: Send + Sync {
    /// Stores a new login, if the account is still as it was when its password was checked.
    async fn start_login(&self, new: &NewLogin, act: &Act) -> Result<(), StartLoginError>;

    /// Exchanges a refresh token. One that was exchanged before ends its login.
    async fn refresh_login(&self, rotation: &Rotation, by: &By) -> Result<Refreshed, RefreshError>;

    /// Ends a login of that user; false if there is none such.
    async fn end_login(&self, login: LoginId, user: UserId, act: &Act) -> Result<bool, StoreError>;

    /// The live logins of an account, newest first.
    async fn logins(&self, user: UserId, now: Timestamp) -> Result<Vec<LoginRow>, StoreError>;
}
