//! Who somebody is: passwords, logins, tokens, keys, and taking them back.
//!
//! [`Auth`] is the handle. Its parts: `login` (prove who you are, stay logged in), `account`
//! (make and change users), `token` and `keys` (sign and verify), `revocation` (what is no good any
//! more, in memory), `probe` (passes
//! for `doctor`), `password` and `secret`. The only user of `jsonwebtoken` and `argon2`.
//! Touches `session` (who may be where), `limits`, `store`, `domain`, `clock`.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::SignedDuration;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

mod account;
mod bearer;
mod keys;
mod login;
mod metrics;
mod password;
mod probe;
mod revocation;
mod secret;
mod token;

pub use account::{AdminError, ChangePasswordError, Invitation};
pub(crate) use bearer::bearer;
pub use keys::KeyError;
pub use login::{Attempt, Caller, Grant, LoginError};
pub use password::{BadPassword, HasherBusy, MAX_PASSWORD_BYTES, check_password};
pub use secret::OneTimeSecret;
pub use token::TokenError;

use crate::clock::Clock;
use crate::domain::account::{Principal, Username};
use crate::domain::act::{Action, By};
use crate::domain::id::KeyId;
use crate::domain::secret::Secret;
use crate::limits::AccountDelay;
use crate::store::{OldKeys, Outlived, Store, StoreError, StoredKey, Subject};
use keys::KeyRing;
use metrics::Metrics;
use password::Hasher;
use revocation::Revocations;

/// How often a running gateway looks for what other processes changed. Promised: within a second.
const POLL: Duration = Duration::from_millis(250);

/// How long after its end something is kept.
const SETTLED: SignedDuration = SignedDuration::from_hours(24);
/// Promised: so long a command that is sent again takes effect once.
const COMMANDS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// The `[auth]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How long an access token is good for.
    pub access_token_minutes: u32,
    /// How long a login lives without being used.
    pub refresh_token_days: u32,
    /// How long an invitation or password link works.
    pub invite_hours: u32,
    /// A signing key of the operator's own (PEM), in place of the one made at first start.
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
            && let Err(error) = keys::read_key(pem.expose(), jiff::Timestamp::UNIX_EPOCH)
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

/// Why authentication could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum OpenAuthError {
    /// The signing key is no good.
    #[error("the signing key cannot be used: {0}")]
    Key(#[from] KeyError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The handle to everything about users and tokens. Cheap to clone.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    config: Config,
    clock: Clock,
    hasher: Hasher,
    delays: Arc<AccountDelay>,
    keys: ArcSwap<KeyRing>,
    revocations: Arc<Revocations>,
    metrics: Metrics,
    /// Grows with every change that was taken in; sockets wait for it.
    changed: watch::Sender<i64>,
    /// The last revision taken in. Held while catching up, so that changes apply in their order.
    seen: Mutex<i64>,
}

impl Auth {
    /// Loads keys (making the first one if there is none), tests them, and takes in what has been
    /// revoked.
    pub(crate) async fn open(
        store: Arc<dyn Store>,
        config: Config,
        delays: Arc<AccountDelay>,
        clock: Clock,
    ) -> Result<Self, OpenAuthError> {
        prepare_keys(store.as_ref(), &config, &clock).await?;
        let ring = load_keys(store.as_ref(), &config, &clock).await?;
        let auth = Self(Arc::new(Inner {
            store,
            config,
            clock,
            hasher: Hasher::new(),
            delays,
            keys: ArcSwap::from_pointee(ring),
            revocations: Arc::default(),
            metrics: Metrics::default(),
            changed: watch::Sender::new(0),
            seen: Mutex::new(0),
        }));
        auth.catch_up().await?;
        Ok(auth)
    }

    /// Checks an access token. Asks only memory.
    pub fn verify(&self, token: &str) -> Result<Principal, TokenError> {
        let principal = token::verify(&self.0.keys.load(), token, self.0.clock.wall())?;
        if self.0.revocations.stands(&principal) {
            Ok(principal)
        } else {
            Err(TokenError::Invalid)
        }
    }

    /// A pass for the routes that tell how requests arrive.
    pub fn probe_pass(&self) -> String {
        probe::sign(&self.0.keys.load(), self.0.clock.wall())
    }

    /// Is it such a pass?
    pub(crate) fn accepts_probe(&self, pass: &str) -> bool {
        probe::is_good(&self.0.keys.load(), pass, self.0.clock.wall())
    }

    /// Is what a token proved still good, apart from its end? Asks only memory.
    pub(crate) fn stands(&self, principal: &Principal) -> bool {
        self.0.revocations.stands(principal)
    }

    /// Wakes whenever somebody's rights may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<i64> {
        self.0.changed.subscribe()
    }

    /// The public keys, as a JSON Web Key Set.
    pub fn jwks(&self) -> serde_json::Value {
        self.0.keys.load().jwks().clone()
    }

    /// Puts what is counted here under its names.
    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.0
            .metrics
            .register(registry, Arc::clone(&self.0.revocations));
    }

    /// Takes in what other processes and nodes change, until told to stop.
    pub async fn follow_changes(&self, stop: CancellationToken) {
        let mut tick = tokio::time::interval(POLL);
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
                    tracing::warn!(%error, "cannot see whether logins were revoked; trying again");
                }
                Err(_) => {}
            }
        }
    }

    /// Drops what has expired by itself, in memory and in the database, a day late: a clock that was
    /// ahead for a while must not make anyone forget a revocation.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        let now = self.0.clock.wall();
        let settled = now - SETTLED;
        self.0.revocations.sweep(settled);
        let outlived = Outlived {
            ended: settled,
            spent: settled - self.0.config.refresh_token_life(),
            commands: now - COMMANDS_KEPT,
        };
        self.0.store.sweep(outlived).await?;
        // A key that has just expired must not verify any longer.
        self.reload_keys().await
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        let mut seen = self.0.seen.lock().await;
        loop {
            let changes = self.0.store.changes_after(*seen).await?;
            let Some(last) = changes.last() else {
                return Ok(());
            };
            if changes.iter().any(|change| change.subject == Subject::Keys) {
                self.reload_keys().await?;
            }
            for change in &changes {
                self.0.revocations.apply(change);
            }
            *seen = last.revision;
            self.0.changed.send_replace(last.revision);
        }
    }

    /// After an act of our own: its effect is felt here before the caller hears of it. The act is
    /// committed, so a failure only means that it is felt with the next poll.
    async fn feel_own_act(&self) {
        if let Err(error) = self.catch_up().await {
            tracing::warn!(%error, "a change was committed and will be felt with the next poll");
        }
    }

    async fn reload_keys(&self) -> Result<(), StoreError> {
        match load_keys(self.0.store.as_ref(), &self.0.config, &self.0.clock).await {
            Ok(ring) => self.0.keys.store(Arc::new(ring)),
            Err(OpenAuthError::Store(error)) => return Err(error),
            Err(OpenAuthError::Key(error)) => {
                tracing::error!(%error, "the new signing key is not used; the old ones stay");
            }
        }
        Ok(())
    }
}

/// The keys in the database, the operator's own in front if there is one.
async fn load_keys(
    store: &dyn Store,
    config: &Config,
    clock: &Clock,
) -> Result<KeyRing, OpenAuthError> {
    let now = clock.wall();
    let mut keys = store.keys(now).await?;
    if let Some(pem) = &config.signing_key {
        let given = keys::read_key(pem.expose(), now)?;
        keys.retain(|key| key.id != given.id);
        keys.insert(0, given);
    }
    let ring = KeyRing::new(&keys)?;
    token::self_test(&ring, now)?;
    Ok(ring)
}

/// Sees to it that there is a key. The public half of the operator's own is stored, so that tokens
/// signed with it verify after it was replaced, and earlier keys retire.
async fn prepare_keys(
    store: &dyn Store,
    config: &Config,
    clock: &Clock,
) -> Result<(), OpenAuthError> {
    let now = clock.wall();
    let keys = store.keys(now).await?;
    let signing = keys.iter().find(|key| key.retired_at.is_none());
    let by = By::gateway(now);
    if let Some(pem) = &config.signing_key {
        let given = StoredKey {
            private_key: Vec::new(),
            ..keys::read_key(pem.expose(), now)?
        };
        if signing.is_none_or(|key| key.id != given.id) {
            let act = by.did(Action::KeyRotated, given.id.to_string());
            store.rotate_key(&given, OldKeys::Verify, &act).await?;
        }
    } else if signing.is_none() {
        let first = keys::make_key(now);
        let act = by.did(Action::KeyRotated, first.id.to_string());
        store.add_first_key(&first, &act).await?;
    }
    Ok(())
}

/// Signs with a new key of the gateway's own from now on. Works without [`Auth`], which cannot be
/// opened while the key that signs is not at hand.
pub async fn rotate_key(
    store: &dyn Store,
    config: &Config,
    old: OldKeys,
    by: By,
) -> Result<KeyId, AdminError> {
    if config.signing_key.is_some() {
        return Err(AdminError::KeyIsGiven);
    }
    let key = keys::make_key(by.at);
    let act = by.did(Action::KeyRotated, key.id.to_string());
    store.rotate_key(&key, old, &act).await?;
    Ok(key.id)
}
