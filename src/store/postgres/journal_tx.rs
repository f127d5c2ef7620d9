//! Changing journals: here every event goes to its place at once, and rows are locked one by one.

use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Transaction};

use super::sql;
use crate::domain::id::SessionId;
use crate::store::journals::{Append, StoredEvent};

/// One transaction that changes journals.
pub(super) struct Turn;

#[allow(
    clippy::unused_async,
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    reason = "the same calls as for SQLite, which has a log to look after"
)]
impl Turn {
    /// There is nothing to make room in.
    pub(super) async fn prepare(
        &mut self,
        _connection: &mut PgConnection,
        _batch: &[Append],
    ) -> sqlx::Result<()> {
        Ok(())
    }

    /// Nothing waits.
    pub(super) async fn carry_over(&mut self, _connection: &mut PgConnection) -> sqlx::Result<()> {
        Ok(())
    }

    /// Adds the events of these appends.
    pub(super) async fn write(
        &mut self,
        connection: &mut PgConnection,
        added: &[&Append],
    ) -> sqlx::Result<()> {
        let events: Vec<(SessionId, StoredEvent)> =
            added.iter().flat_map(|append| append.numbered()).collect();
        sql::insert_events(connection, &events).await
    }

    /// The database knows.
    pub(super) fn head(&self, _session: SessionId) -> Option<u64> {
        None
    }

    /// Commits.
    pub(super) async fn commit(self, tx: Transaction<'static, Postgres>) -> sqlx::Result<()> {
        tx.commit().await
    }
}
