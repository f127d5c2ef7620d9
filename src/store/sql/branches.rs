//! Statements for branches.

use std::sync::LazyLock;

use async_trait::async_trait;

use super::journals::{as_i64, insert_command, insert_events, newest};
use super::sessions::count;
use super::{Backend, Connection, SHARE_LOCK, millis};
use crate::domain::id::SessionId;
use crate::store::branches::{BranchError, Branches, NewBranch};
use crate::store::error::StoreError;
use crate::store::journals::number;

/// Locks the source session: its events do not change until the transaction ends.
static INSERT_SESSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "insert into sessions (id, owner_id, agent, title, epoch, head, compacted, messages,
             last_prompt, created_at, updated_at, texts_from, texts_upto,
             first_prompt, renamed, branched_from)
         select $1, owner_id, agent, $3, $4, $5,
             case when compacted < $6 then compacted else $6 end, $7, $8, $9, $9, $2, $6,
             first_prompt, renamed, $2
         from sessions where id = $2 and owner_id = $10 and ended_at is null{SHARE_LOCK}"
    )
});

#[async_trait]
impl Branches for Backend {
    async fn journal_bytes(&self, session: SessionId, upto: u64) -> Result<u64, StoreError> {
        // Read first: an event flushed meanwhile is found twice, and counted once.
        let pending = self.pending_after(session, 0, u32::MAX, usize::MAX);
        let row = sqlx::query(
            "select cast(coalesce(sum(length(body)), 0) as bigint) as bytes,
                 coalesce(max(\"offset\"), 0) as newest
             from journal_events where session_id = $1 and \"offset\" <= $2",
        )
        .bind(session.to_string())
        .bind(as_i64(upto))
        .fetch_one(self.reader())
        .await?;
        let newest = count(&row, "newest")?;
        let newer = pending
            .iter()
            .filter(|event| event.offset > newest && event.offset <= upto);
        let pending: usize = newer.map(|event| event.body.len()).sum();
        Ok(count(&row, "bytes")? + pending as u64)
    }

    async fn branch(&self, new: &NewBranch) -> Result<(), BranchError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin_long().await?;
        journal_tx.flush(&mut tx).await?;
        let made = make(&mut tx, new).await?;
        if let Some(refused) = made {
            return Err(refused);
        }
        journal_tx.commit(tx).await?;
        Ok(())
    }

    async fn copy_texts(&self, branch: SessionId) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let copied = sqlx::query(COPY_TEXTS)
            .bind(branch.to_string())
            .bind(TEXT_BATCH)
            .bind(TEXT_BATCH_BYTES)
            .execute(&mut *tx)
            .await?;
        let more = copied.rows_affected() > 0;
        if !more {
            sqlx::query(
                "update sessions set texts_from = null, texts_upto = null
                 where id = $1 and texts_from is not null",
            )
            .bind(branch.to_string())
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await?;
        Ok(more)
    }
}

/// Texts per transaction and their total size (except for a single longer one): indexing is slow,
/// and others write in between.
const TEXT_BATCH: i64 = 64;
const TEXT_BATCH_BYTES: i64 = 1024 * 1024;

/// Continues after the last copied text.
const COPY_TEXTS: &str = "with wish as (
        select texts_from, texts_upto, coalesce((
            select max(\"offset\") from session_texts
            where session_id = $1 and \"offset\" <= texts_upto
        ), 0) as done
        from sessions where id = $1 and texts_from is not null and ended_at is null
    ),
    next as (
        select \"offset\", length(text) as size
        from session_texts join wish on session_id = texts_from
        where \"offset\" > done and \"offset\" <= texts_upto order by \"offset\" limit $2
    ),
    sums as (
        select \"offset\", sum(size) over (order by \"offset\") - size as bytes_before from next
    )
    insert into session_texts (session_id, owner, \"offset\", text)
    select $1, owner, \"offset\", text from session_texts join wish on session_id = texts_from
    where \"offset\" > done
        and \"offset\" <= (select max(\"offset\") from sums where bytes_before < $3)";

const INSERT_COMMAND_ONCE: &str =
    "insert into commands (session_id, idempotency_key, digest, outcome, created_at)
     values ($1, $2, $3, $4, $5) on conflict do nothing";

/// Inserts a branch, or returns why not; then the transaction must not be committed.
async fn make(connection: &mut Connection, new: &NewBranch) -> sqlx::Result<Option<BranchError>> {
    if !insert_session(connection, new).await? {
        return Ok(Some(BranchError::NotFound));
    }
    let (session, upto) = (new.session.id, as_i64(new.upto));
    sqlx::query(
        "insert into journal_events (session_id, \"offset\", at, body)
         select $1, \"offset\", at, body from journal_events
         where session_id = $2 and \"offset\" <= $3",
    )
    .bind(session.to_string())
    .bind(new.from.to_string())
    .bind(upto)
    .execute(&mut *connection)
    .await?;
    let copied = newest(connection, session).await?;
    // Without any events, the snapshot covers them.
    if copied != new.upto && copied != 0 {
        return Ok(Some(BranchError::Changed));
    }
    copy_attachments(connection, new).await?;
    let closing: Vec<_> = number(session, new.upto, &new.closing).collect();
    insert_events(connection, &closing).await?;
    sqlx::query(
        "update sessions set journal_bytes = (
             select coalesce(sum(length(body)), 0) from journal_events where session_id = $1
         ) where id = $1",
    )
    .bind(session.to_string())
    .execute(&mut *connection)
    .await?;
    sqlx::query("insert into session_snapshots (session_id, \"offset\", body) values ($1, $2, $3)")
        .bind(session.to_string())
        .bind(as_i64(new.head()))
        .bind(new.snapshot.clone())
        .execute(&mut *connection)
        .await?;
    let now = millis(new.session.created_at);
    if let Some(command) = &new.command {
        let recorded = insert_command(INSERT_COMMAND_ONCE, new.from, command, now);
        if recorded.execute(connection).await?.rows_affected() == 0 {
            return Ok(Some(BranchError::Repeated));
        }
    }
    Ok(None)
}

/// The copied prompts refer to attachments by id: the branch has them under the same ids.
async fn copy_attachments(connection: &mut Connection, new: &NewBranch) -> sqlx::Result<()> {
    sqlx::query(
        "insert into attachments (id, session_id, owner_id, content_hash, name, media_type,
                                  size_bytes, created_at)
         select id, $1, owner_id, content_hash, name, media_type, size_bytes, created_at
         from attachments where session_id = $2",
    )
    .bind(new.session.id.to_string())
    .bind(new.from.to_string())
    .execute(connection)
    .await?;
    Ok(())
}

/// False if there is no session to branch from.
async fn insert_session(connection: &mut Connection, new: &NewBranch) -> sqlx::Result<bool> {
    let made = sqlx::query(INSERT_SESSION.as_str())
        .bind(new.session.id.to_string())
        .bind(new.from.to_string())
        .bind(new.session.title.clone())
        .bind(new.session.epoch.to_string())
        .bind(as_i64(new.head()))
        .bind(as_i64(new.upto))
        .bind(as_i64(new.summary.messages))
        .bind(new.summary.last_prompt.clone())
        .bind(millis(new.session.created_at))
        .bind(new.session.owner.to_string())
        .execute(connection)
        .await?;
    Ok(made.rows_affected() == 1)
}
