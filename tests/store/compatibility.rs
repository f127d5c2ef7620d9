//! Compatibility: databases of earlier versions, and rules for migrations.

use std::path::{Path, PathBuf};

use sqlx::migrate::{Migration, Migrator};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};
use switchboard::domain::id::{Epoch, SessionId, UserId};
use switchboard::store::{self, Config};

use crate::{at, cutoffs, postgres};

/// Migrations of the first release. Later ones must follow the rules.
const FIRST_RELEASE: i64 = 8;

fn folder(database: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("migrations")
        .join(database)
}

async fn migrations(database: &str) -> Vec<Migration> {
    let all = Migrator::new(folder(database)).await.unwrap();
    all.iter().cloned().collect()
}

/// Rows for every table of the first release.
fn rows(user: UserId, session: SessionId) -> Vec<String> {
    let (hash, epoch) = ("00".repeat(32), Epoch::new());
    let now = at(0).as_millisecond();
    let bytes = |hex: &str| format!("BYTES'{hex}'");
    vec![
        format!(
            "insert into users (id, username, role, password_hash, created_at, updated_at)
             values ('{user}', 'mia', 'admin', 'hash', {now}, {now})"
        ),
        format!(
            "insert into sessions (id, owner_id, agent, title, epoch, head, created_at, updated_at)
             values ('{session}', '{user}', 'demo', 'A title', '{epoch}', 2, {now}, {now})"
        ),
        format!(
            "insert into journal_events (session_id, \"offset\", at, body)
             values ('{session}', 1, {now}, {}), ('{session}', 2, {now}, {})",
            bytes("01"),
            bytes("0203")
        ),
        format!(
            "insert into attachments
                 (id, session_id, owner_id, content_hash, name, media_type, size_bytes, created_at)
             values ('att_1', '{session}', '{user}', {}, 'a', 'text/plain', 1, {now})",
            bytes(&hash)
        ),
        format!(
            "insert into audit_log (at, actor_name, action, target)
             values ({now}, '(operator)', 'user.created', 'mia')"
        ),
    ]
}

/// Checks that the current version reads the rows of an earlier one.
async fn assert_unchanged(config: &Config, user: UserId, session: SessionId, version: i64) {
    let store = store::open(config).await.unwrap();
    assert!(store.user(user).await.unwrap().is_some(), "{version}");
    let row = store.session(session).await.unwrap().unwrap();
    assert_eq!(row.title.as_deref(), Some("A title"));
    let events = store.events_after(session, 0, 10).await.unwrap();
    let bodies: Vec<_> = events.iter().map(|event| event.body.clone()).collect();
    assert_eq!(bodies, [vec![1], vec![2, 3]], "{version}");
    let contents = store.referenced_hashes(0).await.unwrap();
    assert_eq!(contents, [[0; 32]], "{version}");
    assert_eq!(
        store.recent_audit_entries(1).await.unwrap()[0].target,
        "mia"
    );
    let lease = store.claim_journal(session, "node").await.unwrap();
    assert_eq!(
        (lease.head, lease.epoch),
        (2, row.epoch),
        "an upgrade is no restore"
    );
    store.sweep(cutoffs(0)).await.unwrap();
    assert!(store.integrity().await.unwrap().is_empty());
    store.close().await;
}

#[tokio::test]
async fn sqlite_databases_of_all_earlier_versions_are_brought_up_to_date() {
    let all = migrations("sqlite").await;
    for version in 1..all.len() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            dir: dir.path().to_owned(),
            database_url: None,
        };
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(config.sqlite_path())
            .create_if_missing(true);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let earlier = Migrator {
            migrations: all[..version].to_vec().into(),
            ..Migrator::DEFAULT
        };
        earlier
            .run_direct(None, &mut connection, false)
            .await
            .unwrap();
        let (user, session) = (UserId::new(), SessionId::new());
        for row in rows(user, session) {
            let row = AssertSqlSafe(row.replace("BYTES'", "x'"));
            sqlx::query(row).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        assert_unchanged(&config, user, session, version.try_into().unwrap()).await;
    }
}

#[tokio::test]
async fn postgres_databases_of_all_earlier_versions_are_brought_up_to_date() {
    let all = migrations("postgres").await;
    for version in 1..all.len() {
        let server = postgres::Database::create().await;
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            dir: dir.path().to_owned(),
            database_url: Some(server.url.clone().into()),
        };
        let mut connection = PgConnection::connect(&server.url).await.unwrap();
        let earlier = Migrator {
            migrations: all[..version].to_vec().into(),
            ..Migrator::DEFAULT
        };
        earlier
            .run_direct(None, &mut connection, false)
            .await
            .unwrap();
        let (user, session) = (UserId::new(), SessionId::new());
        for row in rows(user, session) {
            let row = AssertSqlSafe(row.replace("BYTES'", "'\\x"));
            sqlx::query(row).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        assert_unchanged(&config, user, session, version.try_into().unwrap()).await;
    }
}

/// A statement that the previous version could not work with.
fn breaks_previous_version(statement: &str) -> bool {
    let statement = statement.to_lowercase();
    let words: Vec<&str> = statement.split_whitespace().collect();
    let text = words.join(" ");
    let takes_away = [
        "drop ",
        " rename ",
        "truncate ",
        "alter column",
        "delete from",
        "add constraint",
    ];
    let demands =
        text.contains("add column") && text.contains("not null") && !text.contains("default");
    takes_away.iter().any(|what| text.contains(what)) || demands
}

#[tokio::test]
async fn migrations_since_the_first_release_only_add() {
    for database in ["sqlite", "postgres"] {
        let later = migrations(database).await;
        for migration in later.iter().filter(|one| one.version > FIRST_RELEASE) {
            let text: String = migration
                .sql
                .as_str()
                .lines()
                .map(|line| line.split("--").next().unwrap().to_owned() + "\n")
                .collect();
            for statement in text.split(';') {
                assert!(
                    !breaks_previous_version(statement),
                    "{database} {}: {statement}",
                    migration.version
                );
            }
        }
    }
    for bad in [
        "drop table users",
        "alter table users rename to people",
        "alter table users add column age integer not null",
        "alter table users alter column role drop not null",
    ] {
        assert!(breaks_previous_version(bad), "{bad}");
    }
    assert!(!breaks_previous_version(
        "alter table users add column age integer not null default 0"
    ));
}

#[tokio::test]
async fn both_databases_have_the_same_migrations() {
    let names = async |database| {
        let all = migrations(database).await;
        let name = |one: &Migration| (one.version, one.description.to_string());
        all.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names("sqlite").await, names("postgres").await);
}
