//! What has become of an agent's processes: for the operator, for the metrics, and to know when one
//! crashes too often.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::domain::id::SessionId;

/// Crashes are counted over this long.
const WINDOW: Duration = Duration::from_mins(10);
/// After the first crash in a row, doubled with each, up to the second.
const FIRST_REST: Duration = Duration::from_millis(25);
const LONGEST_REST: Duration = Duration::from_secs(1);

/// The record of one agent.
#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    told: Told,
    crashes: HashMap<SessionId, Crashes>,
    /// What it cannot, of what its protocol can, as the last one said.
    lacks: Vec<&'static str>,
}

#[derive(Debug, Default)]
struct Crashes {
    at: VecDeque<Instant>,
    /// Since a run was completed.
    in_a_row: u32,
}

/// What the operator sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// How many run.
    pub(crate) live: usize,
    /// How many were started.
    pub(crate) starts: u64,
    /// How many were ready to be spoken to.
    pub(crate) ready: u64,
    /// How many ended without being told to.
    pub(crate) crashes: u64,
    /// Lines that belonged to another conversation.
    pub(crate) strays: u64,
    /// Lines that made no sense.
    pub(crate) odd: u64,
    /// The process groups of those that run.
    pub(crate) groups: BTreeSet<i32>,
    /// What was wrong last, and when.
    pub(crate) last_error: Option<(Timestamp, String)>,
    /// What the last one that ended wrote to its standard error.
    pub(crate) last_words: Vec<String>,
}

impl Record {
    /// What the operator sees.
    pub(crate) fn told(&self) -> Told {
        self.book().told.clone()
    }

    /// Something changes that the operator sees.
    pub(super) fn note(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.book().told);
    }

    /// What the agent cannot.
    pub(super) fn lacks(&self) -> Vec<&'static str> {
        self.book().lacks.clone()
    }

    /// One is ready, and has said what it cannot.
    pub(super) fn learn(&self, lacks: &[&'static str]) {
        let mut book = self.book();
        book.told.ready += 1;
        book.lacks = lacks.to_vec();
    }

    /// It has crashed in a session.
    pub(super) fn crashed(&self, session: SessionId, now: Instant) {
        let mut book = self.book();
        book.told.crashes += 1;
        let is_recent = |crashes: &Crashes| crashes.at.back().is_some_and(|at| now - *at < WINDOW);
        book.crashes.retain(|_, crashes| is_recent(crashes));
        let crashes = book.crashes.entry(session).or_default();
        crashes.at.push_back(now);
        crashes.at.retain(|at| now - *at < WINDOW);
        crashes.in_a_row += 1;
    }

    /// A run was completed.
    pub(super) fn worked(&self, session: SessionId) {
        if let Some(crashes) = self.book().crashes.get_mut(&session) {
            crashes.in_a_row = 0;
        }
    }

    /// How long to wait before it is started again in a session. An error says how long it is not
    /// started at all, because it has crashed `most` times.
    pub(super) fn rest(
        &self,
        session: SessionId,
        rests: &[Duration],
        most: u32,
        now: Instant,
    ) -> Result<Duration, Duration> {
        let book = self.book();
        let Some(crashes) = book.crashes.get(&session) else {
            return Ok(Duration::ZERO);
        };
        let recent: Vec<Instant> = crashes
            .at
            .iter()
            .copied()
            .filter(|at| now - *at < WINDOW)
            .collect();
        if recent.len() >= most as usize {
            let since = now - recent[recent.len() - most as usize];
            return Err(WINDOW.saturating_sub(since));
        }
        let (Some(last), 1..) = (recent.last(), crashes.in_a_row) else {
            return Ok(Duration::ZERO);
        };
        let nth = crashes.in_a_row as usize - 1;
        let doubled = FIRST_REST.saturating_mul(1 << nth.min(16));
        let rest = rests.get(nth).or(rests.last()).copied();
        let rest = rest.unwrap_or(doubled.min(LONGEST_REST));
        Ok(rest.saturating_sub(now - *last))
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_crashes_rests_longer_each_time_and_then_is_not_started() {
        let (record, session, now) = (Record::default(), SessionId::new(), Instant::now());
        let rest = |at| record.rest(session, &[], 4, at);
        assert_eq!(rest(now), Ok(Duration::ZERO));
        record.crashed(session, now);
        assert_eq!(rest(now), Ok(FIRST_REST));
        record.crashed(session, now);
        assert_eq!(rest(now), Ok(FIRST_REST * 2));
        assert_eq!(rest(now + FIRST_REST * 3), Ok(Duration::ZERO));
        record.worked(session);
        assert_eq!(rest(now), Ok(Duration::ZERO));
        record.crashed(session, now);
        record.crashed(session, now + Duration::from_secs(1));
        assert_eq!(
            rest(now + Duration::from_secs(1)),
            Err(Duration::from_secs(599))
        );
        assert!(rest(now + WINDOW).is_ok());
        assert_eq!(
            record.rest(SessionId::new(), &[], 4, now),
            Ok(Duration::ZERO)
        );
    }

    #[test]
    fn a_protocol_may_have_rests_of_its_own() {
        let (record, session, now) = (Record::default(), SessionId::new(), Instant::now());
        let rests = [5, 10, 30].map(Duration::from_secs);
        for wanted in [5, 10, 30, 30] {
            record.crashed(session, now);
            let rest = record.rest(session, &rests, 100, now);
            assert_eq!(rest, Ok(Duration::from_secs(wanted)));
        }
    }
}
