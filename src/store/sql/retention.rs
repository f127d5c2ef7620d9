//! Statements for retention.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::journals::{as_i64, newest};
use super::sessions::{count, drop_attachments};
use super::storage_usage::{shrink_journal, stored_bytes};
use super::{Backend, audit, millis, optional_time, parsed, restore_detection, search, time};
use crate::domain::audit::AuditEntry;
use crate::domain::id::SessionId;
use crate::store::error::StoreError;
use crate::store::journals::StoredEvent;
use crate::store::retention::{JournalFacts, Retention};

#[async_trait]
impl Retention for Backend {
    async fn journals(
        &self,
        after: Option<SessionId>,
        limit: u32,
    ) -> Result<Vec<JournalFacts>, StoreError> {
        let rows = sqlx::query(
            "select id, head, compacted, updated_at, ended_at,
                 (ended_at is null and texts_from is not null) as lacks_texts,
                 (ended_at is not null and exists (
                      select 1 from session_texts where session_id = sessions.id
                 )) as has_old_texts,
                 (select at from journal_events where session_id = sessions.id
                  order by \"offset\" limit 1) as oldest,
                 (select max(\"offset\") from journal_events
                  where session_id = sessions.id) as newest
             from sessions where id > $1 order by id limit $2",
        )
        .bind(after.map_or_else(String::new, |id| id.to_string()))
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        let read = |row| {
            Ok(JournalFacts {
                session: parsed(row, "id")?,
                head: self.head(row)?,
                compacted: count(row, "compacted")?,
                oldest: optional_time(row, "oldest")?,
                updated_at: time(row, "updated_at")?,
                ended_at: optional_time(row, "ended_at")?,
                lacks_texts: row.try_get("lacks_texts")?,
                has_old_texts: row.try_get("has_old_texts")?,
            })
        };
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }

    async fn compact_journal(
        &self,
        session: SessionId,
        after: u64,
        upto: u64,
        events: Option<&[StoredEvent]>,
    ) -> Result<(), StoreError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin().await?;
        journal_tx.flush(&mut tx).await?;
        let mine =
            sqlx::query("update sessions set compacted = $3 where id = $1 and compacted = $2")
                .bind(session.to_string())
                .bind(as_i64(after))
                .bind(as_i64(upto))
                .execute(&mut *tx)
                .await?;
        if mine.rows_affected() == 0 {
            return Ok(());
        }
        let Some(events) = events else {
            return Ok(journal_tx.commit(tx).await?);
        };
        let before = stored_bytes(&mut tx, session, (after, upto)).await?;
        let now: usize = events.iter().map(|event| event.body.len()).sum();
        shrink_journal(&mut tx, session, before.saturating_sub(now as u64)).await?;
        sqlx::query(
            "delete from journal_events
             where session_id = $1 and \"offset\" > $2 and \"offset\" <= $3",
        )
        .bind(session.to_string())
        .bind(as_i64(after))
        .bind(as_i64(upto))
        .execute(&mut *tx)
        .await?;
        for event in events {
            sqlx::query(
                "insert into journal_events (session_id, \"offset\", at, body)
                 values ($1, $2, $3, $4)",
            )
            .bind(session.to_string())
            .bind(as_i64(event.offset))
            .bind(millis(event.at))
            .bind(event.body.clone())
            .execute(&mut *tx)
            .await?;
        }
        Ok(journal_tx.commit(tx).await?)
    }

    async fn last_beyond(
        &self,
        session: SessionId,
        keep_bytes: u64,
    ) -> Result<Option<u64>, StoreError> {
        let last: Option<i64> = sqlx::query_scalar(
            "select max(\"offset\") from (
                 select \"offset\", sum(length(body)) over (order by \"offset\" desc) as bytes
                 from journal_events where session_id = $1
             ) as sizes where bytes > $2",
        )
        .bind(session.to_string())
        .bind(as_i64(keep_bytes))
        .fetch_one(self.reader())
        .await?;
        Ok(last.and_then(|last| u64::try_from(last).ok()))
    }

    async fn last_before(
        &self,
        session: SessionId,
        moment: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let last: Option<i64> = sqlx::query_scalar(
            "select max(\"offset\") from journal_events where session_id = $1 and at < $2",
        )
        .bind(session.to_string())
        .bind(millis(moment))
        .fetch_one(self.reader())
        .await?;
        Ok(last.and_then(|last| u64::try_from(last).ok()))
    }

    async fn drop_events(&self, session: SessionId, upto: u64) -> Result<u64, StoreError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin().await?;
        journal_tx.flush(&mut tx).await?;
        // No offset is reused, even if no event is left.
        let newest = newest(&mut tx, session).await?;
        sqlx::query("update sessions set head = $2 where id = $1 and head < $2")
            .bind(session.to_string())
            .bind(as_i64(newest))
            .execute(&mut *tx)
            .await?;
        let before = stored_bytes(&mut tx, session, (0, u64::MAX)).await?;
        let dropped = sqlx::query(
            "delete from journal_events where session_id = $1 and \"offset\" <= $2
                 and \"offset\" <= (select \"offset\" from session_snapshots where session_id = $1)",
        )
        .bind(session.to_string())
        .bind(as_i64(upto))
        .execute(&mut *tx)
        .await?;
        let kept = stored_bytes(&mut tx, session, (0, u64::MAX)).await?;
        shrink_journal(&mut tx, session, before.saturating_sub(kept)).await?;
        search::drop_texts_upto(&mut tx, session, upto).await?;
        journal_tx.commit(tx).await?;
        Ok(dropped.rows_affected())
    }

    async fn expire_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let ended = sqlx::query(
            "update sessions set ended_at = $3, term = term + 1
             where id = $1 and updated_at < $2 and ended_at is null",
        )
        .bind(session.to_string())
        .bind(millis(untouched_since))
        .bind(millis(now))
        .execute(&mut *tx)
        .await?;
        if ended.rows_affected() == 0 {
            return Ok(false);
        }
        drop_attachments(&mut tx, session).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn remove_session(
        &self,
        session: SessionId,
        untouched_since: Timestamp,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin().await?;
        journal_tx.flush(&mut tx).await?;
        let removed = sqlx::query("delete from sessions where id = $1 and updated_at < $2")
            .bind(session.to_string())
            .bind(millis(untouched_since))
            .execute(&mut *tx)
            .await?;
        if removed.rows_affected() == 0 {
            return Ok(false);
        }
        restore_detection::mark_scrub_due(&mut tx).await?;
        audit(&mut tx, entry).await?;
        journal_tx.commit(tx).await?;
        Ok(true)
    }
}
