//! A restore that is killed leaves the old database or the new one, or keeps everybody out until it is
//! repeated.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use super::{complaint, is_whole};
use crate::actors::{Settings, Storage, program};

const ROUNDS: u32 = 24;
const REFUSAL: &str = "a restore was interrupted here";

/// What a killed gateway left, with `later` in it and not in the backup beside it.
async fn killed_gateway() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let mut gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    let page = gateway.browser("root").await;
    let session = page.opens_a_session().await;
    page.uploads(&session, "kept", "kept").await.is(201);
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("copy.db");
    gateway.says(&["backup", backup.to_str().unwrap()]);
    gateway.has_user("later", "member");
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

fn says(data: &Path, arguments: &[&str]) -> std::process::Output {
    let place = ["--data-dir", data.to_str().unwrap()];
    program(data, &[arguments, &place].concat(), &[])
}

/// The directories that a restore moved something into.
fn asides(data: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.display().to_string().contains("/replaced-"))
        .collect()
}

/// Kills it when it has come to something that can be seen from outside, and a little later each time.
fn kill_on_the_way(mut child: Child, data: &Path, round: u32) {
    let ready = data.join("switchboard.db.restoring");
    let mut was_ready = false;
    loop {
        was_ready |= ready.exists();
        let is_there = match round % 4 {
            0 => was_ready,
            1 => data.join("restore.unfinished").exists(),
            2 => !asides(data).is_empty(),
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

async fn knows_later(database: &Path) -> bool {
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    let found: i64 = sqlx::query_scalar("select count(*) from users where username = 'later'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    found == 1
}

/// Every moved database that is whole and has `later` in it; the others are whole, too.
async fn old_ones(data: &Path) -> Vec<PathBuf> {
    let mut old = Vec::new();
    for aside in asides(data) {
        let database = aside.join("switchboard.db");
        if database.exists() {
            is_whole(&database).await;
            if knows_later(&database).await {
                old.push(aside);
            }
        }
    }
    old
}

#[tokio::test]
async fn a_restore_that_is_killed_anywhere_leaves_one_whole_database_or_is_repeated() {
    let (dir, original, backup) = killed_gateway().await;
    for round in 0..ROUNDS {
        let data = dir.path().join(format!("round-{round}"));
        copy(&original, &data);
        kill_on_the_way(restore(&data, &backup), &data, round);
        let listed = says(&data, &["user", "list"]);
        if listed.status.success() {
            let told = String::from_utf8_lossy(&listed.stdout).into_owned();
            assert!(told.contains("root"), "{round}: a new one was made: {told}");
            is_whole(&data.join("switchboard.db")).await;
            let is_old = asides(&data).is_empty();
            assert_eq!(told.contains("later"), is_old, "{round}: {told}");
        } else {
            let told = complaint(&listed);
            assert!(told.contains(REFUSAL), "{round}: {told}");
        }
        let again = says(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
        assert!(again.status.success(), "{round}: {}", complaint(&again));
        let listed = says(&data, &["user", "list"]);
        let told = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.status.success(), "{round}: {}", complaint(&listed));
        assert!(told.contains("root") && !told.contains("later"), "{told}");
        is_whole(&data.join("switchboard.db")).await;
        let old = old_ones(&data).await;
        assert_eq!(old.len(), 1, "{round}: what was there is whole: {old:?}");
        assert!(old[0].join("attachments").exists(), "{round}");
    }
}

#[tokio::test]
async fn nothing_opens_a_database_that_a_restore_left_half_way_until_it_is_repeated() {
    let (_dir, data, backup) = killed_gateway().await;
    // As after a power cut in the middle: the database has left its place, its log has not.
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
        let refused = says(&data, arguments);
        assert!(!refused.status.success(), "{arguments:?}");
        let told = complaint(&refused) + &String::from_utf8_lossy(&refused.stdout);
        assert!(told.contains(REFUSAL), "{arguments:?}: {told}");
        assert!(told.contains("switchboard restore FILE"), "{told}");
    }
    assert!(!data.join("switchboard.db").exists(), "nobody made one");
    // Also without `--replace`: that was said the first time.
    let again = says(&data, &["restore", backup.to_str().unwrap()]);
    assert!(again.status.success(), "{}", complaint(&again));
    let told = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(told.contains("replaced-before"), "{told}");
    assert_eq!(old_ones(&data).await, [aside], "with what was in its log");
    let listed = says(&data, &["user", "list"]);
    assert!(listed.status.success(), "{}", complaint(&listed));
}

#[tokio::test]
async fn a_restore_does_not_move_a_database_away_from_a_command_that_reads_it() {
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
    let refused = says(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert_eq!(refused.status.code(), Some(1));
    let told = complaint(&refused);
    assert!(told.contains("another command uses"), "{told}");
    reads.rollback().await.unwrap();
    reader.close().await.unwrap();
    let listed = says(&data, &["user", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("later"));
    let again = says(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(again.status.success(), "{}", complaint(&again));
}

#[tokio::test]
async fn a_database_that_cannot_be_read_is_moved_aside_as_it_is() {
    let (_dir, data, backup) = killed_gateway().await;
    let rubbish = "no database at all, but long enough for one".repeat(99);
    let names = ["switchboard.db", "switchboard.db-wal"];
    for name in names {
        std::fs::write(data.join(name), &rubbish).unwrap();
    }
    let restored = says(&data, &["restore", backup.to_str().unwrap(), "--replace"]);
    assert!(restored.status.success(), "{}", complaint(&restored));
    is_whole(&data.join("switchboard.db")).await;
    let aside = asides(&data).pop().unwrap();
    for name in names {
        let moved = std::fs::read(aside.join(name)).unwrap();
        assert!(moved == rubbish.as_bytes(), "{name} is as it was");
    }
}
