//! Upgrades: the old binary stops, the new one starts, and no event is lost.

use std::time::Instant;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::stderr_text;
use crate::actors::{Gateway, Settings, Storage, WsClient};
use crate::postgres::Database;

#[tokio::test]
async fn an_upgrade_during_a_run_loses_nothing() {
    let mut gateway = Gateway::start().await;
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut members = super::streams(&gateway, &token, 5, "/stream 150 5").await;
    let stopped = Instant::now();
    gateway.signal("-TERM");
    for member in &mut members {
        assert_eq!(member.sees_close().await.code, 1012, "come back");
    }
    assert_eq!(gateway.exit_code(), Some(0));
    let down = Instant::now();
    gateway.restart();
    let up = down.elapsed();
    for member in &mut members {
        let mut back = WsClient::connects(gateway.address(), &token, &member.position()).await;
        assert_eq!(back.ack["resume"], "replayed");
        let all = |member: &WsClient, back: &WsClient| -> Vec<u64> {
            let mut offsets = member.offsets();
            offsets.extend(back.offsets());
            offsets
        };
        while back.ends().is_empty() && member.ends().is_empty() {
            back.receives().await.unwrap();
        }
        back.sees_nothing().await;
        let offsets = all(member, &back);
        let expected: Vec<u64> = (1..=offsets.len() as u64).collect();
        assert_eq!(offsets, expected, "nothing twice, nothing missing");
        let words: Vec<String> = (1..=150).map(|word| format!("{word} ")).collect();
        let words = words.concat();
        assert_eq!(member.text() + &back.text(), words, "the run had its grace");
        assert_eq!(member.ends().len() + back.ends().len(), 1);
    }
    println!(
        "downtime {:?} of which the new program took {up:?}; the rest was the grace of the runs",
        stopped.elapsed()
    );
}

/// Schema changes that a later version may make, within the rules for migrations.
const LATER: [&str; 4] = [
    "alter table sessions add column later text",
    "alter table users add column later integer not null default 7",
    "create table later (id text not null primary key)",
    "insert into _sqlx_migrations
         (version, description, installed_on, success, checksum, execution_time)
     values (9999, 'later', current_timestamp, true, '', 0)",
];

#[tokio::test]
async fn a_running_gateway_tolerates_a_newer_schema_but_does_not_start_on_it() {
    let database = Database::create().await;
    for storage in [
        Storage::Sqlite(None),
        Storage::Postgres(database.url.clone()),
    ] {
        let on_postgres = matches!(storage, Storage::Postgres(_));
        let mut gateway = Settings::new().with_storage(storage).start().await;
        let token = gateway.logged_in("root").await.token.unwrap();
        let mut member = WsClient::connects(gateway.address(), &token, "").await;
        member.prompts("/echo before").await;
        member.sees_run_end().await;
        for statement in LATER {
            if on_postgres {
                let mut connection = PgConnection::connect(&database.url).await.unwrap();
                let statement = sqlx::query(AssertSqlSafe(statement));
                statement.execute(&mut connection).await.unwrap();
            } else {
                let file = gateway.sqlite_file().display().to_string();
                let mut connection = SqliteConnection::connect(&file).await.unwrap();
                let statement = sqlx::query(AssertSqlSafe(statement));
                statement.execute(&mut connection).await.unwrap();
            }
        }
        // On the open socket, and for new connections.
        member.prompts("/echo afterwards").await;
        member.sees_run_end().await;
        let page = gateway.logged_in("root").await;
        let mut back =
            WsClient::connects(gateway.address(), &token, &member.position_after(0)).await;
        assert_eq!(back.ack["resume"], "replayed");
        while back.ends().len() < 2 {
            back.receives().await.unwrap();
        }
        page.gets("/api/sessions?q=afterwards").await.is(200);
        page.gets("/readyz").await.is(200);
        gateway.signal("-TERM");
        assert_eq!(gateway.exit_code(), Some(0));
        for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["user", "list"]] {
            let refused = gateway.runs(command);
            assert_eq!(refused.status.code(), Some(1));
            let shown = stderr_text(&refused);
            assert!(
                shown.contains("schema version 9999") && shown.contains("start the newer program"),
                "{shown}"
            );
        }
    }
}
