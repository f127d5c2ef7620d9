//! Statements about journals.

use std::collections::HashSet;

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::Row as _;

use super::search;
use super::sessions::{count, insert};
use super::{BYTES, Backend, Connection, HOLD, Row, Turn, audit, millis, rows, time, word};
use crate::domain::id::SessionId;
use crate::store::error::StoreError;
use crate::store::journals::{
    Append, AppendError, ClaimError, CommandRecord, Journals, Lease, PAGE_BYTES, Snapshot,
    StoredEvent, Summary,
};

/// Sessions of one group: each is there once.
const SESSIONS: usize = 1_000;

/// A page of a journal. How far it goes is found out by the lengths alone, so that no body is read
/// that does not belong to it.
const EVENTS_AFTER: &str = "select session_id, \"offset\", at, body from journal_events
    where session_id = $1 and \"offset\" > $2 and \"offset\" <= (
        select max(\"offset\") from (
            select \"offset\", sum(size) over (order by \"offset\") - size as bytes_before from (
                select \"offset\", length(body) as size from journal_events
                where session_id = $1 and \"offset\" > $2 order by \"offset\" limit $3
            ) as sizes
        ) as sums where bytes_before < $4
    ) order by \"offset\"";
const EVENTS_BEFORE: &str = "select session_id, \"offset\", at, body from journal_events
    where session_id = $1 and \"offset\" < $2 and \"offset\" >= (
        select min(\"offset\") from (
            select \"offset\", sum(size) over (order by \"offset\" desc) - size as bytes_behind from (
                select \"offset\", length(body) as size from journal_events
                where session_id = $1 and \"offset\" < $2 order by \"offset\" desc limit $3
            ) as sizes
        ) as sums where bytes_behind < $4
    ) order by \"offset\"";

const WISH: &str = "with wish (id, term, before, known) as (values ";
const PLACE: &[&str] = &["text", "bigint", "bigint", "bigint"];
const HELD: &str = " from (
    select sessions.id, sessions.head, wish.before, wish.known,
        case when wish.known is null then coalesce((
            select max(\"offset\") from journal_events where session_id = wish.id), 0)
        else wish.known end as newest
    from wish join sessions on sessions.id = wish.id
    where sessions.term = wish.term and sessions.ended_at is null";
/// A journal is ours if we hold its term and know its last event.
const OURS: &str = ") as held where before = case when head > newest then head else newest end";

static COUNT_OURS: rows::Shape =
    rows::Shape::new(WISH, PLACE, &[") select count(*) ", HELD, HOLD, OURS]);
static FIND_OURS: rows::Shape = rows::Shape::new(WISH, PLACE, &[") select id ", HELD, HOLD, OURS]);

/// Changes what lists show, and the head as it is known without a look at the events.
static TELL: rows::Shape = rows::Shape::new(
    "with wish (id, head, messages, last_prompt, running, waiting, queued, title, now)
     as (values ",
    &[
        "text", "bigint", "bigint", "text", "bigint", "bigint", "bigint", "text", "bigint",
    ],
    &[
        ") update sessions set head = wish.head, messages = wish.messages,
           last_prompt = wish.last_prompt, running = (wish.running = 1),
           waiting = wish.waiting, queued = wish.queued,
           title = coalesce(wish.title, sessions.title), updated_at = wish.now
       from wish where sessions.id = wish.id",
    ],
);

static INSERT_EVENTS: rows::Shape = rows::Shape::new(
    "insert into journal_events (session_id, \"offset\", at, body)
     select column1, column2, column3, column4 from (values ",
    &["text", "bigint", "bigint", BYTES],
    &[") as wish where column1 in (select id from sessions) on conflict do nothing"],
);

#[async_trait]
impl Journals for Backend {
    async fn claim_journal(&self, session: SessionId, node: &str) -> Result<Lease, ClaimError> {
        let mut turn = self.turn().await.map_err(StoreError::from)?;
        let mut tx = self.begin().await.map_err(StoreError::from)?;
        turn.carry_over(&mut tx).await.map_err(StoreError::from)?;
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
        let newest = newest(&mut tx, session).await.map_err(StoreError::from)?;
        let lease = lease(&row, newest).map_err(StoreError::from)?;
        turn.commit(tx).await.map_err(StoreError::from)?;
        Ok(lease)
    }

    async fn append(
        &self,
        batch: &[Append],
        now: Timestamp,
    ) -> Result<Vec<Result<(), AppendError>>, StoreError> {
        let mut turn = self.turn().await?;
        let mut tx = self.begin().await?;
        turn.prepare(&mut tx, batch).await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for group in groups(batch) {
            let moved = add(&mut turn, &mut tx, group, millis(now)).await?;
            outcomes.extend(group.iter().map(|append| {
                if moved.contains(&append.session) {
                    Ok(())
                } else {
                    Err(AppendError::Fenced)
                }
            }));
        }
        turn.commit(tx).await?;
        Ok(outcomes)
    }

    async fn events_after(
        &self,
        session: SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        // Looked at first: what is carried over meanwhile is found twice, and never not at all.
        let waiting = self.waiting_after(session, after, limit, PAGE_BYTES);
        let rows = sqlx::query(EVENTS_AFTER)
            .bind(session.to_string())
            .bind(number_of(after))
            .bind(i64::from(limit))
            .bind(number_of(PAGE_BYTES as u64))
            .fetch_all(self.reader())
            .await?;
        let mut events = rows
            .iter()
            .map(stored_event)
            .collect::<sqlx::Result<Vec<StoredEvent>>>()?;
        let last = events.last().map_or(after, |event| event.offset);
        let mut newer = waiting.into_iter().filter(|event| event.offset > last);
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

    async fn events_before(
        &self,
        session: SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        // Looked at first, as above.
        let waiting = self.waiting_before(session, before, limit);
        let rows = sqlx::query(EVENTS_BEFORE)
            .bind(session.to_string())
            .bind(number_of(before))
            .bind(i64::from(limit))
            .bind(number_of(PAGE_BYTES as u64))
            .fetch_all(self.reader())
            .await?;
        let mut events = rows
            .iter()
            .map(stored_event)
            .collect::<sqlx::Result<Vec<StoredEvent>>>()?;
        let last = events.last().map_or(0, |event| event.offset);
        events.extend(waiting.into_iter().filter(|event| event.offset > last));
        let mut bytes = 0;
        let fitting = events
            .iter()
            .rev()
            .take(limit as usize)
            .take_while(|event| {
                let fits = bytes < PAGE_BYTES;
                bytes += event.body.len();
                fits
            });
        let kept = fitting.count();
        events.drain(..events.len() - kept);
        Ok(events)
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

fn stored_event(row: &Row) -> sqlx::Result<StoredEvent> {
    Ok(StoredEvent {
        session: word(row, "session_id")?,
        offset: count(row, "offset")?,
        at: time(row, "at")?,
        body: row.try_get("body")?,
    })
}

/// Offsets fit into what a database counts with.
pub(super) fn number_of(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

/// The offset of the last event that is kept.
pub(super) async fn newest(connection: &mut Connection, session: SessionId) -> sqlx::Result<u64> {
    let row = sqlx::query(
        "select coalesce(max(\"offset\"), 0) as newest from journal_events where session_id = $1",
    )
    .bind(session.to_string())
    .fetch_one(connection)
    .await?;
    count(&row, "newest")
}

/// The head that the session's row knows is behind while an answer streams.
fn lease(row: &Row, newest: u64) -> sqlx::Result<Lease> {
    Ok(Lease {
        term: row.try_get("term")?,
        head: count(row, "head")?.max(newest),
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

/// Adds what is ours to add. A few statements for all sessions of the group together; returns those
/// that were ours.
async fn add(
    turn: &mut Turn,
    connection: &mut Connection,
    group: &[Append],
    now: i64,
) -> sqlx::Result<HashSet<SessionId>> {
    for new in group.iter().filter_map(|append| append.create.as_ref()) {
        insert(connection, new).await?;
    }
    let mut ours = HashSet::with_capacity(group.len());
    for part in group.chunks(rows::MOST) {
        find_ours(turn, connection, part, &mut ours).await?;
    }
    let added: Vec<&Append> = group
        .iter()
        .filter(|append| ours.contains(&append.session))
        .collect();
    tell(connection, &added, now).await?;
    turn.write(connection, &added).await?;
    search::index(connection, &added).await?;
    for append in added {
        if let Some(command) = &append.command {
            insert_command(connection, append.session, command, now).await?;
        }
        for act in &append.acts {
            audit(connection, act).await?;
        }
    }
    Ok(ours)
}

/// Nearly always all are ours: counting them is quicker than having them listed.
async fn find_ours(
    turn: &Turn,
    connection: &mut Connection,
    part: &[Append],
    ours: &mut HashSet<SessionId>,
) -> sqlx::Result<()> {
    let counted = asking(&COUNT_OURS, turn, part)
        .fetch_one(&mut *connection)
        .await?;
    let count: i64 = counted.try_get(0)?;
    if usize::try_from(count) == Ok(part.len()) {
        ours.extend(part.iter().map(|append| append.session));
        return Ok(());
    }
    let found = asking(&FIND_OURS, turn, part).fetch_all(connection).await?;
    for row in found {
        ours.insert(word(&row, "id")?);
    }
    Ok(())
}

type Database = <Connection as sqlx::Connection>::Database;
type Statement = sqlx::query::Query<'static, Database, <Database as sqlx::Database>::Arguments>;

/// A question about the journals of these appends.
fn asking(shape: &'static rows::Shape, turn: &Turn, part: &[Append]) -> Statement {
    let part: Vec<&Append> = part.iter().collect();
    let mut statement = sqlx::query(shape.statement(part.len()));
    for append in rows::padded(&part) {
        statement = statement
            .bind(append.map(|append| append.session.to_string()))
            .bind(append.map(|append| append.term))
            .bind(append.map(|append| number_of(append.after)))
            .bind(append.and_then(|append| turn.head(append.session).map(number_of)));
    }
    statement
}

/// Changes what lists show. Pieces of an answer change nothing of it, and they are most of what
/// there is: the sessions themselves stay untouched then.
async fn tell(connection: &mut Connection, added: &[&Append], now: i64) -> sqlx::Result<()> {
    let told: Vec<(&Append, &Summary)> = added
        .iter()
        .filter_map(|append| Some((*append, append.summary.as_ref()?)))
        .collect();
    for part in told.chunks(rows::MOST) {
        let mut statement = sqlx::query(TELL.statement(part.len()));
        for told in rows::padded(part) {
            statement = statement
                .bind(told.map(|(append, _)| append.session.to_string()))
                .bind(told.map(|(append, _)| number_of(append.after + append.events.len() as u64)))
                .bind(told.map(|(_, summary)| number_of(summary.messages)))
                .bind(told.and_then(|(_, summary)| summary.last_prompt.clone()))
                .bind(told.map(|(_, summary)| i64::from(summary.running)))
                .bind(told.map(|(_, summary)| i64::from(summary.waiting)))
                .bind(told.map(|(_, summary)| i64::from(summary.queued)))
                .bind(told.and_then(|(_, summary)| summary.title.clone()))
                .bind(now);
        }
        statement.execute(&mut *connection).await?;
    }
    Ok(())
}

/// Puts events into their journals, unless their session is gone.
pub(in super::super) async fn insert_events(
    connection: &mut Connection,
    events: &[(SessionId, StoredEvent)],
) -> sqlx::Result<()> {
    let events: Vec<&(SessionId, StoredEvent)> = events.iter().collect();
    for part in events.chunks(rows::MOST) {
        let mut statement = sqlx::query(INSERT_EVENTS.statement(part.len()));
        for event in rows::padded(part) {
            statement = statement
                .bind(event.map(|(session, _)| session.to_string()))
                .bind(event.map(|(_, event)| number_of(event.offset)))
                .bind(event.map(|(_, event)| millis(event.at)))
                .bind(event.map(|(_, event)| event.body.clone()));
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
