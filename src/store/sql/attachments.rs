//! Statements for attachments.

use async_trait::async_trait;
use sqlx::Row as _;

use super::sessions::count;
use super::{Backend, Connection, Row, decode_error, millis, parsed, time};
use crate::domain::id::{SessionId, UserId};
use crate::store::attachments::{AddError, AttachmentRow, Attachments, ContentHash, Quotas};
use crate::store::error::StoreError;

#[async_trait]
impl Attachments for Backend {
    async fn add_attachment(&self, new: &AttachmentRow, quotas: Quotas) -> Result<(), AddError> {
        let mut tx = self.begin().await?;
        if !lock_rows(&mut tx, new).await? {
            return Err(AddError::NoSession);
        }
        let stored = totals(&mut tx, new.session, new.owner).await;
        stored?.check(new.size_bytes, quotas)?;
        insert(&mut tx, new).await?;
        Ok(tx.commit().await?)
    }

    async fn check_quotas(
        &self,
        session: SessionId,
        owner: UserId,
        size_bytes: u64,
        quotas: Quotas,
    ) -> Result<(), AddError> {
        let connection = self.reader().acquire().await;
        let mut connection = connection?;
        let stored = totals(&mut connection, session, owner).await;
        stored?.check(size_bytes, quotas)
    }

    async fn attachments(&self, session: SessionId) -> Result<Vec<AttachmentRow>, StoreError> {
        let rows = sqlx::query(
            "select id, session_id, owner_id, content_hash, name, media_type,
                 size_bytes, created_at from attachments where session_id = $1 order by id",
        )
        .bind(session.to_string())
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }

    async fn referenced_hashes(&self, first: u8) -> Result<Vec<ContentHash>, StoreError> {
        let needed = "select distinct content_hash from attachments
            where content_hash >= $1 and content_hash <= $2";
        Ok(hashes(self, needed, first).await?)
    }

    async fn released_hashes(&self, first: u8) -> Result<Vec<ContentHash>, StoreError> {
        let released = "select content_hash from released_contents
            where content_hash >= $1 and content_hash <= $2";
        Ok(hashes(self, released, first).await?)
    }
}

/// Hashes with this first byte.
async fn hashes(
    backend: &Backend,
    statement: &'static str,
    first: u8,
) -> sqlx::Result<Vec<ContentHash>> {
    let rows = sqlx::query(statement)
        .bind([[first].as_slice(), &[0; 31]].concat())
        .bind([[first].as_slice(), &[0xff; 31]].concat())
        .fetch_all(backend.reader())
        .await?;
    rows.iter().map(hash).collect()
}

/// Locks the rows of the user and the session by updating them, so that concurrent uploads are
/// counted one after the other. The user first, in the same order as account removal, to avoid
/// deadlocks. False if there is no such session.
async fn lock_rows(connection: &mut Connection, new: &AttachmentRow) -> sqlx::Result<bool> {
    sqlx::query("update users set generation = generation where id = $1")
        .bind(new.owner.to_string())
        .execute(&mut *connection)
        .await?;
    let held =
        sqlx::query("update sessions set updated_at = $2 where id = $1 and ended_at is null")
            .bind(new.session.to_string())
            .bind(millis(new.created_at))
            .execute(connection)
            .await?;
    Ok(held.rows_affected() == 1)
}

struct StoredTotals {
    files: u64,
    session_bytes: u64,
    user_bytes: u64,
}

impl StoredTotals {
    fn check(&self, size_bytes: u64, quotas: Quotas) -> Result<(), AddError> {
        for (limit, max, actual) in [
            ("sessionAttachments", quotas.session_files, self.files + 1),
            (
                "sessionAttachmentBytes",
                quotas.session_bytes,
                self.session_bytes + size_bytes,
            ),
            (
                "userAttachmentBytes",
                quotas.user_bytes,
                self.user_bytes + size_bytes,
            ),
        ] {
            if actual > max {
                return Err(AddError::OverQuota { limit, max, actual });
            }
        }
        Ok(())
    }
}

async fn totals(
    connection: &mut Connection,
    session: SessionId,
    owner: UserId,
) -> sqlx::Result<StoredTotals> {
    let row = sqlx::query(
        "select
             (select count(*) from attachments where session_id = $1) as files,
             (select cast(coalesce(sum(size_bytes), 0) as bigint)
              from attachments where session_id = $1) as session_bytes,
             (select cast(coalesce(sum(size_bytes), 0) as bigint)
              from attachments where owner_id = $2) as user_bytes",
    )
    .bind(session.to_string())
    .bind(owner.to_string())
    .fetch_one(connection)
    .await?;
    Ok(StoredTotals {
        files: count(&row, "files")?,
        session_bytes: count(&row, "session_bytes")?,
        user_bytes: count(&row, "user_bytes")?,
    })
}

async fn insert(connection: &mut Connection, new: &AttachmentRow) -> sqlx::Result<()> {
    sqlx::query(
        "insert into attachments (id, session_id, owner_id, content_hash, name, media_type,
                                  size_bytes, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(new.id.to_string())
    .bind(new.session.to_string())
    .bind(new.owner.to_string())
    .bind(new.hash.to_vec())
    .bind(&new.name)
    .bind(&new.media_type)
    .bind(i64::try_from(new.size_bytes).unwrap_or(i64::MAX))
    .bind(millis(new.created_at))
    .execute(connection)
    .await?;
    Ok(())
}

fn read(row: &Row) -> sqlx::Result<AttachmentRow> {
    Ok(AttachmentRow {
        id: parsed(row, "id")?,
        session: parsed(row, "session_id")?,
        owner: parsed(row, "owner_id")?,
        hash: hash(row)?,
        name: row.try_get("name")?,
        media_type: row.try_get("media_type")?,
        size_bytes: count(row, "size_bytes")?,
        created_at: time(row, "created_at")?,
    })
}

fn hash(row: &Row) -> sqlx::Result<ContentHash> {
    let bytes: Vec<u8> = row.try_get("content_hash")?;
    let wrong = |_| decode_error("content_hash", "not 32 bytes");
    bytes.try_into().map_err(wrong)
}
