//! Statements: written once and compiled for each database.
//!
//! `sqlite.rs` and `postgres.rs` each include this module and define `Connection`, `Row` and `Backend`
//! for it. Both databases accept `$1`, `returning` and `on conflict`, so one text serves both.
#![allow(
    clippy::duplicate_mod,
    reason = "compiled once per database on purpose: a generic over both would be all bounds"
)]

use std::error::Error;
use std::str::FromStr;

use jiff::Timestamp;
use sqlx::Row as _;

use super::{
    BYTES, Backend, CONTAINS_PART, Connection, JOIN_MATCHING, JournalTx, QUERY_WORDS, Row,
    SHARE_LOCK, owner_filter, placeholder, prefix_term,
};
use crate::domain::account::User;
use crate::domain::audit::AuditEntry;
use crate::store::auth_changes::Subject;
use crate::store::maintenance::SweepCutoffs;

#[path = "sql/account_removal.rs"]
mod account_removal;
#[path = "sql/admin_sessions.rs"]
mod admin_sessions;
#[path = "sql/attachments.rs"]
mod attachments;
#[path = "sql/audit.rs"]
mod audit;
#[path = "sql/auth_changes.rs"]
mod auth_changes;
#[path = "sql/branches.rs"]
mod branches;
#[path = "sql/bulk_statement.rs"]
mod bulk_statement;
#[path = "sql/grants.rs"]
mod grants;
#[path = "sql/journals.rs"]
mod journals;
#[path = "sql/logins.rs"]
mod logins;
#[path = "sql/one_time_links.rs"]
mod one_time_links;
#[path = "sql/restore_detection.rs"]
pub(super) mod restore_detection;
#[path = "sql/retention.rs"]
mod retention;
#[path = "sql/search.rs"]
mod search;
#[path = "sql/sessions.rs"]
mod sessions;
#[path = "sql/signing_keys.rs"]
mod signing_keys;
#[path = "sql/storage_usage.rs"]
mod storage_usage;
#[path = "sql/users.rs"]
mod users;

pub(super) use audit::audit;
pub(super) use journals::insert_events;

impl crate::store::Store for Backend {}

fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

fn now(entry: &AuditEntry) -> i64 {
    millis(entry.context.at)
}

fn decode_error(column: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: source.into(),
    }
}

/// Parses a column that holds an id or an enum's name.
fn parsed<T>(row: &Row, column: &str) -> sqlx::Result<T>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|error| decode_error(column, error))
}

fn optional_parsed<T>(row: &Row, column: &str) -> sqlx::Result<Option<T>>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    let text: Option<String> = row.try_get(column)?;
    text.map(|text| text.parse())
        .transpose()
        .map_err(|error| decode_error(column, error))
}

fn time(row: &Row, column: &str) -> sqlx::Result<Timestamp> {
    let millis: i64 = row.try_get(column)?;
    Timestamp::from_millisecond(millis).map_err(|error| decode_error(column, error))
}

fn optional_time(row: &Row, column: &str) -> sqlx::Result<Option<Timestamp>> {
    let millis: Option<i64> = row.try_get(column)?;
    millis
        .map(Timestamp::from_millisecond)
        .transpose()
        .map_err(|error| decode_error(column, error))
}

/// Reads a user from a row with the columns of `users` (the id as `user_id`).
fn user(row: &Row) -> sqlx::Result<User> {
    let password_hash: Option<String> = row.try_get("password_hash")?;
    Ok(User {
        id: parsed(row, "user_id")?,
        username: parsed(row, "username")?,
        role: parsed(row, "role")?,
        disabled: row.try_get("disabled")?,
        invited: password_hash.is_none(),
        generation: row.try_get("generation")?,
        created_at: time(row, "created_at")?,
    })
}

async fn next_revision(connection: &mut Connection) -> sqlx::Result<i64> {
    sqlx::query_scalar("update auth_revision set revision = revision + 1 returning revision")
        .fetch_one(connection)
        .await
}

/// Adds a change to the feed; running gateways see it once the transaction commits.
async fn announce(
    connection: &mut Connection,
    revision: i64,
    subject: Subject,
    until: i64,
) -> sqlx::Result<()> {
    let (kind, subject, generation) = match subject {
        Subject::Login(id) => ("login", id.to_string(), None),
        Subject::User(id, generation) => ("user", id.to_string(), Some(generation)),
        Subject::Keys => ("keys", String::new(), None),
    };
    sqlx::query(
        "insert into auth_changes (revision, kind, subject, generation, until)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(revision)
    .bind(kind)
    .bind(subject)
    .bind(generation)
    .bind(until)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn sweep(connection: &mut Connection, cutoffs: SweepCutoffs) -> sqlx::Result<()> {
    let SweepCutoffs {
        ended,
        spent,
        commands,
    } = cutoffs;
    for (statement, moment) in [
        ("delete from one_time_links where expires_at <= $1", ended),
        (
            "delete from logins where token_expires_at <= $1
             and (ended_at is not null or coalesce(refresh_expires_at, 0) <= $1)",
            ended,
        ),
        ("delete from auth_changes where until <= $1", ended),
        ("delete from signing_keys where expires_at <= $1", ended),
        ("delete from commands where created_at <= $1", commands),
        ("delete from released_contents where until <= $1", ended),
        (
            "delete from spent_refresh_tokens where spent_at <= $1",
            spent,
        ),
    ] {
        sqlx::query(statement)
            .bind(millis(moment))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
