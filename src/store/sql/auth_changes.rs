//! Statements for the auth change feed.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{Backend, Row, decode_error, parsed, time};
use crate::store::auth_changes::{AuthChange, AuthChanges, Subject};
use crate::store::error::{StoreError, UnknownValue};

#[async_trait]
impl AuthChanges for Backend {
    async fn changes_after(&self, revision: i64) -> Result<Vec<AuthChange>, StoreError> {
        let rows = sqlx::query(
            "select revision, kind, subject, generation, until from auth_changes
             where revision > $1 order by revision limit 1000",
        )
        .bind(revision)
        .fetch_all(self.poller())
        .await?;
        Ok(rows.iter().map(change).collect::<sqlx::Result<_>>()?)
    }
}

fn change(row: &Row) -> sqlx::Result<AuthChange> {
    let kind: String = row.try_get("kind")?;
    let subject = match kind.as_str() {
        "login" => Subject::Login(parsed(row, "subject")?),
        "user" => Subject::User(parsed(row, "subject")?, row.try_get("generation")?),
        "keys" => Subject::Keys,
        _ => return Err(decode_error("kind", UnknownValue)),
    };
    Ok(AuthChange {
        revision: row.try_get("revision")?,
        subject,
        until: time(row, "until")?,
    })
}
