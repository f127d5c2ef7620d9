//! One-time links: setup and invite links, and tickets for sockets. Only their hashes are stored.

use async_trait::async_trait;
use jiff::Timestamp;

use super::error::StoreError;
use super::users::NewUser;
use crate::domain::account::User;
use crate::domain::audit::{AuditContext, AuditEntry};
use crate::domain::id::{LoginId, SessionId, UserId};

/// Purpose of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// Creates the first administrator.
    Setup,
    /// Lets this user set a password.
    Invite(UserId),
}

/// A new link.
#[derive(Clone, Debug)]
pub struct NewLink {
    /// Hash of its secret.
    pub hash: [u8; 32],
    /// Its purpose.
    pub kind: LinkKind,
    /// Expiry.
    pub expires_at: Timestamp,
}

/// Login of a redeemed ticket.
#[derive(Clone, Debug)]
pub struct Redeemed {
    /// The login.
    pub login: LoginId,
    /// The account as it is now.
    pub user: User,
    /// The only session the login may use, if bound.
    pub session: Option<SessionId>,
    /// Expiry of its newest access token.
    pub token_expires_at: Timestamp,
}

/// A valid invite, as its holder may see it.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The invited user.
    pub user: User,
    /// Name of the user or process that issued it; absent for links of an older version.
    pub issuer: Option<String>,
    /// Expiry.
    pub expires_at: Timestamp,
}

/// Why the setup failed.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// There is an administrator already.
    #[error("the gateway is set up already")]
    AlreadySetUp,
    /// The link is unknown, used or expired.
    #[error("the setup link is not valid")]
    BadLink,
    /// The name is taken.
    #[error("the user name is taken")]
    UsernameTaken,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Issuing and redeeming links.
#[async_trait]
pub trait OneTimeLinks: Send + Sync {
    /// Stores a setup or invite link; earlier ones for the same purpose stop working.
    async fn issue_link(&self, link: &NewLink, entry: &AuditEntry) -> Result<(), StoreError>;

    /// Stores a ticket that opens one socket for a login; false if the login has ended. Not
    /// audited: it grants nothing beyond its login.
    async fn issue_ticket(
        &self,
        hash: [u8; 32],
        login: LoginId,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Redeems a ticket; `None` if it is unknown, used or expired, or its login has ended.
    async fn redeem_ticket(
        &self,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Redeemed>, StoreError>;

    /// Is there a valid setup link with that hash?
    async fn setup_is_open(&self, hash: [u8; 32], now: Timestamp) -> Result<bool, StoreError>;

    /// Creates the first administrator, redeeming the setup link if one is given.
    async fn set_up(
        &self,
        link: Option<[u8; 32]>,
        admin: &NewUser,
        entry: &AuditEntry,
    ) -> Result<(), SetUpError>;

    /// The user of a valid invite.
    async fn invited(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<User>, StoreError>;

    /// The same with its issuer and expiry.
    async fn invitation(
        &self,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError>;

    /// Redeems an invite: sets the password and ends all logins of the account. `None` if the link
    /// is unknown, used or expired, or the user is disabled.
    async fn accept_invite(
        &self,
        hash: [u8; 32],
        password_hash: &str,
        context: &AuditContext,
    ) -> Result<Option<User>, StoreError>;
}
