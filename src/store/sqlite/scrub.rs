//! Writing over what was removed.
//!
//! A row that is deleted leaves its bytes behind: in pages that are free now, in the index of words
//! until its parts are merged, and in the log. The pages are taken into a table of zeros and given back
//! written over; the rest is SQLite's to do. In small transactions: others write in between.

use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use super::Backend;

/// Pages of the index merged in one transaction.
const MERGED: i64 = 200;
/// Pages written over in one transaction.
const PAGES: i64 = 1_024;
/// Free pages that others leave meanwhile are taken, too, but not for ever.
const ROUNDS: usize = 65_536;
const BREATH: Duration = Duration::from_millis(5);
const TRIES: usize = 5;

impl Backend {
    pub(super) async fn write_over_what_was_removed(&self) -> sqlx::Result<()> {
        let due: i64 = sqlx::query_scalar("select scrub_due from store_home")
            .fetch_one(&self.reader)
            .await?;
        if due == 0 {
            return Ok(());
        }
        let mut turn = self.turn().await?;
        let mut tx = self.begin().await?;
        turn.carry_over(&mut tx).await?;
        turn.commit(tx).await?;
        self.merge_words().await?;
        self.take_free_pages().await?;
        self.give_pages_back().await?;
        // One that was removed meanwhile has its own turn.
        sqlx::query("update store_home set scrub_due = 0 where scrub_due = ?")
            .bind(due)
            .execute(&self.writer)
            .await?;
        self.empty_log().await
    }

    /// Words that were removed stand in the index until all of its parts are one.
    async fn merge_words(&self) -> sqlx::Result<()> {
        let mut step = -MERGED;
        loop {
            let mut tx = self.begin().await?;
            let before = changes(&mut tx).await?;
            sqlx::query("insert into session_words (session_words, rank) values ('merge', ?)")
                .bind(step)
                .execute(&mut *tx)
                .await?;
            let done = changes(&mut tx).await? - before < 2;
            tx.commit().await?;
            if done && step > 0 {
                return Ok(());
            }
            step = MERGED;
            tokio::time::sleep(BREATH).await;
        }
    }

    async fn take_free_pages(&self) -> sqlx::Result<()> {
        for _ in 0..ROUNDS {
            let mut tx = self.begin().await?;
            let free: i64 = sqlx::query_scalar("pragma freelist_count")
                .fetch_one(&mut *tx)
                .await?;
            if free == 0 {
                return Ok(());
            }
            let size: i64 = sqlx::query_scalar("pragma page_size")
                .fetch_one(&mut *tx)
                .await?;
            sqlx::query("insert into scrap (body) values (zeroblob(?))")
                .bind(free.min(PAGES) * (size - 4))
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    /// Every page is written over as it becomes free: also the end of one that the zeros did not fill.
    async fn give_pages_back(&self) -> sqlx::Result<()> {
        // A connection of its own, as the others are not to work in this way.
        let options = super::writing(super::options(self.place.as_ref()));
        let options = options.pragma("secure_delete", "on");
        let mut thorough = SqliteConnection::connect_with(&options).await?;
        loop {
            let mut tx = thorough.begin_with("begin immediate").await?;
            let given = sqlx::query("delete from scrap where id in (select id from scrap limit 1)")
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            if given.rows_affected() == 0 {
                return thorough.close().await;
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Carries the log over into the file and empties it, once nobody reads from it.
    async fn empty_log(&self) -> sqlx::Result<()> {
        for _ in 0..TRIES {
            let busy: i64 = sqlx::query_scalar("pragma wal_checkpoint(truncate)")
                .fetch_one(&self.writer)
                .await?;
            if busy == 0 {
                return Ok(());
            }
            tokio::time::sleep(BREATH).await;
        }
        // What is written next goes over it.
        tracing::debug!("somebody reads from the log; it is emptied later");
        Ok(())
    }
}

async fn changes(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("select total_changes()")
        .fetch_one(connection)
        .await
}
