//! Statements for one-time links and tickets.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::users::{end_logins, insert, is_taken, store_password};
use super::{Backend, Connection, audit, millis, now, optional_parsed, parsed, time, user};
use crate::domain::account::User;
use crate::domain::audit::{Action, Actor, AuditContext, AuditEntry};
use crate::domain::id::LoginId;
use crate::store::error::StoreError;
use crate::store::one_time_links::{
    Invitation, LinkKind, NewLink, OneTimeLinks, Redeemed, SetUpError,
};
use crate::store::users::{KeepLogin, NewUser};

#[async_trait]
impl OneTimeLinks for Backend {
    async fn issue_link(&self, link: &NewLink, entry: &AuditEntry) -> Result<(), StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let (kind, user) = columns(link.kind);
        sqlx::query("delete from one_time_links where kind = $1 and coalesce(user_id, '') = $2")
            .bind(kind)
            .bind(user.unwrap_or_default())
            .execute(&mut *tx)
            .await?;
        store(&mut tx, link, &entry.context).await?;
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn issue_ticket(
        &self,
        hash: [u8; 32],
        login: LoginId,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let stored = sqlx::query(
            "insert into one_time_links (hash, kind, login_id, created_at, expires_at)
             select $1, 'ticket', id, $3, $4 from logins where id = $2 and ended_at is null",
        )
        .bind(hash.to_vec())
        .bind(login.to_string())
        .bind(millis(now))
        .bind(millis(expires_at))
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(stored.rows_affected() == 1)
    }

    async fn redeem_ticket(
        &self,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Redeemed>, StoreError> {
        let mut tx = self.begin().await?;
        let login: Option<String> = sqlx::query_scalar(
            "delete from one_time_links where hash = $1 and kind = 'ticket' and expires_at > $2
             returning login_id",
        )
        .bind(hash.to_vec())
        .bind(millis(now))
        .fetch_optional(&mut *tx)
        .await?;
        let row = sqlx::query(
            "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id, logins.id as login_id, logins.session_id,
                    logins.token_expires_at
             from logins join users on users.id = logins.user_id
             where logins.id = $1 and logins.ended_at is null and not users.disabled",
        )
        .bind(login)
        .fetch_optional(&mut *tx)
        .await?;
        tx.commit().await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Redeemed {
            login: parsed(&row, "login_id")?,
            user: user(&row)?,
            session: optional_parsed(&row, "session_id")?,
            token_expires_at: time(&row, "token_expires_at")?,
        }))
    }

    async fn setup_is_open(&self, hash: [u8; 32], now: Timestamp) -> Result<bool, StoreError> {
        let found: Option<i64> = sqlx::query_scalar(
            "select expires_at from one_time_links
             where hash = $1 and kind = 'setup' and expires_at > $2",
        )
        .bind(hash.to_vec())
        .bind(millis(now))
        .fetch_optional(self.reader())
        .await?;
        Ok(found.is_some())
    }

    async fn set_up(
        &self,
        link: Option<[u8; 32]>,
        admin: &NewUser,
        entry: &AuditEntry,
    ) -> Result<(), SetUpError> {
        let mut tx = self.begin_auth_change().await?;
        if admin_exists(&mut tx).await? {
            return Err(SetUpError::AlreadySetUp);
        }
        if let Some(hash) = link
            && !redeem_setup(&mut tx, hash, now(entry)).await?
        {
            return Err(SetUpError::BadLink);
        }
        match insert(&mut tx, admin, entry).await {
            Ok(()) => {}
            Err(error) if is_taken(&error) => return Err(SetUpError::UsernameTaken),
            Err(error) => return Err(SetUpError::Store(error.into())),
        }
        audit(&mut tx, entry).await?;
        Ok(tx.commit().await?)
    }

    async fn invited(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(
            "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id
             from one_time_links join users on users.id = one_time_links.user_id
             where hash = $1 and kind = 'invite' and expires_at > $2 and not disabled",
        )
        .bind(hash.to_vec())
        .bind(millis(now))
        .fetch_optional(self.reader())
        .await?;
        Ok(row.as_ref().map(user).transpose()?)
    }

    async fn invitation(
        &self,
        hash: [u8; 32],
        now: Timestamp,
    ) -> Result<Option<Invitation>, StoreError> {
        let row = sqlx::query(
            "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id, issuer, expires_at
             from one_time_links join users on users.id = one_time_links.user_id
             where hash = $1 and kind = 'invite' and expires_at > $2 and not disabled",
        )
        .bind(hash.to_vec())
        .bind(millis(now))
        .fetch_optional(self.reader())
        .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Invitation {
            user: user(&row)?,
            issuer: row.try_get("issuer")?,
            expires_at: time(&row, "expires_at")?,
        }))
    }

    async fn accept_invite(
        &self,
        hash: [u8; 32],
        password_hash: &str,
        context: &AuditContext,
    ) -> Result<Option<User>, StoreError> {
        let mut tx = self.begin_auth_change().await?;
        let Some(invited) = redeem_invite(&mut tx, hash, millis(context.at)).await? else {
            return Ok(None);
        };
        let context = AuditContext {
            actor: Actor::User(invited.id, invited.username.clone()),
            ..context.clone()
        };
        let entry = context.did(Action::LinkAccepted, invited.id.to_string());
        store_password(&mut tx, invited.id, password_hash, &entry).await?;
        end_logins(&mut tx, invited.id, KeepLogin::None, now(&entry)).await?;
        audit(&mut tx, &entry).await?;
        let changed = find(&mut tx, &invited.id.to_string()).await?;
        tx.commit().await?;
        Ok(Some(changed))
    }
}

fn columns(kind: LinkKind) -> (&'static str, Option<String>) {
    match kind {
        LinkKind::Setup => ("setup", None),
        LinkKind::Invite(user) => ("invite", Some(user.to_string())),
    }
}

async fn store(
    connection: &mut Connection,
    link: &NewLink,
    context: &AuditContext,
) -> sqlx::Result<()> {
    let (kind, user) = columns(link.kind);
    sqlx::query(
        "insert into one_time_links (hash, kind, user_id, created_at, expires_at, issuer)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(link.hash.to_vec())
    .bind(kind)
    .bind(user)
    .bind(millis(context.at))
    .bind(millis(link.expires_at))
    .bind(context.actor.name().to_owned())
    .execute(connection)
    .await?;
    Ok(())
}

async fn admin_exists(connection: &mut Connection) -> sqlx::Result<bool> {
    let found: Option<String> =
        sqlx::query_scalar("select id from users where role = 'admin' limit 1")
            .fetch_optional(connection)
            .await?;
    Ok(found.is_some())
}

async fn redeem_setup(connection: &mut Connection, hash: [u8; 32], at: i64) -> sqlx::Result<bool> {
    let used = sqlx::query(
        "delete from one_time_links where hash = $1 and kind = 'setup' and expires_at > $2",
    )
    .bind(hash.to_vec())
    .bind(at)
    .execute(connection)
    .await?;
    Ok(used.rows_affected() == 1)
}

async fn redeem_invite(
    connection: &mut Connection,
    hash: [u8; 32],
    at: i64,
) -> sqlx::Result<Option<User>> {
    let id: Option<String> = sqlx::query_scalar(
        "delete from one_time_links
         where hash = $1 and kind = 'invite' and expires_at > $2
             and user_id in (select id from users where not disabled)
         returning user_id",
    )
    .bind(hash.to_vec())
    .bind(at)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(id) = id else { return Ok(None) };
    find(connection, &id).await.map(Some)
}

async fn find(connection: &mut Connection, id: &str) -> sqlx::Result<User> {
    let row = sqlx::query(
        "select users.username, users.role, users.password_hash, users.disabled,
             users.generation, users.created_at, users.id as user_id from users where id = $1",
    )
    .bind(id)
    .fetch_one(connection)
    .await?;
    user(&row)
}
