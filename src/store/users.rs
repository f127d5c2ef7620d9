//! Users: accounts with their role and password hash.

use async_trait::async_trait;

use super::error::StoreError;
use crate::domain::account::{Role, User, Username};
use crate::domain::audit::AuditEntry;
use crate::domain::id::{LoginId, UserId};

/// A new account.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Its id.
    pub id: UserId,
    /// The name it logs in with.
    pub username: Username,
    /// Its role.
    pub role: Role,
    /// Password hash; none until the invite is accepted.
    pub password_hash: Option<String>,
}

/// An account with its password hash.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The account.
    pub user: User,
    /// Password hash; none until the invite is accepted.
    pub password_hash: Option<String>,
}

/// The login that survives a password change.
#[derive(Clone, Copy, Debug)]
pub enum KeepLogin {
    /// The one that made the change.
    Only(LoginId),
    /// None.
    None,
}

/// Why an account was not created.
#[derive(Debug, thiserror::Error)]
pub enum CreateUserError {
    /// The name is taken.
    #[error("the user name is taken")]
    UsernameTaken,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an account was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeUserError {
    /// There is no such account.
    #[error("there is no such user")]
    NotFound,
    /// The gateway would have no administrator left.
    #[error("this is the last administrator who can log in")]
    LastAdmin,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Creating, finding and changing accounts.
#[async_trait]
pub trait Users: Send + Sync {
    /// Creates an account.
    async fn create_user(&self, new: &NewUser, entry: &AuditEntry) -> Result<(), CreateUserError>;

    /// The account of that id.
    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError>;

    /// The account of that name, with its password hash.
    async fn credentials(&self, username: &Username) -> Result<Option<Credentials>, StoreError>;

    /// Accounts by name, at most `limit` after the name `after`.
    async fn users(&self, after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError>;

    /// Does any administrator exist, able to log in or not?
    async fn has_admin(&self) -> Result<bool, StoreError>;

    /// Does any account exist?
    async fn has_users(&self) -> Result<bool, StoreError>;

    /// Sets a password and ends all other logins of the account.
    async fn set_password(
        &self,
        id: UserId,
        password_hash: &str,
        keep: KeepLogin,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError>;

    /// Changes a role; existing tokens become invalid, logins stay.
    async fn set_role(
        &self,
        id: UserId,
        role: Role,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError>;

    /// Disables an account and ends its logins.
    async fn disable_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;

    /// Enables an account again.
    async fn enable_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;

    /// Deletes an account and everything it owns.
    async fn remove_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError>;
}
