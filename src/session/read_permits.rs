//! Read permits: bound how many pages of journals are read from storage at once, for each user and in all.
//!
//! Without them one user's readers would take every connection to the database, and others, commits and
//! revocations would wait behind them. Touches `limits` and `domain`.

use std::time::Duration;

use crate::domain::id::UserId;
use crate::limits::{Permit, Permits};

/// Fewer than the connections to the database.
const MAX_TOTAL: usize = 3;
const MAX_PER_USER: usize = 2;
/// How long a request waits for its turn.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection waits at once: its rights are not watched meanwhile.
const CONNECTION_TIMEOUT: Duration = Duration::from_millis(250);

/// The user, or all users together, read too much at the moment.
#[derive(Debug, thiserror::Error)]
#[error("too many read from storage at the moment")]
pub(crate) struct Busy;

#[derive(Clone)]
pub(crate) struct ReadPermits(Permits<UserId>);

impl Default for ReadPermits {
    fn default() -> Self {
        Self(Permits::new(MAX_TOTAL, MAX_PER_USER))
    }
}

impl ReadPermits {
    pub(super) async fn for_request(&self, user: UserId) -> Result<Permit<UserId>, Busy> {
        self.acquire(user, REQUEST_TIMEOUT).await
    }

    pub(super) async fn for_connection(&self, user: UserId) -> Result<Permit<UserId>, Busy> {
        self.acquire(user, CONNECTION_TIMEOUT).await
    }

    async fn acquire(&self, user: UserId, timeout: Duration) -> Result<Permit<UserId>, Busy> {
        let permit = self.0.acquire_within(user, timeout).await;
        permit.map_err(|_| Busy)
    }
}
