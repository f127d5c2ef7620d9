//! Statements for account removal.

use async_trait::async_trait;

use super::users::disable_and_revoke;
use super::{Backend, Connection, audit, now, optional_parsed};
use crate::domain::audit::AuditEntry;
use crate::domain::id::{SessionId, UserId};
use crate::store::account_removal::AccountRemoval;
use crate::store::error::StoreError;
use crate::store::users::ChangeUserError;

/// Rows per transaction. Texts also leave the search index, which is slower: at most this many
/// bytes of them, except for a single longer one.
const TEXT_BATCH: i64 = 64;
const TEXT_BATCH_BYTES: i64 = 1024 * 1024;
const EVENT_BATCH: i64 = 200;
/// Up to this size an account is deleted in one transaction.
const SMALL_ACCOUNT_TEXTS: i64 = 64;
const SMALL_ACCOUNT_EVENTS: i64 = 500;

#[async_trait]
impl AccountRemoval for Backend {
    async fn is_large_account(&self, user: UserId) -> Result<bool, StoreError> {
        Ok(sqlx::query_scalar(
            "select (select count(*) from (
                 select 1 from session_texts join sessions on sessions.id = session_id
                 where owner_id = $1 limit $2 + 1
             ) as texts) > $2 or (select count(*) from (
                 select 1 from journal_events join sessions on sessions.id = session_id
                 where owner_id = $1 limit $3 + 1
             ) as events) > $3",
        )
        .bind(user.to_string())
        .bind(SMALL_ACCOUNT_TEXTS)
        .bind(SMALL_ACCOUNT_EVENTS)
        .fetch_one(self.reader())
        .await?)
    }

    async fn disable_and_end_sessions(
        &self,
        user: UserId,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        disable_and_revoke(&mut tx, user, entry).await?;
        sqlx::query(
            "update sessions set ended_at = $2, term = term + 1, running = $3
             where owner_id = $1 and ended_at is null",
        )
        .bind(user.to_string())
        .bind(now(entry))
        .bind(false)
        .execute(&mut *tx)
        .await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn remove_account_batch(&self, user: UserId) -> Result<u64, StoreError> {
        for (statement, part) in [
            (
                "select id from sessions where owner_id = $1 and ended_at is not null and exists (
                     select 1 from session_texts where session_id = sessions.id
                 ) limit 1",
                SessionPart::Texts,
            ),
            (
                "select id from sessions where owner_id = $1 and ended_at is not null and exists (
                     select 1 from journal_events where session_id = sessions.id
                 ) limit 1",
                SessionPart::Events,
            ),
        ] {
            let found = sqlx::query(statement)
                .bind(user.to_string())
                .fetch_optional(self.reader())
                .await?;
            let session = found.as_ref().map(|row| optional_parsed(row, "id"));
            if let Some(session) = session.transpose()?.flatten() {
                return self.remove_batch(session, part).await;
            }
        }
        Ok(0)
    }

    async fn remove_text_batch(&self, session: SessionId) -> Result<u64, StoreError> {
        self.remove_batch(session, SessionPart::Texts).await
    }

    async fn remove_event_batch(&self, session: SessionId) -> Result<u64, StoreError> {
        self.remove_batch(session, SessionPart::Events).await
    }
}

#[derive(Clone, Copy)]
enum SessionPart {
    Texts,
    Events,
}

impl Backend {
    async fn remove_batch(&self, session: SessionId, part: SessionPart) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let removed = remove_batch(&mut tx, session, part).await?;
        tx.commit().await?;
        Ok(removed)
    }
}

async fn remove_batch(
    connection: &mut Connection,
    session: SessionId,
    part: SessionPart,
) -> sqlx::Result<u64> {
    let statement = match part {
        SessionPart::Texts => sqlx::query(
            "delete from session_texts where id in (
                 select id from (
                     select id, sum(size) over (order by id) - size as bytes_before from (
                         select session_texts.id, length(text) as size
                         from session_texts join sessions on sessions.id = session_id
                         where session_id = $1 and ended_at is not null
                         order by session_texts.id limit $2
                     ) as first
                 ) as sums where bytes_before < $3
             )",
        )
        .bind(session.to_string())
        .bind(TEXT_BATCH)
        .bind(TEXT_BATCH_BYTES),
        SessionPart::Events => sqlx::query(
            "delete from journal_events where session_id = $1 and \"offset\" <= (
                 select max(\"offset\") from (
                     select \"offset\" from journal_events
                         join sessions on sessions.id = session_id
                     where session_id = $1 and ended_at is not null
                     order by \"offset\" limit $2
                 ) as first
             )",
        )
        .bind(session.to_string())
        .bind(EVENT_BATCH),
    };
    let removed = statement.execute(connection).await?;
    Ok(removed.rows_affected())
}
