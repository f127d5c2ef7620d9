//! Detached agent test: an administrator's test of a configured agent, which completes if its caller leaves.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::Sessions;
use crate::runtime::{AgentTestError, HARMLESS};

/// Lines kept of an agent that does not stop using tools.
const MAX_LINES: usize = 500;

pub(crate) struct AgentTestReport {
    pub(crate) works: bool,
    pub(crate) lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestPrompt {
    Harmless,
    /// No prompt: the test passes when the agent is ready.
    None,
}

impl Sessions {
    /// Tests an agent as a session would use it. The test runs to its end, and cleans up, also if the
    /// caller goes away.
    pub(crate) async fn test_agent(
        &self,
        name: String,
        prompt: TestPrompt,
    ) -> Result<AgentTestReport, AgentTestError> {
        let parts = Arc::clone(&self.parts);
        let (sender, report) = oneshot::channel();
        self.parts.tracker.spawn(async move {
            let mut lines = Vec::new();
            let mut add_line = |line| {
                if lines.len() < MAX_LINES {
                    lines.push(line);
                }
            };
            let prompt = (prompt == TestPrompt::Harmless).then(|| HARMLESS.to_owned());
            let stop = &parts.shutdown.stop;
            let tested = parts.catalog.try_out(&name, prompt, stop, &mut add_line);
            let tested = tested.await;
            sender
                .send(tested.map(|works| AgentTestReport { works, lines }))
                .ok();
        });
        report.await.unwrap_or(Err(AgentTestError::Busy))
    }
}
