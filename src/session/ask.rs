//! What a session is asked, and what comes of it.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::state::SessionState;
use crate::domain::code::Code;
use crate::domain::command::Command;
use crate::domain::id::RunId;
use crate::store::CommandRecord;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It took effect now; a prompt has its run.
    Done(Option<RunId>),
    /// It took effect earlier, under the same key.
    DoneBefore(Option<RunId>),
}

/// A command with what its sender said about it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// What is wanted.
    pub(crate) command: Command,
    /// What the sender calls it.
    pub(crate) message_id: Option<String>,
    /// The key under which it shall take effect once, and the digest of what was sent.
    pub(crate) once: Option<(String, [u8; 32])>,
}

/// What a router is asked.
pub(super) enum Ask {
    /// With the moment until which its effect may begin.
    Command(Request, Instant, oneshot::Sender<Result<Effect, Refused>>),
    State(oneshot::Sender<SessionState>),
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
