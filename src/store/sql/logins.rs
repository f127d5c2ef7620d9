//! Statements for logins.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::{
    Backend, Connection, announce, audit, millis, next_revision, now, optional_parsed, parsed,
    time, user,
};
use crate::domain::audit::{Action, AuditContext, AuditEntry};
use crate::domain::id::{LoginId, UserId};
use crate::store::auth_changes::Subject;
use crate::store::error::StoreError;
use crate::store::logins::{
    LoginRow, Logins, NewLogin, RefreshError, Refreshed, Rotation, StartLoginError,
};

#[async_trait]
impl Logins for Backend {
    async fn start_login(&self, new: &NewLogin, entry: &AuditEntry) -> Result<(), StartLoginError> {
        let mut tx = self.begin_auth_change().await?;
        if !insert(&mut tx, new, entry).await? {
            return Err(StartLoginError::AccountChanged);
        }
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn refresh_login(
        &self,
        rotation: &Rotation,
        context: &AuditContext,
    ) -> Result<Refreshed, RefreshError> {
        let mut tx = self.begin_auth_change().await?;
        let refreshed = rotate(&mut tx, rotation, context.at).await?;
        let outcome = match refreshed {
            Some(refreshed) => Ok(refreshed),
            None => match repeat(&mut tx, rotation, context.at).await? {
                Some(refreshed) => Ok(refreshed),
                None => Err(end_if_spent(&mut tx, rotation, context).await?),
            },
        };
        tx.commit().await?;
        outcome
    }

    async fn end_login(
        &self,
        login: LoginId,
        owner: UserId,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let ended = end(&mut tx, login, owner, now(entry)).await?;
        if ended {
            audit(&mut tx, entry).await?;
            tx.commit().await?;
        }
        Ok(ended)
    }

    async fn logins(&self, owner: UserId, now: Timestamp) -> Result<Vec<LoginRow>, StoreError> {
        let rows = sqlx::query(
            "select id, kind, address, user_agent, created_at, last_used_at,
                    coalesce(refresh_expires_at, token_expires_at) as expires_at
             from logins
             where user_id = $1 and ended_at is null
                 and coalesce(refresh_expires_at, token_expires_at) > $2
             order by id desc",
        )
        .bind(owner.to_string())
        .bind(millis(now))
        .fetch_all(self.reader())
        .await?;
        let read = |row| {
            Ok(LoginRow {
                id: parsed(row, "id")?,
                kind: parsed(row, "kind")?,
                address: row.try_get("address")?,
                user_agent: row.try_get("user_agent")?,
                created_at: time(row, "created_at")?,
                last_used_at: time(row, "last_used_at")?,
                expires_at: time(row, "expires_at")?,
            })
        };
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }
}

/// False if the account changed since its password was checked.
async fn insert(
    connection: &mut Connection,
    new: &NewLogin,
    entry: &AuditEntry,
) -> sqlx::Result<bool> {
    let (refresh_hash, refresh_expires_at) = new
        .refresh
        .map(|(hash, expires_at)| (hash.to_vec(), millis(expires_at)))
        .unzip();
    let inserted = sqlx::query(
        "insert into logins (id, user_id, kind, session_id, refresh_hash, refresh_expires_at,
                             token_expires_at, address, user_agent, created_at, last_used_at,
                             device)
         select $1, id, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12
         from users where id = $2 and generation = $3 and not disabled",
    )
    .bind(new.id.to_string())
    .bind(new.user.to_string())
    .bind(new.generation)
    .bind(new.kind.as_str())
    .bind(new.session.map(|id| id.to_string()))
    .bind(refresh_hash)
    .bind(refresh_expires_at)
    .bind(millis(new.token_expires_at))
    .bind(new.address.map(|address| address.to_string()))
    .bind(&new.user_agent)
    .bind(now(entry))
    .bind(&new.device)
    .execute(connection)
    .await?;
    Ok(inserted.rows_affected() == 1)
}

/// Compare and replace in one statement: of two concurrent exchanges one finds nothing.
async fn rotate(
    connection: &mut Connection,
    rotation: &Rotation,
    at: Timestamp,
) -> sqlx::Result<Option<Refreshed>> {
    let login: Option<String> = sqlx::query_scalar(
        "update logins
         set refresh_hash = $2, refresh_expires_at = $3, token_expires_at = $4, last_used_at = $5
         where refresh_hash = $1 and ended_at is null and refresh_expires_at > $5
             and user_id in (select id from users where not disabled)
         returning id",
    )
    .bind(rotation.presented.to_vec())
    .bind(rotation.next.to_vec())
    .bind(millis(rotation.next_expires_at))
    .bind(millis(rotation.token_expires_at))
    .bind(millis(at))
    .fetch_optional(&mut *connection)
    .await?;
    let Some(login) = login else { return Ok(None) };
    sqlx::query("insert into spent_refresh_tokens (hash, login_id, spent_at) values ($1, $2, $3)")
        .bind(rotation.presented.to_vec())
        .bind(&login)
        .bind(millis(at))
        .execute(&mut *connection)
        .await?;
    refreshed(connection, login).await.map(Some)
}

/// The same answer once more: the token was exchanged a moment ago, from this device, and its successor
/// was not used.
async fn repeat(
    connection: &mut Connection,
    rotation: &Rotation,
    at: Timestamp,
) -> sqlx::Result<Option<Refreshed>> {
    let Some(device) = &rotation.device else {
        return Ok(None);
    };
    let login: Option<String> = sqlx::query_scalar(
        "update logins set token_expires_at = $3, last_used_at = $4
         where refresh_hash = $2 and device = $5 and ended_at is null and refresh_expires_at > $4
             and user_id in (select id from users where not disabled)
             and id in (select login_id from spent_refresh_tokens
                        where hash = $1 and spent_at >= $6)
         returning id",
    )
    .bind(rotation.presented.to_vec())
    .bind(rotation.next.to_vec())
    .bind(millis(rotation.token_expires_at))
    .bind(millis(at))
    .bind(device)
    .bind(millis(rotation.repeatable_since))
    .fetch_optional(&mut *connection)
    .await?;
    match login {
        Some(login) => refreshed(connection, login).await.map(Some),
        None => Ok(None),
    }
}

async fn refreshed(connection: &mut Connection, login: String) -> sqlx::Result<Refreshed> {
    let row = sqlx::query(
        "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id, logins.id as login_id, logins.session_id
         from logins join users on users.id = logins.user_id where logins.id = $1",
    )
    .bind(login)
    .fetch_one(connection)
    .await?;
    Ok(Refreshed {
        login: parsed(&row, "login_id")?,
        user: user(&row)?,
        session: optional_parsed(&row, "session_id")?,
    })
}

/// Ends the login of a token that was exchanged before; returns why nothing was refreshed.
async fn end_if_spent(
    connection: &mut Connection,
    rotation: &Rotation,
    context: &AuditContext,
) -> sqlx::Result<RefreshError> {
    let row = sqlx::query(
        "select logins.id as login_id, logins.user_id from spent_refresh_tokens
         join logins on logins.id = spent_refresh_tokens.login_id
         where spent_refresh_tokens.hash = $1",
    )
    .bind(rotation.presented.to_vec())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else {
        return Ok(RefreshError::Unknown);
    };
    let login: LoginId = parsed(&row, "login_id")?;
    let user: UserId = parsed(&row, "user_id")?;
    if end(connection, login, user, millis(context.at)).await? {
        audit(
            connection,
            &context
                .clone()
                .did(Action::RefreshReused, login.to_string()),
        )
        .await?;
    }
    Ok(RefreshError::Reused { user, login })
}

async fn end(
    connection: &mut Connection,
    login: LoginId,
    owner: UserId,
    at: i64,
) -> sqlx::Result<bool> {
    let until: Option<i64> = sqlx::query_scalar(
        "update logins set ended_at = $3 where id = $1 and user_id = $2 and ended_at is null
         returning token_expires_at",
    )
    .bind(login.to_string())
    .bind(owner.to_string())
    .bind(at)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(until) = until else { return Ok(false) };
    let revision = next_revision(connection).await?;
    announce(connection, revision, Subject::Login(login), until).await?;
    Ok(true)
}
