//! Follows what becomes of accounts, for the sessions that they own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::session::Sessions;
use crate::store::{Store, StoreError, Subject};

/// After a failure.
const AGAIN: Duration = Duration::from_millis(500);

/// Lets the sessions know of every account that changed since, until told to stop.
pub(super) async fn follow(
    mut changes: watch::Receiver<i64>,
    store: Arc<dyn Store>,
    sessions: Sessions,
    somebody_left: Arc<Notify>,
    stop: CancellationToken,
) {
    // What happened before is in the database, and no session was awake.
    let mut seen = *changes.borrow_and_update();
    let following = async {
        while changes.changed().await.is_ok() {
            // Not beyond what has been revoked by now: somebody who was removed is signed out, and
            // then their sessions end.
            let until = *changes.borrow_and_update();
            while let Err(error) =
                catch_up(&mut seen, until, store.as_ref(), &sessions, &somebody_left).await
            {
                tracing::warn!(%error, "cannot see whose sessions are over; trying again");
                tokio::time::sleep(AGAIN).await;
            }
        }
    };
    stop.run_until_cancelled(following).await;
}

async fn catch_up(
    seen: &mut i64,
    until: i64,
    store: &dyn Store,
    sessions: &Sessions,
    somebody_left: &Notify,
) -> Result<(), StoreError> {
    while *seen < until {
        let changes = store.changes_after(*seen).await?;
        let Some(last) = changes.last() else { break };
        for change in changes.iter().filter(|change| change.revision <= until) {
            if let Subject::User(user, _) = change.subject {
                sessions.owner_changed(user).await?;
                if store.user(user).await?.is_none() {
                    somebody_left.notify_one();
                }
            }
        }
        *seen = last.revision.min(until);
    }
    Ok(())
}
