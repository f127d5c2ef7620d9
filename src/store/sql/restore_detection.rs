//! Statements for the database identity and its epochs.

use sqlx::Row as _;

use super::{Connection, optional_parsed};
use crate::domain::id::{Epoch, StoreId};

/// Journals per statement: their writers wait that long.
pub(in super::super) const EPOCH_BATCH: i64 = 1_000;

/// Fingerprint of where a gateway last served from it.
pub(in super::super) async fn recorded_fingerprint(
    connection: &mut Connection,
) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("select home from store_home")
        .fetch_one(connection)
        .await
}

pub(in super::super) async fn record_fingerprint(
    connection: &mut Connection,
    fingerprint: &str,
) -> sqlx::Result<()> {
    sqlx::query("update store_home set home = $1")
        .bind(fingerprint)
        .execute(connection)
        .await?;
    Ok(())
}

/// The database's id, unless its fingerprint differs. Created on first use.
pub(in super::super) async fn identity(
    connection: &mut Connection,
    fingerprint: &str,
) -> sqlx::Result<Option<StoreId>> {
    let row = sqlx::query("select home, store_id from store_home")
        .fetch_one(&mut *connection)
        .await?;
    let recorded: Option<String> = row.try_get("home")?;
    if recorded.is_some_and(|recorded| recorded != fingerprint) {
        return Ok(None);
    }
    if let Some(identity) = optional_parsed(&row, "store_id")? {
        return Ok(Some(identity));
    }
    // Of concurrent callers the first one sets it.
    let row =
        sqlx::query("update store_home set store_id = coalesce(store_id, $1) returning store_id")
            .bind(StoreId::new().to_string())
            .fetch_one(connection)
            .await?;
    optional_parsed(&row, "store_id")
}

async fn change_identity(connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("update store_home set store_id = $1")
        .bind(StoreId::new().to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives all journals a new epoch and the database a new identity; returns the number of journals.
/// In batches: outside a transaction, writers wait for one batch only. An interrupted renewal is
/// repeated; no client saw the epochs in between.
pub(in super::super) async fn renew_epochs(connection: &mut Connection) -> sqlx::Result<u64> {
    let (epoch, mut last, mut sessions) = (Epoch::new(), String::new(), 0);
    while let Some((next, count)) = renew_epoch_batch(connection, &last, epoch).await? {
        last = next;
        sessions += count;
    }
    change_identity(connection).await?;
    Ok(sessions)
}

/// Renews the next batch of sessions after a given one. All may share one epoch: it is only
/// compared within a session. The new term fences former writers. Returns the last session and the
/// count; `None` at the end.
async fn renew_epoch_batch(
    connection: &mut Connection,
    session: &str,
    epoch: Epoch,
) -> sqlx::Result<Option<(String, u64)>> {
    let renewed: Vec<String> = sqlx::query_scalar(
        "update sessions set epoch = $2, term = term + 1
         where id in (select id from sessions where id > $1 order by id limit $3) returning id",
    )
    .bind(session)
    .bind(epoch.to_string())
    .bind(EPOCH_BATCH)
    .fetch_all(connection)
    .await?;
    let count = renewed.len() as u64;
    Ok(renewed.into_iter().max().map(|last| (last, count)))
}

/// Deleted data may remain in free pages.
pub(super) async fn mark_scrub_due(connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("update store_home set scrub_due = scrub_due + 1")
        .execute(connection)
        .await?;
    Ok(())
}
