//! Conformance suite of the store: every test runs on SQLite and on a real Postgres.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/postgres.rs"]
mod postgres;

/// Makes each function a test on both databases.
macro_rules! on_both_databases {
    ($($sentence:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $sentence() {
                super::$sentence($crate::World::sqlite().await).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test]
            async fn $sentence() {
                super::$sentence($crate::World::postgres().await).await;
            })*
        }
    };
}
use on_both_databases;

mod account_removal;
mod accounts;
mod attachments;
mod audit;
mod auth_changes;
mod branches;
mod compatibility;
mod grants;
mod identity;
mod journals;
mod logins;
mod one_time_links;
mod retention;
mod schema;
mod search;
mod sessions;
mod signing_keys;
mod usage;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use switchboard::domain::account::{Role, Username};
use switchboard::domain::audit::{Action, AuditContext, AuditEntry};
use switchboard::domain::id::{LoginId, UserId};
use switchboard::store::{self, Config, LoginKind, NewLogin, NewUser, Store, SweepCutoffs};

/// The store of one test, with its directory and server.
struct World {
    store: Arc<dyn Store>,
    config: Config,
    _dir: tempfile::TempDir,
    _server: Option<postgres::Database>,
}

impl World {
    async fn sqlite() -> Self {
        Self::new(None).await
    }

    async fn postgres() -> Self {
        Self::new(Some(postgres::Database::create().await)).await
    }

    async fn new(server: Option<postgres::Database>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            dir: dir.path().join("data"),
            database_url: server.as_ref().map(|server| server.url.clone().into()),
        };
        Self {
            store: store::open(&config).await.unwrap(),
            config,
            _dir: dir,
            _server: server,
        }
    }

    /// A second process on the same database.
    async fn second(&self) -> Arc<dyn Store> {
        store::open(&self.config).await.unwrap()
    }

    async fn user(&self, name: &str, role: Role) -> UserId {
        let new = new_user(name, role);
        let entry = context(0).did(Action::UserCreated, name);
        self.store.create_user(&new, &entry).await.unwrap();
        new.id
    }

    async fn login(&self, user: UserId, refresh: [u8; 32]) -> LoginId {
        let new = new_login(user, refresh);
        let entry = context(0).did(Action::LoginSucceeded, "x");
        self.store.start_login(&new, &entry).await.unwrap();
        new.id
    }

    /// The newest action in the audit log.
    async fn last_audit_action(&self) -> String {
        self.store.recent_audit_entries(1).await.unwrap()[0]
            .action
            .clone()
    }
}

/// A time, in seconds after the start of the test's clock.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// Sweeps everything up to that time.
fn cutoffs(seconds: i64) -> SweepCutoffs {
    SweepCutoffs {
        ended: at(seconds),
        spent: at(seconds),
        commands: at(seconds),
    }
}

fn context(seconds: i64) -> AuditContext {
    AuditContext::operator(at(seconds))
}

fn entry(action: Action, seconds: i64) -> AuditEntry {
    context(seconds).did(action, "target")
}

fn name(text: &str) -> Username {
    text.parse().unwrap()
}

fn new_user(username: &str, role: Role) -> NewUser {
    NewUser {
        id: UserId::new(),
        username: name(username),
        role,
        password_hash: Some("hash".into()),
    }
}

fn new_login(user: UserId, refresh: [u8; 32]) -> NewLogin {
    NewLogin {
        id: LoginId::new(),
        user,
        generation: 1,
        kind: LoginKind::Browser,
        session: None,
        refresh: Some((refresh, at(0) + SignedDuration::from_hours(24))),
        token_expires_at: at(900),
        address: Some("192.0.2.7".parse().unwrap()),
        user_agent: Some("test".into()),
        device: Some("laptop".into()),
    }
}
