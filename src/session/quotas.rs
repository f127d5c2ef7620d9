//! Quotas: bound what one user stores, and keep a floor of free disk space. Touches `store` and `domain`.
//!
//! Journal bytes of a user are counted over all their sessions: what the database has recorded, and what
//! live journals have grown since. A prompt reads the recorded part again; while a run goes on, memory is
//! enough to end it at the quota.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::mailbox::Refused;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::UserId;
use crate::store::{Store, StoreError, UserUsage};

/// The floor is never more than this part of the disk.
const FLOOR_PART: u64 = 20;

/// What one user may store, and the floor of free disk space.
#[derive(Clone, Debug)]
pub struct QuotaConfig {
    /// Sessions that have not ended.
    pub user_sessions: u64,
    /// Journals of all sessions that are still stored.
    pub user_journal_bytes: u64,
    /// Free bytes below which no prompt is accepted.
    pub min_free_bytes: u64,
    /// A directory on the disk that counts.
    pub dir: PathBuf,
}

/// The quota, or another limit of a session, that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuotaExceeded {
    /// Its name for clients.
    pub(crate) limit: &'static str,
    pub(crate) max: u64,
    pub(crate) actual: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    quota: &'static str,
}

pub(super) struct Quotas {
    config: QuotaConfig,
    /// Users with a live session.
    journals: Mutex<HashMap<UserId, Weak<JournalUsage>>>,
    refusals: Family<Labels, Counter>,
}

#[derive(Clone, Copy, Debug)]
struct Disk {
    free: u64,
    size: u64,
}

/// Bytes of a user's journals on this node. Shared by the user's live journals.
#[derive(Debug, Default)]
pub(crate) struct JournalUsage {
    /// What the database had recorded when it was last asked, and what was committed since.
    used: AtomicU64,
    /// The part of it that the database has not recorded yet.
    unrecorded: AtomicU64,
}

impl JournalUsage {
    pub(super) fn add(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.unrecorded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The database has recorded so many of them.
    pub(super) fn recorded(&self, bytes: u64) {
        self.unrecorded.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn reload(&self, recorded: u64) -> u64 {
        let used = recorded + self.unrecorded.load(Ordering::Relaxed);
        self.used.store(used, Ordering::Relaxed);
        used
    }
}

impl Quotas {
    pub(super) fn new(config: QuotaConfig) -> Self {
        let refusals = Family::<Labels, Counter>::default();
        for quota in ["userSessions", "userJournalBytes", "minFreeBytes"] {
            // Present from the start: an alert needs a series.
            drop(refusals.get_or_create_owned(&Labels { quota }));
        }
        Self {
            config,
            journals: Mutex::default(),
            refusals,
        }
    }

    pub(super) fn register_metrics(&self, registry: &mut Registry) {
        registry.register(
            "quota_refusals",
            "What was refused because a quota was reached or the disk is nearly full",
            self.refusals.clone(),
        );
    }

    pub(super) fn limits(&self) -> &QuotaConfig {
        &self.config
    }

    pub(super) fn journal_usage(&self, user: UserId) -> Arc<JournalUsage> {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = journals.get(&user).and_then(Weak::upgrade) {
            return usage;
        }
        journals.retain(|_, usage| usage.strong_count() > 0);
        let usage = Arc::new(JournalUsage::default());
        journals.insert(user, Arc::downgrade(&usage));
        usage
    }

    /// May the user have one more session?
    pub(super) async fn check_new_session(
        &self,
        store: &dyn Store,
        owner: UserId,
    ) -> Result<(), QuotaError> {
        let usage = store.usage(owner).await?;
        self.check_sessions(usage)?;
        let used = self.journal_usage(owner).reload(usage.journal_bytes);
        self.check_journal_bytes(used)?;
        Ok(self.check_free_disk()?)
    }

    /// May a prompt be accepted in a session of the user's, perhaps as its first?
    pub(super) async fn check_prompt(
        &self,
        store: &dyn Store,
        owner: UserId,
        is_first: bool,
        journals: &JournalUsage,
    ) -> Result<(), QuotaError> {
        let usage = store.usage(owner).await?;
        if is_first {
            self.check_sessions(usage)?;
        }
        let used = journals.reload(usage.journal_bytes);
        self.check_journal_bytes(used)?;
        Ok(self.check_free_disk()?)
    }

    /// While a run goes on: has the user's share been used up meanwhile?
    pub(super) fn check_run(&self, journals: &JournalUsage) -> Result<(), QuotaExceeded> {
        self.check_journal_bytes(journals.used.load(Ordering::Relaxed))
    }

    fn check_sessions(&self, usage: UserUsage) -> Result<(), QuotaExceeded> {
        self.check(
            "userSessions",
            self.config.user_sessions,
            usage.sessions + 1,
        )
    }

    fn check_journal_bytes(&self, used: u64) -> Result<(), QuotaExceeded> {
        self.check("userJournalBytes", self.config.user_journal_bytes, used)
    }

    fn check(&self, limit: &'static str, max: u64, actual: u64) -> Result<(), QuotaExceeded> {
        if actual <= max {
            return Ok(());
        }
        self.refusals
            .get_or_create_owned(&Labels { quota: limit })
            .inc();
        Err(QuotaExceeded { limit, max, actual })
    }

    fn check_free_disk(&self) -> Result<(), DiskLow> {
        let Some(disk) = measure(&self.config.dir) else {
            return Ok(());
        };
        let floor = self.config.min_free_bytes.min(disk.size / FLOOR_PART);
        if disk.free >= floor {
            return Ok(());
        }
        let quota = "minFreeBytes";
        self.refusals.get_or_create_owned(&Labels { quota }).inc();
        Err(DiskLow {
            free: disk.free,
            floor,
        })
    }
}

fn measure(dir: &Path) -> Option<Disk> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(Disk {
        free: disk.f_bavail.saturating_mul(disk.f_frsize),
        size: disk.f_blocks.saturating_mul(disk.f_frsize),
    })
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{} free, the floor is {}", mebibytes(*free), mebibytes(*floor))]
pub(crate) struct DiskLow {
    free: u64,
    floor: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum QuotaError {
    #[error("{}", .0.sentence())]
    Exceeded(QuotaExceeded),
    #[error(transparent)]
    DiskLow(#[from] DiskLow),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<QuotaExceeded> for QuotaError {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

impl QuotaExceeded {
    pub(crate) fn sentence(&self) -> String {
        let Self { max, actual, .. } = self;
        match self.limit {
            "userSessions" => {
                format!("This account may have {max} sessions: end one, then start another.")
            }
            _ => format!(
                "The journals of this account have reached their quota ({} of {}): sessions that were \
                 ended count until they are removed.",
                mebibytes(*actual),
                mebibytes(*max)
            ),
        }
    }
}

impl DiskLow {
    pub(crate) fn sentence(self) -> String {
        format!(
            "The gateway's disk is nearly full ({self}); nothing new is accepted until there is room."
        )
    }
}

impl From<QuotaExceeded> for Refused {
    fn from(exceeded: QuotaExceeded) -> Self {
        Self {
            quota: Some(exceeded),
            ..Self::new(ErrorCode::ValidationError, exceeded.sentence())
        }
    }
}

impl From<QuotaError> for Refused {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::Exceeded(exceeded) => exceeded.into(),
            QuotaError::DiskLow(low) => Self::new(ErrorCode::StorageUnavailable, low.sentence()),
            QuotaError::Store(error) => {
                tracing::warn!(%error, "a command was refused: its owner's usage cannot be read");
                Self::storage_unavailable()
            }
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1024 * 1024;
    if bytes < MEBIBYTE {
        return format!("{} KiB", bytes.div_ceil(1024));
    }
    format!("{} MiB", bytes / MEBIBYTE)
}
