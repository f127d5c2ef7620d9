//! Secure delete: overwrites deleted data in the database files.
//!
//! A deleted row leaves its bytes in free pages, in the search index until it is merged, and in the
//! WAL. Free pages are claimed by a table of zeros and released overwritten; SQLite does the rest.
//! All in small transactions, each followed by a longer pause, so that others can write. Nobody
//! waits for the WAL to be truncated: a long reader (a backup) delays that and nothing else.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::time::Instant;

use super::Backend;
use super::backup::is_locked;
use crate::store::maintenance::ScrubOutcome;

const MERGE_PAGES: i64 = 64;
const PAGES_PER_BATCH: i64 = 256;
/// Bounds the work when others keep deleting.
const MAX_BATCHES: usize = 262_144;
const BATCH_PAUSE: Duration = Duration::from_millis(5);
/// How long to retry while a reader holds the WAL.
const TRUNCATE_TIMEOUT: Duration = Duration::from_secs(3);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

impl Backend {
    pub(super) async fn scrub_deleted(&self) -> sqlx::Result<ScrubOutcome> {
        let due: i64 = sqlx::query_scalar("select scrub_due from store_home")
            .fetch_one(&self.reader)
            .await?;
        if due == 0 {
            return Ok(ScrubOutcome::Done);
        }
        // Only the WAL may be left.
        if self.scrubbed_upto.load(Ordering::Relaxed) != due {
            let mut journal_tx = self.journal_tx().await?;
            let mut tx = self.begin().await?;
            journal_tx.flush(&mut tx).await?;
            journal_tx.commit(tx).await?;
            self.merge_search_index().await?;
            self.claim_free_pages().await?;
            self.release_pages().await?;
            self.scrubbed_upto.store(due, Ordering::Relaxed);
        }
        if !self.truncate_wal().await? {
            return Ok(ScrubOutcome::WalInUse);
        }
        // Data deleted meanwhile stays due.
        sqlx::query("update store_home set scrub_due = 0 where scrub_due = ?")
            .bind(due)
            .execute(&self.writer)
            .await?;
        Ok(ScrubOutcome::Done)
    }

    /// Deleted words stay in the index until its segments are merged.
    async fn merge_search_index(&self) -> sqlx::Result<()> {
        let mut step = -MERGE_PAGES;
        for _ in 0..MAX_BATCHES {
            let mut tx = self.begin().await?;
            let started = Instant::now();
            let before = total_changes(&mut tx).await?;
            sqlx::query("insert into session_words (session_words, rank) values ('merge', ?)")
                .bind(step)
                .execute(&mut *tx)
                .await?;
            let done = total_changes(&mut tx).await? - before < 2;
            tx.commit().await?;
            if done && step > 0 {
                return Ok(());
            }
            step = MERGE_PAGES;
            pause_for_writers(started).await;
        }
        Ok(())
    }

    async fn claim_free_pages(&self) -> sqlx::Result<()> {
        for _ in 0..MAX_BATCHES {
            let mut tx = self.begin().await?;
            let started = Instant::now();
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
                .bind(free.min(PAGES_PER_BATCH) * (size - 4))
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            pause_for_writers(started).await;
        }
        Ok(())
    }

    /// Overwrites every page as it is freed, also the end of a page that the zeros did not fill.
    async fn release_pages(&self) -> sqlx::Result<()> {
        // Its own connection: the others must not pay for `secure_delete`.
        let options = super::writing(super::options(self.location.as_ref()));
        let options = options.pragma("secure_delete", "on");
        let mut connection = SqliteConnection::connect_with(&options).await?;
        loop {
            // Queues with the other writers of this process; SQLite's own lock is not fair.
            let slot = self.writer.acquire().await?;
            let started = Instant::now();
            let mut tx = connection.begin_with("begin immediate").await?;
            let released =
                sqlx::query("delete from scrap where id in (select id from scrap limit 1)")
                    .execute(&mut *tx)
                    .await?;
            tx.commit().await?;
            drop(slot);
            if released.rows_affected() == 0 {
                return connection.close().await;
            }
            pause_for_writers(started).await;
        }
    }

    /// Checkpoints and truncates the WAL once nobody reads from it; false if a reader remains. On a
    /// connection without a busy timeout: waiting for readers would block writers.
    async fn truncate_wal(&self) -> sqlx::Result<bool> {
        let options = super::options(self.location.as_ref())
            .busy_timeout(Duration::ZERO)
            .optimize_on_close(false, None);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        let until = Instant::now() + TRUNCATE_TIMEOUT;
        let truncated = loop {
            // First without blocking writers; then only the end is left, which blocks them.
            checkpoint(&mut connection, "pragma wal_checkpoint(passive)").await?;
            if checkpoint(&mut connection, "pragma wal_checkpoint(truncate)").await? {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        };
        connection.close().await?;
        Ok(truncated)
    }
}

/// True if it completed.
async fn checkpoint(connection: &mut SqliteConnection, how: &'static str) -> sqlx::Result<bool> {
    let busy: sqlx::Result<i64> = sqlx::query_scalar(how).fetch_one(connection).await;
    match busy {
        Err(error) if is_locked(&error) => Ok(false),
        busy => Ok(busy? == 0),
    }
}

/// Twice as long as the transaction took: writers in other processes only poll.
async fn pause_for_writers(started: Instant) {
    tokio::time::sleep(BATCH_PAUSE.max(started.elapsed() * 2)).await;
}

async fn total_changes(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("select total_changes()")
        .fetch_one(connection)
        .await
}
