//! Statements for usage.

use async_trait::async_trait;

use super::journals::as_i64;
use super::sessions::count;
use super::{Backend, Connection};
use crate::domain::id::{SessionId, UserId};
use crate::store::branches::Branches as _;
use crate::store::error::StoreError;
use crate::store::storage_usage::{Usage, UserUsage};

#[async_trait]
impl Usage for Backend {
    async fn usage(&self, user: UserId) -> Result<UserUsage, StoreError> {
        let row = sqlx::query(
            "select count(case when ended_at is null then 1 end) as sessions,
                 cast(coalesce(sum(journal_bytes), 0) as bigint) as journal_bytes,
                 (select cast(coalesce(sum(size_bytes), 0) as bigint) from attachments
                  where owner_id = $1) as attachment_bytes
             from sessions where owner_id = $1",
        )
        .bind(user.to_string())
        .fetch_one(self.reader())
        .await?;
        Ok(UserUsage {
            sessions: count(&row, "sessions")?,
            journal_bytes: count(&row, "journal_bytes")?,
            attachment_bytes: count(&row, "attachment_bytes")?,
        })
    }

    async fn measure_journal(&self, session: SessionId) -> Result<(), StoreError> {
        let bytes = self.journal_bytes(session, u64::MAX).await?;
        let mut tx = self.begin().await?;
        sqlx::query("update sessions set journal_bytes = $2 where id = $1")
            .bind(session.to_string())
            .bind(as_i64(bytes))
            .execute(&mut *tx)
            .await?;
        Ok(tx.commit().await?)
    }
}

/// The bytes of the journal's stored events up to an offset.
pub(super) async fn stored_bytes(
    connection: &mut Connection,
    session: SessionId,
    (after, upto): (u64, u64),
) -> sqlx::Result<u64> {
    let row = sqlx::query(
        "select cast(coalesce(sum(length(body)), 0) as bigint) as bytes from journal_events
         where session_id = $1 and \"offset\" > $2 and \"offset\" <= $3",
    )
    .bind(session.to_string())
    .bind(as_i64(after))
    .bind(as_i64(upto))
    .fetch_one(connection)
    .await?;
    count(&row, "bytes")
}

/// Some of a journal's events were replaced by shorter ones or dropped.
pub(super) async fn shrink_journal(
    connection: &mut Connection,
    session: SessionId,
    bytes: u64,
) -> sqlx::Result<()> {
    sqlx::query(
        "update sessions set journal_bytes =
             case when journal_bytes > $2 then journal_bytes - $2 else 0 end
         where id = $1",
    )
    .bind(session.to_string())
    .bind(as_i64(bytes))
    .execute(connection)
    .await?;
    Ok(())
}
