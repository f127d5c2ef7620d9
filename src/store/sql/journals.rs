//! Statements for journals.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::search;
use super::sessions::{count, insert};
use super::{
    BYTES, Backend, Connection, JournalTx, Row, SHARE_LOCK, audit, bulk_statement, millis, parsed,
    time,
};
use crate::domain::id::SessionId;
use crate::domain::idempotency::IdempotencyKey;
use crate::store::error::StoreError;
use crate::store::journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, PAGE_BYTES, SessionSummary,
    Snapshot, StoredEvent,
};

const MAX_GROUP_SESSIONS: usize = 1_000;

/// A page of a journal. Its end is found by lengths alone, so that no body beyond it is read.
const EVENTS_AFTER: &str = "select session_id, \"offset\", at, body from journal_events
    where session_id = $1 and \"offset\" > $2 and \"offset\" <= (
        select max(\"offset\") from (
            select \"offset\", sum(size) over (order by \"offset\") - size as bytes_before from (
                select \"offset\", length(body) as size from journal_events
                where session_id = $1 and \"offset\" > $2 order by \"offset\" limit $3
            ) as sizes
        ) as sums where bytes_before < $4
    ) order by \"offset\"";
const OFFSET_BEFORE: &str = "select \"offset\" from journal_events
    where session_id = $1 and \"offset\" < $2 order by \"offset\" desc limit 1 offset $3";

const INPUT_ROWS: &str = "with wish (id, term, before, known) as (values ";
const INPUT_TYPES: &[&str] = &["text", "bigint", "bigint", "bigint"];
const FROM_CLAIMED: &str = " from (
    select sessions.id, sessions.head, wish.before, wish.known,
        case when wish.known is null then coalesce((
            select max(\"offset\") from journal_events where session_id = wish.id), 0)
        else wish.known end as newest
    from wish join sessions on sessions.id = wish.id
    where sessions.term = wish.term and sessions.ended_at is null";
/// An append is valid if it has the current term and follows the last event.
const WHERE_AT_HEAD: &str =
    ") as held where before = case when head > newest then head else newest end";

static COUNT_WRITABLE: bulk_statement::BulkStatement = bulk_statement::BulkStatement::new(
    INPUT_ROWS,
    INPUT_TYPES,
    &[
        ") select count(*) ",
        FROM_CLAIMED,
        SHARE_LOCK,
        WHERE_AT_HEAD,
    ],
);
static SELECT_WRITABLE: bulk_statement::BulkStatement = bulk_statement::BulkStatement::new(
    INPUT_ROWS,
    INPUT_TYPES,
    &[") select id ", FROM_CLAIMED, SHARE_LOCK, WHERE_AT_HEAD],
);

/// Updates the summary, and the head as known without reading events.
static UPDATE_SUMMARIES: bulk_statement::BulkStatement = bulk_statement::BulkStatement::new(
    "with wish (id, head, messages, last_prompt, running, waiting, queued, title, now, added)
     as (values ",
    &[
        "text", "bigint", "bigint", "text", "bigint", "bigint", "bigint", "text", "bigint",
        "bigint",
    ],
    &[
        ") update sessions set head = wish.head, messages = wish.messages,
           last_prompt = wish.last_prompt,
           first_prompt = coalesce(sessions.first_prompt, wish.last_prompt),
           running = (wish.running = 1), waiting = wish.waiting, queued = wish.queued,
           title = case when sessions.renamed then sessions.title
               else coalesce(wish.title, sessions.title) end, updated_at = wish.now,
           journal_bytes = sessions.journal_bytes + wish.added
       from wish where sessions.id = wish.id",
    ],
);

/// An offset that is taken is an error: nothing may be lost in its place.
static INSERT_EVENTS: bulk_statement::BulkStatement = bulk_statement::BulkStatement::new(
    "insert into journal_events (session_id, \"offset\", at, body)
     select column1, column2, column3, column4 from (values ",
    &["text", "bigint", "bigint", BYTES],
    &[") as wish where column1 in (select id from sessions)"],
);

#[async_trait]
impl Journals for Backend {
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin().await?;
        journal_tx.flush(&mut tx).await?;
        let row = sqlx::query(
            "update sessions set term = term + 1, lease_node = $2
             where id = $1 and ended_at is null returning term, head, epoch",
        )
        .bind(session.to_string())
        .bind(node)
        .fetch_optional(&mut *tx)
        .await?
        .ok_or(ClaimError::NotFound)?;
        let newest = newest(&mut tx, session).await?;
        let lease = lease(&row, newest)?;
        journal_tx.commit(tx).await?;
        Ok(lease)
    }

    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError> {
        let mut journal_tx = self.journal_tx().await?;
        let mut tx = self.begin().await?;
        journal_tx.prepare(&mut tx, batch).await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for group in groups(batch) {
            let appended = append_group(&mut journal_tx, &mut tx, group, millis(now)).await?;
            outcomes.extend(group.iter().map(|append| {
                if appended.contains(&append.session) {
                    Ok(())
                } else {
                    Err(AppendError::Fenced)
                }
            }));
        }
        journal_tx.commit(tx).await?;
        Ok(outcomes)
    }

    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        // Read first: an event flushed meanwhile is found twice, never missed.
        let pending = self.pending_after(session, after, limit, PAGE_BYTES);
        let mut events = self.page(EVENTS_AFTER, session, after, limit).await?;
        let last = events.last().map_or(after, |event| event.offset);
        let mut newer = pending.into_iter().filter(|event| event.offset > last);
        let mut bytes: usize = events.iter().map(|event| event.body.len()).sum();
        while events.len() < limit as usize
            && bytes < PAGE_BYTES
            && let Some(event) = newer.next()
        {
            bytes += event.body.len();
            events.push(event);
        }
        Ok(events)
    }

    async fn offset_before(
        &self,
        session: SessionId,
        before: u64,
        count: u32,
    ) -> Result<u64, StoreError> {
        // Read first, as above.
        let pending = self.pending_offsets_before(session, before);
        let count = count as usize;
        if let Some(beyond) = pending.len().checked_sub(count + 1) {
            return Ok(pending[beyond]);
        }
        let skipped = as_i64((count - pending.len()) as u64);
        let row = sqlx::query(OFFSET_BEFORE)
            .bind(session.to_string())
            .bind(as_i64(pending.first().copied().unwrap_or(before)))
            .bind(skipped)
            .fetch_optional(self.reader())
            .await?;
        Ok(row.map_or(Ok(0), |row| super::sessions::count(&row, "offset"))?)
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
        .bind(as_i64(snapshot.offset))
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
            idempotency_key: IdempotencyKey {
                key: key.to_owned(),
                digest: digest.try_into().unwrap_or_default(),
            },
            outcome: row.try_get("outcome")?,
        }))
    }
}

impl Backend {
    async fn page(
        &self,
        statement: &'static str,
        session: SessionId,
        offset: u64,
        limit: u32,
    ) -> sqlx::Result<Vec<StoredEvent>> {
        let rows = sqlx::query(statement)
            .bind(session.to_string())
            .bind(as_i64(offset))
            .bind(i64::from(limit))
            .bind(as_i64(PAGE_BYTES as u64))
            .fetch_all(self.reader())
            .await?;
        rows.iter().map(stored_event).collect()
    }
}

fn stored_event(row: &Row) -> sqlx::Result<StoredEvent> {
    Ok(StoredEvent {
        session: parsed(row, "session_id")?,
        offset: count(row, "offset")?,
        at: time(row, "at")?,
        body: row.try_get("body")?,
    })
}

/// Offsets fit into the databases' signed integers.
pub(super) fn as_i64(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

pub(super) async fn newest(connection: &mut Connection, session: SessionId) -> sqlx::Result<u64> {
    let row = sqlx::query(
        "select coalesce(max(\"offset\"), 0) as newest from journal_events where session_id = $1",
    )
    .bind(session.to_string())
    .fetch_one(connection)
    .await?;
    count(&row, "newest")
}

/// The session row's head lags while an answer streams.
fn lease(row: &Row, newest: u64) -> sqlx::Result<Lease> {
    Ok(Lease {
        term: row.try_get("term")?,
        head: count(row, "head")?.max(newest),
        epoch: parsed(row, "epoch")?,
    })
}

/// Splits a batch so that each session occurs once per group and the parameters fit one statement.
fn groups(batch: &[Append]) -> impl Iterator<Item = &[Append]> {
    let mut rest = batch;
    std::iter::from_fn(move || {
        let mut seen = HashSet::new();
        let count = rest
            .iter()
            .take(MAX_GROUP_SESSIONS)
            .take_while(|append| seen.insert(append.session))
            .count();
        let (group, left) = rest.split_at(count);
        rest = left;
        (!group.is_empty()).then_some(group)
    })
}

/// Appends where the term and head match, with a few statements for the whole group; returns the
/// sessions appended to.
async fn append_group(
    journal_tx: &mut JournalTx,
    connection: &mut Connection,
    group: &[Append],
    now: i64,
) -> sqlx::Result<HashSet<SessionId>> {
    for new in group.iter().filter_map(|append| append.create.as_ref()) {
        insert(connection, new).await?;
    }
    let mut writable = HashSet::with_capacity(group.len());
    for part in group.chunks(bulk_statement::MAX_ROWS) {
        find_writable(journal_tx, connection, part, &mut writable).await?;
    }
    let added: Vec<&Append> = group
        .iter()
        .filter(|append| writable.contains(&append.session))
        .collect();
    update_summaries(connection, &added, now).await?;
    journal_tx.write(connection, &added).await?;
    search::index(connection, &added).await?;
    for append in added {
        if let Some(command) = &append.command {
            insert_command(INSERT_COMMAND, append.session, command, now)
                .execute(&mut *connection)
                .await?;
        }
        for entry in &append.audit_entries {
            audit(connection, entry).await?;
        }
    }
    Ok(writable)
}

/// Nearly always all are writable: counting is faster than listing.
async fn find_writable(
    journal_tx: &JournalTx,
    connection: &mut Connection,
    part: &[Append],
    writable: &mut HashSet<SessionId>,
) -> sqlx::Result<()> {
    let counted = writable_query(&COUNT_WRITABLE, journal_tx, part)
        .fetch_one(&mut *connection)
        .await?;
    let count: i64 = counted.try_get(0)?;
    if usize::try_from(count) == Ok(part.len()) {
        writable.extend(part.iter().map(|append| append.session));
        return Ok(());
    }
    let found = writable_query(&SELECT_WRITABLE, journal_tx, part)
        .fetch_all(connection)
        .await?;
    for row in found {
        writable.insert(parsed(&row, "id")?);
    }
    Ok(())
}

type Database = <Connection as sqlx::Connection>::Database;
type Statement = sqlx::query::Query<'static, Database, <Database as sqlx::Database>::Arguments>;

fn writable_query(
    template: &'static bulk_statement::BulkStatement,
    journal_tx: &JournalTx,
    part: &[Append],
) -> Statement {
    let part: Vec<&Append> = part.iter().collect();
    let mut statement = sqlx::query(template.statement(part.len()));
    for append in bulk_statement::padded(&part) {
        statement = statement
            .bind(append.map(|append| append.session.to_string()))
            .bind(append.map(|append| append.term))
            .bind(append.map(|append| as_i64(append.after)))
            .bind(append.and_then(|append| journal_tx.head(append.session).map(as_i64)));
    }
    statement
}

/// Updates summaries. Most appends are answer chunks without one and leave the session row untouched.
async fn update_summaries(
    connection: &mut Connection,
    added: &[&Append],
    now: i64,
) -> sqlx::Result<()> {
    let summaries: Vec<(&Append, &SessionSummary)> = added
        .iter()
        .filter_map(|append| Some((*append, append.summary.as_ref()?)))
        .collect();
    for part in summaries.chunks(bulk_statement::MAX_ROWS) {
        let mut statement = sqlx::query(UPDATE_SUMMARIES.statement(part.len()));
        for row in bulk_statement::padded(part) {
            statement = statement
                .bind(row.map(|(append, _)| append.session.to_string()))
                .bind(row.map(|(append, _)| as_i64(append.after + append.events.len() as u64)))
                .bind(row.map(|(_, summary)| as_i64(summary.messages)))
                .bind(row.and_then(|(_, summary)| summary.last_prompt.clone()))
                .bind(row.map(|(_, summary)| i64::from(summary.running)))
                .bind(row.map(|(_, summary)| i64::from(summary.waiting)))
                .bind(row.map(|(_, summary)| i64::from(summary.queued)))
                .bind(row.and_then(|(_, summary)| summary.title.clone()))
                .bind(now)
                .bind(row.map(|(_, summary)| as_i64(summary.added_bytes)));
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Inserts events, unless their session was deleted.
pub(in super::super) async fn insert_events(
    connection: &mut Connection,
    events: &[StoredEvent],
) -> sqlx::Result<()> {
    let events: Vec<&StoredEvent> = events.iter().collect();
    for part in events.chunks(bulk_statement::MAX_ROWS) {
        let mut statement = sqlx::query(INSERT_EVENTS.statement(part.len()));
        for event in bulk_statement::padded(part) {
            statement = statement
                .bind(event.map(|event| event.session.to_string()))
                .bind(event.map(|event| as_i64(event.offset)))
                .bind(event.map(|event| millis(event.at)))
                .bind(event.map(|event| event.body.clone()));
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

const INSERT_COMMAND: &str =
    "insert into commands (session_id, idempotency_key, digest, outcome, created_at)
     values ($1, $2, $3, $4, $5)";

pub(super) fn insert_command(
    statement: &'static str,
    session: SessionId,
    command: &CommandRecord,
    now: i64,
) -> Statement {
    sqlx::query(statement)
        .bind(session.to_string())
        .bind(command.idempotency_key.key.clone())
        .bind(command.idempotency_key.digest.to_vec())
        .bind(command.outcome.clone())
        .bind(now)
}
