//! Statements that remove what an account owns, a little at a time.

use async_trait::async_trait;

use super::users::shut_out;
use super::{Backend, Connection, audit, now, optional_word};
use crate::domain::act::Act;
use crate::domain::id::{SessionId, UserId};
use crate::store::error::StoreError;
use crate::store::removal::Removal;
use crate::store::users::ChangeUserError;

/// Rows of one transaction. A text leaves an index of words too, which takes longer.
const TEXTS: i64 = 32;
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
    let (statement, most) = match what {
        What::Texts => (
            "delete from session_texts where id in (
                 select session_texts.id from session_texts
                     join sessions on sessions.id = session_id
                 where session_id = $1 and ended_at is not null limit $2
             )",
            TEXTS,
        ),
        What::Events => (
            "delete from journal_events where session_id = $1 and \"offset\" <= (
                 select max(\"offset\") from (
                     select \"offset\" from journal_events
                         join sessions on sessions.id = session_id
                     where session_id = $1 and ended_at is not null
                     order by \"offset\" limit $2
                 ) as first
             )",
            EVENTS,
        ),
    };
    let removed = sqlx::query(statement)
        .bind(session.to_string())
        .bind(most)
        .execute(connection)
        .await?;
    Ok(removed.rows_affected())
}
