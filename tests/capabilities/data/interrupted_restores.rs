//! Interrupted restores: a killed restore leaves the old or the new database, or blocks every open until
//! it is repeated.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::{passes_integrity_check, stderr_text};
use crate::actors::{Settings, Storage, program};

const ROUNDS: u32 = 24;
const REFUSAL: &str = "a restore was interrupted here";

/// The data of a killed gateway with the user `later`, who is not in the backup beside it.
async fn killed_gateway() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let mut gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    page.uploads(&session, "kept", "kept").await.is(201);
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("copy.db");
    gateway.prints(&["backup", backup.to_str().unwrap()]);
    gateway.adds_user("later", "member");
    gateway.kill();
    let (from, data) = (gateway.sqlite_file(), dir.path().join("data"));
    copy(from.parent().unwrap(), &data);
    let log = std::fs::metadata(data.join("switchboard.db-wal")).unwrap();
    assert!(log.len() > 0, "what came last stands in the log only");
    (dir, data, backup)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, target).unwrap();
        }
    }
}

fn restore(data: &Path, backup: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["restore", "--replace"])
        .args([backup, Path::new("--data-dir"), data])
        .current_dir(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn runs(data: &Path, arguments: &[&str]) -> std::process::Output {
    let place = ["--data-dir", data.to_str().unwrap()];
    program(data, &[arguments, &place].concat(), &[])
}

/// The directories that a restore moved something into.
fn moved_aside(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.display().to_string().contains("/replaced-"))
        .collect()
}

/// Kills it after a visible step, a little later each round.
fn kill_midway(mut child: Child, data: &Path, round: u32) {
    let ready = data.join("switchboard.db.restoring");
    let mut was_ready = false;
    loop {
        was_ready |= ready.exists();
        let is_there = match round % 4 {
            0 => was_ready,
            1 => data.join("restore.unfinished").exists(),
            2 => !moved_aside(data).is_empty(),
            _ => was_ready && !ready.exists(),
        };
        if is_there || child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let later = Instant::now() + Duration::from_micros(400) * (round / 4);
    while Instant::now() < later {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

async fn has_later(database: &Path) -> bool {
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let found: i64 = sqlx::query_scalar("select count(*) from users where username = 'later'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    found == 1
}

/// Moved databases that contain `later`; all of them must be whole.
async fn moved_databases(data: &Path) -> Vec<PathBuf> {
    let mut old = Vec::new();
    for aside in moved_aside(data) {
        let database = aside.join("switchboard.db");
        if database.exists() {
            passes_integrity_check(&database).await;
            if has_later(&database).await {
                old.push(aside);
            }
        }
    }
    old
}

#[tokio::test]
async fn a_restore_killed_at_any_point_leaves_a_whole_database_or_must_be_repeated() {
    let (dir, original, backup) = killed_gateway().await;
    for round in 0..ROUNDS {
        let data = dir.path().join(format!("round-{round}"));
        copy(&original, &data);
        kill_midway(restore(&data, &backup), &data, round);
        let listed = runs(&data, &["user", "list"]);
        if listed.status.success() {
            let shown = String::from_utf8_lossy(&listed.stdout).into_owned();
            assert!(
                shown.contains("root"),
                "{round}: a new one was made: {shown}"
            );
            passes_integrity_check(&data.join("switchboard.db")).await;
            let is_old = moved_aside(&data).is_empty();
            assert_eq!(shown.contains("later"), is_old, "{round}: {shown}");
        } else {
            let shown = stderr_text(&listed);
            assert!(shown.contains(REFUSAL), "{round}: {shown}");
        }
        let again = runs(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
        assert!(again.status.success(), "{round}: {}", stderr_text(&again));
        let listed = runs(&data, &["user", "list"]);
        let shown = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.status.success(), "{round}: {}", stderr_text(&listed));
        assert!(
            shown.contains("root") && !shown.contains("later"),
            "{shown}"
        );
        passes_integrity_check(&data.join("switchboard.db")).await;
        let old = moved_databases(&data).await;
        assert_eq!(old.len(), 1, "{round}: what was there is whole: {old:?}");
        assert!(old[0].join("attachments").exists(), "{round}");
    }
}

#[tokio::test]
async fn a_half_restored_database_cannot_be_opened_until_the_restore_is_repeated() {
    let (_dir, data, backup) = killed_gateway().await;
    // As after a power cut midway: the database was moved, its WAL was not.
    let aside = data.join("replaced-before");
    std::fs::create_dir(&aside).unwrap();
    std::fs::rename(data.join("switchboard.db"), aside.join("switchboard.db")).unwrap();
    let marker = serde_json::json!({
        "aside": "replaced-before",
        "leaving": ["switchboard.db", "switchboard.db-wal", "switchboard.db-shm", "attachments"],
    });
    std::fs::write(data.join("restore.unfinished"), marker.to_string()).unwrap();
    let copy = data.join("another.db").display().to_string();
    for arguments in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["user", "list"],
        &["backup", &copy],
        &["migrate"],
        &["key", "list"],
        &["doctor"],
    ] {
        let refused = runs(&data, arguments);
        assert!(!refused.status.success(), "{arguments:?}");
        let shown = stderr_text(&refused) + &String::from_utf8_lossy(&refused.stdout);
        assert!(shown.contains(REFUSAL), "{arguments:?}: {shown}");
        assert!(shown.contains("switchboard restore FILE"), "{shown}");
    }
    assert!(!data.join("switchboard.db").exists(), "nobody made one");
    // `--replace` is not needed again.
    let again = runs(&data, &["restore", backup.to_str().unwrap()]);
    assert!(again.status.success(), "{}", stderr_text(&again));
    let shown = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(shown.contains("replaced-before"), "{shown}");
    assert_eq!(
        moved_databases(&data).await,
        [aside],
        "with what was in its log"
    );
    let listed = runs(&data, &["user", "list"]);
    assert!(listed.status.success(), "{}", stderr_text(&listed));
}

#[tokio::test]
async fn a_restore_is_refused_while_a_command_reads_the_database() {
    let (_dir, data, backup) = killed_gateway().await;
    let options = SqliteConnectOptions::new()
        .filename(data.join("switchboard.db"))
        .read_only(true);
    let mut reader = SqliteConnection::connect_with(&options).await.unwrap();
    let mut reads = reader.begin().await.unwrap();
    let users: i64 = sqlx::query_scalar("select count(*) from users")
        .fetch_one(&mut *reads)
        .await
        .unwrap();
    assert_eq!(users, 2);
    let refused = runs(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert_eq!(refused.status.code(), Some(1));
    let shown = stderr_text(&refused);
    assert!(shown.contains("another command uses"), "{shown}");
    reads.rollback().await.unwrap();
    reader.close().await.unwrap();
    let listed = runs(&data, &["user", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("later"));
    let again = runs(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(again.status.success(), "{}", stderr_text(&again));
}

#[tokio::test]
async fn a_restore_moves_an_unreadable_database_aside_unchanged() {
    let (_dir, data, backup) = killed_gateway().await;
    let rubbish = "no database at all, but long enough for one".repeat(99);
    let names = ["switchboard.db", "switchboard.db-wal"];
    for name in names {
        std::fs::write(data.join(name), &rubbish).unwrap();
    }
    let restored = runs(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(restored.status.success(), "{}", stderr_text(&restored));
    passes_integrity_check(&data.join("switchboard.db")).await;
    let aside = moved_aside(&data).pop().unwrap();
    for name in names {
        let moved = std::fs::read(aside.join(name)).unwrap();
        assert!(moved == rubbish.as_bytes(), "{name} is as it was");
    }
}
