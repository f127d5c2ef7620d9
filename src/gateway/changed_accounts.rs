//! Changed accounts: ends the live sessions of removed accounts and the work of disabled ones.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::session::Sessions;
use crate::store::{Store, StoreError, Subject};

const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Reports every changed account to the sessions, until drained.
pub(super) async fn follow(
    mut changes: watch::Receiver<i64>,
    store: Arc<dyn Store>,
    sessions: Sessions,
    account_removed: Arc<Notify>,
    drain: CancellationToken,
) {
    // Earlier changes need no report: no session was live yet.
    let mut seen = *changes.borrow_and_update();
    let following = async {
        while changes.changed().await.is_ok() {
            // Only up to the revocations applied by now: a removed user is logged out first, then
            // their sessions end.
            let until = *changes.borrow_and_update();
            while let Err(error) = catch_up(
                &mut seen,
                until,
                store.as_ref(),
                &sessions,
                &account_removed,
            )
            .await
            {
                tracing::warn!(%error, "cannot read account changes; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    };
    drain.run_until_cancelled(following).await;
}

async fn catch_up(
    seen: &mut i64,
    until: i64,
    store: &dyn Store,
    sessions: &Sessions,
    account_removed: &Notify,
) -> Result<(), StoreError> {
    while *seen < until {
        let changes = store.changes_after(*seen).await?;
        let Some(last) = changes.last() else { break };
        for change in changes.iter().filter(|change| change.revision <= until) {
            if let Subject::User(user, _) = change.subject {
                sessions.account_changed(user).await?;
                if store.user(user).await?.is_none() {
                    account_removed.notify_one();
                }
            }
        }
        *seen = last.revision.min(until);
    }
    Ok(())
}
