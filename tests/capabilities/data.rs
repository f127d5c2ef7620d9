//! Data: backup, restore, move to Postgres, upgrade, and removal of accounts.

mod account_removal;
mod file_ownership;
mod interrupted_restores;
mod postgres_dumps;
mod restores;
mod to_postgres;
mod upgrades;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};

use crate::actors::{Gateway, HttpClient, WsClient};

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The exported journal of a session.
async fn journal(page: &HttpClient, session: &str) -> Vec<Value> {
    let file = page
        .gets(&format!("/api/sessions/{session}/export"))
        .await
        .is(200);
    file.text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Fails unless the journal contains every received event unchanged.
fn contains_events(journal: &[Value], seen: &[Value]) {
    assert!(journal.len() >= seen.len(), "{} events", journal.len());
    for (kept, seen) in journal.iter().zip(seen) {
        assert_eq!(kept, seen);
    }
}

/// Clients with a streaming answer, each in its own session.
async fn streams(gateway: &Gateway, token: &str, count: usize, prompt: &str) -> Vec<WsClient> {
    let mut members = Vec::new();
    for _ in 0..count {
        let mut member = WsClient::connects(gateway.address(), token, "").await;
        member.prompts(prompt).await;
        members.push(member);
    }
    for member in &mut members {
        while member.events.len() < 30 {
            member.receives().await.unwrap();
        }
    }
    members
}

/// Fails unless SQLite's integrity check passes.
async fn passes_integrity_check(file: &Path) {
    let mut connection = SqliteConnection::connect(&file.display().to_string())
        .await
        .unwrap();
    let verdict: String = sqlx::query_scalar("pragma integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(verdict, "ok");
    connection.close().await.unwrap();
}
