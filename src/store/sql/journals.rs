//! Statements about journals.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::sessions::{count, insert};
use super::{BYTES, Backend, Connection, Database, Row, millis, rows, time, word};
use crate::domain::id::SessionId;
use crate::store::error::StoreError;
use crate::store::journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, NewEvent, Snapshot,
    StoredEvent,
};

/// Sessions of one group: each is there once.
const SESSIONS: usize = 1_000;

const MOVE_QUIETLY: rows::Shape = rows::Shape {
    before: "with wish (id, term, before, head) as (values ",
    columns: &["text", "bigint", "bigint", "bigint"],
    after: ") update sessions set head = wish.head
            from wish where sessions.id = wish.id and sessions.term = wish.term
                and sessions.head = wish.before and sessions.ended_at is null
            returning sessions.id",
};

const MOVE: rows::Shape = rows::Shape {
    before: "with wish (id, term, before, head, messages, last_prompt, running, title, now) as (values ",
    columns: &[
        "text", "bigint", "bigint", "bigint", "bigint", "text", "bigint", "text", "bigint",
    ],
    after: ") update sessions set head = wish.head, messages = wish.messages,
                last_prompt = wish.last_prompt, running = (wish.running = 1),
                title = coalesce(wish.title, sessions.title), updated_at = wish.now
            from wish where sessions.id = wish.id and sessions.term = wish.term
                and sessions.head = wish.before and sessions.ended_at is null
            returning sessions.id",
};

const INSERT_EVENTS: rows::Shape = rows::Shape {
    before: "insert into journal_events (session_id, \"offset\", at, body)
             select column1, column2, column3, column4 from (values ",
    columns: &["text", "bigint", "bigint", BYTES],
    after: ") as wish where column1 is not null",
};

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
pub(super) fn number_of(offset: u64) -> i64 {
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

/// Moves the heads of all sessions of a group. Pieces of text change nothing but the head, and they
/// are most of what there is: the lists of sessions and their order stay untouched then.
async fn move_heads(
    connection: &mut Connection,
    group: &[Append],
    now: i64,
) -> sqlx::Result<HashSet<SessionId>> {
    let (told, quiet): (Vec<&Append>, Vec<&Append>) =
        group.iter().partition(|append| append.summary.is_some());
    let mut moved = HashSet::with_capacity(group.len());
    for part in quiet.chunks(rows::MOST) {
        let text = rows::statement(&MOVE_QUIETLY, part.len());
        let mut statement = sqlx::query(sqlx::AssertSqlSafe(text));
        for append in rows::padded(part) {
            statement = bind_place(statement, append);
        }
        collect_moved(&mut moved, &statement.fetch_all(&mut *connection).await?)?;
    }
    for part in told.chunks(rows::MOST) {
        let text = rows::statement(&MOVE, part.len());
        let mut statement = sqlx::query(sqlx::AssertSqlSafe(text));
        for append in rows::padded(part) {
            let summary = append.and_then(|append| append.summary.as_ref());
            statement = bind_place(statement, append)
                .bind(summary.map(|summary| number_of(summary.messages)))
                .bind(summary.and_then(|summary| summary.last_prompt.clone()))
                .bind(summary.map(|summary| i64::from(summary.running)))
                .bind(summary.and_then(|summary| summary.title.clone()))
                .bind(now);
        }
        collect_moved(&mut moved, &statement.fetch_all(&mut *connection).await?)?;
    }
    Ok(moved)
}

type Statement<'q> = sqlx::query::Query<'q, Database, <Database as sqlx::Database>::Arguments>;

fn bind_place<'q>(statement: Statement<'q>, append: Option<&Append>) -> Statement<'q> {
    let head = append.map(|append| append.after + append.events.len() as u64);
    statement
        .bind(append.map(|append| append.session.to_string()))
        .bind(append.map(|append| append.term))
        .bind(append.map(|append| number_of(append.after)))
        .bind(head.map(number_of))
}

fn collect_moved(moved: &mut HashSet<SessionId>, rows: &[Row]) -> sqlx::Result<()> {
    for row in rows {
        moved.insert(word(row, "id")?);
    }
    Ok(())
}

async fn insert_events(connection: &mut Connection, added: &[&Append]) -> sqlx::Result<()> {
    let events: Vec<(&Append, u64, &NewEvent)> = added
        .iter()
        .flat_map(|append| {
            let numbered = (append.after + 1..).zip(&append.events);
            numbered.map(|(offset, event)| (*append, offset, event))
        })
        .collect();
    for part in events.chunks(rows::MOST) {
        let text = rows::statement(&INSERT_EVENTS, part.len());
        let mut statement = sqlx::query(sqlx::AssertSqlSafe(text));
        for event in rows::padded(part) {
            statement = statement
                .bind(event.map(|(append, ..)| append.session.to_string()))
                .bind(event.map(|(_, offset, _)| number_of(offset)))
                .bind(event.map(|(_, _, event)| millis(event.at)))
                .bind(event.map(|(_, _, event)| event.body.clone()));
        }
        statement.execute(&mut *connection).await?;
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
