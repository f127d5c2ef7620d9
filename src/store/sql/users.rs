//! Statements for accounts.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    Backend, Connection, announce, audit, millis, next_revision, now, optional_parsed,
    restore_detection, user,
};
use crate::domain::account::{Role, User, Username};
use crate::domain::audit::AuditEntry;
use crate::domain::id::{LoginId, UserId};
use crate::store::auth_changes::Subject;
use crate::store::error::StoreError;
use crate::store::users::{
    ChangeUserError, CreateUserError, Credentials, KeepLogin, NewUser, Users,
};

#[async_trait]
impl Users for Backend {
    async fn create_user(&self, new: &NewUser, entry: &AuditEntry) -> Result<(), CreateUserError> {
        let mut tx = self.begin_auth_change().await?;
        insert(&mut tx, new, entry).await.map_err(create_error)?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(
            "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id from users where id = $1",
        )
        .bind(id.to_string())
        .fetch_optional(self.reader())
        .await?;
        Ok(row.as_ref().map(user).transpose()?)
    }

    async fn credentials(&self, username: &Username) -> Result<Option<Credentials>, StoreError> {
        let row = sqlx::query("select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id from users where username = $1")
            .bind(username.as_str())
            .fetch_optional(self.reader())
            .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Credentials {
            user: user(&row)?,
            password_hash: row.try_get("password_hash")?,
        }))
    }

    async fn users(&self, after: Option<&str>, limit: u32) -> Result<Vec<User>, StoreError> {
        let rows = sqlx::query(
            "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id from users where username > $1
             order by username limit $2",
        )
        .bind(after.unwrap_or_default())
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(user).collect::<sqlx::Result<_>>()?)
    }

    async fn has_admin(&self) -> Result<bool, StoreError> {
        let found: Option<String> =
            sqlx::query_scalar("select id from users where role = 'admin' limit 1")
                .fetch_optional(self.reader())
                .await?;
        Ok(found.is_some())
    }

    async fn has_users(&self) -> Result<bool, StoreError> {
        let found: Option<String> = sqlx::query_scalar("select id from users limit 1")
            .fetch_optional(self.reader())
            .await?;
        Ok(found.is_some())
    }

    async fn set_password(
        &self,
        id: UserId,
        password_hash: &str,
        keep: KeepLogin,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        store_password(&mut tx, id, password_hash, entry)
            .await?
            .then_some(())
            .ok_or(ChangeUserError::NotFound)?;
        end_logins(&mut tx, id, keep, now(entry)).await?;
        drop_links(&mut tx, id).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn set_role(
        &self,
        id: UserId,
        role: Role,
        entry: &AuditEntry,
    ) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        let revision = next_revision(&mut tx).await?;
        if role != Role::Admin {
            check_admin_remains(&mut tx, id).await?;
        }
        let generation: i64 = sqlx::query_scalar(
            "update users set role = $2, generation = generation + 1, updated_at = $3
             where id = $1 returning generation",
        )
        .bind(id.to_string())
        .bind(role.as_str())
        .bind(now(entry))
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(ChangeUserError::NotFound)?;
        retire_tokens(&mut tx, revision, id, generation, entry).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn disable_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        disable_and_revoke(&mut tx, id, entry).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn enable_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        set_disabled(&mut tx, id, false, entry).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn remove_user(&self, id: UserId, entry: &AuditEntry) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_auth_change().await?;
        let revision = next_revision(&mut tx).await?;
        check_admin_remains(&mut tx, id).await?;
        retire_tokens(&mut tx, revision, id, i64::MAX, entry).await?;
        let removed = sqlx::query("delete from users where id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        if removed.rows_affected() == 0 {
            return Err(ChangeUserError::NotFound);
        }
        restore_detection::mark_scrub_due(&mut tx).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }
}

pub(super) async fn insert(
    connection: &mut Connection,
    new: &NewUser,
    entry: &AuditEntry,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into users (id, username, role, password_hash, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $5)",
    )
    .bind(new.id.to_string())
    .bind(new.username.as_str())
    .bind(new.role.as_str())
    .bind(&new.password_hash)
    .bind(now(entry))
    .execute(connection)
    .await?;
    Ok(())
}

fn create_error(error: sqlx::Error) -> CreateUserError {
    if is_taken(&error) {
        CreateUserError::UsernameTaken
    } else {
        CreateUserError::Store(error.into())
    }
}

pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error
        .as_database_error()
        .is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// An older link must not undo a later decision.
async fn drop_links(connection: &mut Connection, id: UserId) -> sqlx::Result<()> {
    sqlx::query("delete from one_time_links where user_id = $1")
        .bind(id.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// The new generation refuses a login whose password was checked before the change. False if there
/// is no such account.
pub(super) async fn store_password(
    connection: &mut Connection,
    id: UserId,
    password_hash: &str,
    entry: &AuditEntry,
) -> sqlx::Result<bool> {
    let updated = sqlx::query(
        "update users set password_hash = $2, generation = generation + 1, updated_at = $3
         where id = $1",
    )
    .bind(id.to_string())
    .bind(password_hash)
    .bind(now(entry))
    .execute(connection)
    .await?;
    Ok(updated.rows_affected() > 0)
}

/// Announces each ended login, so that the kept one is not affected.
pub(super) async fn end_logins(
    connection: &mut Connection,
    user: UserId,
    keep: KeepLogin,
    at: i64,
) -> sqlx::Result<()> {
    let kept = match keep {
        KeepLogin::Only(id) => id.to_string(),
        KeepLogin::None => String::new(),
    };
    let rows = sqlx::query(
        "update logins set ended_at = $3 where user_id = $1 and id <> $2 and ended_at is null
         returning id, token_expires_at",
    )
    .bind(user.to_string())
    .bind(kept)
    .bind(at)
    .fetch_all(&mut *connection)
    .await?;
    for row in rows {
        let Some(login) = optional_parsed::<LoginId>(&row, "id")? else {
            continue;
        };
        let revision = next_revision(connection).await?;
        let until = row.try_get("token_expires_at")?;
        announce(connection, revision, Subject::Login(login), until).await?;
    }
    Ok(())
}

/// Fails if the account is the only administrator who can log in.
async fn check_admin_remains(
    connection: &mut Connection,
    without: UserId,
) -> Result<(), ChangeUserError> {
    let usable = sqlx::query(
        "select id from users
         where role = 'admin' and not disabled and password_hash is not null",
    )
    .fetch_all(connection)
    .await?;
    let is_same = |row| optional_parsed::<UserId>(row, "id").map(|id| id == Some(without));
    match usable.as_slice() {
        [only] if is_same(only)? => Err(ChangeUserError::LastAdmin),
        _ => Ok(()),
    }
}

pub(super) async fn disable_and_revoke(
    connection: &mut Connection,
    id: UserId,
    entry: &AuditEntry,
) -> Result<(), ChangeUserError> {
    let revision = next_revision(connection).await?;
    check_admin_remains(connection, id).await?;
    let generation = set_disabled(connection, id, true, entry).await?;
    retire_tokens(connection, revision, id, generation, entry).await?;
    sqlx::query("update logins set ended_at = $2 where user_id = $1 and ended_at is null")
        .bind(id.to_string())
        .bind(now(entry))
        .execute(&mut *connection)
        .await?;
    drop_links(connection, id).await?;
    Ok(())
}

async fn set_disabled(
    connection: &mut Connection,
    id: UserId,
    disabled: bool,
    entry: &AuditEntry,
) -> Result<i64, ChangeUserError> {
    sqlx::query_scalar(
        "update users set disabled = $2, generation = generation + 1, updated_at = $3
         where id = $1 returning generation",
    )
    .bind(id.to_string())
    .bind(disabled)
    .bind(now(entry))
    .fetch_optional(connection)
    .await?
    .ok_or(ChangeUserError::NotFound)
}

/// Announces that tokens below a generation are revoked, until the last one has expired.
async fn retire_tokens(
    connection: &mut Connection,
    revision: i64,
    id: UserId,
    generation: i64,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let last: Option<i64> =
        sqlx::query_scalar("select max(token_expires_at) from logins where user_id = $1")
            .bind(id.to_string())
            .fetch_one(&mut *connection)
            .await?;
    let until = last.unwrap_or_else(|| millis(entry.context.at));
    Ok(announce(connection, revision, Subject::User(id, generation), until).await?)
}
