//! Detached changes: run to their end even if the client disconnects.
//!
//! A disconnect drops the handler at any await, and a change that the store did not confirm may
//! still have been made. So a change to a session runs in a task of its own, and the live session
//! re-reads the store after every outcome.

use std::panic::resume_unwind;
use std::time::Duration;

use tracing::Instrument as _;

use super::AppState;
use super::error::ApiError;
use crate::domain::id::SessionId;

/// By then a statement that timed out has taken effect, or never will.
const RECHECK_DELAY: Duration = Duration::from_secs(5);

impl AppState {
    /// Runs a change to a session to its end, then lets its members know.
    pub(super) async fn apply_to_session<T: Send + 'static>(
        &self,
        session: SessionId,
        change: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let state = self.clone();
        self.run_detached(async move {
            let outcome = change.await;
            state.sessions.grants_changed(session).await;
            if outcome.as_ref().is_err_and(ApiError::is_uncertain) {
                state.recheck_later(session);
            }
            outcome
        })
        .await
    }

    /// Runs a future to its end, also if the caller is dropped.
    pub(super) async fn run_detached<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let task = self.shared.connections.spawn(change.in_current_span());
        match task.await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(ApiError::busy("The gateway is shutting down; try again.")),
            },
        }
    }

    /// A change that timed out may still take effect.
    fn recheck_later(&self, session: SessionId) {
        let (sessions, drain) = (self.sessions.clone(), self.draining.clone());
        self.shared.connections.spawn(async move {
            let recheck = async {
                tokio::time::sleep(RECHECK_DELAY).await;
                sessions.grants_changed(session).await;
            };
            drain.run_until_cancelled(recheck).await;
        });
    }
}
