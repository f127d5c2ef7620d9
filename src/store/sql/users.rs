//! Statements about accounts.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    Backend, Connection, announce, audit, home, millis, next_revision, now, optional_word, user,
};
use crate::domain::account::{Role, User, Username};
use crate::domain::act::Act;
use crate::domain::id::{LoginId, UserId};
use crate::store::changes::Subject;
use crate::store::error::StoreError;
use crate::store::users::{
    ChangeUserError, CreateUserError, Credentials, KeepLogin, NewUser, Users,
};

#[async_trait]
impl Users for Backend {
    async fn create_user(&self, new: &NewUser, act: &Act) -> Result<(), CreateUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        insert(&mut tx, new, act).await.map_err(taken)?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
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
        act: &Act,
    ) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        store_password(&mut tx, id, password_hash, act)
            .await
            .map_err(StoreError::from)?
            .then_some(())
            .ok_or(ChangeUserError::NotFound)?;
        end_logins(&mut tx, id, keep, now(act))
            .await
            .map_err(StoreError::from)?;
        drop_links(&mut tx, id).await.map_err(StoreError::from)?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }

    async fn set_role(&self, id: UserId, role: Role, act: &Act) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        let revision = next_revision(&mut tx).await.map_err(StoreError::from)?;
        if role != Role::Admin {
            check_admin_remains(&mut tx, id).await?;
        }
        let generation: i64 = sqlx::query_scalar(
            "update users set role = $2, generation = generation + 1, updated_at = $3
             where id = $1 returning generation",
        )
        .bind(id.to_string())
        .bind(role.as_str())
        .bind(now(act))
        .fetch_optional(&mut *tx)
        .await
        .map_err(StoreError::from)?
        .ok_or(ChangeUserError::NotFound)?;
        retire_tokens(&mut tx, revision, id, generation, act).await?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }

    async fn disable_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        shut_out(&mut tx, id, act).await?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }

    async fn enable_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        set_disabled(&mut tx, id, false, act).await?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }

    async fn remove_user(&self, id: UserId, act: &Act) -> Result<(), ChangeUserError> {
        let mut tx = self.begin_act().await.map_err(StoreError::from)?;
        let revision = next_revision(&mut tx).await.map_err(StoreError::from)?;
        check_admin_remains(&mut tx, id).await?;
        retire_tokens(&mut tx, revision, id, i64::MAX, act).await?;
        let removed = sqlx::query("delete from users where id = $1")
            .bind(id.to_string())
            .execute(&mut *tx)
            .await
            .map_err(StoreError::from)?;
        if removed.rows_affected() == 0 {
            return Err(ChangeUserError::NotFound);
        }
        home::remember_to_scrub(&mut tx)
            .await
            .map_err(StoreError::from)?;
        audit(&mut tx, act).await.map_err(StoreError::from)?;
        Ok(tx.commit().await.map_err(StoreError::from)?)
    }
}

pub(super) async fn insert(
    connection: &mut Connection,
    new: &NewUser,
    act: &Act,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into users (id, username, role, password_hash, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $5)",
    )
    .bind(new.id.to_string())
    .bind(new.username.as_str())
    .bind(new.role.as_str())
    .bind(&new.password_hash)
    .bind(now(act))
    .execute(connection)
    .await?;
    Ok(())
}

fn taken(error: sqlx::Error) -> CreateUserError {
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

/// A link that somebody else may hold must not undo what was decided after it was issued.
async fn drop_links(connection: &mut Connection, id: UserId) -> sqlx::Result<()> {
    sqlx::query("delete from one_time_links where user_id = $1")
        .bind(id.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// A login whose password was checked before the change must not start after it: the new generation
/// keeps it out. False if there is no such account.
pub(super) async fn store_password(
    connection: &mut Connection,
    id: UserId,
    password_hash: &str,
    act: &Act,
) -> sqlx::Result<bool> {
    let updated = sqlx::query(
        "update users set password_hash = $2, generation = generation + 1, updated_at = $3
         where id = $1",
    )
    .bind(id.to_string())
    .bind(password_hash)
    .bind(now(act))
    .execute(connection)
    .await?;
    Ok(updated.rows_affected() > 0)
}

/// Ends logins one by one, so that each is announced and the kept one goes on undisturbed.
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
        let Some(login) = optional_word::<LoginId>(&row, "id")? else {
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
    .await
    .map_err(StoreError::from)?;
    let is_it = |row| optional_word::<UserId>(row, "id").map(|id| id == Some(without));
    match usable.as_slice() {
        [only] if is_it(only).map_err(StoreError::from)? => Err(ChangeUserError::LastAdmin),
        _ => Ok(()),
    }
}

/// Disables an account and ends its logins, inside an act.
pub(super) async fn shut_out(
    connection: &mut Connection,
    id: UserId,
    act: &Act,
) -> Result<(), ChangeUserError> {
    let revision = next_revision(connection).await.map_err(StoreError::from)?;
    check_admin_remains(connection, id).await?;
    let generation = set_disabled(connection, id, true, act).await?;
    retire_tokens(connection, revision, id, generation, act).await?;
    sqlx::query("update logins set ended_at = $2 where user_id = $1 and ended_at is null")
        .bind(id.to_string())
        .bind(now(act))
        .execute(&mut *connection)
        .await
        .map_err(StoreError::from)?;
    drop_links(connection, id).await.map_err(StoreError::from)?;
    Ok(())
}

async fn set_disabled(
    connection: &mut Connection,
    id: UserId,
    disabled: bool,
    act: &Act,
) -> Result<i64, ChangeUserError> {
    sqlx::query_scalar(
        "update users set disabled = $2, generation = generation + 1, updated_at = $3
         where id = $1 returning generation",
    )
    .bind(id.to_string())
    .bind(disabled)
    .bind(now(act))
    .fetch_optional(connection)
    .await
    .map_err(StoreError::from)?
    .ok_or(ChangeUserError::NotFound)
}

/// Announces that tokens from before a generation are worthless, for as long as any could live.
async fn retire_tokens(
    connection: &mut Connection,
    revision: i64,
    id: UserId,
    generation: i64,
    act: &Act,
) -> Result<(), StoreError> {
    let last: Option<i64> =
        sqlx::query_scalar("select max(token_expires_at) from logins where user_id = $1")
            .bind(id.to_string())
            .fetch_one(&mut *connection)
            .await?;
    let until = last.unwrap_or_else(|| millis(act.by.at));
    Ok(announce(connection, revision, Subject::User(id, generation), until).await?)
}
