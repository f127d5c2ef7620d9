//! Statements for sessions.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::journals::as_i64;
use super::{
    Backend, Connection, Row, announce, audit, decode_error, millis, next_revision, now,
    optional_parsed, optional_time, parsed, time,
};
use crate::domain::audit::AuditEntry;
use crate::domain::id::{SessionId, UserId};
use crate::store::auth_changes::Subject;
use crate::store::error::StoreError;
use crate::store::sessions::{NewSession, SessionChange, SessionRow, Sessions};

/// Long enough for a gateway that lost the database meanwhile.
const ANNOUNCEMENT_LIFE_MS: i64 = 3_600_000;

#[async_trait]
impl Sessions for Backend {
    async fn create_session(&self, new: &NewSession) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        insert(&mut tx, new).await?;
        Ok(tx.commit().await?)
    }

    async fn session(&self, id: SessionId) -> Result<Option<SessionRow>, StoreError> {
        self.find_session(id, String::new()).await
    }

    async fn session_for(
        &self,
        id: SessionId,
        user: UserId,
    ) -> Result<Option<SessionRow>, StoreError> {
        self.find_session(id, user.to_string()).await
    }

    async fn sessions(
        &self,
        user: UserId,
        before: Option<(Timestamp, SessionId)>,
        limit: u32,
    ) -> Result<Vec<SessionRow>, StoreError> {
        let (at, id) = before.map_or((i64::MAX, String::new()), |(at, id)| {
            (millis(at), id.to_string())
        });
        let rows = sqlx::query(
            // One page of each kind by its own index, then one page of both.
            "with page as (
                 select * from (
                     select id from sessions
                     where owner_id = $1 and ended_at is null
                         and (updated_at < $2 or (updated_at = $2 and id < $3))
                     order by updated_at desc, id desc limit $4
                 ) as own
                 union all
                 select * from (
                     select sessions.id from session_grants
                         join sessions on sessions.id = session_grants.session_id
                     where session_grants.user_id = $1 and ended_at is null
                         and (updated_at < $2 or (updated_at = $2 and sessions.id < $3))
                     order by updated_at desc, sessions.id desc limit $4
                 ) as shared
             )
             select sessions.id, sessions.owner_id, sessions.agent, sessions.title, sessions.epoch, sessions.head,
                 sessions.messages, sessions.last_prompt, sessions.first_prompt, sessions.branched_from, sessions.running, sessions.waiting, sessions.queued,
                 sessions.control, sessions.created_at, sessions.updated_at, sessions.archived_at, sessions.ended_at, users.username as owner_name, session_grants.role as granted, (
                 select max(\"offset\") from journal_events where session_id = sessions.id
             ) as newest, (
                 select count(*) from session_grants as others where others.session_id = sessions.id
             ) as shared_with, session_reads.\"offset\" as read_upto
             from page join sessions on sessions.id = page.id
                 join users on users.id = sessions.owner_id
                 left join session_grants on session_grants.session_id = sessions.id
                     and session_grants.user_id = $1
                 left join session_reads on session_reads.session_id = sessions.id
                     and session_reads.user_id = $1
             order by sessions.updated_at desc, sessions.id desc limit $4",
        )
        .bind(user.to_string())
        .bind(at)
        .bind(id)
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        Ok(rows
            .iter()
            .map(|row| self.session_row(row))
            .collect::<sqlx::Result<_>>()?)
    }

    async fn unfinished_sessions(&self, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let rows = sqlx::query(
            "select id from sessions
             where ended_at is null and (running = $1 or queued > 0) order by updated_at limit $2",
        )
        .bind(true)
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        Ok(rows
            .iter()
            .map(|row| parsed(row, "id"))
            .collect::<sqlx::Result<_>>()?)
    }

    async fn thread(&self, id: SessionId) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("select thread from sessions where id = $1")
            .bind(id.to_string())
            .fetch_optional(self.reader())
            .await?;
        Ok(row.map(|row| row.try_get("thread")).transpose()?.flatten())
    }

    async fn keep_thread(&self, id: SessionId, term: i64, thread: &str) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query("update sessions set thread = $3 where id = $1 and term = $2")
            .bind(id.to_string())
            .bind(term)
            .bind(thread.to_owned())
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(())
    }

    async fn change_session(
        &self,
        id: SessionId,
        owner: UserId,
        change: &SessionChange,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let change = match change {
            SessionChange::Title(title) => sqlx::query(
                "update sessions set title = $3, renamed = $4
                 where id = $1 and owner_id = $2 and ended_at is null",
            )
            .bind(id.to_string())
            .bind(owner.to_string())
            .bind(title.clone())
            .bind(true),
            SessionChange::Archived(archived) => sqlx::query(
                "update sessions set archived_at = $3
                 where id = $1 and owner_id = $2 and ended_at is null",
            )
            .bind(id.to_string())
            .bind(owner.to_string())
            .bind(archived.then(|| millis(now))),
            SessionChange::Control(mode) => sqlx::query(
                "update sessions set control = $3
                 where id = $1 and owner_id = $2 and ended_at is null",
            )
            .bind(id.to_string())
            .bind(owner.to_string())
            .bind(mode.as_str()),
        };
        let changed = change.execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(changed.rows_affected() == 1)
    }

    async fn mark_read(&self, id: SessionId, user: UserId, upto: u64) -> Result<bool, StoreError> {
        let mut tx = self.begin().await?;
        let marked = sqlx::query(
            "insert into session_reads (session_id, user_id, \"offset\")
             select id, $2, $3 from sessions where id = $1 and ended_at is null
             on conflict (session_id, user_id) do update set \"offset\" =
                 case when excluded.\"offset\" > session_reads.\"offset\"
                     then excluded.\"offset\" else session_reads.\"offset\" end",
        )
        .bind(id.to_string())
        .bind(user.to_string())
        .bind(as_i64(upto))
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(marked.rows_affected() == 1)
    }

    async fn end_session(
        &self,
        id: SessionId,
        owner: UserId,
        entry: &AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut tx = self.begin_auth_change().await?;
        // The new term fences the writer.
        let ended = sqlx::query(
            "update sessions set ended_at = $3, term = term + 1, running = $4
             where id = $1 and owner_id = $2 and ended_at is null",
        )
        .bind(id.to_string())
        .bind(owner.to_string())
        .bind(now(entry))
        .bind(false)
        .execute(&mut *tx)
        .await?;
        if ended.rows_affected() == 0 {
            return Ok(false);
        }
        drop_attachments(&mut tx, id).await?;
        announce_end(&mut tx, owner, entry).await?;
        audit(&mut tx, entry).await?;
        tx.commit().await?;
        Ok(true)
    }
}

/// Gateways check the sessions of an announced account. Its generation is unchanged, so every login
/// stays valid.
async fn announce_end(
    connection: &mut Connection,
    owner: UserId,
    entry: &AuditEntry,
) -> sqlx::Result<()> {
    let revision = next_revision(connection).await?;
    let generation: i64 = sqlx::query_scalar("select generation from users where id = $1")
        .bind(owner.to_string())
        .fetch_one(&mut *connection)
        .await?;
    let until = now(entry).saturating_add(ANNOUNCEMENT_LIFE_MS);
    announce(
        connection,
        revision,
        Subject::User(owner, generation),
        until,
    )
    .await
}

/// Attachments of an ended session are unreachable and would count against the owner's quota.
pub(super) async fn drop_attachments(
    connection: &mut Connection,
    session: SessionId,
) -> sqlx::Result<()> {
    sqlx::query("delete from attachments where session_id = $1")
        .bind(session.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn insert(connection: &mut Connection, new: &NewSession) -> sqlx::Result<()> {
    sqlx::query(
        "insert into sessions (id, owner_id, agent, title, renamed, epoch, created_at, updated_at)
         values ($1, $2, $3, $4, $7, $5, $6, $6) on conflict (id) do nothing",
    )
    .bind(new.id.to_string())
    .bind(new.owner.to_string())
    .bind(&new.agent)
    .bind(&new.title)
    .bind(new.epoch.to_string())
    .bind(millis(new.created_at))
    // A title that comes with a new session is its user's.
    .bind(new.title.is_some())
    .execute(connection)
    .await?;
    Ok(())
}

fn optional_count(row: &Row, column: &str) -> sqlx::Result<Option<u64>> {
    let count: Option<i64> = row.try_get(column)?;
    count
        .map(u64::try_from)
        .transpose()
        .map_err(|error| decode_error(column, error))
}

pub(super) fn count(row: &Row, column: &str) -> sqlx::Result<u64> {
    let count: i64 = row.try_get(column)?;
    u64::try_from(count).map_err(|error| decode_error(column, error))
}

impl Backend {
    /// The session with the user's grant; an empty id matches no user.
    async fn find_session(
        &self,
        id: SessionId,
        user: String,
    ) -> Result<Option<SessionRow>, StoreError> {
        let row = sqlx::query(
            "select sessions.id, sessions.owner_id, sessions.agent, sessions.title, sessions.epoch, sessions.head,
                 sessions.messages, sessions.last_prompt, sessions.first_prompt, sessions.branched_from, sessions.running, sessions.waiting, sessions.queued,
                 sessions.control, sessions.created_at, sessions.updated_at, sessions.archived_at, sessions.ended_at, users.username as owner_name, session_grants.role as granted, (
                 select max(\"offset\") from journal_events where session_id = sessions.id
             ) as newest, (
                 select count(*) from session_grants as others where others.session_id = sessions.id
             ) as shared_with, session_reads.\"offset\" as read_upto
             from sessions join users on users.id = sessions.owner_id
                 left join session_grants on session_grants.session_id = sessions.id
                     and session_grants.user_id = $2
                 left join session_reads on session_reads.session_id = sessions.id
                     and session_reads.user_id = $2
             where sessions.id = $1",
        )
        .bind(id.to_string())
        .bind(user)
        .fetch_optional(self.reader())
        .await?;
        Ok(row.as_ref().map(|row| self.session_row(row)).transpose()?)
    }

    /// Offset of the last event: the row lags while an answer streams, old events are dropped, and
    /// some are not in the journal yet.
    pub(super) fn head(&self, row: &Row) -> sqlx::Result<u64> {
        let newest: Option<i64> = row.try_get("newest")?;
        let newest = u64::try_from(newest.unwrap_or(0)).unwrap_or(0);
        let waiting = self.pending_head(parsed(row, "id")?).unwrap_or(0);
        Ok(count(row, "head")?.max(newest).max(waiting))
    }

    pub(super) fn session_row(&self, row: &Row) -> sqlx::Result<SessionRow> {
        Ok(SessionRow {
            head: self.head(row)?,
            id: parsed(row, "id")?,
            owner: parsed(row, "owner_id")?,
            owner_name: parsed(row, "owner_name")?,
            granted: optional_parsed(row, "granted")?,
            control: parsed(row, "control")?,
            agent: row.try_get("agent")?,
            title: row.try_get("title")?,
            epoch: parsed(row, "epoch")?,
            messages: count(row, "messages")?,
            last_prompt: row.try_get("last_prompt")?,
            first_prompt: row.try_get("first_prompt")?,
            branched_from: optional_parsed(row, "branched_from")?,
            shared_with: count(row, "shared_with")?,
            read_upto: optional_count(row, "read_upto")?,
            running: row.try_get("running")?,
            waiting: count(row, "waiting")?,
            queued: count(row, "queued")?,
            created_at: time(row, "created_at")?,
            updated_at: time(row, "updated_at")?,
            archived_at: optional_time(row, "archived_at")?,
            ended_at: optional_time(row, "ended_at")?,
        })
    }
}
