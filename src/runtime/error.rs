//! Agent errors: why an agent cannot be used, in words for the operator: what happened, what to do.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::messages::Declined;
use super::workspace::WorkspaceError;
use crate::domain::error_code::ErrorCode;
use crate::domain::run::FailureCause;

#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    #[error(
        "its program `{program}` was not found: install it, or give its full path in `command`"
    )]
    NotFound { program: String },
    #[error("{} is not executable: `chmod +x` it, or correct `command`", .path.display())]
    NotExecutable { path: PathBuf },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("there is no user `{user}` on this machine: correct `user`")]
    NoUser { user: String },
    #[error("the file of `{variable}` cannot be read ({}: {source}): correct `env_files`", .path.display())]
    EnvFile {
        variable: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "the user `{user}` cannot be used for it: the gateway must be root, and that user must be able to \
         reach {} and the gateway's program: {reason}", .directory.display()
    )]
    OutOfReach {
        user: String,
        directory: PathBuf,
        reason: String,
    },
    #[error("its sandbox cannot be made: {reason}")]
    Sandbox { reason: String },
    #[error("it cannot be started: {0}")]
    Spawn(io::Error),
    #[error("its socket {} cannot be reached: {source}", .path.display())]
    Connect { path: PathBuf, source: io::Error },
    #[error("its socket {} is used by another session, and it serves one at a time", .path.display())]
    Taken { path: PathBuf },
    #[error("nobody is connected to {}: start the program that connects there", .path.display())]
    NoPeer { path: PathBuf },
    #[error("it ended ({})", describe(*.status))]
    Ended { status: ExitStatus },
    #[error("it closed the line")]
    Closed,
    #[error("it was not ready within {} s", .after.as_secs())]
    NotReady { after: Duration },
    #[error("it said nothing for {} s and was ended", .after.as_secs())]
    Silent { after: Duration },
    #[error("it said more than {} MiB in one run and was ended", .bytes >> 20)]
    TooMuch { bytes: u64 },
    #[error("{}", .0.message)]
    Refused(Declined),
}

impl AgentError {
    /// Whether an agent ran and ended badly, as opposed to one that never started.
    pub(super) fn is_crash(&self) -> bool {
        matches!(
            self,
            Self::Ended { .. }
                | Self::Closed
                | Self::NotReady { .. }
                | Self::Silent { .. }
                | Self::TooMuch { .. }
                | Self::Refused(_)
        )
    }

    /// Why its runs are lost; none if the code and the agent's own words say it all.
    pub(super) fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::NotFound { .. } => Some(FailureCause::NotInstalled),
            Self::NotExecutable { .. }
            | Self::Workspace(_)
            | Self::NoUser { .. }
            | Self::EnvFile { .. }
            | Self::OutOfReach { .. }
            | Self::Sandbox { .. }
            | Self::Spawn(_)
            | Self::Connect { .. }
            | Self::NoPeer { .. }
            | Self::NotReady { .. } => Some(FailureCause::NotStarted),
            Self::Ended { .. } | Self::Closed => Some(FailureCause::Crashed),
            Self::Taken { .. } | Self::Silent { .. } | Self::TooMuch { .. } | Self::Refused(_) => {
                None
            }
        }
    }

    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Refused(declined) => declined.code,
            Self::Silent { .. } | Self::TooMuch { .. } => ErrorCode::TaskFailed,
            Self::Taken { .. } => ErrorCode::Busy,
            _ => ErrorCode::ConnectionLost,
        }
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}
