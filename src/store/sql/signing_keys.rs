//! Statements for signing keys.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::{
    Backend, Connection, Row, announce, audit, millis, next_revision, now, optional_time, parsed,
    time,
};
use crate::domain::audit::AuditEntry;
use crate::store::auth_changes::Subject;
use crate::store::error::StoreError;
use crate::store::signing_keys::{OldKeys, SigningKeys, StoredKey};

/// A gateway that has not seen a rotation yet still signs with the old key; this covers those tokens.
const ROTATION_GRACE_MS: i64 = 3_600_000;

#[async_trait]
impl SigningKeys for Backend {
    async fn keys(&self, now: Timestamp) -> Result<Vec<StoredKey>, StoreError> {
        let rows = sqlx::query(
            "select id, private_key, public_key, created_at, retired_at, expires_at from signing_keys where expires_at is null or expires_at > $1
             order by created_at desc, id desc",
        )
        .bind(millis(now))
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(key).collect::<sqlx::Result<_>>()?)
    }

    async fn add_first_key(&self, key: &StoredKey, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let found: Option<String> =
            sqlx::query_scalar("select id from signing_keys where retired_at is null limit 1")
                .fetch_optional(&mut *tx)
                .await?;
        if found.is_none() {
            insert(&mut tx, key).await?;
            announce_rotation(&mut tx, now(entry), entry).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn rotate_key(
        &self,
        key: &StoredKey,
        old: OldKeys,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let last: Option<i64> = sqlx::query_scalar("select max(token_expires_at) from logins")
            .fetch_one(&mut *tx)
            .await?;
        let until = match old {
            OldKeys::Verify => last.unwrap_or(0).max(now(entry)) + ROTATION_GRACE_MS,
            OldKeys::Drop => now(entry),
        };
        retire_all(&mut tx, now(entry), until).await?;
        insert(&mut tx, key).await?;
        announce_rotation(&mut tx, until, entry).await?;
        Ok(tx.commit().await?)
    }
}

async fn retire_all(connection: &mut Connection, at: i64, until: i64) -> sqlx::Result<()> {
    sqlx::query("update signing_keys set retired_at = $1 where retired_at is null")
        .bind(at)
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "update signing_keys set expires_at = $1 where expires_at is null or expires_at > $1",
    )
    .bind(until)
    .execute(connection)
    .await?;
    Ok(())
}

async fn announce_rotation(
    connection: &mut Connection,
    old_until: i64,
    entry: &AuditEntry,
) -> sqlx::Result<()> {
    let revision = next_revision(connection).await?;
    let until = old_until.max(now(entry) + ROTATION_GRACE_MS);
    announce(connection, revision, Subject::Keys, until).await?;
    audit(connection, entry).await
}

async fn insert(connection: &mut Connection, key: &StoredKey) -> sqlx::Result<()> {
    sqlx::query(
        "insert into signing_keys (id, private_key, public_key, created_at) values ($1, $2, $3, $4)
         on conflict (id) do update set retired_at = null, expires_at = null",
    )
    .bind(key.id.to_string())
    .bind(key.private_key.clone())
    .bind(key.public_key.clone())
    .bind(millis(key.created_at))
    .execute(connection)
    .await?;
    Ok(())
}

fn key(row: &Row) -> sqlx::Result<StoredKey> {
    Ok(StoredKey {
        id: parsed(row, "id")?,
        private_key: row.try_get("private_key")?,
        public_key: row.try_get("public_key")?,
        created_at: time(row, "created_at")?,
        retired_at: optional_time(row, "retired_at")?,
        expires_at: optional_time(row, "expires_at")?,
    })
}
