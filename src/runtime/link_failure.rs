//! Link failure: why a link failed, as its session and the users of that session get it.

use super::messages::{Declined, FromAgent};
use crate::domain::id::RunId;
use crate::domain::run::{FailureCause, RunOutcome};

pub(super) struct LinkFailure {
    pub(super) cause: Option<FailureCause>,
    pub(super) declined: Declined,
}

impl LinkFailure {
    /// The events that end a run with this failure.
    pub(super) fn ends(&self, run: RunId) -> Vec<FromAgent> {
        let Declined { code, message } = self.declined.clone();
        let ended = FromAgent::RunEnded {
            run,
            outcome: RunOutcome::Failed { code, message },
            usage: None,
        };
        let cause = self.cause.map(FromAgent::LinkFailed);
        cause.into_iter().chain([ended]).collect()
    }
}
