//! Writing over what was removed.
//!
//! A row that is deleted leaves its bytes behind: in pages that are free now, in the index of words
//! until its parts are merged, and in the log. The pages are taken into a table of zeros and given back
//! written over; the rest is SQLite's to do. In small transactions, and with a pause after each that is
//! longer than it was: others write in between. Nobody ever waits for the log to be emptied: whoever
//! reads for long (a backup) holds that up, and nothing else.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;
use tokio::time::Instant;

use super::Backend;
use super::backup::is_locked;
use crate::store::upkeep::Scrubbed;

/// Pages of the index merged in one transaction.
const MERGED: i64 = 64;
/// Pages written over in one transaction.
const PAGES: i64 = 256;
/// Words and free pages that others leave meanwhile are taken, too, but not for ever.
const ROUNDS: usize = 262_144;
const BREATH: Duration = Duration::from_millis(5);
/// How long whoever reads from the log may take before somebody is told.
const PATIENCE: Duration = Duration::from_secs(3);
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

impl Backend {
    pub(super) async fn write_over_what_was_removed(&self) -> sqlx::Result<Scrubbed> {
        let due: i64 = sqlx::query_scalar("select scrub_due from store_home")
            .fetch_one(&self.reader)
            .await?;
        if due == 0 {
            return Ok(Scrubbed::Done);
        }
        // It may be only the log that is left to do.
        if self.written_over.load(Ordering::Relaxed) != due {
            let mut turn = self.turn().await?;
            let mut tx = self.begin().await?;
            turn.carry_over(&mut tx).await?;
            turn.commit(tx).await?;
            self.merge_words().await?;
            self.take_free_pages().await?;
            self.give_pages_back().await?;
            self.written_over.store(due, Ordering::Relaxed);
        }
        if !self.empty_log().await? {
            return Ok(Scrubbed::LogIsRead);
        }
        // One that was removed meanwhile has its own turn.
        sqlx::query("update store_home set scrub_due = 0 where scrub_due = ?")
            .bind(due)
            .execute(&self.writer)
            .await?;
        Ok(Scrubbed::Done)
    }

    /// Words that were removed stand in the index until all of its parts are one.
    async fn merge_words(&self) -> sqlx::Result<()> {
        let mut step = -MERGED;
        for _ in 0..ROUNDS {
            let mut tx = self.begin().await?;
            let begun = Instant::now();
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
            let_others_write(begun).await;
        }
        Ok(())
    }

    async fn take_free_pages(&self) -> sqlx::Result<()> {
        for _ in 0..ROUNDS {
            let mut tx = self.begin().await?;
            let begun = Instant::now();
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
            let_others_write(begun).await;
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
            // In the same row as everybody else here: SQLite itself lets nobody stand in one.
            let place = self.writer.acquire().await?;
            let begun = Instant::now();
            let mut tx = thorough.begin_with("begin immediate").await?;
            let given = sqlx::query("delete from scrap where id in (select id from scrap limit 1)")
                .execute(&mut *tx)
                .await?;
            tx.commit().await?;
            drop(place);
            if given.rows_affected() == 0 {
                return thorough.close().await;
            }
            let_others_write(begun).await;
        }
    }

    /// Carries the log over into the file and empties it, once nobody reads from it; says whether it did.
    /// On a connection of its own that waits for nobody: one that waits for readers keeps out writers.
    async fn empty_log(&self) -> sqlx::Result<bool> {
        let options = super::options(self.place.as_ref())
            .busy_timeout(Duration::ZERO)
            .optimize_on_close(false, None);
        let mut apart = SqliteConnection::connect_with(&options).await?;
        let until = Instant::now() + PATIENCE;
        let emptied = loop {
            // What it can, beside those who write; then only the end is left, for which they stand still.
            checkpoint(&mut apart, "pragma wal_checkpoint(passive)").await?;
            if checkpoint(&mut apart, "pragma wal_checkpoint(truncate)").await? {
                break true;
            }
            if Instant::now() >= until {
                break false;
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        };
        apart.close().await?;
        Ok(emptied)
    }
}

/// Whether it got to its end.
async fn checkpoint(connection: &mut SqliteConnection, how: &'static str) -> sqlx::Result<bool> {
    let busy: sqlx::Result<i64> = sqlx::query_scalar(how).fetch_one(connection).await;
    match busy {
        Err(error) if is_locked(&error) => Ok(false),
        busy => Ok(busy? == 0),
    }
}

/// Twice as long as they were kept out: those in other processes only look now and then.
async fn let_others_write(begun: Instant) {
    tokio::time::sleep(BREATH.max(begun.elapsed() * 2)).await;
}

async fn changes(connection: &mut SqliteConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar("select total_changes()")
        .fetch_one(connection)
        .await
}
