//! Somebody who is removed leaves nothing behind but their name in the audit log.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use crate::actors::{Gateway, Member, Settings, Storage};
use crate::postgres::Database;

const CANARY: &str = "qzcanarywv";

/// Somebody who says the word wherever a word can be said.
async fn says_it_everywhere(gateway: &Gateway) {
    gateway.has_user("canny", "member");
    gateway.has_user("mia", "member");
    let mut page = gateway.visitor();
    page.headers.push(("user-agent", format!("{CANARY}/1.0")));
    page.logs_in("canny", crate::actors::PASSWORD).await.is(200);
    let token = page.token.clone().unwrap();
    let mut member = Member::joins(gateway.address(), &token, "").await;
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
    // Somebody else, who stays, in between: pages are shared.
    let other = gateway.browser("mia").await;
    let mut other = Member::joins(gateway.address(), &other.token.unwrap(), "").await;
    other.prompts("/echo I stay").await;
    other.sees_run_end().await;
}

/// Files below a directory with the word in them.
fn files_with_it(dir: &Path) -> Vec<PathBuf> {
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
async fn nothing_of_somebody_who_was_removed_is_in_the_files_of_a_running_gateway() {
    let gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    says_it_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    assert!(
        files_with_it(&data).len() >= 3,
        "database, upload, workspace"
    );
    let told = gateway.says(&["user", "remove", "canny", "--workspaces"]);
    assert!(told.contains("workspaces/canny is removed"), "{told}");
    // The gateway takes the uploaded files away; the command has done the rest.
    let started = Instant::now();
    loop {
        let left = files_with_it(&data);
        if left.is_empty() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let root = gateway.browser("root").await;
    let acts = root.gets("/api/admin/audit?limit=200").await.is(200).text;
    assert!(
        acts.contains("user.removed") && acts.contains("canny"),
        "the log keeps the name"
    );
    let mia = gateway.browser("mia").await;
    let found = mia.gets("/api/sessions?q=stay").await.is(200).json();
    assert_eq!(found["sessions"].as_array().unwrap().len(), 1, "{found}");
    super::is_whole(&gateway.sqlite_file()).await;
}

#[tokio::test]
async fn an_administrator_who_removes_somebody_over_http_leaves_no_more_of_them() {
    let gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    says_it_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let root = gateway.browser("root").await;
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
        // What agents made stays until somebody decides about it.
        let mut left = files_with_it(&data);
        left.retain(|path| !path.starts_with(data.join("workspaces")));
        if left.is_empty() {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every table, and whether the word or the name is in it.
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
async fn nothing_of_somebody_who_was_removed_is_in_any_table() {
    let database = Database::create().await;
    let gateway = Settings::new()
        .storing(Storage::Postgres(database.url.clone()))
        .start()
        .await;
    says_it_everywhere(&gateway).await;
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
    gateway.says(&["user", "remove", "canny", "--workspaces"]);
    assert_eq!(
        tables_with(&database.url, &words).await,
        Vec::<String>::new()
    );
    assert_eq!(tables_with(&database.url, &["canny"]).await, ["audit_log"]);
}

#[tokio::test]
async fn nothing_is_left_if_no_gateway_runs_either() {
    let mut gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    says_it_everywhere(&gateway).await;
    gateway.kill();
    let told = gateway.says(&["user", "remove", "canny"]);
    assert!(told.contains("stays in"), "{told}");
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    std::fs::remove_dir_all(data.join("workspaces")).unwrap();
    assert_eq!(files_with_it(&data), Vec::<PathBuf>::new());
    let mut connection = SqliteConnection::connect(&gateway.sqlite_file().display().to_string())
        .await
        .unwrap();
    let due: i64 = sqlx::query_scalar("select scrub_due from store_home")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(due, 0);
}

/// Somebody who reads the database and takes their time, as a backup does.
async fn reads_for_long(database: &Path) -> SqliteConnection {
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
async fn nobody_waits_for_a_removal_that_waits_for_a_reader_and_the_gateway_ends_it() {
    let gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    says_it_everywhere(&gateway).await;
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let mia = gateway.browser("mia").await;
    let path = format!("/api/sessions/{}", mia.opens_a_session().await);
    let reader = reads_for_long(&gateway.sqlite_file()).await;
    let (mut slowest, mut commits) = (Duration::ZERO, 0);
    let told = std::thread::scope(|scope| {
        let removal = scope.spawn(|| gateway.says(&["user", "remove", "canny", "--workspaces"]));
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
    assert!(told.contains("canny is removed"), "{told}");
    assert!(told.contains("Words of canny may still stand in"), "{told}");
    assert!(told.contains("The gateway that runs here"), "{told}");
    assert!(
        slowest < Duration::from_secs(1),
        "one of {commits} commits took {slowest:?}"
    );
    assert!(!files_with_it(&data).is_empty(), "the log cannot be empty");
    reader.close().await.unwrap();
    let started = Instant::now();
    while !files_with_it(&data).is_empty() {
        let left = files_with_it(&data);
        assert!(started.elapsed() < Duration::from_secs(30), "{left:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    super::is_whole(&gateway.sqlite_file()).await;
}

#[tokio::test]
async fn without_a_gateway_the_next_command_ends_a_removal_that_waited_for_a_reader() {
    let mut gateway = Settings::new().storing(Storage::Sqlite(None)).start().await;
    says_it_everywhere(&gateway).await;
    gateway.kill();
    let data = gateway.sqlite_file().parent().unwrap().to_owned();
    let reader = reads_for_long(&gateway.sqlite_file()).await;
    let told = gateway.says(&["user", "remove", "canny", "--workspaces"]);
    assert!(told.contains("Words of canny may still stand in"), "{told}");
    assert!(told.contains("Whatever command is run here next"), "{told}");
    assert!(!files_with_it(&data).is_empty(), "the log cannot be empty");
    reader.close().await.unwrap();
    gateway.says(&["user", "list"]);
    assert_eq!(files_with_it(&data), Vec::<PathBuf>::new());
}
