//! File ownership: uploaded files, and a database beside them that may not be theirs.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::postgres_dumps::runs;
use crate::actors::{Gateway, Settings, Storage};
use crate::postgres::Database;

const OLD: Duration = Duration::from_hours(2);
const WARNING: &str = "uploaded files that this database does not know";

async fn gateway_on(database: &Database) -> Gateway {
    Settings::new()
        .with_storage(Storage::Postgres(database.url.clone()))
        .with("LOG__LEVEL", "debug")
        .start()
        .await
}

/// The path of a blob in the data directory.
fn blob_path(gateway: &Gateway, hash: &str) -> PathBuf {
    let files = gateway.sqlite_file().with_file_name("attachments");
    files.join(&hash[..2]).join(hash)
}

/// Sets a file's modification time into the past.
fn backdates(path: &PathBuf) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the file system has no other clock"
    )]
    file.set_modified(SystemTime::now() - OLD).unwrap();
}

/// Writes a blob that no database references.
fn writes_unknown_blob(gateway: &Gateway, first: &str) -> PathBuf {
    let stray = blob_path(gateway, &first.repeat(32));
    std::fs::create_dir_all(stray.parent().unwrap()).unwrap();
    std::fs::write(&stray, "whose is it?").unwrap();
    stray
}

/// Uploads and backdates a file; returns its session, its entry and its path.
async fn uploads_backdated(gateway: &Gateway, text: &str) -> (String, Value, PathBuf) {
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    let made = page.uploads(&session, "a", text).await.is(201).json();
    let path = blob_path(gateway, made["sha256"].as_str().unwrap());
    backdates(&path);
    (session, made, path)
}

/// Waits until the gateway has swept unreferenced files.
fn waits_for_sweep(gateway: &Gateway) {
    let started = Instant::now();
    loop {
        let log = gateway.log();
        if log.contains("removed unreferenced uploaded files")
            || log.contains("uploaded files kept")
        {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{log}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn finding(gateway: &Gateway) -> Value {
    let shown = gateway.runs(&["doctor", "--json"]);
    let findings: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let list = findings.as_array().unwrap();
    list.iter()
        .find(|finding| finding["what"] == "files")
        .unwrap_or_else(|| panic!("{findings:#}"))
        .clone()
}

#[tokio::test]
async fn a_gateway_on_the_wrong_database_deletes_no_uploaded_file() {
    let (right, wrong) = (Database::create().await, Database::create().await);
    let mut gateway = gateway_on(&right).await;
    let (session, made, path) = uploads_backdated(&gateway, "all that somebody has").await;

    gateway.set("DATA__DATABASE_URL", Some(&wrong.url));
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(path.exists(), "{}", gateway.log());
    let log = gateway.log();
    assert_eq!(log.matches(WARNING).count(), 1, "{log}");
    assert!(log.contains("migrate --adopt-files"), "{log}");
    let finding = finding(&gateway);
    assert_eq!(finding["verdict"], "warning", "{finding:#}");
    assert!(finding["found"].as_str().unwrap().starts_with("1 files"));
    // Uploads made on the wrong database are kept on the right one, too.
    let (_, _, meanwhile) = uploads_backdated(&gateway, "meanwhile").await;

    gateway.set("DATA__DATABASE_URL", Some(&right.url));
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(path.exists() && meanwhile.exists(), "{}", gateway.log());
    let page = gateway.logged_in("root").await;
    let back = page.downloads(&session, &made).await;
    assert_eq!(back.text().await.unwrap(), "all that somebody has");

    // Until the operator confirms that no other database needs them.
    let shown = gateway.prints(&["migrate", "--adopt-files"]);
    assert!(shown.contains("the 1 that it does not know"), "{shown}");
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(path.exists() && !meanwhile.exists(), "{}", gateway.log());
    assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
}

#[tokio::test]
async fn a_restored_older_database_keeps_newer_uploads() {
    let database = Database::create().await;
    let mut gateway = gateway_on(&database).await;
    let (_, _, before) = uploads_backdated(&gateway, "before").await;
    let dir = tempfile::tempdir().unwrap();
    let dump = dir.path().join("dump");
    let dump = dump.to_str().unwrap();
    let url = database.url.as_str();
    runs("pg_dump", &["--format=custom", "--file", dump, url]);
    let (_, _, since) = uploads_backdated(&gateway, "since").await;
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
    waits_for_sweep(&gateway);
    assert!(before.exists() && since.exists(), "{}", gateway.log());
    assert_eq!(gateway.log().matches(WARNING).count(), 1);
    gateway.prints(&["migrate", "--adopt-files"]);
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(before.exists() && !since.exists());
}

#[tokio::test]
async fn unreferenced_files_are_deleted_when_old() {
    let mut gateway = Settings::new().with("LOG__LEVEL", "debug").start().await;
    let (_, _, needed) = uploads_backdated(&gateway, "needed").await;
    let (old, young) = (
        writes_unknown_blob(&gateway, "0a"),
        writes_unknown_blob(&gateway, "0b"),
    );
    backdates(&old);
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(needed.exists() && young.exists() && !old.exists());
    assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
    let home = gateway.sqlite_file().with_file_name("attachments.home");
    let mode = std::fs::metadata(home).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[tokio::test]
async fn a_new_database_beside_old_files_deletes_none() {
    let mut gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .with("LOG__LEVEL", "debug")
        .start()
        .await;
    let (_, _, path) = uploads_backdated(&gateway, "all there is").await;
    gateway.kill();
    for ending in ["", "-wal", "-shm"] {
        let file = format!("{}{ending}", gateway.sqlite_file().display());
        drop(std::fs::remove_file(file));
    }
    gateway.restart();
    waits_for_sweep(&gateway);
    assert!(path.exists());
    assert_eq!(gateway.log().matches(WARNING).count(), 1);
}

#[tokio::test]
async fn gateways_that_take_turns_on_a_database_keep_their_own_files() {
    let database = Database::create().await;
    let (mut gateways, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut gateway = gateway_on(&database).await;
        kept.push(uploads_backdated(&gateway, &format!("of {}", gateway.pid())).await);
        gateway.kill();
        gateways.push(gateway);
    }
    for gateway in &mut gateways {
        gateway.restart();
        waits_for_sweep(gateway);
        assert!(!gateway.log().contains(WARNING), "{}", gateway.log());
        assert_eq!(finding(gateway)["verdict"], "ok");
        gateway.kill();
    }
    for (_, _, path) in kept {
        assert!(path.exists());
    }
}
