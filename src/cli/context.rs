//! Command context: the database and the signing keys, for commands that work without a gateway.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use anyhow::Context as _;

use crate::auth::{Auth, MAX_PASSWORD_BYTES};
use crate::clock::Clock;
use crate::config::{Config, Loaded};
use crate::domain::account::{User, Username};
use crate::gateway::{self, InstanceLock};
use crate::http::Urls;
use crate::store::{self, Store};

/// An open database and the means to change accounts in it.
pub(super) struct CommandContext {
    pub(super) config: Config,
    pub(super) store: Arc<dyn Store>,
    pub(super) auth: Auth,
}

impl CommandContext {
    pub(super) async fn open(loaded: Loaded) -> anyhow::Result<Self> {
        let config = loaded.config;
        let store = open(&config.data).await?;
        let auth = gateway::open_auth(&config, Arc::clone(&store), &Clock::system()).await?;
        Ok(Self {
            config,
            store,
            auth,
        })
    }

    /// The URLs for users: from the running gateway if there is one, else from the configuration.
    pub(super) fn urls(&self) -> Urls {
        urls(&self.config)
    }

    pub(super) async fn user(&self, username: &Username) -> anyhow::Result<User> {
        self.auth
            .user_named(username)
            .await
            .with_context(|| format!("user {username}"))
    }

    /// Closes the database; a command that exits early would leave SQLite's log behind.
    pub(super) async fn close(self) {
        self.store.close().await;
    }
}

/// Opens a database for a command. Unlike a gateway, a command never renews the database's identity: a
/// gateway may be serving from it. Warns on standard error if the next start of a gateway will.
pub(super) async fn open(config: &store::Config) -> anyhow::Result<Arc<dyn Store>> {
    let store = store::open(config).await?;
    if store.identity().await?.is_none() {
        let told = writeln!(
            std::io::stderr(),
            "warning: {} was restored or moved, or a standby took over: \
             the next gateway that is started on it gives its journals a new epoch",
            store.location()
        );
        // Nothing left to do if standard error is closed.
        drop(told);
    }
    Ok(store)
}

/// The base URL for users.
pub(super) fn urls(config: &Config) -> Urls {
    match InstanceLock::running(&config.data.dir) {
        Some(running) => Urls::under(&running.base_url),
        None => Urls::new(&config.server, config.server.listen),
    }
}

/// Reads a password from standard input, without its final line break.
pub(super) fn read_password() -> anyhow::Result<String> {
    let mut text = String::new();
    let longest = MAX_PASSWORD_BYTES as u64 + 2;
    std::io::stdin()
        .take(longest)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    Ok(password.strip_suffix('\r').unwrap_or(password).to_owned())
}
