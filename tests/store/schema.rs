//! Schema: opening, migrating and backing up a database.

use sqlx::{Connection as _, PgConnection, SqliteConnection};
use switchboard::domain::account::Role;
use switchboard::store::{self, BackupError, Config, OpenError};

use crate::{World, cutoffs};

crate::on_both_databases!(
    a_database_can_be_opened_again,
    many_programs_can_open_an_empty_database_at_once,
    a_newer_database_is_refused,
    a_database_answers_a_probe,
);

async fn a_database_can_be_opened_again(world: World) {
    let id = world.user("mia", Role::Member).await;
    world.store.close().await;
    let again = world.second().await;
    assert!(again.user(id).await.unwrap().is_some());
}

async fn many_programs_can_open_an_empty_database_at_once(world: World) {
    let fresh = tempfile::tempdir().unwrap();
    let config = || Config {
        dir: fresh.path().join("data"),
        database_url: world.config.database_url.clone(),
    };
    let mut programs = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let config = config();
        programs.spawn(async move { store::open(&config).await.map(drop) });
    }
    for opened in programs.join_all().await {
        opened.unwrap();
    }
}

async fn a_newer_database_is_refused(world: World) {
    let pretend = "insert into _sqlx_migrations
        (version, description, installed_on, success, checksum, execution_time)
        values (9999, 'later', current_timestamp, true, '', 0)";
    if let Some(url) = &world.config.database_url {
        let mut connection = PgConnection::connect(url.expose()).await.unwrap();
        sqlx::query(pretend).execute(&mut connection).await.unwrap();
    } else {
        let path = world.config.sqlite_path().display().to_string();
        let mut connection = SqliteConnection::connect(&path).await.unwrap();
        sqlx::query(pretend).execute(&mut connection).await.unwrap();
    }
    let refused = store::open(&world.config).await.map(drop).unwrap_err();
    assert!(
        matches!(refused, OpenError::Newer { found: 9999, .. }),
        "{refused}"
    );
    assert!(refused.to_string().contains("9999"), "{refused}");
}

async fn a_database_answers_a_probe(world: World) {
    world.store.ping().await.unwrap();
    assert!(world.store.integrity().await.unwrap().is_empty());
    world.store.close().await;
    assert!(world.store.ping().await.is_err());
}

#[tokio::test]
async fn a_backup_of_a_busy_database_is_whole() {
    let world = World::sqlite().await;
    let target = tempfile::tempdir().unwrap();
    let copy = target.path().join("switchboard.db");
    let id = world.user("before", Role::Member).await;
    let busy = world.second().await;
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move {
        for _ in 0..50 {
            busy.sweep(cutoffs(0)).await.unwrap();
            busy.record(&crate::entry(
                switchboard::domain::audit::Action::LoginFailed,
                0,
            ))
            .await
            .unwrap();
        }
    });
    world.store.backup(&copy).await.unwrap();
    writing.join_all().await;
    let again = world.store.backup(&copy).await;
    assert!(matches!(again, Err(BackupError::Exists(_))), "{again:?}");
    let config = Config {
        dir: target.path().to_owned(),
        database_url: None,
    };
    let restored = store::open(&config).await.unwrap();
    assert!(restored.user(id).await.unwrap().is_some());
    assert!(restored.integrity().await.unwrap().is_empty());
}

#[tokio::test]
async fn postgres_is_copied_with_its_own_tools() {
    let world = World::postgres().await;
    let target = tempfile::tempdir().unwrap().path().join("x");
    let refused = world.store.backup(&target).await;
    assert!(matches!(refused, Err(BackupError::NotSqlite)));
    assert!(!target.exists());
}

#[tokio::test]
async fn the_database_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::sqlite().await;
    world.user("mia", Role::Member).await;
    for entry in std::fs::read_dir(&world.config.dir).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
    }
}
