//! Statements about journals.

use std::collections::HashSet;

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

/// Rows of one insert, and sessions of one update: both databases bound the number of parameters.
const ROWS: usize = 4_000;
const SESSIONS: usize = 1_000;

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
        for group in groups(batch) {
            let moved = add(&mut tx, group, millis(now)).await?;
            outcomes.extend(group.iter().map(|append| {
                if moved.contains(&append.session) {
                    Ok(())
                } else {
                    Err(AppendError::Fenced)
                }
            }));
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
        .bind(number_of(after))
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
        .bind(number_of(snapshot.offset))
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
fn number_of(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

fn lease(row: &Row) -> sqlx::Result<Lease> {
    Ok(Lease {
        term: row.try_get("term")?,
        head: count(row, "head")?,
        epoch: word(row, "epoch")?,
    })
}

/// Cuts a batch where a session comes a second time, and where the parameters of one statement would
/// be too many: within a group every session is there once.
fn groups(batch: &[Append]) -> impl Iterator<Item = &[Append]> {
    let mut rest = batch;
    std::iter::from_fn(move || {
        let mut seen = HashSet::new();
        let count = rest
            .iter()
            .take(SESSIONS)
            .take_while(|append| seen.insert(append.session))
            .count();
        let (group, left) = rest.split_at(count);
        rest = left;
        (!group.is_empty()).then_some(group)
    })
}

/// The head moves only for whoever holds the term and knows where it was: everything else of a
/// journal follows from that. A few statements for all sessions of the group together; returns those
/// whose head has moved.
async fn add(
    connection: &mut Connection,
    group: &[Append],
    now: i64,
) -> sqlx::Result<HashSet<SessionId>> {
    for new in group.iter().filter_map(|append| append.create.as_ref()) {
        insert(connection, new).await?;
    }
    let moved = move_heads(connection, group, now).await?;
    let added: Vec<&Append> = group
        .iter()
        .filter(|append| moved.contains(&append.session))
        .collect();
    insert_events(connection, &added).await?;
    for append in added {
        if let Some(command) = &append.command {
            insert_command(connection, append.session, command, now).await?;
        }
    }
    Ok(moved)
}

async fn move_heads(
    connection: &mut Connection,
    group: &[Append],
    now: i64,
) -> sqlx::Result<HashSet<SessionId>> {
    let mut statement = sqlx::QueryBuilder::<Database>::new(
        "with wish (id, term, before, head, messages, last_prompt, running, title) as (values ",
    );
    for (number, append) in group.iter().enumerate() {
        let head = append.after + append.events.len() as u64;
        // Postgres does not guess the types of parameters in a list of values.
        statement
            .push(if number == 0 { "(cast(" } else { ", (cast(" })
            .push_bind(append.session.to_string())
            .push(" as text), cast(")
            .push_bind(append.term)
            .push(" as bigint), cast(")
            .push_bind(number_of(append.after))
            .push(" as bigint), cast(")
            .push_bind(number_of(head))
            .push(" as bigint), cast(")
            .push_bind(number_of(append.summary.messages))
            .push(" as bigint), cast(")
            .push_bind(append.summary.last_prompt.clone())
            .push(" as text), ")
            .push(if append.summary.running {
                "1 = 1"
            } else {
                "1 = 0"
            })
            .push(", cast(")
            .push_bind(append.summary.title.clone())
            .push(" as text))");
    }
    statement
        .push(
            ") update sessions set head = wish.head, messages = wish.messages,
                 last_prompt = wish.last_prompt, running = wish.running,
                 title = coalesce(wish.title, sessions.title), updated_at = ",
        )
        .push_bind(now)
        .push(
            " from wish where sessions.id = wish.id and sessions.term = wish.term
                 and sessions.head = wish.before and sessions.ended_at is null
             returning sessions.id",
        );
    // Every size is another statement: not worth remembering.
    let rows = statement
        .build()
        .persistent(false)
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| word(row, "id")).collect()
}

async fn insert_events(connection: &mut Connection, added: &[&Append]) -> sqlx::Result<()> {
    let rows: Vec<(&Append, u64, &NewEvent)> = added
        .iter()
        .flat_map(|append| {
            let numbered = (append.after + 1..).zip(&append.events);
            numbered.map(|(offset, event)| (*append, offset, event))
        })
        .collect();
    for rows in rows.chunks(ROWS) {
        let mut statement = sqlx::QueryBuilder::<Database>::new(
            "insert into journal_events (session_id, \"offset\", at, body) ",
        );
        statement.push_values(rows, |mut row, (append, offset, event)| {
            row.push_bind(append.session.to_string())
                .push_bind(number_of(*offset))
                .push_bind(millis(event.at))
                .push_bind(event.body.clone());
        });
        statement
            .build()
            .persistent(false)
            .execute(&mut *connection)
            .await?;
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
