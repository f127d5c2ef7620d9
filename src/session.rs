//! Session: its journal, the router that writes it, the state folded from it, and who may join.
//!
//! [`Sessions`] is the registry of live sessions on this node, [`Session`] the handle that a
//! connection holds. A join activates a session; an idle one leaves memory. Touches `limits`,
//! `runtime`, `store`, `domain`, `clock`, `telemetry`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod access;
mod access_changes;
mod branch;
mod compaction;
mod config;
mod connection_registry;
mod control_lease;
mod detached_agent_test;
mod handle;
mod history;
mod journal;
mod live_sessions;
mod mailbox;
mod metrics;
mod presence;
mod question_audit;
mod quotas;
mod read_permits;
mod registry;
mod retention;
mod router;
mod run_recorder;
mod running_agent;
mod search_text;
pub(crate) mod state;
mod tail;
mod watermark;

pub(crate) use access::{Access, may_join};
pub(crate) use access_changes::ControlStatus;
pub(crate) use branch::BranchInfo;
pub use config::{Config, JournalConfig};
pub(crate) use connection_registry::{ConnectionInfo, Connections, Registration};
pub(crate) use control_lease::{ControlError, DriverIdentity, Takeover};
pub(crate) use detached_agent_test::TestPrompt;
pub(crate) use history::{ReadError, SearchError};
pub(crate) use journal::{CommitLoop, Journal, JournalRead};
pub(crate) use mailbox::{CommandMeta, Refused, Reply, Request, StartPolicy};
pub(crate) use presence::Presence;
pub use quotas::QuotaConfig;
pub(crate) use quotas::{QuotaError, QuotaExceeded};
pub(crate) use registry::Sessions;
pub(crate) use retention::{RETENTION_INTERVAL, RetentionTask};
pub(crate) use tail::Entry;

use crate::clock::Clock;
use crate::domain::id::{SessionId, UserId};
use crate::limits::Permits;
use crate::runtime::Catalog;
use crate::store::{Failures, NewSession, Store, StoreError};
use crate::telemetry::Tracer;
use branch::BranchLimits;
use journal::Committer;
use live_sessions::LiveSessions;
use mailbox::Mailbox;
use quotas::Quotas;
use read_permits::ReadPermits;
use tail::Tails;

pub(crate) struct Parts {
    store: Arc<dyn Store>,
    clock: Clock,
    catalog: Catalog,
    committer: Committer,
    tails: Arc<Tails>,
    live: LiveSessions,
    /// A session without members and without a run leaves memory after this.
    idle_timeout: Duration,
    /// A question without an answer expires after this.
    question_timeout: Option<Duration>,
    /// A driver that shows no activity loses control after this.
    control_lease: Duration,
    /// Prompts that may wait in one session. Full: the next one is refused.
    queue_max: usize,
    shutdown: ShutdownTokens,
    tracker: TaskTracker,
    branch_limits: BranchLimits,
    search_permits: Permits<UserId>,
    read_permits: ReadPermits,
    quotas: Quotas,
    metrics: Arc<metrics::Metrics>,
    tracer: Tracer,
}

/// The two steps of a shutdown.
#[derive(Clone)]
pub(crate) struct ShutdownTokens {
    /// Nothing new begins; runs under way go on.
    pub(crate) drain: CancellationToken,
    /// Runs end now.
    pub(crate) stop: CancellationToken,
}

#[derive(Default)]
pub(crate) struct Instruments {
    pub(crate) tracer: Tracer,
    pub(crate) failures: Failures,
}

#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    id: SessionId,
    owner: UserId,
    agent: String,
    journal: Journal,
    parts: Arc<Parts>,
    /// A draft has none before its first message: a connection that is only open costs no router.
    mailbox: OnceLock<Mailbox>,
    /// The row to create with the first event, if the session is not stored yet.
    draft: Option<NewSession>,
    /// A draft that had no members at the last sweep.
    abandoned: AtomicBool,
    /// This handle is dead.
    closed: CancellationToken,
    /// The session has ended for good.
    ended: AtomicBool,
    presence: Presence,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    /// Not there, or not for this principal: the answer is the same, so that ids cannot be probed.
    #[error("there is no such session")]
    NotFound,
    #[error("there is no agent `{0}` here")]
    NoSuchAgent(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests;
