//! The last step before an agent's program: this binary, started once more, makes sure that the
//! agent does not outlive the gateway, and becomes the agent.
//!
//! A signal for the death of the parent can only be asked for by the child itself, and code between
//! fork and exec would need `unsafe`. Hence a small program that asks for it and then execs.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal, umask};

/// The name of the hidden sub-command.
pub(crate) const SUBCOMMAND: &str = "launch";

/// Becomes the program. Returns only if that is not possible.
pub(crate) fn launch(parent: u32, mask: Option<u32>, command: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The signal is for deaths from now on; it may have happened before.
    let living = getppid().map(|pid| pid.as_raw_nonzero().get());
    if living.and_then(|pid| u32::try_from(pid).ok()) != Some(parent) {
        return io::Error::other("the gateway is gone");
    }
    if let Some(mask) = mask {
        umask(rustix::fs::Mode::from_bits_truncate(mask));
    }
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::other("there is nothing to start");
    };
    Command::new(program).args(arguments).exec()
}
