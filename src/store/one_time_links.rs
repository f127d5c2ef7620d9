//! Things that work once: setup and invite links, tickets. Only their hashes are stored.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::users::NewUser;
use crate::domain::account::User;
use crate::domain::act::{Act, By};
use crate::domain::id::{LoginId, SessionId, UserId};

/// What a link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Makes the first administrator.
    Setup,
    /// Lets this user set a password.
    Invite(UserId),
}

/// A link to be stored.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// The hash of its secret.
    pub hash: [u8; 32],
    /// What it is for.
    pub kind: LinkKind,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// Whom a ticket was made for.
#[derive(Clone, Debug)]
pub struct Redeemed {
    /// The login.
    pub login: LoginId,
    /// The account as it is now.
    pub user: User,
    /// The one session the login is good for, if bound.
    pub session: Option<SessionId>,
    /// When its newest access token ends.
    pub token_expires_at: Timestamp,
}

/// Why the first administrator was not made.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// There is an administrator already.
    #[error("the gateway is set up already")]
    AlreadySetUp,
    /// Unknown, used or expired.
    #[error("the setup link is not valid")]
    BadLink,
    /// Somebody has that name.
    #[error("the user name is taken")]
    UsernameTaken,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Issuing links and using them up.
#[async_trait]
pub trait Links: Send + Sync {
    /// Stores a setup or invite link in place of every earlier one for the same purpose.
    async fn issue_link(&self, link: &NewLink, act: &Act) -> Result<(), StoreError>;

    /// Stores a ticket that opens one socket for a login; false if that has ended. Not an act: it
    /// grants nothing that its login does not have.
    async fn issue_ticket(
        &self,
        hash: [u8; 32],
        login: LoginId,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Uses up a ticket; `None` if it is unknown, used or expired, or its login has ended.
    async fn redeem_ticket(
        &self,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Redeemed>, StoreError>;

    /// Is there a live setup link with that hash?
    async fn setup_is_open(&self, hash: [u8; 32], now: Timestamp) -> Result<bool, StoreError>;

    /// Makes the first administrator, using up the setup link if one is given.
    async fn set_up(
        &self,
        link: Option<[u8; 32]>,
        admin: &NewUser,
        act: &Act,
    ) -> Result<(), SetUpError>;

    /// The user that a live invite is for.
    async fn invited(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<User>, StoreError>;

    /// Uses up an invite: sets the password and ends every login the account had.
    /// `None` if the link is unknown, used or expired, or its user disabled.
    async fn accept_invite(
        &self,
        hash: [u8; 32],
        password_hash: &str,
        by: &By,
    ) -> Result<Option<User>, StoreError>;
}
