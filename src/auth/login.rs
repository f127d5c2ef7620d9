//! Login: password check, refresh, tickets, logout.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::device_cookie::{self, Device, DeviceCookie};
use super::password::HasherBusy;
use super::random_secret::{OneTimeSecret, hash_presented};
use super::{Auth, token};
use crate::domain::account::{Principal, User, Username};
use crate::domain::audit::{Action, Actor, AuditContext};
use crate::domain::id::{LoginId, SessionId, UserId};
use crate::limits::AttemptPermit;
use crate::session::may_join;
use crate::store::{
    Credentials, LoginKind, LoginRow, NewLogin, RefreshError, Rotation, StartLoginError, StoreError,
};

/// An exchange whose answer got lost can be repeated for this long.
const LOST_ANSWER_GRACE: SignedDuration = SignedDuration::from_secs(10);
const TICKET_LIFE: SignedDuration = SignedDuration::from_secs(30);
const MAX_USER_AGENT_CHARS: usize = 200;

/// The client that tries to log in.
#[derive(Clone, Debug)]
pub struct LoginClient {
    /// Its address.
    pub address: IpAddr,
    /// Its user agent.
    pub user_agent: Option<String>,
    /// Its device cookie.
    pub device_cookie: Option<String>,
}

/// A login request.
#[derive(Debug)]
pub struct LoginAttempt {
    /// The given name.
    pub username: String,
    /// The given password.
    pub password: String,
    /// The only session the token shall be valid for.
    pub session: Option<SessionId>,
    /// The client.
    pub caller: LoginClient,
}

/// Tokens issued for a login.
pub struct LoginTokens {
    /// The access token.
    pub token: String,
    /// Its expiry.
    pub expires_at: Timestamp,
    /// The account.
    pub user: User,
    /// Refresh token and its expiry.
    pub refresh: Option<(OneTimeSecret, Timestamp)>,
    /// The cookie by which the device is recognised from now on.
    pub device: Option<DeviceCookie>,
}

/// Why a login failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Unknown, wrong or disabled: the client is not told which.
    #[error("the user name or the password is wrong")]
    Refused,
    /// The user may not join the session to bind to.
    #[error("there is no such session")]
    NoSuchSession,
    /// Too many attempts on this account are under way.
    #[error("too many attempts to log in as this user are under way")]
    TooMany,
    /// Too many passwords are being checked.
    #[error(transparent)]
    Busy(#[from] HasherBusy),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Auth {
    /// Checks a password and starts a login. Unknown name, wrong password and disabled account take
    /// the same time and get the same answer.
    pub async fn log_in(&self, attempt: LoginAttempt) -> Result<LoginTokens, LoginError> {
        let account = self.attempt_key(&attempt.username, &attempt.caller);
        let Some(_permit) = self.begin_attempt(&account).await else {
            self.0.metrics.login("refused");
            return Err(LoginError::TooMany);
        };
        tokio::time::sleep(self.0.backoff.delay_for(&account)).await;
        let credentials = self.credentials(&attempt.username).await?;
        let stored = credentials
            .as_ref()
            .and_then(|found| Some((found.user.id, found.password_hash.clone()?)));
        let matches = self
            .0
            .hasher
            .verify(attempt.password.clone(), stored)
            .await?;
        let user = credentials.map(|found| found.user);
        let started = match &user {
            Some(user) if matches && !user.disabled => {
                self.start(user.clone(), attempt.session, &attempt.caller)
                    .await
            }
            _ => Err(LoginError::Refused),
        };
        match &started {
            Ok(_) => self.0.backoff.succeeded(&account),
            Err(LoginError::Refused | LoginError::NoSuchSession) => {
                self.0.backoff.failed(&account);
                self.0.metrics.login("refused");
                self.record_failure(anonymous(user.as_ref()), attempt.caller.address)
                    .await?;
            }
            Err(LoginError::Busy(_) | LoginError::Store(_) | LoginError::TooMany) => {
                self.0.metrics.login("failed");
            }
        }
        started
    }

    /// A permit for an attempt on an account. More at once wait for their turn; while failed ones slow the
    /// account down, they are refused.
    async fn begin_attempt(&self, account: &str) -> Option<AttemptPermit> {
        let attempts = &self.0.attempts;
        if let Some(permit) = attempts.try_begin(account) {
            return Some(permit);
        }
        let is_slowed = || !self.0.backoff.delay_for(account).is_zero();
        if is_slowed() {
            return None;
        }
        let permit = attempts.begin(account).await;
        (!is_slowed()).then_some(permit)
    }

    /// Under what an attempt's failures are counted: strangers share the account's name, and each device
    /// on which the account has logged in before has a count of its own.
    fn attempt_key(&self, username: &str, caller: &LoginClient) -> String {
        let account = account_key(username);
        let device = self.device(caller);
        match device.filter(|device| device.account == account) {
            Some(device) => format!("{account} on {}", device.id),
            None => account,
        }
    }

    fn device(&self, caller: &LoginClient) -> Option<Device> {
        let cookie = caller.device_cookie.as_deref()?;
        Device::verify(&self.0.keys.load(), cookie, self.0.clock.wall())
    }

    /// Checks the password of somebody who is logged in, bounded like a login: the token may be stolen.
    pub(super) async fn confirm_password(
        &self,
        principal: &Principal,
        password: String,
        caller: &LoginClient,
    ) -> Result<(), LoginError> {
        let account = self.attempt_key(principal.username.as_str(), caller);
        let Some(_permit) = self.begin_attempt(&account).await else {
            return Err(LoginError::TooMany);
        };
        tokio::time::sleep(self.0.backoff.delay_for(&account)).await;
        let credentials = self.0.store.credentials(&principal.username).await?;
        let stored = credentials.and_then(|found| Some((found.user.id, found.password_hash?)));
        if self.0.hasher.verify(password, stored).await? {
            self.0.backoff.succeeded(&account);
            Ok(())
        } else {
            self.0.backoff.failed(&account);
            self.record_failure(Actor::from(principal), caller.address)
                .await?;
            Err(LoginError::Refused)
        }
    }

    /// Exchanges a refresh token for the next one and a new access token.
    pub async fn refresh(
        &self,
        presented: &str,
        caller: &LoginClient,
    ) -> Result<LoginTokens, RefreshError> {
        let refreshed = self.rotate_refresh_token(presented, caller).await;
        self.0.metrics.refresh(match &refreshed {
            Ok(_) => "renewed",
            Err(RefreshError::Reused { .. }) => "reused",
            Err(RefreshError::Unknown) => "unknown",
            Err(RefreshError::Store(_)) => "failed",
        });
        refreshed
    }

    async fn rotate_refresh_token(
        &self,
        presented: &str,
        caller: &LoginClient,
    ) -> Result<LoginTokens, RefreshError> {
        let next = device_cookie::successor(&self.0.keys.load(), presented);
        let presented = hash_presented(presented).ok_or(RefreshError::Unknown)?;
        let now = self.0.clock.wall();
        let expires_at = now + self.0.config.access_token_life();
        let next_expires_at = now + self.0.config.refresh_token_life();
        let device = self.device(caller);
        let rotation = Rotation {
            presented,
            next: next.hash(),
            next_expires_at,
            token_expires_at: expires_at,
            device: device.as_ref().map(|device| device.id.clone()),
            repeatable_since: now - LOST_ANSWER_GRACE,
        };
        let context = AuditContext {
            actor: Actor::Gateway,
            address: Some(caller.address),
            at: now,
        };
        let refreshed = match self.0.store.refresh_login(&rotation, &context).await {
            Err(error @ RefreshError::Reused { user, login }) => {
                tracing::warn!(
                    user.id = %user,
                    login.id = %login,
                    "a refresh token was used twice; its login has been ended"
                );
                self.apply_own_change().await;
                return Err(error);
            }
            outcome => outcome?,
        };
        let account = account_key(refreshed.user.username.as_str());
        let device = device.filter(|device| device.account == account);
        Ok(LoginTokens {
            token: self.sign(
                &refreshed.user,
                refreshed.login,
                refreshed.session,
                expires_at,
            ),
            expires_at,
            user: refreshed.user,
            refresh: Some((next, next_expires_at)),
            // Signed anew: a device in use does not expire.
            device: device.map(|device| device.sign(&self.0.keys.load(), now)),
        })
    }

    /// Ends the principal's login.
    pub async fn log_out(&self, principal: &Principal, address: IpAddr) -> Result<(), StoreError> {
        self.end_login(principal, principal.login, Action::LoggedOut, address)
            .await
            .map(drop)
    }

    /// Ends another login of the principal; false if there is none.
    pub async fn revoke_login(
        &self,
        principal: &Principal,
        login: LoginId,
        address: IpAddr,
    ) -> Result<bool, StoreError> {
        self.end_login(principal, login, Action::LoginRevoked, address)
            .await
    }

    /// Active logins of an account.
    pub async fn logins(&self, user: UserId) -> Result<Vec<LoginRow>, StoreError> {
        self.0.store.logins(user, self.0.clock.wall()).await
    }

    /// Issues a ticket that opens one socket within half a minute; `None` if the login has ended.
    pub async fn issue_ticket(
        &self,
        principal: &Principal,
    ) -> Result<Option<(OneTimeSecret, Timestamp)>, StoreError> {
        let now = self.0.clock.wall();
        let secret = OneTimeSecret::random();
        let expires_at = now + TICKET_LIFE;
        let hash = secret.hash();
        let store = &self.0.store;
        let stored = store
            .issue_ticket(hash, principal.login, now, expires_at)
            .await?;
        Ok(stored.then_some((secret, expires_at)))
    }

    /// Redeems a ticket; `None` if it or its login is not valid.
    pub(crate) async fn redeem_ticket(
        &self,
        ticket: &str,
    ) -> Result<Option<Principal>, StoreError> {
        let Some(hash) = hash_presented(ticket) else {
            return Ok(None);
        };
        let found = self
            .0
            .store
            .redeem_ticket(hash, self.0.clock.wall())
            .await?;
        Ok(found.map(|found| Principal {
            user: found.user.id,
            username: found.user.username,
            role: found.user.role,
            login: found.login,
            generation: found.user.generation,
            session: found.session,
            expires_at: found.token_expires_at,
        }))
    }

    /// Creates a token for the operator, with the given lifetime.
    pub async fn create_token(
        &self,
        user: &User,
        life: SignedDuration,
    ) -> Result<LoginTokens, StartLoginError> {
        let now = self.0.clock.wall();
        let expires_at = now + life;
        let login = LoginId::new();
        let entry = AuditContext::operator(now).did(Action::TokenCreated, user.username.as_str());
        let new = NewLogin {
            id: login,
            user: user.id,
            generation: user.generation,
            kind: LoginKind::Token,
            session: None,
            refresh: None,
            token_expires_at: expires_at,
            address: None,
            user_agent: None,
            device: None,
        };
        self.0.store.start_login(&new, &entry).await?;
        Ok(LoginTokens {
            token: self.sign(user, login, None, expires_at),
            expires_at,
            user: user.clone(),
            refresh: None,
            device: None,
        })
    }

    pub(super) async fn start(
        &self,
        user: User,
        session: Option<SessionId>,
        caller: &LoginClient,
    ) -> Result<LoginTokens, LoginError> {
        if let Some(session) = session
            && !self.may_join(&user, session).await?
        {
            return Err(LoginError::NoSuchSession);
        }
        let now = self.0.clock.wall();
        let login = LoginId::new();
        let expires_at = now + self.0.config.access_token_life();
        let refresh = OneTimeSecret::random();
        let refresh_expires_at = now + self.0.config.refresh_token_life();
        let account = account_key(user.username.as_str());
        let device = self.device(caller);
        let device = device.filter(|device| device.account == account);
        let device = device.unwrap_or_else(|| Device::new(account));
        let new = NewLogin {
            id: login,
            user: user.id,
            generation: user.generation,
            kind: LoginKind::Browser,
            session,
            refresh: Some((refresh.hash(), refresh_expires_at)),
            token_expires_at: expires_at,
            address: Some(caller.address),
            user_agent: caller.user_agent.as_deref().map(shorten),
            device: Some(device.id.clone()),
        };
        let context = AuditContext {
            actor: Actor::User(user.id, user.username.clone()),
            address: Some(caller.address),
            at: now,
        };
        let entry = context.did(Action::LoginSucceeded, login.to_string());
        match self.0.store.start_login(&new, &entry).await {
            Ok(()) => {}
            Err(StartLoginError::AccountChanged) => return Err(LoginError::Refused),
            Err(StartLoginError::Store(error)) => return Err(error.into()),
        }
        self.0.metrics.login("started");
        Ok(LoginTokens {
            token: self.sign(&user, login, session, expires_at),
            expires_at,
            user,
            refresh: Some((refresh, refresh_expires_at)),
            device: Some(device.sign(&self.0.keys.load(), now)),
        })
    }

    async fn may_join(&self, user: &User, session: SessionId) -> Result<bool, StoreError> {
        let found = self.0.store.session_for(session, user.id).await?;
        Ok(found.is_some_and(|found| may_join(user.id, &found)))
    }

    fn sign(
        &self,
        user: &User,
        login: LoginId,
        session: Option<SessionId>,
        expires_at: Timestamp,
    ) -> String {
        let ring = self.0.keys.load();
        token::sign(&ring, user, login, session, self.0.clock.wall(), expires_at)
    }

    async fn credentials(&self, username: &str) -> Result<Option<Credentials>, StoreError> {
        match username.parse::<Username>() {
            Ok(username) => self.0.store.credentials(&username).await,
            Err(_) => Ok(None),
        }
    }

    async fn record_failure(&self, actor: Actor, address: IpAddr) -> Result<(), StoreError> {
        let name = actor.name().to_owned();
        let context = AuditContext {
            actor,
            address: Some(address),
            at: self.0.clock.wall(),
        };
        self.0
            .store
            .record(&context.did(Action::LoginFailed, name))
            .await
    }

    async fn end_login(
        &self,
        principal: &Principal,
        login: LoginId,
        action: Action,
        address: IpAddr,
    ) -> Result<bool, StoreError> {
        let entry = self
            .audit_context(principal, address)
            .did(action, login.to_string());
        let ended = self
            .0
            .store
            .end_login(login, principal.user, &entry)
            .await?;
        self.apply_own_change().await;
        Ok(ended)
    }
}

/// People type passwords into the name field: an unknown name is not written to the audit log.
fn anonymous(user: Option<&User>) -> Actor {
    let name = user.map_or("(unknown user)", |user| user.username.as_str());
    Actor::Anonymous(name.to_owned())
}

/// Failures count by the lower-case name, whether or not it exists.
fn account_key(username: &str) -> String {
    username.to_ascii_lowercase()
}

fn shorten(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(MAX_USER_AGENT_CHARS)
        .collect()
}
