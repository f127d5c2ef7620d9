//! Parent-death shim: this binary, started once more, ties its life to the gateway's and execs the agent.
//!
//! Only the child itself can ask for a parent-death signal, and code between fork and exec would need
//! `unsafe`. Hence a small program that asks for it and then execs.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal, umask};

pub(crate) const SUBCOMMAND: &str = "launch";

/// Execs the program. Returns only on failure.
pub(crate) fn launch(parent: u32, mask: Option<u32>, command: &[OsString]) -> io::Error {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The parent may have died before the signal was set.
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
