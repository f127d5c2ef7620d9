//! Statements for the session overview. No column here holds user content.

use async_trait::async_trait;
use sqlx::Row as _;

use super::sessions::count;
use super::{Backend, Row, millis, optional_time, parsed, time};
use crate::store::admin_sessions::{
    Counts, SessionFacts, SessionFilter, SessionOverview, SessionStatus,
};
use crate::store::error::StoreError;

#[async_trait]
impl SessionOverview for Backend {
    async fn all_sessions(
        &self,
        filter: &SessionFilter,
        limit: u32,
    ) -> Result<Vec<SessionFacts>, StoreError> {
        let (at, id) = filter.before.map_or((i64::MAX, String::new()), |(at, id)| {
            (millis(at), id.to_string())
        });
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let rows = sqlx::query(
            "select sessions.id, owner_id, username, agent, messages, running,
                 sessions.created_at, sessions.updated_at, archived_at
             from sessions join users on users.id = owner_id
             where ended_at is null
                 and (sessions.updated_at < $1
                     or (sessions.updated_at = $1 and sessions.id < $2))
                 and ($3 = '' or owner_id = $3 or username = $3)
                 and ($4 = '' or agent = $4)
                 and ($5 = '' or $5 = case when archived_at is not null then 'archived'
                     when running then 'running' else 'idle' end)
             order by sessions.updated_at desc, sessions.id desc limit $6",
        )
        .bind(at)
        .bind(id)
        .bind(text(&filter.user))
        .bind(text(&filter.agent))
        .bind(filter.status.map_or("", SessionStatus::as_str))
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        Ok(rows.iter().map(facts).collect::<sqlx::Result<_>>()?)
    }

    async fn counts(&self) -> Result<Counts, StoreError> {
        let row = sqlx::query(
            "select (select count(*) from users) as users,
                 (select count(*) from sessions where ended_at is null) as sessions,
                 (select count(*) from sessions where ended_at is null and running) as running",
        )
        .fetch_one(self.reader())
        .await?;
        Ok(Counts {
            users: count(&row, "users")?,
            sessions: count(&row, "sessions")?,
            running: count(&row, "running")?,
        })
    }
}

fn facts(row: &Row) -> sqlx::Result<SessionFacts> {
    let status = match (optional_time(row, "archived_at")?, row.try_get("running")?) {
        (Some(_), _) => SessionStatus::Archived,
        (None, true) => SessionStatus::Running,
        (None, false) => SessionStatus::Idle,
    };
    Ok(SessionFacts {
        id: parsed(row, "id")?,
        owner: parsed(row, "owner_id")?,
        owner_name: parsed(row, "username")?,
        agent: row.try_get("agent")?,
        status,
        messages: count(row, "messages")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}
