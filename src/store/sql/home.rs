//! Statements about where a database is at home, and what follows when it is not.

use super::Connection;
use crate::domain::id::Epoch;

/// Compares where the database is with where it was when it was last opened. One that was put here
/// from elsewhere gets new epochs; says for how many journals.
pub(in super::super) async fn settle(
    connection: &mut Connection,
    here: &str,
) -> sqlx::Result<Option<u64>> {
    let known: Option<String> = sqlx::query_scalar("select home from store_home")
        .fetch_one(&mut *connection)
        .await?;
    if known.as_deref() == Some(here) {
        return Ok(None);
    }
    let renewed = match known {
        // Opened for the first time since there is this table.
        None => None,
        Some(_) => Some(renew_epochs(connection).await?),
    };
    sqlx::query("update store_home set home = $1")
        .bind(here)
        .execute(connection)
        .await?;
    Ok(renewed)
}

/// One for all: an epoch is only ever compared with that of the same session. The new term keeps out
/// whoever still writes under the old one.
pub(in super::super) async fn renew_epochs(connection: &mut Connection) -> sqlx::Result<u64> {
    let renewed = sqlx::query("update sessions set epoch = $1, term = term + 1")
        .bind(Epoch::new().to_string())
        .execute(connection)
        .await?;
    Ok(renewed.rows_affected())
}

/// Something was removed that free pages may still hold.
pub(super) async fn remember_to_scrub(connection: &mut Connection) -> sqlx::Result<()> {
    sqlx::query("update store_home set scrub_due = scrub_due + 1")
        .execute(connection)
        .await?;
    Ok(())
}
