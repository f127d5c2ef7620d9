//! Audit log: entries written, filtered and expired.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::StoreError;
use crate::domain::audit::AuditEntry;

/// The `[audit]` section.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    /// Rows older than this many days are dropped; 0 keeps all.
    pub keep_days: u32,
}

/// A stored audit entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Grows with every row.
    pub id: i64,
    /// When it happened.
    pub at: Timestamp,
    /// The actor's name.
    pub actor: String,
    /// The client's address.
    pub address: Option<String>,
    /// The action.
    pub action: String,
    /// The id or name acted upon.
    pub target: String,
}

/// Filter for audit rows; absent fields match everything.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// The actor: a user name as it was then, or a user id.
    pub actor: Option<String>,
    /// The action: a full name, or a prefix that ends with a dot.
    pub action: Option<String>,
    /// The exact target.
    pub target: Option<String>,
    /// At or after this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// With a smaller row id, for paging.
    pub before: Option<i64>,
}

/// Writing, reading and expiring audit entries.
#[async_trait]
pub trait Audit: Send + Sync {
    /// Writes an entry for something that changed nothing else in the database.
    async fn record(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// The newest rows, newest first.
    async fn recent_audit_entries(&self, limit: u32) -> Result<Vec<AuditRow>, StoreError>;

    /// The rows that match a filter, newest first.
    async fn audit_entries(
        &self,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError>;

    /// Drops at most `limit` rows older than a time; returns how many.
    async fn drop_audit_entries(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
