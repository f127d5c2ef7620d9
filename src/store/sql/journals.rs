//! Statements about journals.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::sessions::{count, insert};
use super::{Backend, Connection, Database, Row, millis, time, word};
use crate::domain::id::SessionId;
use crate::store::error::StoreError;
use crate::store::journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, NewEvent, Snapshot,
    StoredEvent,
};

/// Rows of one insert: both databases bound the number of parameters.
const ROWS: usize = 4_000;

#[async_trait]
impl Journals for Backend {
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError> {
        let mut tx = self.begin().await.map_err(StoreError::from)?;
        let row = sqlx::query(
            "update sessions set term = term + 1, lease_node = $2
             where id = $1 and ended_at is null returning term, head, epoch",
        )
        .bind(session.to_string())
        .bind(node)
        .fetch_optional(&mut *tx)
        .await
        .map_err(StoreError::from)?
        .ok_or(ClaimError::NotFound)?;
        let lease = lease(&row).map_err(StoreError::from)?;
        tx.commit().await.map_err(StoreError::from)?;
        Ok(lease)
    }

    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError> {
        let mut tx = self.begin().await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for append in batch {
            outcomes.push(add(&mut tx, append, millis(now)).await?);
        }
        tx.commit().await?;
        Ok(outcomes)
    }

    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        let rows = sqlx::query(
            "select \"offset\", at, body from journal_events
             where session_id = $1 and \"offset\" > $2 order by \"offset\" limit $3",
        )
        .bind(session.to_string())
        .bind(number(after))
        .bind(i64::from(limit))
        .fetch_all(self.reader())
        .await?;
        let read = |row| {
            Ok(StoredEvent {
                offset: count(row, "offset")?,
                at: time(row, "at")?,
                body: row.try_get("body")?,
            })
        };
        Ok(rows.iter().map(read).collect::<sqlx::Result<_>>()?)
    }

    async fn snapshot(&self, session: SessionId) -> Result<Option<Snapshot>, StoreError> {
        let row =
            sqlx::query("select \"offset\", body from session_snapshots where session_id = $1")
                .bind(session.to_string())
                .fetch_optional(self.reader())
                .await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(Snapshot {
            offset: count(&row, "offset")?,
            body: row.try_get("body")?,
        }))
    }

    async fn save_snapshot(
        &self,
        session: SessionId,
        snapshot: &Snapshot,
    ) -> Result<(), StoreError> {
        let mut tx = self.begin().await?;
        sqlx::query(
            "insert into session_snapshots (session_id, \"offset\", body) values ($1, $2, $3)
             on conflict (session_id) do update set \"offset\" = $2, body = $3
             where session_snapshots.\"offset\" < $2",
        )
        .bind(session.to_string())
        .bind(number(snapshot.offset))
        .bind(snapshot.body.clone())
        .execute(&mut *tx)
        .await?;
        Ok(tx.commit().await?)
    }

    async fn command(
        &self,
        session: SessionId,
        key: &str,
    ) -> Result<Option<CommandRecord>, StoreError> {
        let row = sqlx::query(
            "select digest, outcome from commands where session_id = $1 and idempotency_key = $2",
        )
        .bind(session.to_string())
        .bind(key)
        .fetch_optional(self.reader())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let digest: Vec<u8> = row.try_get("digest")?;
        Ok(Some(CommandRecord {
            key: key.to_owned(),
            digest: digest.try_into().unwrap_or_default(),
            outcome: row.try_get("outcome")?,
        }))
    }
}

/// Offsets fit into what a database counts with.
fn number(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

fn lease(row: &Row) -> sqlx::Result<Lease> {
    Ok(Lease {
        term: row.try_get("term")?,
        head: count(row, "head")?,
        epoch: word(row, "epoch")?,
    })
}

/// The head moves only for whoever holds the term and knows where it was: everything else of this
/// journal follows from that one row.
async fn add(
    connection: &mut Connection,
    append: &Append,
    now: i64,
) -> sqlx::Result<Result<(), AppendError>> {
    if let Some(new) = &append.create {
        insert(connection, new).await?;
    }
    let head = append.after + append.events.len() as u64;
    let moved = sqlx::query(
        "update sessions
         set head = $4, updated_at = $5, messages = $6, last_prompt = $7, running = $8,
             title = coalesce($9, title)
         where id = $1 and term = $2 and head = $3 and ended_at is null",
    )
    .bind(append.session.to_string())
    .bind(append.term)
    .bind(number(append.after))
    .bind(number(head))
    .bind(now)
    .bind(number(append.summary.messages))
    .bind(append.summary.last_prompt.clone())
    .bind(append.summary.running)
    .bind(append.summary.title.clone())
    .execute(&mut *connection)
    .await?;
    if moved.rows_affected() == 0 {
        return Ok(Err(AppendError::Fenced));
    }
    insert_events(connection, append).await?;
    if let Some(command) = &append.command {
        insert_command(connection, append.session, command, now).await?;
    }
    Ok(Ok(()))
}

async fn insert_events(connection: &mut Connection, append: &Append) -> sqlx::Result<()> {
    let session = append.session.to_string();
    let numbered: Vec<(u64, &NewEvent)> = (append.after + 1..).zip(&append.events).collect();
    for rows in numbered.chunks(ROWS) {
        let mut statement = sqlx::QueryBuilder::<Database>::new(
            "insert into journal_events (session_id, \"offset\", at, body) ",
        );
        statement.push_values(rows, |mut row, (offset, event)| {
            row.push_bind(session.clone())
                .push_bind(number(*offset))
                .push_bind(millis(event.at))
                .push_bind(event.body.clone());
        });
        statement.build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn insert_command(
    connection: &mut Connection,
    session: SessionId,
    command: &CommandRecord,
    now: i64,
) -> sqlx::Result<()> {
    sqlx::query(
        "insert into commands (session_id, idempotency_key, digest, outcome, created_at)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(session.to_string())
    .bind(command.key.clone())
    .bind(command.digest.to_vec())
    .bind(command.outcome.clone())
    .bind(now)
    .execute(connection)
    .await?;
    Ok(())
}
