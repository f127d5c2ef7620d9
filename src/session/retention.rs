//! Retention: compacts journals and removes old events, unused sessions and old audit rows, as
//! configured.
//!
//! No offset ever comes to mean something else; a client that resumes at an offset that is gone gets
//! the state instead. Touches `store` and `domain`.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::compaction::compact;
use super::journal::{read, stored};
use super::live_sessions::LiveSessions;
use super::{Config, JournalConfig};
use crate::clock::Clock;
use crate::domain::audit::{Action, AuditContext};
use crate::domain::id::SessionId;
use crate::store::{AuditConfig, JournalFacts, Store, StoreError};

pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_mins(10);
const JOURNAL_PAGE: u32 = 500;
/// Events compacted in one transaction: others write in between.
const EVENT_PAGE: u32 = 1_000;
/// Audit rows removed in one transaction.
const ACT_PAGE: u32 = 1_000;
/// Between two transactions: members wait for storage, retention can wait.
const STEP_PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct RetentionTask {
    store: Arc<dyn Store>,
    clock: Clock,
    live: LiveSessions,
    rules: RetentionRules,
}

/// How long things are kept; `None` is for ever.
struct RetentionRules {
    chunks: SignedDuration,
    events: Option<SignedDuration>,
    bytes: Option<u64>,
    sessions: Option<SignedDuration>,
    ended: Option<SignedDuration>,
    acts: Option<SignedDuration>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RetentionReport {
    /// Events joined into others.
    pub(crate) joined: u64,
    pub(crate) dropped: u64,
    pub(crate) removed: u64,
    pub(crate) audit_rows: u64,
}

impl RetentionTask {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        live: LiveSessions,
        sessions: &Config,
        journal: &JournalConfig,
        audit: &AuditConfig,
    ) -> Self {
        let rules = RetentionRules {
            chunks: SignedDuration::from_mins(journal.compact_after_minutes.into()),
            events: days(journal.keep_days),
            bytes: Some(journal.keep_bytes).filter(|bytes| *bytes > 0),
            sessions: days(sessions.retention_days),
            ended: days(sessions.ended_days),
            acts: days(audit.keep_days),
        };
        Self {
            store,
            clock,
            live,
            rules,
        }
    }

    /// One pass over all journals and the audit log. Cancel-safe: each step is a transaction.
    pub(crate) async fn run_pass(&self) -> Result<RetentionReport, StoreError> {
        let now = self.clock.wall();
        let (mut report, mut after) = (RetentionReport::default(), None);
        loop {
            let page = self.store.journals(after, JOURNAL_PAGE).await?;
            let Some(last) = page.last() else {
                report.audit_rows = self.trim_audit_log(now).await?;
                return Ok(report);
            };
            after = Some(last.session);
            for journal in &page {
                self.tend(journal, now, &mut report).await?;
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }

    async fn tend(
        &self,
        journal: &JournalFacts,
        now: Timestamp,
        report: &mut RetentionReport,
    ) -> Result<(), StoreError> {
        if let Some(limit) = self.removal(journal, now) {
            report.removed += u64::from(self.remove(journal, limit, now).await?);
            return Ok(());
        }
        if journal.ended_at.is_some() {
            if journal.has_old_texts {
                self.remove_texts(journal.session).await?;
            }
            return Ok(());
        }
        // The branch was made, and the gateway ended before its texts were copied.
        while journal.lacks_texts && self.store.copy_texts(journal.session).await? {
            tokio::time::sleep(STEP_PAUSE).await;
        }
        if journal.compacted < journal.head {
            report.joined += self.compact(journal, now - self.rules.chunks).await?;
        }
        if let Some(upto) = self.last_to_drop(journal, now).await? {
            report.dropped += self.store.drop_events(journal.session, upto).await?;
        }
        Ok(())
    }

    /// Removes a session, its journal in steps. Ends it first, so that no client joins half of it.
    async fn remove(
        &self,
        journal: &JournalFacts,
        limit: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let session = journal.session;
        if journal.ended_at.is_none() && !self.store.expire_session(session, limit, now).await? {
            return Ok(false);
        }
        self.remove_texts(session).await?;
        while self.store.remove_event_batch(session).await? > 0 {
            tokio::time::sleep(STEP_PAUSE).await;
        }
        let act = AuditContext::gateway(now).did(Action::SessionExpired, session.to_string());
        self.store.remove_session(session, limit, &act).await
    }

    /// Removes the search texts of an ended session, which no search finds.
    async fn remove_texts(&self, session: SessionId) -> Result<(), StoreError> {
        while self.store.remove_text_batch(session).await? > 0 {
            tokio::time::sleep(STEP_PAUSE).await;
        }
        Ok(())
    }

    /// Removes audit rows past their retention; returns how many.
    async fn trim_audit_log(&self, now: Timestamp) -> Result<u64, StoreError> {
        let Some(length) = self.rules.acts else {
            return Ok(0);
        };
        let mut removed = 0;
        loop {
            let dropped = self
                .store
                .drop_audit_entries(now - length, ACT_PAGE)
                .await?;
            removed += dropped;
            if dropped < ACT_PAGE.into() {
                return Ok(removed);
            }
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }

    /// The limit before which the session was last used, if it is to be removed.
    fn removal(&self, journal: &JournalFacts, now: Timestamp) -> Option<Timestamp> {
        let is_before = |limit: &Timestamp, moment: Timestamp| moment < *limit;
        if let (Some(ended), Some(length)) = (journal.ended_at, self.rules.ended) {
            let limit = now - length;
            return Some(limit).filter(|limit| is_before(limit, ended));
        }
        let limit = now - self.rules.sessions?;
        // A live session has members, however old its last event.
        Some(limit).filter(|limit| {
            is_before(limit, journal.updated_at) && !self.live.lock().contains_key(&journal.session)
        })
    }

    /// Joins chunks older than `before`; returns by how many events the journal shrank.
    async fn compact(&self, journal: &JournalFacts, before: Timestamp) -> Result<u64, StoreError> {
        let (session, mut after, mut fewer) = (journal.session, journal.compacted, 0);
        loop {
            let page = self.store.events_after(session, after, EVENT_PAGE).await?;
            let old: Vec<_> = page
                .iter()
                .take_while(|event| event.at < before)
                .map_while(read)
                .map(|entry| entry.recorded)
                .collect();
            let count = old.len();
            let last = old.last().map(|last| last.offset);
            // An unreadable event stays as it is and is skipped.
            let unreadable = page.first().filter(|event| event.at < before);
            let Some(upto) = last.or(unreadable.map(|event| event.offset)) else {
                return Ok(fewer);
            };
            let kept = compact(old);
            let joined: Option<Vec<_>> = (kept.len() < count)
                .then(|| kept.iter().map(|kept| stored(session, kept)).collect());
            self.store
                .compact_journal(session, after, upto, joined.as_deref())
                .await?;
            fewer += (count - kept.len()) as u64;
            after = upto;
            tokio::time::sleep(STEP_PAUSE).await;
        }
    }

    async fn last_to_drop(
        &self,
        journal: &JournalFacts,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let too_old = match self.rules.events.map(|length| now - length) {
            Some(limit) if journal.oldest.is_some_and(|oldest| oldest < limit) => {
                self.store.last_before(journal.session, limit).await?
            }
            _ => None,
        };
        let too_much = match self.rules.bytes {
            // A journal that has not grown since the last pass fits already.
            Some(bytes) if journal.compacted < journal.head => {
                self.store.last_beyond(journal.session, bytes).await?
            }
            _ => None,
        };
        Ok(too_old.max(too_much))
    }
}

fn days(count: u32) -> Option<SignedDuration> {
    (count > 0).then(|| SignedDuration::from_hours(24 * i64::from(count)))
}
