//! Proving who you are and staying logged in.

use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};

use super::password::HasherBusy;
use super::secret::{OneTimeSecret, hash_presented};
use super::{Auth, token};
use crate::domain::account::{Principal, User, Username};
use crate::domain::act::{Action, Actor, By};
use crate::domain::id::{LoginId, SessionId, UserId};
use crate::session::may_join;
use crate::store::{
    Credentials, LoginKind, LoginRow, NewLogin, RefreshError, Rotation, StartLoginError, StoreError,
};

/// How long a ticket for a socket works.
const TICKET_LIFE: SignedDuration = SignedDuration::from_secs(30);
/// What is kept of what a program calls itself.
const USER_AGENT_CHARS: usize = 200;

/// Who is at the other end, before it is known who they are.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Where they are.
    pub address: IpAddr,
    /// What their program calls itself.
    pub user_agent: Option<String>,
}

/// Somebody who says who they are.
#[derive(Debug)]
pub struct Attempt {
    /// The name they give.
    pub username: String,
    /// The password they give.
    pub password: String,
    /// The one session they want the token to be good for.
    pub session: Option<SessionId>,
    /// Who is asking.
    pub caller: Caller,
}

/// What somebody gets who proved who they are.
pub struct Grant {
    /// The access token.
    pub token: String,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Who they are.
    pub user: User,
    /// What they can exchange for the next one, and when that ends.
    pub refresh: Option<(OneTimeSecret, Timestamp)>,
}

/// Why somebody was not let in.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// Unknown, wrong or disabled: nobody is told which.
    #[error("the user name or the password is wrong")]
    Refused,
    /// The session to bind to is not theirs.
    #[error("there is no such session")]
    NoSuchSession,
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
    pub async fn log_in(&self, attempt: Attempt) -> Result<Grant, LoginError> {
        let account = account_key(&attempt.username);
        tokio::time::sleep(self.0.delays.delay_for(&account)).await;
        let credentials = self.credentials(&attempt.username).await?;
        let stored = credentials
            .as_ref()
            .and_then(|found| found.password_hash.clone());
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
            Ok(_) => self.0.delays.succeeded(&account),
            Err(LoginError::Refused | LoginError::NoSuchSession) => {
                self.0.delays.failed(&account);
                self.0.metrics.login("refused");
                self.record_failure(anonymous(user.as_ref()), attempt.caller.address)
                    .await?;
            }
            Err(LoginError::Busy(_) | LoginError::Store(_)) => self.0.metrics.login("failed"),
        }
        started
    }

    /// Checks the password of somebody who is logged in already.
    pub(super) async fn confirm_password(
        &self,
        principal: &Principal,
        password: String,
        address: IpAddr,
    ) -> Result<(), LoginError> {
        let account = account_key(principal.username.as_str());
        tokio::time::sleep(self.0.delays.delay_for(&account)).await;
        let credentials = self.0.store.credentials(&principal.username).await?;
        let stored = credentials.and_then(|found| found.password_hash);
        if self.0.hasher.verify(password, stored).await? {
            self.0.delays.succeeded(&account);
            Ok(())
        } else {
            self.0.delays.failed(&account);
            self.record_failure(Actor::from(principal), address).await?;
            Err(LoginError::Refused)
        }
    }

    /// Exchanges a refresh token for the next one and a new access token.
    pub async fn refresh(&self, presented: &str, address: IpAddr) -> Result<Grant, RefreshError> {
        let refreshed = self.renew(presented, address).await;
        self.0.metrics.refresh(match &refreshed {
            Ok(_) => "renewed",
            Err(RefreshError::Reused) => "reused",
            Err(RefreshError::Unknown) => "unknown",
            Err(RefreshError::Store(_)) => "failed",
        });
        refreshed
    }

    async fn renew(&self, presented: &str, address: IpAddr) -> Result<Grant, RefreshError> {
        let presented = hash_presented(presented).ok_or(RefreshError::Unknown)?;
        let now = self.0.clock.wall();
        let expires_at = now + self.0.config.access_token_life();
        let next = OneTimeSecret::random();
        let next_expires_at = now + self.0.config.refresh_token_life();
        let rotation = Rotation {
            presented,
            next: next.hash(),
            next_expires_at,
            token_expires_at: expires_at,
        };
        let by = By {
            actor: Actor::Gateway,
            address: Some(address),
            at: now,
        };
        let refreshed = match self.0.store.refresh_login(&rotation, &by).await {
            Err(RefreshError::Reused) => {
                tracing::warn!("a refresh token was used twice; its login has been ended");
                self.feel_own_act().await;
                return Err(RefreshError::Reused);
            }
            outcome => outcome?,
        };
        Ok(Grant {
            token: self.sign(
                &refreshed.user,
                refreshed.login,
                refreshed.session,
                expires_at,
            ),
            expires_at,
            user: refreshed.user,
            refresh: Some((next, next_expires_at)),
        })
    }

    /// Ends the login of whoever acts.
    pub async fn log_out(&self, principal: &Principal, address: IpAddr) -> Result<(), StoreError> {
        self.end_login(principal, principal.login, Action::LoggedOut, address)
            .await
            .map(drop)
    }

    /// Ends another login of whoever acts; false if they have none such.
    pub async fn revoke_login(
        &self,
        principal: &Principal,
        login: LoginId,
        address: IpAddr,
    ) -> Result<bool, StoreError> {
        self.end_login(principal, login, Action::LoginRevoked, address)
            .await
    }

    /// The logins of an account that are live.
    pub async fn logins(&self, user: UserId) -> Result<Vec<LoginRow>, StoreError> {
        self.0.store.logins(user, self.0.clock.wall()).await
    }

    /// Makes a ticket that opens one socket within half a minute; `None` if the login has ended.
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

    /// Uses up a ticket: who it was made for, if it is good and they still are.
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

    /// Makes a token on the operator's word, for as long as asked.
    pub async fn create_token(
        &self,
        user: &User,
        life: SignedDuration,
    ) -> Result<Grant, StartLoginError> {
        let now = self.0.clock.wall();
        let expires_at = now + life;
        let login = LoginId::new();
        let act = By::operator(now).did(Action::TokenCreated, user.username.as_str());
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
        };
        self.0.store.start_login(&new, &act).await?;
        Ok(Grant {
            token: self.sign(user, login, None, expires_at),
            expires_at,
            user: user.clone(),
            refresh: None,
        })
    }

    pub(super) async fn start(
        &self,
        user: User,
        session: Option<SessionId>,
        caller: &Caller,
    ) -> Result<Grant, LoginError> {
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
        };
        let by = By {
            actor: Actor::User(user.id, user.username.clone()),
            address: Some(caller.address),
            at: now,
        };
        let act = by.did(Action::LoginSucceeded, login.to_string());
        match self.0.store.start_login(&new, &act).await {
            Ok(()) => {}
            Err(StartLoginError::AccountChanged) => return Err(LoginError::Refused),
            Err(StartLoginError::Store(error)) => return Err(error.into()),
        }
        self.0.metrics.login("started");
        Ok(Grant {
            token: self.sign(&user, login, session, expires_at),
            expires_at,
            user,
            refresh: Some((refresh, refresh_expires_at)),
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
        let by = By {
            actor,
            address: Some(address),
            at: self.0.clock.wall(),
        };
        self.0
            .store
            .record(&by.did(Action::LoginFailed, name))
            .await
    }

    async fn end_login(
        &self,
        principal: &Principal,
        login: LoginId,
        action: Action,
        address: IpAddr,
    ) -> Result<bool, StoreError> {
        let act = self.by(principal, address).did(action, login.to_string());
        let ended = self.0.store.end_login(login, principal.user, &act).await?;
        self.feel_own_act().await;
        Ok(ended)
    }
}

/// People type passwords into the wrong field: a name that belongs to nobody is not written down.
fn anonymous(user: Option<&User>) -> Actor {
    let name = user.map_or("(unknown user)", |user| user.username.as_str());
    Actor::Anonymous(name.to_owned())
}

/// Failures count by the name as typed, in one spelling, whether or not anybody has it.
fn account_key(username: &str) -> String {
    username.to_ascii_lowercase()
}

fn shorten(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_control())
        .take(USER_AGENT_CHARS)
        .collect()
}
