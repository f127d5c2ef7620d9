//! Agent status: counts, last error and crash backoff of one configured agent.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::domain::id::SessionId;
use crate::domain::run::FailureCause;

const CRASH_WINDOW: Duration = Duration::from_mins(10);
/// The delay after the first crash in a row; doubled with each crash, up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_millis(25);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The status of one configured agent, over all its processes.
#[derive(Debug, Default)]
pub(super) struct AgentStatus(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    report: StatusReport,
    crashes: HashMap<SessionId, Crashes>,
    /// The protocol's capabilities that the agent lacks, by the last process.
    lacks: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Crashes {
    at: VecDeque<Instant>,
    /// Since the last completed run.
    in_a_row: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusReport {
    pub(super) live: usize,
    pub(super) starts: u64,
    /// Completed handshakes.
    pub(super) ready: u64,
    pub(super) crashes: u64,
    /// Dropped lines of other conversations.
    pub(super) misrouted: u64,
    /// Dropped lines that made no sense.
    pub(super) unexpected: u64,
    pub(super) groups: BTreeSet<i32>,
    pub(super) last_error: Option<(Timestamp, String)>,
    /// Why it failed since it was last ready.
    pub(super) last_cause: Option<FailureCause>,
    /// The standard error of the last process that ended.
    pub(super) stderr_tail: Vec<String>,
}

impl AgentStatus {
    pub(super) fn report(&self) -> StatusReport {
        self.inner().report.clone()
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut StatusReport)) {
        change(&mut self.inner().report);
    }

    pub(super) fn lacks(&self) -> Vec<&'static str> {
        self.inner().lacks.clone()
    }

    pub(super) fn record_ready(&self, lacks: &[&'static str]) {
        let mut inner = self.inner();
        inner.report.ready += 1;
        inner.report.last_cause = None;
        inner.lacks = lacks.to_vec();
    }

    pub(super) fn record_crash(&self, session: SessionId, now: Instant) {
        let mut inner = self.inner();
        inner.report.crashes += 1;
        let is_recent =
            |crashes: &Crashes| crashes.at.back().is_some_and(|at| now - *at < CRASH_WINDOW);
        inner.crashes.retain(|_, crashes| is_recent(crashes));
        let crashes = inner.crashes.entry(session).or_default();
        crashes.at.push_back(now);
        crashes.at.retain(|at| now - *at < CRASH_WINDOW);
        crashes.in_a_row += 1;
    }

    /// A completed run ends the row of crashes.
    pub(super) fn record_completed_run(&self, session: SessionId) {
        if let Some(crashes) = self.inner().crashes.get_mut(&session) {
            crashes.in_a_row = 0;
        }
    }

    /// The delay before the next start in a session. An error is the time during which no start is
    /// allowed, after `max_crashes` crashes.
    pub(super) fn backoff(
        &self,
        session: SessionId,
        delays: &[Duration],
        max_crashes: u32,
        now: Instant,
    ) -> Result<Duration, Duration> {
        let inner = self.inner();
        let Some(crashes) = inner.crashes.get(&session) else {
            return Ok(Duration::ZERO);
        };
        let recent: Vec<Instant> = crashes
            .at
            .iter()
            .copied()
            .filter(|at| now - *at < CRASH_WINDOW)
            .collect();
        if recent.len() >= max_crashes as usize {
            let since = now - recent[recent.len() - max_crashes as usize];
            return Err(CRASH_WINDOW.saturating_sub(since));
        }
        let (Some(last), 1..) = (recent.last(), crashes.in_a_row) else {
            return Ok(Duration::ZERO);
        };
        let nth = crashes.in_a_row as usize - 1;
        let doubled = FIRST_BACKOFF.saturating_mul(1 << nth.min(16));
        let delay = delays.get(nth).or(delays.last()).copied();
        let delay = delay.unwrap_or(doubled.min(MAX_BACKOFF));
        Ok(delay.saturating_sub(now - *last))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backoff_grows_with_each_crash_until_no_start_is_allowed() {
        let (status, session, now) = (AgentStatus::default(), SessionId::new(), Instant::now());
        let backoff = |at| status.backoff(session, &[], 4, at);
        assert_eq!(backoff(now), Ok(Duration::ZERO));
        status.record_crash(session, now);
        assert_eq!(backoff(now), Ok(FIRST_BACKOFF));
        status.record_crash(session, now);
        assert_eq!(backoff(now), Ok(FIRST_BACKOFF * 2));
        assert_eq!(backoff(now + FIRST_BACKOFF * 3), Ok(Duration::ZERO));
        status.record_completed_run(session);
        assert_eq!(backoff(now), Ok(Duration::ZERO));
        status.record_crash(session, now);
        status.record_crash(session, now + Duration::from_secs(1));
        assert_eq!(
            backoff(now + Duration::from_secs(1)),
            Err(Duration::from_secs(599))
        );
        assert!(backoff(now + CRASH_WINDOW).is_ok());
        assert_eq!(
            status.backoff(SessionId::new(), &[], 4, now),
            Ok(Duration::ZERO)
        );
    }

    #[test]
    fn a_protocol_may_set_its_own_restart_delays() {
        let (status, session, now) = (AgentStatus::default(), SessionId::new(), Instant::now());
        let delays = [5, 10, 30].map(Duration::from_secs);
        for wanted in [5, 10, 30, 30] {
            status.record_crash(session, now);
            let delay = status.backoff(session, &delays, 100, now);
            assert_eq!(delay, Ok(Duration::from_secs(wanted)));
        }
    }
}
