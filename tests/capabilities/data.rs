//! Data that survives operations: backups, another database, an upgrade. And data that is to be gone.

mod dumps;
mod homes;
mod interruptions;
mod moves;
mod removal;
mod restores;
mod upgrades;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};

use crate::actors::{Browser, Gateway, Member};

/// What a program wrote for people.
fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The whole journal of a session, as the gateway exports it.
async fn journal(page: &Browser, session: &str) -> Vec<Value> {
    let file = page
        .gets(&format!("/api/sessions/{session}/export"))
        .await
        .is(200);
    file.text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Everything that a member saw up to a moment is in a journal, as it was.
fn has_all(journal: &[Value], seen: &[Value]) {
    assert!(journal.len() >= seen.len(), "{} events", journal.len());
    for (kept, seen) in journal.iter().zip(seen) {
        assert_eq!(kept, seen);
    }
}

/// Members who follow answers that are under way, each in a session of their own.
async fn streams(gateway: &Gateway, token: &str, count: usize, prompt: &str) -> Vec<Member> {
    let mut members = Vec::new();
    for _ in 0..count {
        let mut member = Member::joins(gateway.address(), token, "").await;
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

/// SQLite's own check of a file.
async fn is_whole(file: &Path) {
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
