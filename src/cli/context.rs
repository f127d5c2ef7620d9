//! Where an operator's commands are carried out: the database and what signs tokens, without a gateway.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use anyhow::Context as _;

use crate::auth::{Auth, MAX_PASSWORD_BYTES};
use crate::clock::Clock;
use crate::config::{Config, Loaded};
use crate::domain::account::{User, Username};
use crate::gateway::{self, Instance};
use crate::http::Addresses;
use crate::store::{self, Store};

/// An open database and the means to change accounts in it.
pub(super) struct Desk {
    pub(super) config: Config,
    pub(super) store: Arc<dyn Store>,
    pub(super) auth: Auth,
}

impl Desk {
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

    /// Where people are sent: by the running gateway if there is one, else by the configuration.
    pub(super) fn addresses(&self) -> Addresses {
        addresses(&self.config)
    }

    pub(super) async fn user(&self, username: &Username) -> anyhow::Result<User> {
        self.auth
            .user_named(username)
            .await
            .with_context(|| format!("user {username}"))
    }

    /// Finishes what is under way; a command that ends early would leave SQLite's log behind.
    pub(super) async fn close(self) {
        self.store.close().await;
    }
}

/// Opens a database for a command, which changes nothing about where it is at home: a gateway may serve
/// from it. Says on standard error if the next one that is started will.
pub(super) async fn open(config: &store::Config) -> anyhow::Result<Arc<dyn Store>> {
    let store = store::open(config).await?;
    if store.identity().await?.is_none() {
        let told = writeln!(
            std::io::stderr(),
            "warning: {} was restored or moved, or a standby took over: \
             the next gateway that is started on it gives its journals a new epoch",
            store.place()
        );
        // Nobody is left to tell if this fails.
        drop(told);
    }
    Ok(store)
}

/// Where people are sent.
pub(super) fn addresses(config: &Config) -> Addresses {
    match Instance::running(&config.data.dir) {
        Some(running) => Addresses::under(&running.base_url),
        None => Addresses::new(&config.server, config.server.listen),
    }
}

/// A password from standard input; one line end is not part of it.
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
