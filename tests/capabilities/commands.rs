//! The command line.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::actors::{Gateway, PASSWORD, program};

#[tokio::test]
async fn commands_work_without_a_gateway() {
    let mut gateway = Gateway::start().await;
    gateway.kill();
    gateway.has_user("mia", "admin");
    gateway.says(&["user", "disable", "mia"]);
    let users: Value = serde_json::from_str(&gateway.says(&["user", "list", "--json"])).unwrap();
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
    let table = gateway.says(&["user", "list"]);
    assert!(
        table.contains("mia") && table.contains("disabled"),
        "{table}"
    );
    gateway.says(&["user", "enable", "mia"]);
    gateway.restart();
    gateway.browser("mia").await.me().await.is(200);
}

#[tokio::test]
async fn failures_say_what_and_exit_with_one() {
    let gateway = Gateway::start().await;
    gateway.has_user("mia", "member");
    for (arguments, expected) in [
        (vec!["user", "add", "mia"], "taken"),
        (vec!["user", "disable", "nobody"], "nobody"),
        (vec!["token", "create", "--user", "nobody"], "nobody"),
    ] {
        let failed = gateway.runs(&arguments);
        let told = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{told}");
        assert!(
            told.contains(expected) && told.lines().count() == 1,
            "{told}"
        );
    }
    let weak = gateway.hears(&["user", "add", "bob", "--password-stdin"], "short\n");
    assert_eq!(weak.status.code(), Some(1));
}

#[tokio::test]
async fn wrong_usage_exits_with_two() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [
        vec!["nonsense"],
        vec!["user", "add"],
        vec!["user", "add", "a b"],
        vec!["user", "add", "mia", "--role", "root"],
        vec!["token", "create", "--user", "mia", "--ttl", "soon"],
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
async fn every_command_explains_itself() {
    let dir = tempfile::tempdir().unwrap();
    let commands = [
        "serve",
        "user",
        "setup-url",
        "token",
        "key",
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
    }
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_failure() {
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
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {told}");
        assert!(!told.contains("panic"), "{command}: {told}");
    }
}

#[tokio::test]
async fn doctor_says_what_is_wrong_and_how_to_fix_it() {
    let gateway = Gateway::start().await;
    let findings: Value = serde_json::from_str(&gateway.says(&["doctor", "--json"])).unwrap();
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
    let told = String::from_utf8(sick.stdout).unwrap();
    assert!(
        told.contains("PROBLEM") && told.contains("--listen"),
        "{told}"
    );
    assert!(told.contains("setup-url"), "{told}");
}

#[tokio::test]
async fn health_without_a_gateway_fails() {
    let dir = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let failed = program(dir.path(), &["health", "--listen", &free.to_string()], &[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("is it running?"));
}

#[tokio::test]
async fn health_of_a_gateway_that_hangs_up_fails() {
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
async fn a_backup_of_a_running_gateway_can_be_used() {
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
async fn migrate_says_which_schema_there_is() {
    let gateway = Gateway::start().await;
    let told = gateway.says(&["migrate"]);
    assert!(told.contains("schema version 10"), "{told}");
    assert!(!told.contains(PASSWORD));
}
