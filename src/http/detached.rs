//! Acts that those in a session must hear of, whatever becomes of whoever asked.
//!
//! A client that leaves ends its handler wherever that is, and an act that storage did not confirm
//! may have been done all the same. So such an act runs in a task of its own, and the live session
//! looks at what is stored now after every outcome.

use std::panic::resume_unwind;
use std::time::Duration;

use tracing::Instrument as _;

use super::AppState;
use super::error::ApiError;
use crate::domain::id::SessionId;

/// What storage was still asked for when its time was up is done by then, or never.
const LATER: Duration = Duration::from_secs(5);

impl AppState {
    /// Carries out an act on a session to its end, and lets those in it know how things are then.
    pub(super) async fn acts_on<T: Send + 'static>(
        &self,
        session: SessionId,
        act: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let state = self.clone();
        self.sees_through(async move {
            let outcome = act.await;
            state.sessions.grants_changed(session).await;
            if outcome.as_ref().is_err_and(ApiError::is_uncertain) {
                state.looks_again(session);
            }
            outcome
        })
        .await
    }

    /// Goes on with something to its end, also if nobody waits for it any more.
    pub(super) async fn sees_through<T: Send + 'static>(
        &self,
        act: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        let act = self.reception.connections.spawn(act.in_current_span());
        match act.await {
            Ok(outcome) => outcome,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(ApiError::busy("The gateway stops; try again.")),
            },
        }
    }

    /// An act that was given up may still take effect.
    fn looks_again(&self, session: SessionId) {
        let (sessions, stop) = (self.sessions.clone(), self.draining.clone());
        self.reception.connections.spawn(async move {
            let looked = async {
                tokio::time::sleep(LATER).await;
                sessions.grants_changed(session).await;
            };
            stop.run_until_cancelled(looked).await;
        });
    }
}
