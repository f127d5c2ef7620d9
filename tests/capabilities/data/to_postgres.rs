//! Move to Postgres: everything in SQLite arrives, and the original is not used again by mistake.

use serde_json::json;

use super::{journal, stderr_text};
use crate::actors::{Gateway, Settings, Storage, WsClient};
use crate::postgres::Database;

async fn sqlite() -> Gateway {
    Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await
}

#[tokio::test]
async fn everything_is_the_same_after_the_move_to_postgres() {
    let mut gateway = sqlite().await;
    gateway.adds_user("mia", "member");
    let mut page = gateway.logged_in("root").await;
    let mut mia = gateway.logged_in("mia").await;
    let token = page.token.clone().unwrap();
    let mut root = WsClient::connects(gateway.address(), &token, "").await;
    let prompt = json!({
        "type": "SUBMIT_PROMPT", "idempotencyKey": "key-1", "messageId": "m",
        "payload": { "text": "/echo swordfish", "mode": "act" }
    });
    root.writes(&prompt.to_string()).await;
    root.sees_run_end().await;
    root.prompts("/stream 300").await;
    root.sees_run_end().await;
    root.prompts("/confirm").await;
    root.sees("QUESTION").await;
    let session = root.session();
    let file = page
        .uploads(&session, "a%20b", "the file")
        .await
        .is(201)
        .json();
    let path = format!("/api/sessions/{session}");
    page.sends("PATCH", &path, Some(json!({ "title": "Über 'alles'" })))
        .await
        .is(200);
    let grant = Some(json!({ "role": "viewer" }));
    page.sends("PUT", &format!("{path}/grants/mia"), grant)
        .await
        .is(200);
    let before = journal(&page, &session).await;
    let acts = page.gets("/api/admin/audit?limit=100").await.is(200).json();

    let target = Database::create().await;
    let refused = gateway.runs(&["move", "--to", &target.url]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr_text(&refused).contains("runs on the data directory"));
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    let after_stop = gateway.prints(&["move", "--to", &target.url, "--dry-run", "--json"]);
    let rehearsed: serde_json::Value = serde_json::from_str(&after_stop).unwrap();
    assert_eq!(rehearsed["moved"], false);
    let moved = gateway.prints(&["move", "--to", &target.url, "--json"]);
    let moved: serde_json::Value = serde_json::from_str(&moved).unwrap();
    let count = |shown: &serde_json::Value| -> Vec<(String, u64)> {
        let tables = shown["tables"].as_array().unwrap();
        tables
            .iter()
            .map(|table| {
                let rows = table["rows"].as_u64().unwrap();
                (table["table"].as_str().unwrap().to_owned(), rows)
            })
            .collect()
    };
    assert_eq!(
        count(&rehearsed),
        count(&moved),
        "what was said is what was moved"
    );
    let rows = |name: &str| {
        count(&moved)
            .iter()
            .find(|(table, _)| table == name)
            .unwrap()
            .1
    };
    assert_eq!(
        (rows("users"), rows("sessions"), rows("session_grants")),
        (2, 1, 1)
    );
    assert!(rows("audit_log") > 3 && rows("logins") >= 2 && rows("commands") == 1);
    assert!(rows("attachments") == 1 && rows("signing_keys") == 1 && rows("session_texts") > 2);
    let again = gateway.runs(&["move", "--to", &target.url]);
    assert!(
        stderr_text(&again).contains("name an empty database"),
        "{again:?}"
    );

    gateway.set("DATA__DATABASE_URL", Some(&target.url));
    gateway.restart();
    // Ports differ; accounts do not.
    let (cookie, token_of_mia) = (page.cookie.clone(), mia.token.clone());
    page = gateway.anonymous();
    page.token = Some(token.clone());
    page.cookie = cookie;
    mia = gateway.anonymous();
    mia.token = token_of_mia;
    page.me().await.is(200);
    mia.gets(&path).await.is(200);
    let now = journal(&page, &session).await;
    assert_eq!(now[..before.len()], before[..], "every event is as it was");
    let mut back = WsClient::connects(gateway.address(), &token, &root.position_after(7)).await;
    assert_eq!(back.ack["resume"], "replayed");
    assert_eq!(back.ack["epoch"], root.ack["epoch"]);
    while back.offsets().last() < Some(&(before.len() as u64)) {
        back.receives().await.unwrap();
    }
    assert_eq!(
        back.offsets(),
        (8..=before.len() as u64).collect::<Vec<_>>()
    );
    back.sends("REQUEST_STATE", json!({})).await;
    let state = back.sees("FULL_STATE").await;
    assert_eq!(state["payload"]["questions"].as_array().unwrap().len(), 1);
    back.writes(&prompt.to_string()).await;
    let repeated = back.sees("ACK").await;
    assert_eq!(repeated["payload"]["repeated"], true, "{repeated}");
    for word in ["swordfish", "über"] {
        let found = page.gets(&format!("/api/sessions?q={word}")).await.is(200);
        assert!(found.text.contains(&session), "{word}: {}", found.text);
    }
    let content = page.downloads(&session, &file).await;
    assert_eq!(content.text().await.unwrap(), "the file");
    let later = page.gets("/api/admin/audit?limit=100").await.is(200).json();
    let ids = |acts: &serde_json::Value| -> Vec<serde_json::Value> {
        let list = acts["acts"].as_array();
        list.unwrap().iter().map(|act| act["id"].clone()).collect()
    };
    let later_ids = ids(&later);
    assert!(ids(&acts).iter().all(|id| later_ids.contains(id)));
    assert!(later.to_string().contains("data.moved"), "{later}");
    page.refreshes().await.is(200);
    // Sequences continue after the moved rows.
    gateway.adds_user("ada", "member");
    back.prompts("/echo afterwards").await;

    gateway.kill();
    gateway.set("DATA__DATABASE_URL", None);
    gateway.restart();
    let page = gateway.logged_in("root").await;
    assert_eq!(
        journal(&page, &session).await[..before.len()],
        before[..],
        "SQLite is as it was"
    );
}

#[tokio::test]
async fn the_moved_sqlite_database_gets_new_epochs_if_used_again() {
    let mut gateway = sqlite().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.clone().unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    member.prompts("/echo one").await;
    member.sees_run_end().await;
    page.uploads(&member.session(), "a", "a file").await.is(201);
    gateway.kill();
    let (first, second) = (Database::create().await, Database::create().await);
    gateway.prints(&["move", "--to", &first.url]);
    // Read-only commands still work, and report the move.
    let listed = gateway.runs(&["user", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).contains("root"));
    assert!(stderr_text(&listed).contains("was restored or moved"));
    // A second move would make two databases with the same epochs.
    gateway.prints(&["move", "--to", &second.url]);

    let resumes = async |gateway: &mut Gateway, url: Option<&str>, place: &str| {
        gateway.set("DATA__DATABASE_URL", url);
        gateway.restart();
        let back = WsClient::connects(gateway.address(), &token, place).await;
        (back.ack["resume"].as_str().unwrap().to_owned(), back)
    };
    let (resume, there) = resumes(&mut gateway, Some(&first.url), &member.position()).await;
    assert_eq!(resume, "replayed");
    assert_eq!(there.ack["epoch"], member.ack["epoch"]);
    let log = gateway.log();
    assert!(!log.contains("WARN"), "the files are its own: {log}");
    let (resume, _) = resumes(&mut gateway, Some(&second.url), &member.position()).await;
    assert_eq!(resume, "snapshot");

    let (resume, back) = resumes(&mut gateway, None, &member.position()).await;
    assert_eq!(resume, "snapshot");
    assert_ne!(back.ack["epoch"], member.ack["epoch"]);
    let log = gateway.log();
    assert_eq!(log.matches("was moved to Postgres").count(), 1, "{log}");
    let (resume, _) = resumes(&mut gateway, None, &back.position_after(1)).await;
    assert_eq!(resume, "replayed", "once");
}

#[tokio::test]
async fn an_impossible_move_is_refused_with_the_reason() {
    let mut gateway = sqlite().await;
    gateway.kill();
    for (arguments, words) in [
        (vec!["move"], "where to?"),
        (vec!["move", "--to", "mysql://x/y"], "postgres://"),
        (
            vec!["move", "--to", "postgres://nobody@127.0.0.1:1/none"],
            "cannot open the database",
        ),
        (vec!["move", "--to-file", "/nonexistent"], "cannot read"),
    ] {
        let refused = gateway.runs(&arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let shown = stderr_text(&refused);
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[tokio::test]
async fn a_move_succeeds_even_if_its_audit_entry_cannot_be_written() {
    let mut gateway = sqlite().await;
    gateway.kill();
    let target = Database::create().await;
    gateway.set("DATA__DATABASE_URL", Some(&target.url));
    gateway.prints(&["migrate"]);
    gateway.set("DATA__DATABASE_URL", None);
    let mut there = crate::postgres::connect(&target.url).await;
    for statement in [
        "create function full_log() returns trigger language plpgsql
         as $$ begin raise exception 'the log is full'; end $$",
        "create trigger full_log before insert on audit_log for each row
         when (new.action = 'data.moved') execute function full_log()",
    ] {
        sqlx::query(statement).execute(&mut there).await.unwrap();
    }
    let moved = gateway.runs(&["move", "--to", &target.url]);
    let shown = stderr_text(&moved);
    assert_eq!(moved.status.code(), Some(0), "{shown}");
    assert!(
        shown.contains("warning: the audit log does not tell of this move"),
        "{shown}"
    );
    assert!(shown.contains("the log is full"), "{shown}");
    let shown = String::from_utf8_lossy(&moved.stdout).into_owned();
    assert!(shown.contains("Everything is there"), "{shown}");
}
