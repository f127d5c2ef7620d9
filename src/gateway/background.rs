//! Background tasks of the gateway: dropping what has expired, retention, and removal of unused files.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::limits::Limits;
use crate::session::{RETENTION_INTERVAL, RetentionTask, Sessions};
use crate::store::{Blobs, ScrubOutcome, Store};

/// How often expired entries are dropped.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);
/// Delay before the write-ahead log is truncated again, while a reader holds it.
const SCRUB_RETRY: Duration = Duration::from_secs(5);

/// Drops what has expired in limits, sessions and logins, and resumes unfinished sessions, until drained.
pub(super) async fn sweep_expired(
    auth: Auth,
    limits: Limits,
    sessions: Sessions,
    drain: CancellationToken,
) {
    let mut tick = tokio::time::interval(SWEEP_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = drain.cancelled() => return,
            _ = tick.tick() => {}
        }
        limits.sweep();
        sessions.sweep();
        sessions.count_stored().await;
        resume_unfinished(&sessions).await;
        if let Err(error) = auth.sweep().await {
            tracing::warn!(%error, "cannot drop expired logins; retrying later");
        }
    }
}

/// Loads sessions with an unfinished run or a queue that no client has opened since the start.
async fn resume_unfinished(sessions: &Sessions) {
    match sessions.resume_unfinished().await {
        Ok(0) => {}
        Ok(sessions) => tracing::info!(sessions, "resumed unfinished sessions"),
        // The next client to join one resumes it.
        Err(error) => {
            tracing::warn!(%error, "cannot resume every unfinished session; retrying later");
        }
    }
}

/// Uploaded files, and the database that tells which of them are referenced.
pub(super) struct BlobSweep {
    pub(super) blobs: Arc<Blobs>,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
}

impl BlobSweep {
    /// Removes unreferenced files and overwrites deleted rows. True if a reader held the log: retry soon.
    async fn run(&self) -> bool {
        match self
            .blobs
            .sweep(self.store.as_ref(), self.clock.wall())
            .await
        {
            Ok(None) => tracing::debug!("uploaded files kept: they may belong to another database"),
            Ok(Some(removed)) => tracing::debug!(removed, "removed unreferenced uploaded files"),
            Err(error) => tracing::warn!(%error, "cannot remove unreferenced uploaded files"),
        }
        let scrubbed = self.store.scrub().await;
        if let Err(error) = &scrubbed {
            tracing::warn!(%error, "deleted rows are not overwritten yet; retrying later");
        }
        matches!(scrubbed, Ok(ScrubOutcome::WalInUse))
    }
}

/// Applies retention to journals and removes unused files, until drained.
pub(super) async fn apply_retention(
    retention: RetentionTask,
    blob_sweep: BlobSweep,
    account_removed: Arc<Notify>,
    drain: CancellationToken,
) {
    // Not at once: clients that reconnect after a restart come first.
    let mut tick = tokio::time::interval_at(Instant::now() + SWEEP_INTERVAL, RETENTION_INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let rounds = async {
        loop {
            let log_is_read = blob_sweep.run().await;
            tokio::select! {
                biased;
                // A removed account's files go at once.
                () = account_removed.notified() => continue,
                // So do its deleted rows, once the reader is done.
                () = tokio::time::sleep(SCRUB_RETRY), if log_is_read => continue,
                _ = tick.tick() => {}
            }
            match retention.run_pass().await {
                Ok(report) => tracing::debug!(?report, "retention round done"),
                Err(error) => tracing::warn!(%error, "retention round failed; retrying later"),
            }
        }
    };
    drain.run_until_cancelled(rounds).await;
}
