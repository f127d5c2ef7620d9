//! Statements for grants.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Backend, Row, audit, now, parsed, time};
use crate::domain::account::Username;
use crate::domain::audit::AuditEntry;
use crate::domain::grant::GrantRole;
use crate::domain::id::{SessionId, UserId};
use crate::store::error::StoreError;
use crate::store::grants::{GrantRow, Grants, ShareError};

#[async_trait]
impl Grants for Backend {
    async fn grants(&self, session: SessionId) -> Result<Vec<GrantRow>, StoreError> {
        let rows = sqlx::query(
            "select session_grants.session_id, session_grants.user_id, session_grants.role,
             session_grants.granted_by, session_grants.created_at, users.username
             from session_grants join users on users.id = session_grants.user_id
             where session_id = $1 order by users.username",
        )
        .bind(session.to_string())
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(grant).collect::<sqlx::Result<_>>()?)
    }

    async fn share_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        role: GrantRole,
        entry: &AuditEntry,
    ) -> Result<GrantRow, ShareError> {
        let mut tx = self.begin().await?;
        let found: Option<String> = sqlx::query_scalar(
            "select id from sessions where id = $1 and owner_id = $2 and ended_at is null",
        )
        .bind(session.to_string())
        .bind(owner.to_string())
        .fetch_optional(&mut *tx)
        .await?;
        if found.is_none() {
            return Err(ShareError::NoSuchSession);
        }
        let found =
            sqlx::query("select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id from users where username = $1")
                .bind(with.as_str())
                .fetch_optional(&mut *tx)
                .await?;
        let user = found
            .as_ref()
            .map(super::user)
            .transpose()?
            .ok_or(ShareError::NoSuchUser)?;
        if user.id == owner {
            return Err(ShareError::OwnSession);
        }
        if user.disabled {
            return Err(ShareError::DisabledUser);
        }
        sqlx::query(
            "insert into session_grants (session_id, user_id, role, granted_by, created_at)
             values ($1, $2, $3, $4, $5)
             on conflict (session_id, user_id) do update
             set role = excluded.role, granted_by = excluded.granted_by,
                 created_at = excluded.created_at",
        )
        .bind(session.to_string())
        .bind(user.id.to_string())
        .bind(role.as_str())
        .bind(owner.to_string())
        .bind(now(entry))
        .execute(&mut *tx)
        .await?;
        audit(&mut tx, entry).await?;
        tx.commit().await?;
        Ok(GrantRow {
            user: user.id,
            username: user.username,
            role,
            granted_by: owner,
            // Rounded as stored.
            created_at: Timestamp::from_millisecond(now(entry)).unwrap_or(entry.context.at),
        })
    }

    async fn unshare_session(
        &self,
        session: SessionId,
        owner: UserId,
        with: &Username,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let revoked = sqlx::query(
            "delete from session_grants
             where session_id in (
                     select id from sessions
                     where id = $1 and owner_id = $2 and ended_at is null
                 )
                 and user_id in (select id from users where username = $3)",
        )
        .bind(session.to_string())
        .bind(owner.to_string())
        .bind(with.as_str())
        .execute(&mut *tx)
        .await?;
        if revoked.rows_affected() == 0 {
            return Ok(false);
        }
        audit(&mut tx, entry).await?;
        tx.commit().await?;
        Ok(true)
    }
}

fn grant(row: &Row) -> sqlx::Result<GrantRow> {
    Ok(GrantRow {
        user: parsed(row, "user_id")?,
        username: parsed(row, "username")?,
        role: parsed(row, "role")?,
        granted_by: parsed(row, "granted_by")?,
        created_at: time(row, "created_at")?,
    })
}
