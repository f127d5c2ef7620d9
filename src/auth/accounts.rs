//! Making and changing accounts: the same acts for the command line and the admin API.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::login::{Caller, Grant, LoginError};
use super::password::{BadPassword, HasherBusy, check_password};
use super::secret::{OneTimeSecret, hash_presented};
use super::{AdminConfig, Auth};
use crate::domain::account::{Principal, Role, User, Username};
use crate::domain::act::{Action, Actor, By};
use crate::domain::id::UserId;
use crate::store::{
    ChangeUserError, CreateUserError, KeepLogin, LinkKind, NewLink, NewUser, SetUpError, StoreError,
};

const SETUP_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Between two parts of what somebody leaves behind: others write in between.
const BREATH: Duration = Duration::from_millis(2);

/// A link on its way to the one who may use it.
pub struct Invitation {
    /// What makes it work.
    pub secret: OneTimeSecret,
    /// When it stops working.
    pub expires_at: Timestamp,
}

/// Why something about an account was not done.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no such user.
    #[error("there is no such user")]
    NotFound,
    /// Somebody has that name.
    #[error("the user name is taken")]
    UsernameTaken,
    /// Nobody would be left to manage the gateway.
    #[error("this is the last administrator who can log in; make another one first")]
    LastAdmin,
    /// The link is unknown, used or expired.
    #[error("this link is not valid any more: it works once, and only for a while")]
    BadLink,
    /// There is an administrator already.
    #[error("this gateway is set up already: ask an administrator for an account")]
    AlreadySetUp,
    /// The key comes from the configuration.
    #[error("the signing key is given by auth.signing_key: replace it there and restart")]
    KeyIsGiven,
    /// The password is not acceptable.
    #[error(transparent)]
    Password(#[from] BadPassword),
    /// Too many passwords are being hashed.
    #[error(transparent)]
    Busy(#[from] HasherBusy),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why somebody's own password was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangePasswordError {
    /// The current password could not be confirmed.
    #[error(transparent)]
    Current(LoginError),
    /// The new one could not be set.
    #[error(transparent)]
    New(#[from] AdminError),
}

impl From<CreateUserError> for AdminError {
    fn from(error: CreateUserError) -> Self {
        match error {
            CreateUserError::UsernameTaken => Self::UsernameTaken,
            CreateUserError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ChangeUserError> for AdminError {
    fn from(error: ChangeUserError) -> Self {
        match error {
            ChangeUserError::NotFound => Self::NotFound,
            ChangeUserError::LastAdmin => Self::LastAdmin,
            ChangeUserError::Store(error) => Self::Store(error),
        }
    }
}

impl From<SetUpError> for AdminError {
    fn from(error: SetUpError) -> Self {
        match error {
            SetUpError::AlreadySetUp => Self::AlreadySetUp,
            SetUpError::BadLink => Self::BadLink,
            SetUpError::UsernameTaken => Self::UsernameTaken,
            SetUpError::Store(error) => Self::Store(error),
        }
    }
}

impl From<LoginError> for AdminError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Refused | LoginError::NoSuchSession => Self::NotFound,
            LoginError::Busy(error) => Self::Busy(error),
            LoginError::Store(error) => Self::Store(error),
        }
    }
}

impl Auth {
    /// Whoever runs commands on this machine, now.
    pub fn operator(&self) -> By {
        By::operator(self.0.clock.wall())
    }

    /// An authenticated user, now.
    pub fn by(&self, principal: &Principal, address: IpAddr) -> By {
        By {
            actor: Actor::from(principal),
            address: Some(address),
            at: self.0.clock.wall(),
        }
    }

    /// Is somebody needed who makes the first administrator?
    pub async fn needs_setup(&self) -> Result<bool, StoreError> {
        Ok(!self.0.store.has_admin().await?)
    }

    /// Makes a setup link, in place of every earlier one. `None` if there is an administrator.
    pub async fn issue_setup_link(&self, by: By) -> Result<Option<Invitation>, StoreError> {
        if !self.needs_setup().await? {
            return Ok(None);
        }
        self.issue(LinkKind::Setup, SETUP_LIFE, "setup", by)
            .await
            .map(Some)
    }

    /// Makes the first administrator with the setup link, and logs them in.
    pub async fn set_up(
        &self,
        link: &str,
        username: Username,
        password: &str,
        caller: &Caller,
    ) -> Result<Grant, AdminError> {
        if !self.needs_setup().await? {
            return Err(AdminError::AlreadySetUp);
        }
        let hash = hash_presented(link).ok_or(AdminError::BadLink)?;
        // Before the expensive part: nobody shall make us hash with a made-up link.
        if !self
            .0
            .store
            .setup_is_open(hash, self.0.clock.wall())
            .await?
        {
            return Err(AdminError::BadLink);
        }
        let admin = self.new_admin(username, password).await?;
        self.make_first_admin(Some(hash), &admin, Some(caller.address))
            .await?;
        let user = self.user(admin.id).await?;
        Ok(self.start(user, None, caller).await?)
    }

    /// Makes the first administrator from the configuration, if there is no account at all.
    pub async fn set_up_from_config(&self, config: &AdminConfig) -> Result<bool, AdminError> {
        let (Some(username), Some(password)) = (&config.username, &config.password) else {
            return Ok(false);
        };
        if self.0.store.has_users().await? {
            return Ok(false);
        }
        let admin = self.new_admin(username.clone(), password.expose()).await?;
        match self.make_first_admin(None, &admin, None).await {
            Ok(()) => Ok(true),
            // Another node was quicker.
            Err(AdminError::AlreadySetUp | AdminError::UsernameTaken) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes an account; without a password it needs an invitation next.
    pub async fn create_user(
        &self,
        username: Username,
        role: Role,
        password: Option<&str>,
        by: By,
    ) -> Result<User, AdminError> {
        let password_hash = match password {
            Some(password) => Some(self.hash(password, &username).await?),
            None => None,
        };
        let new = NewUser {
            id: UserId::new(),
            username,
            role,
            password_hash,
        };
        let act = by.did(Action::UserCreated, new.username.as_str());
        self.0.store.create_user(&new, &act).await?;
        self.user(new.id).await
    }

    /// Makes a link with which a user sets a password, in place of every earlier one.
    pub async fn invite(&self, user: &User, by: By) -> Result<Invitation, StoreError> {
        let life = self.0.config.invite_life();
        self.issue(LinkKind::Invite(user.id), life, user.username.as_str(), by)
            .await
    }

    /// Sets the password that an invitation asks for, and logs the user in.
    pub async fn accept_invite(
        &self,
        link: &str,
        password: &str,
        caller: &Caller,
    ) -> Result<Grant, AdminError> {
        let hash = hash_presented(link).ok_or(AdminError::BadLink)?;
        let now = self.0.clock.wall();
        let invited = self
            .0
            .store
            .invited(hash, now)
            .await?
            .ok_or(AdminError::BadLink)?;
        let password_hash = self.hash(password, &invited.username).await?;
        let by = By {
            actor: Actor::Gateway,
            address: Some(caller.address),
            at: now,
        };
        let user = self
            .0
            .store
            .accept_invite(hash, &password_hash, &by)
            .await?
            .ok_or(AdminError::BadLink)?;
        self.feel_own_act().await;
        Ok(self.start(user, None, caller).await?)
    }

    /// Changes the password of whoever acts; their other logins end.
    pub async fn change_password(
        &self,
        principal: &Principal,
        current: String,
        new: &str,
        address: IpAddr,
    ) -> Result<(), ChangePasswordError> {
        self.confirm_password(principal, current, address)
            .await
            .map_err(ChangePasswordError::Current)?;
        let hash = self.hash(new, &principal.username).await?;
        let act = self
            .by(principal, address)
            .did(Action::PasswordChanged, principal.username.as_str());
        let keep = KeepLogin::Only(principal.login);
        self.0
            .store
            .set_password(principal.user, &hash, keep, &act)
            .await
            .map_err(AdminError::from)?;
        self.feel_own_act().await;
        Ok(())
    }

    /// Sets somebody's password; all their logins end.
    pub async fn set_password(
        &self,
        user: &User,
        password: &str,
        by: By,
    ) -> Result<(), AdminError> {
        let hash = self.hash(password, &user.username).await?;
        let act = by.did(Action::PasswordChanged, user.username.as_str());
        self.0
            .store
            .set_password(user.id, &hash, KeepLogin::None, &act)
            .await?;
        self.feel_own_act().await;
        Ok(())
    }

    /// Changes somebody's role; their tokens must be refreshed.
    pub async fn set_role(&self, user: &User, role: Role, by: By) -> Result<(), AdminError> {
        let act = by.did(Action::RoleChanged, format!("{} to {role}", user.username));
        self.0.store.set_role(user.id, role, &act).await?;
        self.feel_own_act().await;
        Ok(())
    }

    /// Shuts somebody out at once.
    pub async fn disable(&self, user: &User, by: By) -> Result<(), AdminError> {
        let act = by.did(Action::UserDisabled, user.username.as_str());
        self.0.store.disable_user(user.id, &act).await?;
        self.feel_own_act().await;
        Ok(())
    }

    /// Lets somebody log in again.
    pub async fn enable(&self, user: &User, by: By) -> Result<(), AdminError> {
        let act = by.did(Action::UserEnabled, user.username.as_str());
        Ok(self.0.store.enable_user(user.id, &act).await?)
    }

    /// Removes somebody and everything they own.
    ///
    /// Somebody with much is shut out first and removed last: if it is broken off in between, it can
    /// be asked for again.
    pub async fn remove(&self, user: &User, by: By) -> Result<(), AdminError> {
        let store = &self.0.store;
        if store.owns_much(user.id).await? {
            let act = by.clone().did(Action::UserDisabled, user.username.as_str());
            store.close_account(user.id, &act).await?;
            self.feel_own_act().await;
            while store.empty_account(user.id).await? > 0 {
                tokio::time::sleep(BREATH).await;
            }
        }
        let act = by.did(Action::UserRemoved, user.username.as_str());
        self.0.store.remove_user(user.id, &act).await?;
        self.feel_own_act().await;
        Ok(())
    }

    /// The account of that id.
    pub async fn user(&self, id: UserId) -> Result<User, AdminError> {
        self.0.store.user(id).await?.ok_or(AdminError::NotFound)
    }

    /// The account of that name.
    pub async fn user_named(&self, username: &Username) -> Result<User, AdminError> {
        let found = self.0.store.credentials(username).await?;
        found.map(|found| found.user).ok_or(AdminError::NotFound)
    }

    /// Accounts by name, a page at a time.
    pub async fn users(&self, after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError> {
        self.0.store.users(after, limit).await
    }

    async fn make_first_admin(
        &self,
        link: Option<[u8; 32]>,
        admin: &NewUser,
        address: Option<IpAddr>,
    ) -> Result<(), AdminError> {
        let by = By {
            actor: Actor::User(admin.id, admin.username.clone()),
            address,
            at: self.0.clock.wall(),
        };
        let act = by.did(Action::SetUp, admin.username.as_str());
        Ok(self.0.store.set_up(link, admin, &act).await?)
    }

    async fn new_admin(&self, username: Username, password: &str) -> Result<NewUser, AdminError> {
        Ok(NewUser {
            id: UserId::new(),
            password_hash: Some(self.hash(password, &username).await?),
            username,
            role: Role::Admin,
        })
    }

    async fn hash(&self, password: &str, username: &Username) -> Result<String, AdminError> {
        check_password(password, username)?;
        Ok(self.0.hasher.hash(password.to_owned()).await?)
    }

    async fn issue(
        &self,
        kind: LinkKind,
        life: SignedDuration,
        target: &str,
        by: By,
    ) -> Result<Invitation, StoreError> {
        let invitation = Invitation {
            secret: OneTimeSecret::random(),
            expires_at: by.at + life,
        };
        let link = NewLink {
            hash: invitation.secret.hash(),
            kind,
            expires_at: invitation.expires_at,
        };
        self.0
            .store
            .issue_link(&link, &by.did(Action::LinkIssued, target))
            .await?;
        Ok(invitation)
    }
}
