//! Uploaded files, and a database beside them that may not be theirs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::dumps::runs;
use crate::actors::{Gateway, Settings, Storage};
use crate::postgres::Database;

const OLD: Duration = Duration::from_hours(2);
const WARNING: &str = "uploaded files here that this database does not know";

async fn on(database: &Database) -> Gateway {
    Settings::new()
        .storing(Storage::Postgres(database.url.clone()))
        .with("LOG__LEVEL", "debug")
        .start()
        .await
}

/// The place of a content in the data directory.
fn place(gateway: &Gateway, hash: &str) -> PathBuf {
    let files = gateway.sqlite_file().with_file_name("attachments");
    files.join(&hash[..2]).join(hash)
}

/// Makes a file look as if it had been there for long.
fn ages(path: &PathBuf) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the file system has no other clock"
    )]
    file.set_modified(SystemTime::now() - OLD).unwrap();
}

/// Puts a content there that no database knows.
fn strays(gateway: &Gateway, first: &str) -> PathBuf {
    let stray = place(gateway, &first.repeat(32));
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "whose is it?").unwrap();
    stray
}

/// Uploads a file that is old already; says in which session, what it is, and where.
async fn uploads_old(gateway: &Gateway, text: &str) -> (String, Value, PathBuf) {
    let page = gateway.browser("root").await;
    let session = page.opens_a_session().await;
    let made = page.uploads(&session, "a", text).await.is(201).json();
    let path = place(gateway, made["sha256"].as_str().unwrap());
    ages(&path);
    (session, made, path)
}

/// Waits for the gateway to have looked for files that nobody needs.
fn has_swept(gateway: &Gateway) {
    let started = Instant::now();
    loop {
        let log = gateway.log();
        if log.contains("looked through all files") || log.contains("files stay, because") {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{log}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn finding(gateway: &Gateway) -> Value {
    let told = gateway.runs(&["doctor", "--json"]);
    let findings: Value = serde_json::from_slice(&told.stdout).unwrap();
    let list = findings.as_array().unwrap();
    list.iter()
        .find(|finding| finding["what"] == "files")
        .unwrap_or_else(|| panic!("{findings:#}"))
        .clone()
}

#[tokio::test]
async fn a_gateway_on_a_wrong_database_removes_no_uploaded_file() {
    let (right, wrong) = (Database::create().await, Database::create().await);
    let mut gateway = on(&right).await;
    let (session, made, path) = uploads_old(&gateway, "all that somebody has").await;

    gateway.set("DATA__DATABASE_URL", Some(&wrong.url));
    gateway.restart();
    has_swept(&gateway);
    assert!(path.exists(), "{}", gateway.log());
    let log = gateway.log();
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");
    assert!(log.contains("migrate --adopt-files"), "{log}");
    let finding = finding(&gateway);
    assert_eq!(finding["verdict"], "warning", "{finding:#}");
    assert!(finding["found"].as_str().unwrap().starts_with("1 files"));
    // What arrives on the wrong one is not lost on the right one either.
    let (_, _, meanwhile) = uploads_old(&gateway, "meanwhile").await;

    gateway.set("DATA__DATABASE_URL", Some(&right.url));
    gateway.restart();
    has_swept(&gateway);
    assert!(path.exists() && meanwhile.exists(), "{}", gateway.log());
    let page = gateway.browser("root").await;
    let back = page.downloads(&session, &made).await;
    assert_eq!(back.text().await.unwrap(), "all that somebody has");

    // Until somebody says that nobody else needs them.
    let told = gateway.says(&["migrate", "--adopt-files"]);
    assert!(told.contains("the 1 that it does not know"), "{told}");
    gateway.restart();
    has_swept(&gateway);
    assert!(path.exists() && !meanwhile.exists(), "{}", gateway.log());
    assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
}

#[tokio::test]
async fn a_restored_older_database_keeps_what_was_uploaded_since() {
    let database = Database::create().await;
    let mut gateway = on(&database).await;
    let (_, _, before) = uploads_old(&gateway, "before").await;
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump");
    let dump = dump.to_str().unwrap();
    let url = database.url.as_str();
    runs("pg_dump", &["--format=custom", "--file", dump, url]);
    let (_, _, since) = uploads_old(&gateway, "since").await;
    gateway.kill();
    let clean = [
        "--clean",
        "--if-exists",
        "--no-owner",
        "--dbname",
        url,
        dump,
    ];
    runs("pg_restore", &clean);
    let refused = gateway.runs(&["migrate", "--adopt-files"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    gateway.restart();
    has_swept(&gateway);
    assert!(before.exists() && since.exists(), "{}", gateway.log());
    assert_eq!(gateway.log().matches(WARNING).count(), 1);
    gateway.says(&["migrate", "--adopt-files"]);
    gateway.restart();
    has_swept(&gateway);
    assert!(before.exists() && !since.exists());
}

#[tokio::test]
async fn what_nobody_needs_goes_when_it_is_old() {
    let mut gateway = Settings::new().with("LOG__LEVEL", "debug").start().await;
    let (_, _, needed) = uploads_old(&gateway, "needed").await;
    let (old, young) = (strays(&gateway, "0a"), strays(&gateway, "0b"));
    ages(&old);
    gateway.restart();
    has_swept(&gateway);
    assert!(needed.exists() && young.exists() && !old.exists());
    assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
    let home = gateway.sqlite_file().with_file_name("attachments.home");
    let mode = std::fs::metadata(home).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[tokio::test]
async fn a_new_database_beside_old_files_removes_none() {
    let mut gateway = Settings::new()
        .storing(Storage::Sqlite(None))
        .with("LOG__LEVEL", "debug")
        .start()
        .await;
    let (_, _, path) = uploads_old(&gateway, "all there is").await;
    gateway.kill();
    for ending in ["", "-wal", "-shm"] {
        let file = format!("{}{ending}", gateway.sqlite_file().display());
        drop(std::fs::remove_file(file));
    }
    gateway.restart();
    has_swept(&gateway);
    assert!(path.exists());
    assert_eq!(gateway.log().matches(WARNING).count(), 1);
}

#[tokio::test]
async fn gateways_that_share_a_database_each_keep_their_files() {
    let database = Database::create().await;
    let mut gateways = [on(&database).await, on(&database).await];
    let mut kept = Vec::new();
    for gateway in &gateways {
        kept.push(uploads_old(gateway, &format!("of {}", gateway.pid())).await);
    }
    for gateway in &mut gateways {
        gateway.restart();
        has_swept(gateway);
        assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
        assert_eq!(finding(gateway)["verdict"], "ok");
    }
    for (_, _, path) in kept {
        assert!(path.exists());
    }
}
