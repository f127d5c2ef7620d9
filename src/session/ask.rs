//! What a session is asked, and what comes of it.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::state::{Ended, SessionState};
use crate::domain::act::By;
use crate::domain::code::Code;
use crate::domain::command::{Command, Inquiry};
use crate::domain::id::RunId;
use crate::store::CommandRecord;
use crate::telemetry::Context;

/// Why a command had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Which kind of reason.
    pub(crate) code: Code,
    /// What a person reads.
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// It took effect now; perhaps on a run.
    Done(Option<RunId>),
    /// A prompt has its run, which begins now.
    Begun(RunId),
    /// A prompt has its run, which waits for its turn.
    Queued(RunId),
    /// It took effect earlier, under the same key.
    DoneBefore(Option<RunId>),
    /// The question has its end.
    Resolved {
        /// How it ended.
        ended: Ended,
        /// Was it this answer that ended it?
        accepted: bool,
    },
}

/// A command with what its sender said about it.
pub(crate) struct Request {
    /// What is wanted.
    pub(crate) command: Command,
    /// What is known about its sending.
    pub(crate) sent: Sent,
}

/// What is known about the sending of a command.
pub(crate) struct Sent {
    /// Who wants it, from where.
    pub(crate) by: By,
    /// May its sender still do this? Asked once more right before it takes effect: it may have waited
    /// behind others.
    pub(crate) still: Arc<dyn Fn() -> Result<(), Refused> + Send + Sync>,
    /// What the sender calls it.
    pub(crate) message_id: Option<String>,
    /// The key under which it shall take effect once, and the digest of what was sent.
    pub(crate) once: Option<(String, [u8; 32])>,
    /// The trace that it belongs to, if there is one.
    pub(crate) trace: Option<Context>,
}

impl Sent {
    /// The name of whoever sent it.
    pub(super) fn name(&self) -> String {
        self.by.actor.name().to_owned()
    }
}

/// What becomes of a question to an agent that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// The agent is started.
    IfNeeded,
    /// It is refused: a process is not for everybody to start.
    Never,
}

/// What a router is asked.
#[allow(clippy::large_enum_variant, reason = "it travels in a box")]
pub(super) enum Ask {
    /// With the moment until which its effect may begin.
    Command(Request, Instant, oneshot::Sender<Result<Effect, Refused>>),
    State(oneshot::Sender<SessionState>),
    /// Something of the agent itself.
    Inquire(
        Inquiry,
        Wake,
        Option<(String, [u8; 32])>,
        oneshot::Sender<Result<Value, Refused>>,
    ),
    /// The session is about to end: its run must end first.
    EndRun(oneshot::Sender<()>),
}

/// The outcome of a command that shall take effect once.
pub(super) fn recorded((key, digest): (String, [u8; 32]), run: Option<RunId>) -> CommandRecord {
    CommandRecord {
        key,
        digest,
        outcome: serde_json::to_vec(&run).expect("an id is plain JSON"),
    }
}
