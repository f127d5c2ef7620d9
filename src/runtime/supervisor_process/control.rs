//! Supervisor control: the messages between a supervisor and the process that started it, over one
//! socket pair.
//!
//! First the launch specification, with the descriptors of the agent's streams and directories; then
//! single bytes to the supervisor and lines of JSON back. The end of the stream means that the other
//! side is gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::runtime::process_environment::Account;
use crate::runtime::sandbox::{Confinement, ProcessLimits};

/// Asks the agent's processes to end.
pub(in crate::runtime) const TERMINATE: u8 = b't';
/// Ends all of them.
pub(in crate::runtime) const KILL: u8 = b'k';

/// The streams and the working directory, then those that the agent may write to.
const MAX_DESCRIPTORS: usize = 16;
const MAX_SPEC_BYTES: usize = 4 * 1024 * 1024;

/// How an agent's process is started.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::runtime) struct LaunchSpec {
    /// An absolute path.
    pub(in crate::runtime) program: PathBuf,
    pub(in crate::runtime) arguments: Vec<String>,
    pub(in crate::runtime) variables: BTreeMap<String, OsString>,
    /// The path of the working directory, which comes as a descriptor.
    pub(in crate::runtime) directory: PathBuf,
    /// The system user, if not ours.
    pub(in crate::runtime) account: Option<Account>,
    pub(in crate::runtime) umask: Option<u32>,
    pub(in crate::runtime) limits: ProcessLimits,
    /// None: no sandbox.
    pub(in crate::runtime) confinement: Option<Confinement>,
}

/// The descriptors that come with a specification.
#[derive(Debug)]
pub(in crate::runtime) struct Descriptors {
    pub(in crate::runtime) stdin: OwnedFd,
    pub(in crate::runtime) stdout: OwnedFd,
    pub(in crate::runtime) stderr: OwnedFd,
    pub(in crate::runtime) directory: OwnedFd,
    /// Further directories that the agent may write to.
    pub(in crate::runtime) writable: Vec<OwnedFd>,
}

/// A line from the supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::runtime) enum Report {
    /// The agent's process runs; its process group has the same id.
    Started {
        pid: i32,
    },
    NotStarted(StartFailure),
    /// The agent's process ended, with this wait status. The rest of its tree is being ended; the
    /// supervisor exits when there is nothing left.
    Ended {
        status: i32,
    },
}

/// Why there is no agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::runtime) enum StartFailure {
    /// The system user cannot be taken on, or cannot reach the working directory.
    Account {
        message: String,
    },
    Sandbox {
        message: String,
    },
    Exec {
        errno: Option<i32>,
        message: String,
    },
}

/// Sends the specification. Blocks.
pub(in crate::runtime) fn send_spec(
    control: &UnixStream,
    spec: &LaunchSpec,
    descriptors: &Descriptors,
) -> io::Result<()> {
    let json = serde_json::to_vec(spec).map_err(io::Error::other)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut sent: Vec<BorrowedFd<'_>> = vec![
        descriptors.stdin.as_fd(),
        descriptors.stdout.as_fd(),
        descriptors.stderr.as_fd(),
        descriptors.directory.as_fd(),
    ];
    sent.extend(
        descriptors
            .writable
            .iter()
            .map(|directory| directory.as_fd()),
    );
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if sent.len() > MAX_DESCRIPTORS || !ancillary.push(SendAncillaryMessage::ScmRights(&sent)) {
        return Err(io::Error::other("too many directories for one agent"));
    }
    let head = length.to_be_bytes();
    // Four bytes fit into an empty socket.
    sendmsg(
        control,
        &[IoSlice::new(&head)],
        &mut ancillary,
        SendFlags::empty(),
    )?;
    (&mut &*control).write_all(&json)
}

/// Receives the specification. Blocks; none if the other side is gone.
pub(super) fn receive_spec(control: &UnixStream) -> io::Result<Option<(LaunchSpec, Descriptors)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut head = [0; 4];
    let parts = &mut [IoSliceMut::new(&mut head)];
    let received = recvmsg(control, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut taken = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            taken.extend(descriptors);
        }
    }
    let length = u32::from_be_bytes(head) as usize;
    let incomplete = || io::Error::other("an incomplete launch specification");
    if received.bytes < head.len() || length > MAX_SPEC_BYTES {
        return Err(incomplete());
    }
    let mut json = vec![0; length];
    (&mut &*control).read_exact(&mut json)?;
    let spec = serde_json::from_slice(&json).map_err(io::Error::other)?;
    let mut taken = taken.into_iter();
    let mut next = || taken.next().ok_or_else(incomplete);
    let descriptors = Descriptors {
        stdin: next()?,
        stdout: next()?,
        stderr: next()?,
        directory: next()?,
        writable: taken.collect(),
    };
    Ok(Some((spec, descriptors)))
}

/// Sends one line. An error means that the other side is gone, which the reader notices.
pub(super) fn send_report(mut control: &UnixStream, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        control.write_all(&line).ok();
    }
}
