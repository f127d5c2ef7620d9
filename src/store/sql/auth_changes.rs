//! Statements about the feed of changes.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{Backend, Row, decode_error, time, word};
use crate::store::changes::{Change, Changes, Subject};
use crate::store::error::{StoreError, StoredWord};

#[async_trait]
impl Changes for Backend {
    async fn changes_after(&self, revision: i64) -> Result<Vec<Change>, StoreError> {
        let rows = sqlx::query(
            "select revision, kind, subject, generation, until from auth_changes
             where revision > $1 order by revision limit 1000",
        )
        .bind(revision)
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(change).collect::<sqlx::Result<_>>()?)
    }
}

fn change(row: &Row) -> sqlx::Result<Change> {
    let kind: String = row.try_get("kind")?;
    let subject = match kind.as_str() {
        "login" => Subject::Login(word(row, "subject")?),
        "user" => Subject::User(word(row, "subject")?, row.try_get("generation")?),
        "keys" => Subject::Keys,
        _ => return Err(decode_error("kind", StoredWord)),
    };
    Ok(Change {
        revision: row.try_get("revision")?,
        subject,
        until: time(row, "until")?,
    })
}
