//! Accounts: create, change and remove users, for the command line and the admin API alike.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::login::{LoginClient, LoginError, LoginTokens};
use super::password::{BadPassword, HasherBusy, check_password};
use super::random_secret::{OneTimeSecret, hash_presented};
use super::{AdminConfig, Auth};
use crate::domain::account::{Principal, Role, User, Username};
use crate::domain::audit::{Action, Actor, AuditContext};
use crate::domain::id::UserId;
use crate::store::{
    ChangeUserError, CreateUserError, KeepLogin, LinkKind, NewLink, NewUser, SetUpError, StoreError,
};

const SETUP_LINK_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Pause between two batches, so that others can write.
const BATCH_PAUSE: Duration = Duration::from_millis(2);

/// A setup or invite link, to be handed to its user.
pub struct IssuedLink {
    /// The secret in the link.
    pub secret: OneTimeSecret,
    /// Expiry.
    pub expires_at: Timestamp,
}

/// Why an account operation failed.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no such user.
    #[error("there is no such user")]
    NotFound,
    /// The name is taken.
    #[error("the user name is taken")]
    UsernameTaken,
    /// The gateway would have no administrator left.
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

/// Why a user could not change their own password.
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
            LoginError::Refused | LoginError::NoSuchSession | LoginError::TooMany => Self::NotFound,
            LoginError::Busy(error) => Self::Busy(error),
            LoginError::Store(error) => Self::Store(error),
        }
    }
}

impl Auth {
    /// Audit context of the operator, now.
    pub fn operator(&self) -> AuditContext {
        AuditContext::operator(self.0.clock.wall())
    }

    /// Audit context of an authenticated user, now.
    pub fn audit_context(&self, principal: &Principal, address: IpAddr) -> AuditContext {
        AuditContext {
            actor: Actor::from(principal),
            address: Some(address),
            at: self.0.clock.wall(),
        }
    }

    /// Is there no administrator yet?
    pub async fn needs_setup(&self) -> Result<bool, StoreError> {
        Ok(!self.0.store.has_admin().await?)
    }

    /// Issues a setup link, replacing earlier ones. `None` if there is an administrator.
    pub async fn issue_setup_link(
        &self,
        context: AuditContext,
    ) -> Result<Option<IssuedLink>, StoreError> {
        if !self.needs_setup().await? {
            return Ok(None);
        }
        self.issue(LinkKind::Setup, SETUP_LINK_LIFE, "setup", context)
            .await
            .map(Some)
    }

    /// Creates the first administrator with the setup link and logs them in.
    pub async fn set_up(
        &self,
        link: &str,
        username: Username,
        password: &str,
        caller: &LoginClient,
    ) -> Result<LoginTokens, AdminError> {
        if !self.needs_setup().await? {
            return Err(AdminError::AlreadySetUp);
        }
        let hash = hash_presented(link).ok_or(AdminError::BadLink)?;
        // Before the expensive hash: an invalid link must not cost one.
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

    /// Creates the first administrator from the configuration, if there is no account at all.
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
            // Another node was faster.
            Err(AdminError::AlreadySetUp | AdminError::UsernameTaken) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates an account; without a password it needs an invite next.
    pub async fn create_user(
        &self,
        username: Username,
        role: Role,
        password: Option<&str>,
        context: AuditContext,
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
        let entry = context.did(Action::UserCreated, new.username.as_str());
        self.0.store.create_user(&new, &entry).await?;
        self.user(new.id).await
    }

    /// Issues a link to set a password, replacing earlier ones.
    pub async fn invite(
        &self,
        user: &User,
        context: AuditContext,
    ) -> Result<IssuedLink, StoreError> {
        let life = self.0.config.invite_life();
        self.issue(
            LinkKind::Invite(user.id),
            life,
            user.username.as_str(),
            context,
        )
        .await
    }

    /// Redeems an invite: sets the password and logs the user in.
    pub async fn accept_invite(
        &self,
        link: &str,
        password: &str,
        caller: &LoginClient,
    ) -> Result<LoginTokens, AdminError> {
        let hash = hash_presented(link).ok_or(AdminError::BadLink)?;
        let now = self.0.clock.wall();
        let invited = self
            .0
            .store
            .invited(hash, now)
            .await?
            .ok_or(AdminError::BadLink)?;
        let password_hash = self.hash(password, &invited.username).await?;
        let context = AuditContext {
            actor: Actor::Gateway,
            address: Some(caller.address),
            at: now,
        };
        let user = self
            .0
            .store
            .accept_invite(hash, &password_hash, &context)
            .await?
            .ok_or(AdminError::BadLink)?;
        self.apply_own_change().await;
        Ok(self.start(user, None, caller).await?)
    }

    /// Changes the principal's own password; their other logins end.
    pub async fn change_password(
        &self,
        principal: &Principal,
        current: String,
        new: &str,
        caller: &LoginClient,
    ) -> Result<(), ChangePasswordError> {
        self.confirm_password(principal, current, caller)
            .await
            .map_err(ChangePasswordError::Current)?;
        let hash = self.hash(new, &principal.username).await?;
        let entry = self
            .audit_context(principal, caller.address)
            .did(Action::PasswordChanged, principal.username.as_str());
        let keep = KeepLogin::Only(principal.login);
        self.0
            .store
            .set_password(principal.user, &hash, keep, &entry)
            .await
            .map_err(AdminError::from)?;
        self.apply_own_change().await;
        Ok(())
    }

    /// Sets a user's password; all their logins end.
    pub async fn set_password(
        &self,
        user: &User,
        password: &str,
        context: AuditContext,
    ) -> Result<(), AdminError> {
        let hash = self.hash(password, &user.username).await?;
        let entry = context.did(Action::PasswordChanged, user.username.as_str());
        self.0
            .store
            .set_password(user.id, &hash, KeepLogin::None, &entry)
            .await?;
        self.apply_own_change().await;
        Ok(())
    }

    /// Changes a user's role; their tokens must be refreshed.
    pub async fn set_role(
        &self,
        user: &User,
        role: Role,
        context: AuditContext,
    ) -> Result<(), AdminError> {
        let entry = context.did(Action::RoleChanged, format!("{} to {role}", user.username));
        self.0.store.set_role(user.id, role, &entry).await?;
        self.apply_own_change().await;
        Ok(())
    }

    /// Disables an account; its logins and tokens end at once.
    pub async fn disable(&self, user: &User, context: AuditContext) -> Result<(), AdminError> {
        let entry = context.did(Action::UserDisabled, user.username.as_str());
        self.0.store.disable_user(user.id, &entry).await?;
        self.apply_own_change().await;
        Ok(())
    }

    /// Enables an account.
    pub async fn enable(&self, user: &User, context: AuditContext) -> Result<(), AdminError> {
        let entry = context.did(Action::UserEnabled, user.username.as_str());
        Ok(self.0.store.enable_user(user.id, &entry).await?)
    }

    /// Removes a user and everything they own.
    ///
    /// Large accounts: disable first, delete in batches, remove the account last. An interrupted
    /// removal can be repeated.
    pub async fn remove(&self, user: &User, context: AuditContext) -> Result<(), AdminError> {
        let store = &self.0.store;
        if store.is_large_account(user.id).await? {
            let entry = context
                .clone()
                .did(Action::UserDisabled, user.username.as_str());
            store.disable_and_end_sessions(user.id, &entry).await?;
            self.apply_own_change().await;
            while store.remove_account_batch(user.id).await? > 0 {
                tokio::time::sleep(BATCH_PAUSE).await;
            }
        }
        let entry = context.did(Action::UserRemoved, user.username.as_str());
        self.0.store.remove_user(user.id, &entry).await?;
        self.apply_own_change().await;
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
        let context = AuditContext {
            actor: Actor::User(admin.id, admin.username.clone()),
            address,
            at: self.0.clock.wall(),
        };
        let entry = context.did(Action::SetUp, admin.username.as_str());
        Ok(self.0.store.set_up(link, admin, &entry).await?)
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
        context: AuditContext,
    ) -> Result<IssuedLink, StoreError> {
        let issued = IssuedLink {
            secret: OneTimeSecret::random(),
            expires_at: context.at + life,
        };
        let link = NewLink {
            hash: issued.secret.hash(),
            kind,
            expires_at: issued.expires_at,
        };
        self.0
            .store
            .issue_link(&link, &context.did(Action::LinkIssued, target))
            .await?;
        Ok(issued)
    }
}
