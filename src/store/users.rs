//! Accounts, as stored.

use async_trait::async_trait;

use super::error::StoreError;
use crate::domain::account::{Role, User, Username};
use crate::domain::act::Act;
use crate::domain::id::{LoginId, UserId};

/// An account to be made.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// Its id.
    pub id: UserId,
    /// The name it logs in with.
    pub username: Username,
    /// What it may do.
    pub role: Role,
    /// Its password, hashed; none while it is only invited.
    pub password_hash: Option<String>,
}

/// An account with what proves it.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The account.
    pub user: User,
    /// Its password, hashed; none while it is only invited.
    pub password_hash: Option<String>,
}

/// Which login survives a change of password.
#[derive(Clone, Copy, Debug)]
pub enum KeepLogin {
    /// The one that made the change.
    Only(LoginId),
    /// None.
    None,
}

/// Why an account was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateUserError {
    /// Somebody has that name.
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
    /// Nobody would be left to manage the gateway.
    #[error("this is the last administrator who can log in")]
    LastAdmin,
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Making, finding and changing accounts.
#[async_trait]
pub trait Users: Send + Sync {
    /// Makes an account.
    async fn create_user(&self, new: &NewUser, act: &Act) -> Result<(), CreateUserError>;

    /// The account of that id.
    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError>;

    /// The account of that name, with its password hash.
    async fn credentials(&self, username: &Username) -> Result<Option<Credentials>, StoreError>;

    /// All accounts by name, at most `limit` of them after the name `after`.
    async fn users(&self, after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError>;

    /// Is there any account that is an administrator, able to log in or not?
    async fn has_admin(&self) -> Result<bool, StoreError>;

    /// Is there any account at all?
    async fn has_users(&self) -> Result<bool, StoreError>;

    /// Sets a password and ends the account's logins, but for the one kept.
    async fn set_password(
        &self,
        id: UserId,
        password_hash: &str,
        keep: KeepLogin,
        act: &Act,
    ) -> Result<(), ChangeUserError>;

    /// Changes a role; tokens made before become worthless, logins stay.
    async fn set_role(&self, id: UserId, role: Role, act: &Act) -> Result<(), ChangeUserError>;

    /// Disables an account and ends its logins.
    async fn disable_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError>;

    /// Enables an account again.
    async fn enable_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError>;

    /// Removes an account and everything it owns.
    async fn remove_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError>;
}
