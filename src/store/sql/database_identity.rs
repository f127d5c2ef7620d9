//! Statements about where a database is at home, and what follows when it is not.

use sqlx::Row as _;

use super::{Connection, optional_word};
use crate::domain::id::{Epoch, StoreId};

/// Journals that get their new epoch in one statement: whoever writes one of them waits that long.
pub(in super::super) const AT_ONCE: i64 = 1_000;

/// Where it was at home when a gateway was last started on it.
pub(in super::super) async fn known(connection: &mut Connection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar("select home from store_home")
        .fetch_one(connection)
        .await
}

/// It is at home here from now on.
pub(in super::super) async fn settle(connection: &mut Connection, here: &str) -> sqlx::Result<()> {
    sqlx::query("update store_home set home = $1")
        .bind(here)
        .execute(connection)
        .await?;
    Ok(())
}

/// What it is known by, unless it was put here from elsewhere.
pub(in super::super) async fn identity(
    connection: &mut Connection,
    here: &str,
) -> sqlx::Result<Option<StoreId>> {
    let row = sqlx::query("select home, store_id from store_home")
        .fetch_one(&mut *connection)
        .await?;
    let known: Option<String> = row.try_get("home")?;
    if known.is_some_and(|known| known != here) {
        return Ok(None);
    }
    if let Some(identity) = optional_word(&row, "store_id")? {
        return Ok(Some(identity));
    }
    // The first of those who ask says it.
    let row =
        sqlx::query("update store_home set store_id = coalesce(store_id, $1) returning store_id")
            .bind(StoreId::new().to_string())
            .fetch_one(connection)
            .await?;
    optional_word(&row, "store_id")
}

/// It is another one than data directories know.
async fn change_identity(connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("update store_home set store_id = $1")
        .bind(StoreId::new().to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives all journals a new epoch, and the database a new identity; says how many they were. A part at a
/// time: outside a transaction those who write journals wait for none of it. Broken off there, it is begun
/// again; a journal may then get a new epoch twice, which nobody has seen in between.
pub(in super::super) async fn renew_epochs(connection: &mut Connection) -> sqlx::Result<u64> {
    let (epoch, mut last, mut sessions) = (Epoch::new(), String::new(), 0);
    while let Some((next, count)) = renew_epochs_after(connection, &last, epoch).await? {
        last = next;
        sessions += count;
    }
    change_identity(connection).await?;
    Ok(sessions)
}

/// Gives the journals of the next sessions after one this epoch, which may be the same for all: an epoch
/// is only ever compared with that of the same session. The new term keeps out whoever still writes
/// under the old one. Says which is the last, and how many they are; `None` if there are no more.
async fn renew_epochs_after(
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
    .bind(AT_ONCE)
    .fetch_all(connection)
    .await?;
    let count = renewed.len() as u64;
    Ok(renewed.into_iter().max().map(|last| (last, count)))
}

/// Something was removed that free pages may still hold.
pub(super) async fn remember_to_scrub(connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("update store_home set scrub_due = scrub_due + 1")
        .execute(connection)
        .await?;
    Ok(())
}
