//! Restores: a backup made under load, put in place again.

use std::os::unix::fs::PermissionsExt as _;

use super::{contains_events, journal, passes_integrity_check, stderr_text, streams};
use crate::actors::{Gateway, Settings, Storage, WsClient, program};

async fn sqlite() -> Gateway {
    Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_has_every_event_seen_before_it_and_old_clients_get_the_full_state() {
    let mut gateway = sqlite().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let session = page.creates_session().await;
    let kept = page.uploads(&session, "kept", "kept").await.is(201).json();
    let mut members = streams(&gateway, &token, 4, "/stream 5000 2").await;
    let seen: Vec<_> = members.iter().map(|member| member.events.clone()).collect();

    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("copy.db");
    let name = file.to_str().unwrap().to_owned();
    let copied = tokio::task::block_in_place(|| gateway.runs(&["backup", &name]));
    assert!(copied.status.success(), "{}", stderr_text(&copied));
    let in_the_copy = members[0].events.len();
    for member in &mut members {
        let more = member.events.len() + 500;
        while member.events.len() < more {
            member.receives().await.unwrap();
        }
    }
    gateway.kill();

    let data = target.path().join("data");
    let data = data.to_str().unwrap();
    let restored = program(target.path(), &["restore", &name, "--data-dir", data], &[]);
    let shown = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(restored.status.success(), "{}", stderr_text(&restored));
    for words in [
        "1 users, 5 sessions, 1 uploaded files",
        "new epoch",
        "user list",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let place = std::path::PathBuf::from(data);
    passes_integrity_check(&place.join("switchboard.db")).await;
    let mode = std::fs::metadata(place.join("switchboard.db")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o077, 0);

    let restored = Settings::new()
        .with_storage(Storage::Sqlite(Some(place)))
        .start()
        .await;
    let page = restored.logged_in("root").await;
    for (member, seen) in members.iter().zip(&seen) {
        contains_events(&journal(&page, &member.session()).await, seen);
    }
    assert!(in_the_copy > 0);
    let back = page.downloads(&session, &kept).await;
    assert_eq!(back.text().await.unwrap(), "kept");
    // The old token is still valid; the old position is not.
    for member in &members {
        let mut back = WsClient::connects(restored.address(), &token, &member.position()).await;
        assert_eq!(back.ack["resume"], "snapshot");
        assert_ne!(back.ack["epoch"], member.ack["epoch"]);
        let state = back.receives().await.unwrap();
        assert_eq!(state["type"], "FULL_STATE");
        // An offset that exists in both epochs may mean another event.
        let early = WsClient::connects(restored.address(), &token, &member.position_after(5)).await;
        assert_eq!(early.ack["resume"], "snapshot");
    }
    let acts = page.gets("/api/admin/audit?action=data.restored").await;
    assert!(acts.text.contains("copy.db"), "{}", acts.text);
}

#[tokio::test]
async fn a_database_copied_by_hand_gets_new_epochs_too() {
    let mut gateway = sqlite().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    member.prompts("/echo one").await;
    member.sees_run_end().await;
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("copy.db");
    gateway.prints(&["backup", file.to_str().unwrap()]);
    // An ordinary restart changes no epoch, nor does having been copied.
    gateway.restart();
    let back = WsClient::connects(gateway.address(), &token, &member.position()).await;
    assert_eq!(back.ack["resume"], "replayed");
    gateway.kill();
    for ending in ["-wal", "-shm"] {
        let old = format!("{}{ending}", gateway.sqlite_file().display());
        drop(std::fs::remove_file(old));
    }
    std::fs::copy(&file, gateway.sqlite_file()).unwrap();
    for resume in ["snapshot", "replayed"] {
        gateway.restart();
        let back = WsClient::connects(gateway.address(), &token, &member.position()).await;
        assert_eq!(back.ack["resume"], resume, "new epochs are given once");
        member.ack = back.ack;
    }
}

#[tokio::test]
async fn a_restore_replaces_data_only_with_the_flag_and_never_under_a_running_gateway() {
    let mut gateway = sqlite().await;
    let page = gateway.logged_in("root").await;
    let session = page.creates_session().await;
    page.uploads(&session, "a", "a file").await.is(201);
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("copy.db");
    let name = file.to_str().unwrap();
    gateway.prints(&["backup", name]);
    gateway.adds_user("later", "member");

    let refused = gateway.runs(&["restore", name, "--replace"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr_text(&refused).contains("runs on the data directory"));
    gateway.kill();
    let refused = gateway.runs(&["restore", name]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr_text(&refused).contains("--replace"), "{refused:?}");
    assert!(gateway.prints(&["user", "list"]).contains("later"));

    // A file missing in the backup is reported; the rest is restored.
    let files = target.path().join("copy.db.attachments");
    std::fs::rename(&files, target.path().join("elsewhere")).unwrap();
    let shown = gateway.prints(&["restore", name, "--replace"]);
    assert!(shown.contains("MISSING: 1 uploaded files"), "{shown}");
    assert!(!gateway.prints(&["user", "list"]).contains("later"));
    let aside = shown.split("was there is in ").nth(1).unwrap();
    let aside = std::path::Path::new(aside.split(" now").next().unwrap());
    passes_integrity_check(&aside.join("switchboard.db")).await;
    assert!(aside.join("attachments").exists());
}

#[tokio::test]
async fn an_incomplete_backup_is_refused_before_any_change() {
    let mut gateway = sqlite().await;
    gateway.kill();
    let target = tempfile::tempdir().unwrap();
    let good = target.path().join("good.db");
    gateway.prints(&["backup", good.to_str().unwrap()]);
    let damaged = target.path().join("damaged.db");
    let mut bytes = std::fs::read(&good).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xA5);
    std::fs::write(&damaged, bytes).unwrap();
    let text = target.path().join("text");
    std::fs::write(
        &text,
        "this is no database at all, but long enough to be read as one",
    )
    .unwrap();
    let newer = target.path().join("newer.db");
    std::fs::copy(&good, &newer).unwrap();
    let mut connection =
        <sqlx::SqliteConnection as sqlx::Connection>::connect(&newer.display().to_string())
            .await
            .unwrap();
    sqlx::query("update _sqlx_migrations set version = 9999 where version = 9")
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    for (file, words) in [
        (damaged, "damaged"),
        (text, "is not a backup of Switchboard"),
        (newer, "schema version 9999"),
        (
            target.path().join("nothing"),
            "is not a backup of Switchboard",
        ),
    ] {
        let refused = gateway.runs(&["restore", file.to_str().unwrap(), "--replace"]);
        assert_eq!(refused.status.code(), Some(1));
        let shown = stderr_text(&refused);
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(gateway.prints(&["user", "list"]).contains("root"));
}

#[tokio::test]
async fn a_restore_succeeds_even_if_its_audit_entry_cannot_be_written() {
    let mut gateway = sqlite().await;
    gateway.kill();
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("copy.db");
    gateway.prints(&["backup", file.to_str().unwrap()]);
    let mut connection =
        <sqlx::SqliteConnection as sqlx::Connection>::connect(&file.display().to_string())
            .await
            .unwrap();
    sqlx::query(
        "create trigger full before insert on audit_log
         begin select raise(abort, 'the log is full'); end",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    sqlx::Connection::close(connection).await.unwrap();
    let restored = gateway.runs(&["restore", file.to_str().unwrap(), "--replace"]);
    let shown = stderr_text(&restored);
    assert_eq!(restored.status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("warning: the audit log does not tell of this restore"),
        "{shown}"
    );
    assert!(shown.contains("the log is full"), "{shown}");
    let shown = String::from_utf8_lossy(&restored.stdout).into_owned();
    assert!(shown.contains("is in place: 1 users"), "{shown}");
}
