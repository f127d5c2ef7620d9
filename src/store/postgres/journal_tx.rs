//! Journal transaction: inserts events directly; Postgres locks row by row.

use sqlx::postgres::PgConnection;
use sqlx::{Postgres, Transaction};

use super::sql;
use crate::domain::id::SessionId;
use crate::store::journals::Append;

/// A transaction that changes journals. Same interface as SQLite's, which has a commit log.
pub(super) struct JournalTx;

#[allow(
    clippy::unused_async,
    clippy::unused_self,
    clippy::needless_pass_by_ref_mut,
    reason = "the same calls as for SQLite, which has a log to look after"
)]
impl JournalTx {
    pub(super) async fn prepare(
        &mut self,
        _connection: &mut PgConnection,
        _batch: &[Append],
    ) -> sqlx::Result<()> {
        Ok(())
    }

    pub(super) async fn flush(&mut self, _connection: &mut PgConnection) -> sqlx::Result<()> {
        Ok(())
    }

    pub(super) async fn write(
        &mut self,
        connection: &mut PgConnection,
        added: &[&Append],
    ) -> sqlx::Result<()> {
        let events: Vec<_> = added.iter().flat_map(|append| append.numbered()).collect();
        sql::insert_events(connection, &events).await
    }

    /// Only the database knows the head.
    pub(super) fn head(&self, _session: SessionId) -> Option<u64> {
        None
    }

    pub(super) async fn commit(self, tx: Transaction<'static, Postgres>) -> sqlx::Result<()> {
        tx.commit().await
    }
}
