//! Trying an agent out for those who run the gateway.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Sessions;
use crate::runtime::{HARMLESS, TrialError};

/// What is seen of an agent that does not stop using tools.
const MOST_LINES: usize = 500;

/// How a trial went.
pub(crate) struct Tried {
    /// Does it work?
    pub(crate) works: bool,
    /// What was seen, line by line.
    pub(crate) lines: Vec<String>,
}

/// Whether it is asked something, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Something harmless.
    Harmless,
    /// Nothing: to be ready is enough.
    Nothing,
}

impl Sessions {
    /// Tries an agent out as a session of its own would use it. Goes on to its end, and clears up, if
    /// whoever asked does not wait for it.
    pub(crate) async fn try_agent(
        &self,
        name: String,
        asking: Asking,
    ) -> Result<Tried, TrialError> {
        let parts = Arc::clone(&self.parts);
        let (told, hears) = oneshot::channel();
        self.parts.tracker.spawn(async move {
            let mut lines = Vec::new();
            let mut tell = |line| {
                if lines.len() < MOST_LINES {
                    lines.push(line);
                }
            };
            let prompt = (asking == Asking::Harmless).then(|| HARMLESS.to_owned());
            let stop = &parts.stopping.stop;
            let tried = parts.catalog.try_out(&name, prompt, stop, &mut tell).await;
            // Nobody waits for it any more, perhaps.
            told.send(tried.map(|works| Tried { works, lines })).ok();
        });
        hears.await.unwrap_or(Err(TrialError::Busy))
    }
}
