//! Statements about signing keys.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::{
    Backend, Connection, Row, announce, audit, millis, next_revision, now, optional_time, time,
    word,
};
use crate::domain::act::Act;
use crate::store::changes::Subject;
use crate::store::error::StoreError;
use crate::store::keys::{Keys, StoredKey};

/// A gateway that has not noticed a rotation yet signs with the old key for a moment more; what it
/// signs then is covered by this much.
const UNNOTICED_MILLIS: i64 = 3_600_000;

#[async_trait]
impl Keys for Backend {
    async fn keys(&self, now: Timestamp) -> Result<Vec<StoredKey>, StoreError> {
        let rows = sqlx::query(
            "select * from signing_keys where expires_at is null or expires_at > $1
             order by created_at desc, id desc",
        )
        .bind(millis(now))
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(key).collect::<sqlx::Result<_>>()?)
    }

    async fn add_first_key(&self, key: &StoredKey) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        next_revision(&mut tx).await?;
        let found: Option<String> =
            sqlx::query_scalar("select id from signing_keys where retired_at is null limit 1")
                .fetch_optional(&mut *tx)
                .await?;
        if found.is_none() {
            insert(&mut tx, key).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn rotate_key(&self, key: &StoredKey, act: &Act) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        let revision = next_revision(&mut tx).await?;
        let last: Option<i64> = sqlx::query_scalar("select max(token_expires_at) from logins")
            .fetch_one(&mut *tx)
            .await?;
        let until = last.unwrap_or(0).max(now(act)) + UNNOTICED_MILLIS;
        sqlx::query(
            "update signing_keys set retired_at = $1, expires_at = $2 where retired_at is null",
        )
        .bind(now(act))
        .bind(until)
        .execute(&mut *tx)
        .await?;
        insert(&mut tx, key).await?;
        announce(&mut tx, revision, Subject::Keys, until).await?;
        audit(&mut tx, act).await?;
        Ok(tx.commit().await?)
    }
}

async fn insert(connection: &mut Connection, key: &StoredKey) -> sqlx::Result<()> {
    sqlx::query(
        "insert into signing_keys (id, private_key, public_key, created_at) values ($1, $2, $3, $4)",
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
        id: word(row, "id")?,
        private_key: row.try_get("private_key")?,
        public_key: row.try_get("public_key")?,
        created_at: time(row, "created_at")?,
        retired_at: optional_time(row, "retired_at")?,
        expires_at: optional_time(row, "expires_at")?,
    })
}
