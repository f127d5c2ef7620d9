//! Authentication: passwords, logins, tokens, signing keys, revocation.
//!
//! [`Auth`] is the handle. Its parts: `login` (log in, refresh, log out), `accounts` (create and change
//! users), `token` and `signing_keys` (sign and verify), `revocation` (revoked logins and tokens, in
//! memory), `doctor_pass` (passes for `doctor`), `password` and `random_secret`. The only user of
//! `jsonwebtoken` and `argon2`. Touches `session` (who may join), `limits`, `store`, `domain`, `clock`.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::SignedDuration;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

mod accounts;
mod authorization_header;
mod device_cookie;
mod doctor_pass;
mod invitation;
mod login;
mod metrics;
mod password;
mod random_secret;
mod revocation;
mod signing_keys;
mod token;

pub use accounts::{AdminError, ChangePasswordError, IssuedLink};
pub(crate) use authorization_header::bearer;
pub use device_cookie::DeviceCookie;
pub use login::{LoginAttempt, LoginClient, LoginError, LoginTokens};
pub use password::{BadPassword, HasherBusy, MAX_PASSWORD_BYTES, check_password};
pub use random_secret::OneTimeSecret;
pub use signing_keys::KeyError;
pub use token::TokenError;

use crate::clock::Clock;
use crate::domain::account::{Principal, Username};
use crate::domain::audit::{Action, AuditContext};
use crate::domain::id::KeyId;
use crate::domain::secret::Secret;
use crate::limits::{ConcurrentLogins, LoginBackoff};
use crate::store::{OldKeys, Store, StoreError, StoredKey, Subject, SweepCutoffs};
use metrics::Metrics;
use password::Hasher;
use revocation::Revocations;
use signing_keys::KeyRing;

/// How often a gateway polls for changes by other processes. Promised: within a second.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Expired rows are kept this long, in case a clock was ahead.
const EXPIRY_GRACE: SignedDuration = SignedDuration::from_hours(24);
/// Promised: a command repeated within this time takes effect once.
const COMMAND_RETENTION: SignedDuration = SignedDuration::from_hours(24);

/// The `[auth]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Lifetime of an access token.
    pub access_token_minutes: u32,
    /// Lifetime of a login without use.
    pub refresh_token_days: u32,
    /// Lifetime of an invite or password link.
    pub invite_hours: u32,
    /// The operator's own signing key (PEM), instead of the one generated at first start.
    pub signing_key: Option<Secret>,
}

impl Config {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        let mut complaints = Vec::new();
        for (key, value, max) in [
            (
                "auth.access_token_minutes",
                self.access_token_minutes,
                24 * 60,
            ),
            ("auth.refresh_token_days", self.refresh_token_days, 3650),
            ("auth.invite_hours", self.invite_hours, 24 * 365),
        ] {
            if !(1..=max).contains(&value) {
                complaints.push((
                    key,
                    format!("expected a number from 1 to {max}, found {value}"),
                ));
            }
        }
        if let Some(pem) = &self.signing_key
            && let Err(error) = signing_keys::parse_key(pem.expose(), jiff::Timestamp::UNIX_EPOCH)
        {
            complaints.push(("auth.signing_key", error.to_string()));
        }
        complaints
    }

    fn access_token_life(&self) -> SignedDuration {
        SignedDuration::from_mins(i64::from(self.access_token_minutes))
    }

    fn refresh_token_life(&self) -> SignedDuration {
        SignedDuration::from_hours(24 * i64::from(self.refresh_token_days))
    }

    fn invite_life(&self) -> SignedDuration {
        SignedDuration::from_hours(i64::from(self.invite_hours))
    }
}

/// The `[admin]` section: a first administrator without the setup link.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AdminConfig {
    /// The name.
    pub username: Option<Username>,
    /// The password.
    pub password: Option<Secret>,
}

impl AdminConfig {
    /// Complaints about values that cannot work, by key.
    pub fn complaints(&self) -> Vec<(&'static str, String)> {
        match (&self.username, &self.password) {
            (Some(username), Some(password)) => check_password(password.expose(), username)
                .err()
                .map(|error| ("admin.password", error.to_string()))
                .into_iter()
                .collect(),
            (Some(_), None) => {
                vec![(
                    "admin.username",
                    "needs admin.password beside it".to_owned(),
                )]
            }
            (None, Some(_)) => {
                vec![(
                    "admin.password",
                    "needs admin.username beside it".to_owned(),
                )]
            }
            (None, None) => Vec::new(),
        }
    }
}

/// Why authentication could not start.
#[derive(Debug, thiserror::Error)]
pub enum OpenAuthError {
    /// The signing key is unusable.
    #[error("the signing key cannot be used: {0}")]
    Key(#[from] KeyError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Handle to users and tokens. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    config: Config,
    clock: Clock,
    hasher: Hasher,
    backoff: Arc<LoginBackoff>,
    attempts: ConcurrentLogins,
    keys: ArcSwap<KeyRing>,
    revocations: Arc<Revocations>,
    metrics: Metrics,
    /// Revision of the last applied change; sockets watch it.
    changed: watch::Sender<i64>,
    /// The last applied revision. Locked while catching up, so that changes apply in order.
    applied_revision: Mutex<i64>,
}

impl Auth {
    /// Loads and tests the keys (generating the first one if there is none) and applies past
    /// revocations.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        config: Config,
        backoff: Arc<LoginBackoff>,
        clock: Clock,
    ) -> Result<Self, OpenAuthError> {
        ensure_signing_key(store.as_ref(), &config, &clock).await?;
        let ring = load_keys(store.as_ref(), &config, &clock).await?;
        let auth = Self(Arc::new(Inner {
            store,
            config,
            clock,
            hasher: Hasher::new(),
            backoff,
            attempts: ConcurrentLogins::default(),
            keys: ArcSwap::from_pointee(ring),
            revocations: Arc::default(),
            metrics: Metrics::default(),
            changed: watch::Sender::new(0),
            applied_revision: Mutex::new(0),
        }));
        auth.catch_up().await?;
        Ok(auth)
    }

    /// Verifies an access token, without the database.
    pub fn verify(&self, token: &str) -> Result<Principal, TokenError> {
        let principal = token::verify(&self.0.keys.load(), token, self.0.clock.wall())?;
        if self.0.revocations.is_valid(&principal) {
            Ok(principal)
        } else {
            Err(TokenError::Invalid)
        }
    }

    /// A pass for the routes that show `doctor` how its requests arrive.
    pub fn issue_doctor_pass(&self) -> String {
        doctor_pass::sign(&self.0.keys.load(), self.0.clock.wall())
    }

    pub(crate) fn accepts_doctor_pass(&self, pass: &str) -> bool {
        doctor_pass::is_valid(&self.0.keys.load(), pass, self.0.clock.wall())
    }

    /// Is the principal's login still valid, apart from expiry? Without the database.
    pub(crate) fn is_valid(&self, principal: &Principal) -> bool {
        self.0.revocations.is_valid(principal)
    }

    /// Changes whenever an account's rights may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<i64> {
        self.0.changed.subscribe()
    }

    /// The public keys, as a JSON Web Key Set.
    pub fn jwks(&self) -> serde_json::Value {
        self.0.keys.load().jwks().clone()
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.0
            .metrics
            .register(registry, Arc::clone(&self.0.revocations));
    }

    /// Applies changes of other processes and nodes until stopped.
    pub async fn follow_changes(&self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(POLL_INTERVAL);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = tick.tick() => {}
            }
            match self.catch_up().await {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "cannot read revocations from the database; retrying");
                }
                Err(_) => {}
            }
        }
    }

    /// Drops expired entries in memory and in the database, a day late: a clock that was ahead for
    /// a while must not lose a revocation.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let now = self.0.clock.wall();
        let expired_before = now - EXPIRY_GRACE;
        self.0.revocations.sweep(expired_before);
        let cutoffs = SweepCutoffs {
            ended: expired_before,
            spent: expired_before - self.0.config.refresh_token_life(),
            commands: now - COMMAND_RETENTION,
        };
        self.0.store.sweep(cutoffs).await?;
        // A key that just expired must stop verifying.
        self.reload_keys().await
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        let mut applied_revision = self.0.applied_revision.lock().await;
        loop {
            let changes = self.0.store.changes_after(*applied_revision).await?;
            let Some(last) = changes.last() else {
                return Ok(());
            };
            if changes.iter().any(|change| change.subject == Subject::Keys) {
                self.reload_keys().await?;
            }
            for change in &changes {
                self.0.revocations.apply(change);
            }
            *applied_revision = last.revision;
            self.0.changed.send_replace(last.revision);
        }
    }

    /// Applies a change of our own before the caller gets its reply. The change is committed, so a
    /// failure only delays it until the next poll.
    async fn apply_own_change(&self) {
        if let Err(error) = self.catch_up().await {
            tracing::warn!(%error, "an account change was committed and takes effect here with the next poll");
        }
    }

    async fn reload_keys(&self) -> Result<(), StoreError> {
        match load_keys(self.0.store.as_ref(), &self.0.config, &self.0.clock).await {
            Ok(ring) => self.0.keys.store(Arc::new(ring)),
            Err(OpenAuthError::Store(error)) => return Err(error),
            Err(OpenAuthError::Key(error)) => {
                tracing::error!(%error, "cannot load the signing keys; the previous ones stay in use");
            }
        }
        Ok(())
    }
}

/// The stored keys, the operator's own first.
async fn load_keys(
    store: &dyn Store,
    config: &Config,
    clock: &Clock,
) -> Result<KeyRing, OpenAuthError> {
    let now = clock.wall();
    let mut keys = store.keys(now).await?;
    if let Some(pem) = &config.signing_key {
        let given = signing_keys::parse_key(pem.expose(), now)?;
        keys.retain(|key| key.id != given.id);
        keys.insert(0, given);
    }
    let ring = KeyRing::new(&keys)?;
    token::self_test(&ring, now)?;
    Ok(ring)
}

/// Makes sure that there is a signing key. The public half of the operator's key is stored, so that
/// its tokens verify after it was replaced, and earlier keys retire.
async fn ensure_signing_key(
    store: &dyn Store,
    config: &Config,
    clock: &Clock,
) -> Result<(), OpenAuthError> {
    let now = clock.wall();
    let keys = store.keys(now).await?;
    let signing = keys.iter().find(|key| key.retired_at.is_none());
    let context = AuditContext::gateway(now);
    if let Some(pem) = &config.signing_key {
        let given = StoredKey {
            private_key: Vec::new(),
            ..signing_keys::parse_key(pem.expose(), now)?
        };
        if signing.is_none_or(|key| key.id != given.id) {
            let entry = context.did(Action::KeyRotated, given.id.to_string());
            store.rotate_key(&given, OldKeys::Verify, &entry).await?;
        }
    } else if signing.is_none() {
        let first = signing_keys::generate_key(now);
        let entry = context.did(Action::KeyRotated, first.id.to_string());
        store.add_first_key(&first, &entry).await?;
    }
    Ok(())
}

/// Rotates to a new generated key. Works without [`Auth`], which cannot be opened while the private
/// half of the signing key is missing.
pub async fn rotate_key(
    store: &dyn Store,
    config: &Config,
    old: OldKeys,
    context: AuditContext,
) -> Result<KeyId, AdminError> {
    if config.signing_key.is_some() {
        return Err(AdminError::KeyIsGiven);
    }
    let key = signing_keys::generate_key(context.at);
    let entry = context.did(Action::KeyRotated, key.id.to_string());
    store.rotate_key(&key, old, &entry).await?;
    Ok(key.id)
}
