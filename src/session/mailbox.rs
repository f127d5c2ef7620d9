//! Mailbox: the messages that a session's router takes, and their results.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::access_changes::ControlStatus;
use super::branch::BranchInfo;
use super::quotas::QuotaExceeded;
use super::state::{ResolvedQuestion, SessionState};
use crate::domain::audit::AuditContext;
use crate::domain::command::{AgentRequest, Command, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;
use crate::domain::idempotency::IdempotencyKey;
use crate::store::CommandRecord;
use crate::telemetry::Context;

/// Messages that a router may have waiting. Full: senders wait.
pub(super) const MAILBOX_CAPACITY: usize = 64;

/// Boxed: the channel allocates its slots in blocks, and most sessions get few messages.
pub(super) type Mailbox = mpsc::Sender<Box<SessionMessage>>;

#[allow(clippy::large_enum_variant, reason = "it travels in a box")]
pub(super) enum SessionMessage {
    /// A command, and the moment after which its effect must not begin any more.
    Command(Request, Instant, oneshot::Sender<Result<Reply, Refused>>),
    State(oneshot::Sender<SessionState>),
    AgentRequest(
        AgentRequest,
        StartPolicy,
        Option<IdempotencyKey>,
        oneshot::Sender<Result<Value, Refused>>,
    ),
    /// An account or the session's grants have changed: do those whose prompts run or wait still have
    /// the right to send them?
    SendersChanged,
    /// The session is about to end: its run ends first.
    EndRun(oneshot::Sender<()>),
}

/// A command and what is known about its sender.
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) meta: CommandMeta,
}

pub(crate) struct CommandMeta {
    pub(crate) by: AuditContext,
    /// Checks the sender's rights again right before the command takes effect: it may have waited.
    pub(crate) recheck: Arc<dyn Fn() -> Result<(), Refused> + Send + Sync>,
    pub(crate) message_id: Option<String>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) trace: Option<Context>,
}

impl CommandMeta {
    pub(super) fn sender(&self) -> String {
        self.by.actor.name().to_owned()
    }
}

/// Whether a request to an agent that does not run may start it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartPolicy {
    IfNeeded,
    /// The request is refused: viewers must not start processes.
    Never,
}

/// Why a command had no effect, as its sender is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
    /// The quota or the limit that was reached, for programs.
    pub(crate) quota: Option<QuotaExceeded>,
    /// The field of the message that is at fault.
    pub(crate) field: Option<String>,
}

impl Refused {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            quota: None,
            field: None,
        }
    }

    /// Names the field of the message that is at fault.
    pub(super) fn about(self, field: String) -> Self {
        let field = Some(field);
        Self { field, ..self }
    }

    pub(super) fn storage_unavailable() -> Self {
        Self::new(
            ErrorCode::StorageUnavailable,
            "The database is unavailable at the moment; nothing was changed.",
        )
    }

    pub(super) fn session_moving() -> Self {
        Self::new(
            ErrorCode::Busy,
            "The session is moving; try again in a moment.",
        )
    }

    pub(super) fn shutting_down() -> Self {
        Self::new(
            ErrorCode::Busy,
            "The gateway is going down; come back in a moment.",
        )
    }

    pub(super) fn key_reused() -> Self {
        Self::new(
            ErrorCode::ValidationError,
            "This idempotencyKey was used for another command.",
        )
    }
}

/// A direct answer to one request, for its sender only. The wire turns it into a frame.
#[derive(Debug)]
pub(crate) enum Reply {
    /// It took effect now; perhaps on a run.
    Done(Option<RunId>),
    Started(RunId),
    Queued(RunId),
    /// It took effect earlier, under the same idempotency key.
    Repeated(Option<RunId>),
    Resolved {
        ended: ResolvedQuestion,
        /// True if this answer resolved it; false if another one came first.
        accepted: bool,
    },
    Control(ControlStatus),
    Branched(BranchInfo),
    Extension(Value),
    QueryResult(Topic, Value),
    /// A newer token is in force until then.
    TokenRefreshed(Timestamp),
    Heartbeat,
}

/// Why the router did not carry out a command.
pub(super) enum CommandError {
    Refused(Refused),
    /// The router lost its journal or the gateway stops: the router ends.
    Terminated,
}

impl From<Refused> for CommandError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

pub(super) fn command_record(
    idempotency_key: IdempotencyKey,
    outcome: &impl Serialize,
) -> CommandRecord {
    CommandRecord {
        idempotency_key,
        outcome: serde_json::to_vec(outcome).expect("ids are plain JSON"),
    }
}
