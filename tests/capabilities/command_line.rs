//! Command line: sub-commands, exit codes, offline use, backup and doctor.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD, WsClient, program};
use crate::ports::free_port;

/// Appears in a conversation and nowhere else.
const CANARY: &str = "canary-51c9";

async fn joins(page: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(page.address(), page.token.as_deref().unwrap(), query).await
}

fn sessions(gateway: &Gateway, arguments: &[&str]) -> Vec<Value> {
    let shown = gateway.prints(&[&["session", "list", "--json"], arguments].concat());
    serde_json::from_str(&shown).unwrap()
}

#[tokio::test]
async fn commands_work_without_a_gateway() {
    let mut gateway = Gateway::start().await;
    gateway.kill();
    gateway.adds_user("mia", "admin");
    gateway.prints(&["user", "disable", "mia"]);
    let users: Value = serde_json::from_str(&gateway.prints(&["user", "list", "--json"])).unwrap();
    let mia = users
        .as_array()
        .unwrap()
        .iter()
        .find(|user| user["username"] == "mia")
        .unwrap();
    assert_eq!(
        (&mia["role"], &mia["disabled"]),
        (&Value::from("admin"), &Value::from(true))
    );
    let table = gateway.prints(&["user", "list"]);
    assert!(
        table.contains("mia") && table.contains("disabled"),
        "{table}"
    );
    gateway.prints(&["user", "enable", "mia"]);
    gateway.restart();
    gateway.logged_in("mia").await.me().await.is(200);
}

#[tokio::test]
async fn failures_name_the_cause_and_exit_with_1() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    for (arguments, expected) in [
        (vec!["user", "add", "mia"], "taken"),
        (vec!["user", "disable", "nobody"], "nobody"),
        (vec!["token", "create", "--user", "nobody"], "nobody"),
        (vec!["session", "list", "--user", "nobody"], "nobody"),
    ] {
        let failed = gateway.runs(&arguments);
        let shown = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{shown}");
        assert!(
            shown.contains(expected) && shown.lines().count() == 1,
            "{shown}"
        );
    }
    let weak = gateway.runs_with_input(&["user", "add", "bob", "--password-stdin"], "short\n");
    assert_eq!(weak.status.code(), Some(1));
}

#[tokio::test]
async fn wrong_usage_exits_with_2() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        vec!["nonsense"],
        vec!["user", "add"],
        vec!["user", "add", "a b"],
        vec!["user", "add", "mia", "--role", "root"],
        vec!["token", "create", "--user", "mia", "--ttl", "soon"],
        vec!["session", "end"],
        vec!["session", "end", "mia"],
        vec!["--nonsense"],
    ] {
        let failed = program(dir.path(), &arguments, &[]);
        assert_eq!(failed.status.code(), Some(2), "{arguments:?}");
        assert!(!failed.stderr.is_empty());
    }
    assert!(
        std::fs::read_dir(dir.path()).unwrap().next().is_none(),
        "nothing was opened"
    );
}

#[tokio::test]
async fn every_command_has_help() {
    let dir = tempfile::tempdir().unwrap();
    let commands = [
        "serve",
        "user",
        "setup-url",
        "token",
        "key",
        "session",
        "config",
        "migrate",
        "backup",
        "restore",
        "move",
        "health",
        "doctor",
        "schema",
        "completions",
    ];
    let help = program(dir.path(), &["--help"], &[]);
    let help = String::from_utf8(help.stdout).unwrap();
    for command in commands {
        assert!(help.contains(command), "{command} in {help}");
        let own = program(dir.path(), &[command, "--help"], &[]);
        assert!(own.status.success() && own.stdout.len() > 100, "{command}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = program(dir.path(), &["completions", shell], &[]);
        assert!(
            script.status.success() && script.stdout.len() > 1000,
            "{shell}"
        );
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("session"), "{shell}");
    }
}

#[tokio::test]
async fn a_closed_output_pipe_is_no_failure() {
    let binary = env!("CARGO_BIN_EXE_switchboard");
    for command in [
        "config default",
        "completions bash",
        "schema openapi",
        "--help",
    ] {
        let script = format!("set -o pipefail; {binary} {command} | true");
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {shown}");
        assert!(!shown.contains("panic"), "{command}: {shown}");
    }
}

#[tokio::test]
async fn the_session_list_shows_no_conversation_content() {
    let gateway = Gateway::start().await;
    for name in ["mia", "tom"] {
        gateway.adds_user(name, "member");
    }
    let page = gateway.logged_in("mia").await;
    let new = json!({ "title": "Repair the roof" });
    let made = page.posts("/api/sessions", new).await.is(201).json();
    let id = made["id"].as_str().unwrap();
    let mut mia = joins(&page, &format!("?session={id}")).await;
    mia.prompts(&format!("/echo {CANARY}")).await;
    mia.sees_run_end().await;
    let mut tom = joins(&gateway.logged_in("tom").await, "").await;
    tom.prompts("/echo hello").await;
    tom.sees_run_end().await;

    let of_mia = sessions(&gateway, &["--user", "mia"]);
    let [listed] = &of_mia[..] else {
        panic!("{of_mia:?}")
    };
    let expected = [
        ("id", json!(id)),
        ("owner", json!("mia")),
        ("agent", json!("demo")),
        ("title", json!("Repair the roof")),
        ("status", json!("idle")),
        ("messageCount", json!(2)),
        ("createdAt", made["createdAt"].clone()),
    ];
    for (name, value) in expected {
        assert_eq!(listed[name], value, "{name} in {listed}");
    }
    assert!(listed["updatedAt"].is_string(), "{listed}");
    let all = sessions(&gateway, &[]);
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0]["id"], tom.session(), "the newest change first");

    let table = gateway.prints(&["session", "list"]);
    assert!(table.starts_with("ID "), "{table}");
    let line = table.lines().find(|line| line.starts_with(id)).unwrap();
    assert!(line.ends_with("Repair the roof"), "{line}");
    for shown in [table, format!("{all:?}")] {
        assert!(!shown.contains(CANARY), "{shown}");
    }
}

#[tokio::test]
async fn ending_a_session_disconnects_its_connections_and_no_others() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let (page, root) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("root").await,
    );
    let mut mia = joins(&page, "").await;
    mia.prompts("/hang").await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let id = mia.session();
    let mut second = joins(&page, &format!("?session={id}")).await;
    let mut other = joins(&page, "").await;
    other.prompts("/echo hello").await;
    other.sees_run_end().await;

    let shown = gateway.prints(&["session", "end", &id, "--yes"]);
    assert!(shown.contains(&id) && shown.contains("mia"), "{shown}");
    assert_eq!(mia.sees_close().await.code, 4409);
    assert_eq!(second.sees_close().await.code, 4409);
    other.sees_nothing().await;
    page.me().await.is(200);
    let route = format!("/api/sessions/{id}");
    page.gets(&route).await.refuses(404, "NOT_FOUND");
    assert_eq!(sessions(&gateway, &[]).len(), 1);

    let log = root.gets("/api/admin/audit?action=session.ended").await;
    let log = log.is(200).json();
    let acts = log["acts"].as_array().unwrap();
    assert_eq!(acts.len(), 1, "{log}");
    assert_eq!(
        (&acts[0]["actor"], &acts[0]["target"]),
        (&json!("(operator)"), &json!(id))
    );
}

#[tokio::test]
async fn a_session_can_be_ended_offline_and_only_once() {
    let mut gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let made = page.posts("/api/sessions", json!({})).await.is(201).json();
    let id = made["id"].as_str().unwrap();
    gateway.kill();
    // Standard input is no terminal: there is no confirmation prompt.
    gateway.prints(&["session", "end", id]);
    let unknown = "ses_0193f7c4a1b27c3d8e4f5a6b7c8d9e0f";
    for (id, expected) in [(id, "has ended already"), (unknown, "there is no session")] {
        let failed = gateway.runs(&["session", "end", id, "--yes"]);
        let shown = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{shown}");
        assert!(shown.contains(expected) && shown.contains(id), "{shown}");
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }
    gateway.restart();
    let page = gateway.logged_in("root").await;
    let route = format!("/api/sessions/{id}");
    page.gets(&route).await.refuses(404, "NOT_FOUND");
    let log = page.gets("/api/admin/audit?action=session.ended").await;
    assert_eq!(log.json()["acts"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn doctor_names_the_problem_and_the_fix() {
    let gateway = Gateway::start().await;
    let findings: Value = serde_json::from_str(&gateway.prints(&["doctor", "--json"])).unwrap();
    let what = |name: &str| {
        let findings = findings.as_array().unwrap();
        findings
            .iter()
            .find(|finding| finding["what"] == name)
            .unwrap_or_else(|| panic!("{name}"))
            .clone()
    };
    for name in [
        "configuration",
        "database",
        "accounts",
        "gateway",
        "data directory",
    ] {
        assert_eq!(what(name)["verdict"], "ok", "{}", what(name));
    }
    let dir = tempfile::tempdir().unwrap();
    let taken = gateway.address().to_string();
    let sick = program(dir.path(), &["doctor", "--listen", &taken], &[]);
    assert_eq!(sick.status.code(), Some(1));
    let shown = String::from_utf8(sick.stdout).unwrap();
    assert!(
        shown.contains("PROBLEM") && shown.contains("--listen"),
        "{shown}"
    );
    assert!(shown.contains("setup-url"), "{shown}");
}

#[tokio::test]
async fn health_without_a_gateway_fails() {
    let dir = tempfile::tempdir().unwrap();
    let free = format!("127.0.0.1:{}", free_port());
    let failed = program(dir.path(), &["health", "--listen", &free], &[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("is it running?"));
}

#[tokio::test]
async fn health_fails_if_the_gateway_closes_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let hanging_up = std::thread::spawn(move || {
        for stream in listener.incoming().take(10) {
            drop(stream);
        }
    });
    for _ in 0..10 {
        let failed = program(dir.path(), &["health", "--listen", &address], &[]);
        assert_eq!(failed.status.code(), Some(1));
        assert!(!failed.stderr.is_empty());
    }
    hanging_up.join().unwrap();
}

#[tokio::test]
async fn a_backup_of_a_running_gateway_can_be_started_from() {
    let gateway = Gateway::start().await;
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("switchboard.db");
    let copied = gateway.runs(&["backup", file.to_str().unwrap()]);
    if gateway.is_on_postgres() {
        assert_eq!(copied.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&copied.stderr).contains("pg_dump"));
        return;
    }
    assert!(copied.status.success());
    let dir = target.path().to_str().unwrap();
    let users = program(target.path(), &["user", "list", "--data-dir", dir], &[]);
    assert!(String::from_utf8_lossy(&users.stdout).contains("root"));
    let again = gateway.runs(&["backup", file.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
}

#[tokio::test]
async fn migrate_prints_the_schema_version() {
    let gateway = Gateway::start().await;
    let shown = gateway.prints(&["migrate"]);
    let migrations = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/sqlite");
    let files = std::fs::read_dir(migrations).unwrap().flatten();
    let numbers = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        name.split('_').next()?.parse::<u32>().ok()
    });
    let newest = format!("schema version {}", numbers.max().unwrap());
    assert!(shown.contains(&newest), "{shown}");
    assert!(!shown.contains(PASSWORD));
}
