//! Statements that remove what an account owns, a little at a time.

use async_trait::async_trait;

use super::users::shut_out;
use super::{Backend, Connection, audit, now, optional_word};
use crate::domain::act::Act;
use crate::domain::id::{SessionId, UserId};
use crate::store::error::StoreError;
use crate::store::removal::Removal;
use crate::store::users::ChangeUserError;

/// Rows of one transaction. Texts leave an index of words too, which takes longer: no more of them
/// than so many bytes (but one).
const TEXTS: i64 = 64;
const TEXT_BYTES: i64 = 1024 * 1024;
const EVENTS: i64 = 200;
/// So many can go with their account at once.
const FEW_TEXTS: i64 = 64;
const FEW_EVENTS: i64 = 500;

#[async_trait]
impl Removal for Backend {
    async fn owns_much(&self, user: UserId) -> Result<bool, StoreError> {
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
        .bind(FEW_TEXTS)
        .bind(FEW_EVENTS)
        .fetch_one(self.reader())
        .await?)
    }

    async fn close_account(&self, user: UserId, act: &Act) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        shut_out(&mut tx, user, act).await?;
        sqlx::query(
            "update sessions set ended_at = $2, term = term + 1, running = $3
             where owner_id = $1 and ended_at is null",
        )
        .bind(user.to_string())
        .bind(now(act))
        .bind(false)
        .execute(&mut *tx)
        .await
        .map_err(StoreError::from)?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }

    async fn empty_account(&self, user: UserId) -> Result<u64, StoreError> {
        for (statement, what) in [
            (
                "select id from sessions where owner_id = $1 and ended_at is not null and exists (
                     select 1 from session_texts where session_id = sessions.id
                 ) limit 1",
                What::Texts,
            ),
            (
                "select id from sessions where owner_id = $1 and ended_at is not null and exists (
                     select 1 from journal_events where session_id = sessions.id
                 ) limit 1",
                What::Events,
            ),
        ] {
            let found = sqlx::query(statement)
                .bind(user.to_string())
                .fetch_optional(self.reader())
                .await?;
            let session = found.as_ref().map(|row| optional_word(row, "id"));
            if let Some(session) = session.transpose()?.flatten() {
                return self.remove_some(session, what).await;
            }
        }
        Ok(0)
    }

    async fn forget_texts(&self, session: SessionId) -> Result<u64, StoreError> {
        self.remove_some(session, What::Texts).await
    }

    async fn clear_journal(&self, session: SessionId) -> Result<u64, StoreError> {
        self.remove_some(session, What::Events).await
    }
}

/// What leaves a session that has ended.
#[derive(Clone, Copy)]
enum What {
    Texts,
    Events,
}

impl Backend {
    async fn remove_some(&self, session: SessionId, what: What) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let removed = remove_some(&mut tx, session, what).await?;
        tx.commit().await?;
        Ok(removed)
    }
}

async fn remove_some(
    connection: &mut Connection,
    session: SessionId,
    what: What,
) -> sqlx::Result<u64> {
    let statement = match what {
        What::Texts => sqlx::query(
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
        .bind(TEXTS)
        .bind(TEXT_BYTES),
        What::Events => sqlx::query(
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
        .bind(EVENTS),
    };
    let removed = statement.execute(connection).await?;
    Ok(removed.rows_affected())
}
