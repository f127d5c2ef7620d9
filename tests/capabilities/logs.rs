//! Logs: every line about a session, a connection, a run or an agent carries their ids.

use std::time::Duration;

use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, sqlite::SqliteConnectOptions};

use crate::actors::{Gateway, Settings, Storage, WsClient};
use crate::agents::{FakeAgent, runs_prompt};

/// Fields that say what a line is about. A group commit concerns several sessions at once.
const IDS: [&str; 6] = [
    "session.id",
    "session.ids",
    "connection.id",
    "run.id",
    "user.id",
    "agent",
];

/// Messages about the process as a whole, which belong to no session.
const PROCESS_WIDE: [&str; 3] = [
    "created the first administrator from the [admin] section",
    "serving",
    "this kernel cannot enforce a part of the sandbox",
];

/// The lines at these levels; each one is JSON.
fn lines(log: &str, levels: &[&str]) -> Vec<Value> {
    log.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("{line}")))
        .filter(|line| levels.contains(&line["level"].as_str().unwrap()))
        .collect()
}

/// The ids of a line: its own, and those of the span it was logged in.
fn ids(line: &Value) -> Vec<&'static str> {
    let has = |id: &&str| {
        let texts = [&line[*id], &line["span"][*id]];
        texts
            .iter()
            .any(|value| value.as_str().is_some_and(|id| !id.is_empty()))
    };
    IDS.into_iter().filter(|id| has(id)).collect()
}

async fn prompts_are_refused(member: &mut WsClient) {
    member.prompts("/echo refused").await;
    let error = member.sees("ERROR_MESSAGE").await;
    assert_eq!(error["payload"]["code"], "STORAGE_UNAVAILABLE", "{error}");
}

/// Takes a session through its life: runs that complete, fail and crash, bad input, a locked database,
/// a revoked grant, a kicked connection, the end of the session.
async fn lives(gateway: &Gateway) {
    let root = gateway.logged_in("root").await;
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    let token = root.token.clone().unwrap();
    let mut member = WsClient::connects(root.address(), &token, "").await;
    for prompt in ["/echo hello", "/fail", "/crash"] {
        runs_prompt(&mut member, prompt).await;
    }
    member.writes_raw("{").await;
    member.sees("ERROR_MESSAGE").await;
    let path = format!("/api/sessions/{}", member.session());
    let grant = format!("{path}/grants/mia");
    let viewer = Some(json!({ "role": "viewer" }));
    root.sends("PUT", &grant, viewer).await.is(200);
    let query = format!("?session={}", member.session());
    let mut guest = WsClient::connects(mia.address(), mia.token.as_deref().unwrap(), &query).await;
    root.sends("DELETE", &grant, None).await.is(204);
    guest.sees_close().await;

    let mut agent = WsClient::connects(root.address(), &token, "?agent=acp").await;
    for prompt in ["/echo hello", "/garbage x", "/odd x", "/crash"] {
        runs_prompt(&mut agent, prompt).await;
    }
    let connections = root.gets("/api/admin/connections").await.is(200).json();
    for connection in connections["connections"].as_array().unwrap() {
        let id = connection["id"].as_str().unwrap();
        let path = format!("/api/admin/connections/{id}");
        root.sends("DELETE", &path, None).await;
    }
    agent.sees_close().await;

    let mut member = WsClient::connects(root.address(), &token, &query).await;
    let mut other = SqliteConnectOptions::new()
        .filename(gateway.sqlite_file())
        .busy_timeout(Duration::from_secs(20))
        .connect()
        .await
        .unwrap();
    let lock = sqlx::query("begin exclusive").execute(&mut other).await;
    lock.unwrap();
    prompts_are_refused(&mut member).await;
    let unlock = sqlx::query("rollback").execute(&mut other).await;
    unlock.unwrap();
    root.sends("DELETE", &path, None).await.is(204);
    member.sees_close().await;
}

#[tokio::test]
async fn every_warning_says_which_session_connection_run_user_or_agent_it_is_about() {
    let parts = FakeAgent::all();
    let acp = parts.iter().find(|part| part.name == "acp").unwrap();
    let gateway = Settings::new()
        .with("LOG__FORMAT", "json")
        .with("LOG__LEVEL", "info")
        .with_config_file(&acp.configuration(""))
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    lives(&gateway).await;
    let log = gateway.log();
    let warnings = lines(&log, &["WARN", "ERROR"]);
    let about = |id: &str| {
        warnings
            .iter()
            .filter(|line| ids(line).contains(&id))
            .count()
    };
    assert!(
        about("session.id") >= 2 && about("agent") >= 1,
        "a crashed agent and a refused command are warnings about their session: {log}"
    );
    for line in &warnings {
        assert!(!ids(line).is_empty(), "names nothing: {line}");
    }
    for line in lines(&log, &["INFO"]) {
        let message = line["message"].as_str().unwrap();
        let is_scoped = !ids(&line).is_empty();
        assert!(
            is_scoped || PROCESS_WIDE.contains(&message),
            "names nothing: {line}"
        );
    }
}

#[test]
fn a_line_without_ids_would_be_found() {
    let bare = json!({ "level": "WARN", "message": "x", "span": { "name": "request" } });
    assert!(ids(&bare).is_empty());
    let empty = json!({ "level": "WARN", "message": "x", "session.id": "" });
    assert!(ids(&empty).is_empty());
    let spanned = json!({ "level": "WARN", "message": "x", "span": { "session.id": "ses_1" } });
    assert_eq!(ids(&spanned), ["session.id"]);
    let log = format!("{bare}\n{}\n", json!({ "level": "INFO", "message": "y" }));
    assert_eq!(lines(&log, &["WARN"]).len(), 1);
}
