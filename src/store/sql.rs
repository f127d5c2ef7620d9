//! The statements, written once and compiled for each database.
//!
//! `sqlite.rs` and `postgres.rs` each include this module; `super` is the one including it and says
//! what a connection, a row and the backend are. Both databases understand `$1`, `returning` and
//! `on conflict`, so one text serves both.
#![allow(
    clippy::duplicate_mod,
    reason = "compiled once per database on purpose: a generic over both would be all bounds"
)]

use std::error::Error;
use std::str::FromStr;

use jiff::Timestamp;
use sqlx::Row as _;

use super::{
    BYTES, Backend, Connection, HOLD, MATCHING, Row, Turn, WISHED_WORDS, owned_by, parameter,
    word_beginning,
};
use crate::domain::account::User;
use crate::domain::act::Act;
use crate::store::changes::Subject;
use crate::store::upkeep::{AuditRow, Outlived};

#[path = "sql/attachments.rs"]
mod attachments;
#[path = "sql/audit.rs"]
mod audit;
#[path = "sql/branches.rs"]
mod branches;
#[path = "sql/changes.rs"]
mod changes;
#[path = "sql/grants.rs"]
mod grants;
#[path = "sql/home.rs"]
pub(super) mod home;
#[path = "sql/journals.rs"]
mod journals;
#[path = "sql/keys.rs"]
mod keys;
#[path = "sql/links.rs"]
mod links;
#[path = "sql/logins.rs"]
mod logins;
#[path = "sql/overview.rs"]
mod overview;
#[path = "sql/removal.rs"]
mod removal;
#[path = "sql/retention.rs"]
mod retention;
#[path = "sql/rows.rs"]
mod rows;
#[path = "sql/search.rs"]
mod search;
#[path = "sql/sessions.rs"]
mod sessions;
#[path = "sql/users.rs"]
mod users;

pub(super) use journals::insert_events;

impl crate::store::Store for Backend {}

fn millis(time: Timestamp) -> i64 {
    time.as_millisecond()
}

fn now(act: &Act) -> i64 {
    millis(act.by.at)
}

fn decode_error(column: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: source.into(),
    }
}

/// A column that holds one of our own words or ids.
fn word<T>(row: &Row, column: &str) -> sqlx::Result<T>
where
    T: FromStr<Err: Error + Send + Sync + 'static>,
{
    let text: String = row.try_get(column)?;
    text.parse().map_err(|error| decode_error(column, error))
}

fn optional_word<T>(row: &Row, column: &str) -> sqlx::Result<Option<T>>
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

/// Reads a user from a row that has the columns of `users` (its id as `user_id`).
fn user(row: &Row) -> sqlx::Result<User> {
    let password_hash: Option<String> = row.try_get("password_hash")?;
    Ok(User {
        id: word(row, "user_id")?,
        username: word(row, "username")?,
        role: word(row, "role")?,
        disabled: row.try_get("disabled")?,
        invited: password_hash.is_none(),
        generation: row.try_get("generation")?,
        created_at: time(row, "created_at")?,
    })
}

pub(super) async fn audit(connection: &mut Connection, act: &Act) -> sqlx::Result<()> {
    sqlx::query(
        "insert into audit_log (at, actor_id, actor_name, address, action, target)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(now(act))
    .bind(act.by.actor.user().map(|id| id.to_string()))
    .bind(act.by.actor.name())
    .bind(act.by.address.map(|address| address.to_string()))
    .bind(act.action.as_str())
    .bind(&act.target)
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn recent_acts(
    connection: &mut Connection,
    limit: u32,
) -> sqlx::Result<Vec<AuditRow>> {
    let rows = sqlx::query(
        "select id, at, actor_name, address, action, target from audit_log order by id desc limit $1",
    )
    .bind(i64::from(limit))
    .fetch_all(connection)
    .await?;
    rows.iter().map(audit::audit_row).collect()
}

/// Takes the next place in the order of changes, inside an act.
async fn next_revision(connection: &mut Connection) -> sqlx::Result<i64> {
    sqlx::query_scalar("update auth_revision set revision = revision + 1 returning revision")
        .fetch_one(connection)
        .await
}

/// Tells running gateways of a change, from the moment this transaction is committed.
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

/// Drops links, logins, changes and keys that nobody can use any more.
pub(super) async fn sweep(connection: &mut Connection, outlived: Outlived) -> sqlx::Result<()> {
    let Outlived {
        ended,
        spent,
        commands,
    } = outlived;
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
