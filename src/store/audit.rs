//! The audit log, as administrators read it, and how long it is kept.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use super::upkeep::AuditRow;

/// The `[audit]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// Rows older than so many days leave; 0 keeps all.
    pub keep_days: u32,
}

/// Which rows of the audit log; what is absent does not matter.
#[derive(Clone, Debug, Default)]
pub struct ActFilter {
    /// Whose acts: a name as it was then, or the id of an account.
    pub actor: Option<String>,
    /// Which acts: a whole name, or its beginning up to a dot.
    pub action: Option<String>,
    /// What was acted upon.
    pub target: Option<String>,
    /// Not before this moment.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Older than this row.
    pub before: Option<i64>,
}

/// Reading and shortening the audit log.
#[async_trait]
pub trait Audit: Send + Sync {
    /// The rows that the filter lets through, newest first.
    async fn acts(&self, filter: &ActFilter, limit: u32) -> Result<Vec<AuditRow>, StoreError>;

    /// Drops rows from before a moment, at most so many; says how many.
    async fn drop_acts(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
