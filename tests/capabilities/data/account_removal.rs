//! Account removal: nothing of the user remains but the name in the audit log.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use crate::actors::{Gateway, Settings, Storage, WsClient};
use crate::postgres::Database;

const CANARY: &str = "qzcanarywv";

/// Creates the user `canny`, who writes the canary wherever text can be written.
async fn writes_canary_everywhere(gateway: &Gateway) {
    gateway.adds_user("canny", "member");
    gateway.adds_user("mia", "member");
    let mut page = gateway.anonymous();
    page.headers.push(("user-agent", format!("{CANARY}/1.0")));
    page.logs_in("canny", crate::actors::PASSWORD).await.is(200);
    let token = page.token.clone().unwrap();
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    for _ in 0..30 {
        member
            .prompts(&format!("/echo {CANARY} and {}", "more of it ".repeat(200)))
            .await;
        member.sees_run_end().await;
    }
    let session = member.session();
    let path = format!("/api/sessions/{session}");
    page.sends("PATCH", &path, Some(json!({ "title": CANARY })))
        .await
        .is(200);
    page.uploads(&session, CANARY, CANARY).await.is(201);
    let grant = Some(json!({ "role": "editor" }));
    page.sends("PUT", &format!("{path}/grants/mia"), grant)
        .await
        .is(200);
    let keyed = json!({
        "type": "SUBMIT_PROMPT", "idempotencyKey": CANARY, "messageId": "m",
        "payload": { "text": "/confirm", "mode": "act" }
    });
    member.writes(&keyed.to_string()).await;
    member.sees("QUESTION").await;
    let workspace = gateway
        .sqlite_file()
        .with_file_name("workspaces")
        .join("canny");
    std::fs::create_dir_all(workspace.join(&session)).unwrap();
    std::fs::write(workspace.join(&session).join("file"), CANARY).unwrap();
    // Another user's data in between, so that database pages are shared.
    let other = gateway.logged_in("mia").await;
    let mut other = WsClient::connects(gateway.address(), &other.token.unwrap(), "").await;
    other.prompts("/echo I stay").await;
    other.sees_run_end().await;
}

/// Files below a directory that contain the canary.
fn files_with_canary(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if let Ok(bytes) = std::fs::read(&path)
                && bytes
                    .windows(CANARY.len())
                    .any(|part| part == CANARY.as_bytes())
            {
                found.push(path);
            }
        }
    }
    found
}

#[tokio::test]
async fn after_account_removal_no_user_data_is_in_the_files_of_a_running_gateway() {
    let gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    assert!(
        files_with_canary(&data).len() >= 3,
        "database, upload, workspace"
    );
    let shown = gateway.prints(&["user", "remove", "canny", "--workspaces"]);
    assert!(shown.contains("workspaces/canny is removed"), "{shown}");
    // The gateway deletes the uploaded files; the command has done the rest.
    let started = Instant::now();
    loop {
        let left = files_with_canary(&data);
        if left.is_empty() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let root = gateway.logged_in("root").await;
    let acts = root.gets("/api/admin/audit?limit=200").await.is(200).text;
    assert!(
        acts.contains("user.removed") && acts.contains("canny"),
        "the log keeps the name"
    );
    let mia = gateway.logged_in("mia").await;
    let found = mia.gets("/api/sessions?q=stay").await.is(200).json();
    assert_eq!(found["sessions"].as_array().unwrap().len(), 1, "{found}");
    super::passes_integrity_check(&gateway.sqlite_file()).await;
}

#[tokio::test]
async fn account_removal_over_http_leaves_no_user_data_either() {
    let gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let root = gateway.logged_in("root").await;
    let users = root.gets("/api/admin/users").await.is(200).json();
    let list = users["users"].as_array().unwrap();
    let canny = list
        .iter()
        .find(|user| user["username"] == "canny")
        .unwrap();
    let path = format!("/api/admin/users/{}", canny["id"].as_str().unwrap());
    root.sends("DELETE", &path, None).await.is(204);
    let started = Instant::now();
    loop {
        // Workspaces stay until the operator decides.
        let mut left = files_with_canary(&data);
        left.retain(|path| !path.starts_with(data.join("workspaces")));
        if left.is_empty() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every table that contains one of these words.
async fn tables_with(url: &str, words: &[&str]) -> Vec<String> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables where table_schema = 'public'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(tables.len() > 12, "{tables:?}");
    let mut found = Vec::new();
    for table in tables {
        let rows = sqlx::query(AssertSqlSafe(format!("select t::text from {table} as t")))
            .fetch_all(&mut connection)
            .await
            .unwrap();
        let holds = rows.iter().any(|row| {
            let text: String = row.get(0);
            words.iter().any(|word| text.contains(word))
        });
        if holds {
            found.push(table);
        }
    }
    found
}

#[tokio::test]
async fn after_account_removal_no_user_data_is_in_any_table() {
    let database = Database::create().await;
    let gateway = Settings::new()
        .with_storage(Storage::Postgres(database.url.clone()))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    let hex: Vec<String> = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let hex = hex.concat();
    let words = [CANARY, &hex];
    let before = tables_with(&database.url, &words).await;
    for table in [
        "journal_events",
        "logins",
        "session_texts",
        "attachments",
        "commands",
    ] {
        assert!(before.contains(&table.to_owned()), "{table}: {before:?}");
    }
    gateway.prints(&["user", "remove", "canny", "--workspaces"]);
    assert_eq!(
        tables_with(&database.url, &words).await,
        Vec::<String>::new()
    );
    assert_eq!(tables_with(&database.url, &["canny"]).await, ["audit_log"]);
}

#[tokio::test]
async fn offline_account_removal_leaves_no_user_data_either() {
    let mut gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    gateway.kill();
    let shown = gateway.prints(&["user", "remove", "canny"]);
    assert!(shown.contains("stays in"), "{shown}");
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    std::fs::remove_dir_all(data.join("workspaces")).unwrap();
    assert_eq!(files_with_canary(&data), Vec::<PathBuf>::new());
    let mut connection = SqliteConnection::connect(&gateway.sqlite_file().display().to_string())
        .await
        .unwrap();
    let due: i64 = sqlx::query_scalar("select scrub_due from store_home")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(due, 0);
}

/// A long read transaction, as of a backup.
async fn opens_long_read(database: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new()
        .filename(database)
        .read_only(true);
    let mut reader = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("begin").execute(&mut reader).await.unwrap();
    let texts: i64 = sqlx::query_scalar("select count(*) from session_texts")
        .fetch_one(&mut reader)
        .await
        .unwrap();
    assert!(texts > 0);
    reader
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_blocked_by_a_database_reader_delays_no_request_and_the_gateway_completes_it() {
    let gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let mia = gateway.logged_in("mia").await;
    let path = format!("/api/sessions/{}", mia.creates_session().await);
    let reader = opens_long_read(&gateway.sqlite_file()).await;
    let (mut slowest, mut commits) = (Duration::ZERO, 0);
    let shown = std::thread::scope(|scope| {
        let removal = scope.spawn(|| gateway.prints(&["user", "remove", "canny", "--workspaces"]));
        let writes = async {
            while !removal.is_finished() || commits < 20 {
                let begun = Instant::now();
                let title = Some(json!({ "title": format!("number {commits}") }));
                mia.sends("PATCH", &path, title).await.is(200);
                slowest = slowest.max(begun.elapsed());
                commits += 1;
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(writes));
        removal.join().unwrap()
    });
    assert!(shown.contains("canny is removed"), "{shown}");
    assert!(
        shown.contains("Words of canny may still stand in"),
        "{shown}"
    );
    assert!(shown.contains("The gateway that runs here"), "{shown}");
    assert!(
        slowest < Duration::from_secs(1),
        "one of {commits} commits took {slowest:?}"
    );
    assert!(
        !files_with_canary(&data).is_empty(),
        "the log cannot be empty"
    );
    reader.close().await.unwrap();
    let started = Instant::now();
    while !files_with_canary(&data).is_empty() {
        let left = files_with_canary(&data);
        assert!(started.elapsed() < Duration::from_secs(30), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    super::passes_integrity_check(&gateway.sqlite_file()).await;
}

#[tokio::test]
async fn an_offline_removal_blocked_by_a_reader_is_completed_by_the_next_command() {
    let mut gateway = Settings::new()
        .with_storage(Storage::Sqlite(None))
        .start()
        .await;
    writes_canary_everywhere(&gateway).await;
    gateway.kill();
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let reader = opens_long_read(&gateway.sqlite_file()).await;
    let shown = gateway.prints(&["user", "remove", "canny", "--workspaces"]);
    assert!(
        shown.contains("Words of canny may still stand in"),
        "{shown}"
    );
    assert!(
        shown.contains("Whatever command is run here next"),
        "{shown}"
    );
    assert!(
        !files_with_canary(&data).is_empty(),
        "the log cannot be empty"
    );
    reader.close().await.unwrap();
    gateway.prints(&["user", "list"]);
    assert_eq!(files_with_canary(&data), Vec::<PathBuf>::new());
}
