//! Looks through all journals and the audit log now and then, so that none grows for ever.
//!
//! Pieces of old answers are joined, old events leave, sessions that nobody used for long are
//! removed: all by configuration. No offset ever comes to mean something else; whoever comes back
//! to a place that is not there any more gets the state. Touches `store` and `domain`.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::compaction::compact;
use super::journal::{read, stored};
use super::live::Live;
use super::{Config, JournalConfig};
use crate::clock::Clock;
use crate::domain::act::{Action, By};
use crate::domain::id::SessionId;
use crate::store::{AuditConfig, JournalFacts, Store, StoreError};

/// How often it looks.
pub(crate) const EVERY: Duration = Duration::from_mins(10);
const JOURNALS: u32 = 500;
/// Events joined in one transaction: others write in between.
const EVENTS: u32 = 1_000;
/// Rows of the audit log dropped in one transaction.
const ACTS: u32 = 1_000;
/// Between two steps: nobody waits for this, and many wait for storage.
const BREATH: Duration = Duration::from_millis(5);

/// The one who makes room.
pub(crate) struct Keeper {
    store: Arc<dyn Store>,
    clock: Clock,
    live: Live,
    rules: Rules,
}

/// For how long things are kept; without a length, for ever.
struct Rules {
    pieces: SignedDuration,
    events: Option<SignedDuration>,
    bytes: Option<u64>,
    sessions: Option<SignedDuration>,
    ended: Option<SignedDuration>,
    acts: Option<SignedDuration>,
}

/// What a round came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tidied {
    /// Events that went into others.
    pub(crate) joined: u64,
    /// Events that left.
    pub(crate) dropped: u64,
    /// Sessions that were removed.
    pub(crate) removed: u64,
    /// Rows that left the audit log.
    pub(crate) forgotten: u64,
}

impl Keeper {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        live: Live,
        sessions: &Config,
        journal: &JournalConfig,
        audit: &AuditConfig,
    ) -> Self {
        let rules = Rules {
            pieces: SignedDuration::from_mins(journal.compact_after_minutes.into()),
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

    /// Looks at every journal once, and at the audit log. Can be dropped at any point: each step is whole by itself.
    pub(crate) async fn round(&self) -> Result<Tidied, StoreError> {
        let now = self.clock.wall();
        let (mut tidied, mut after) = (Tidied::default(), None);
        loop {
            let page = self.store.journals(after, JOURNALS).await?;
            let Some(last) = page.last() else {
                tidied.forgotten = self.shorten_audit_log(now).await?;
                return Ok(tidied);
            };
            after = Some(last.session);
            for journal in &page {
                self.look_after(journal, now, &mut tidied).await?;
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    async fn look_after(
        &self,
        journal: &JournalFacts,
        now: Timestamp,
        tidied: &mut Tidied,
    ) -> Result<(), StoreError> {
        if let Some(limit) = self.removal(journal, now) {
            tidied.removed += u64::from(self.remove(journal, limit, now).await?);
            return Ok(());
        }
        if journal.ended_at.is_some() {
            if journal.has_old_texts {
                self.forget_texts(journal.session).await?;
            }
            return Ok(());
        }
        // Whoever made the branch did not get to it.
        while journal.lacks_texts && self.store.copy_texts(journal.session).await? {
            tokio::time::sleep(BREATH).await;
        }
        if journal.compacted < journal.head {
            tidied.joined += self.join(journal, now - self.rules.pieces).await?;
        }
        if let Some(upto) = self.last_to_drop(journal, now).await? {
            tidied.dropped += self.store.drop_events(journal.session, upto).await?;
        }
        Ok(())
    }

    /// Removes a session, the most of it a little at a time. It ends before that, so that nobody
    /// comes back to a half of it.
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
        self.forget_texts(session).await?;
        while self.store.clear_journal(session).await? > 0 {
            tokio::time::sleep(BREATH).await;
        }
        let act = By::gateway(now).did(Action::SessionExpired, session.to_string());
        self.store.remove_session(session, limit, &act).await
    }

    /// What has ended is not found any more; its texts only take room.
    async fn forget_texts(&self, session: SessionId) -> Result<(), StoreError> {
        while self.store.forget_texts(session).await? > 0 {
            tokio::time::sleep(BREATH).await;
        }
        Ok(())
    }

    /// Drops the rows that are too old; says how many.
    async fn shorten_audit_log(&self, now: Timestamp) -> Result<u64, StoreError> {
        let Some(length) = self.rules.acts else {
            return Ok(0);
        };
        let mut forgotten = 0;
        loop {
            let dropped = self.store.drop_acts(now - length, ACTS).await?;
            forgotten += dropped;
            if dropped < ACTS.into() {
                return Ok(forgotten);
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Untouched since which moment it may be removed, if it is to be.
    fn removal(&self, journal: &JournalFacts, now: Timestamp) -> Option<Timestamp> {
        let is_before = |limit: &Timestamp, moment: Timestamp| moment < *limit;
        if let (Some(ended), Some(length)) = (journal.ended_at, self.rules.ended) {
            let limit = now - length;
            return Some(limit).filter(|limit| is_before(limit, ended));
        }
        let limit = now - self.rules.sessions?;
        // Somebody who is in it has not left it, however little is said.
        Some(limit).filter(|limit| {
            is_before(limit, journal.updated_at) && !self.live.lock().contains_key(&journal.session)
        })
    }

    /// Joins pieces that are older than a moment; says how many events there are fewer.
    async fn join(&self, journal: &JournalFacts, before: Timestamp) -> Result<u64, StoreError> {
        let (session, mut after, mut fewer) = (journal.session, journal.compacted, 0);
        loop {
            let page = self.store.events_after(session, after, EVENTS).await?;
            let old: Vec<_> = page
                .iter()
                .take_while(|event| event.at < before)
                .map_while(read)
                .map(|entry| entry.recorded)
                .collect();
            let count = old.len();
            let last = old.last().map(|last| last.offset);
            // One that cannot be read stays as it is, and is passed by.
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
            tokio::time::sleep(BREATH).await;
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
            // One that has not grown since the last look fits, or was made to.
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
