//! Orphans: finds processes by the tag in their environment, and kills them.
//!
//! A process can leave its process group, but not its environment. The tag names the data directory,
//! this start of the machine and the link, so what an earlier gateway process left behind is found, and
//! nothing else: not the agents of the original if the directory is a copy.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

pub(super) const VARIABLE: &str = "SWITCHBOARD_LINK";
/// Changes with every start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// A dying process may have started another one, and takes a moment to disappear.
const MAX_ROUNDS: usize = 100;
const ROUND_DELAY: Duration = Duration::from_millis(5);

/// The tag of a data directory's processes: its mark, and what a copy of the directory cannot have in
/// common with it: the place of the directory, and this start of the machine.
pub(super) fn tag(mark: &str, data: &Path) -> io::Result<String> {
    let about = std::fs::metadata(data)?;
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    let place = format!("{} {} {}", about.dev(), about.ino(), boot.trim());
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, place.as_bytes());
    let mut tag = format!("{mark}-");
    for byte in digest.as_ref().iter().take(8) {
        write!(tag, "{byte:02x}").map_err(io::Error::other)?;
    }
    Ok(tag)
}

/// Kills every process whose tag has this prefix, and returns their ids. Blocks while it scans all
/// processes.
pub(super) fn kill(tag: &str) -> BTreeSet<i32> {
    let mut killed = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let found = find(tag);
        if found.is_empty() {
            break;
        }
        for (pid, process) in found {
            if pidfd_send_signal(&process, Signal::KILL).is_ok() {
                killed.insert(pid);
            }
        }
        std::thread::sleep(ROUND_DELAY);
    }
    killed
}

/// The processes with this tag, each held by a descriptor that was opened before it was looked at: a
/// process that gets the same id later is never meant.
fn find(tag: &str) -> Vec<(i32, OwnedFd)> {
    let own = std::process::id().cast_signed();
    let wanted = format!("{VARIABLE}={tag}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| {
            let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            (has_variable(pid, &wanted) && !is_dead(pid)).then_some((pid, process))
        })
        .collect()
}

fn has_variable(pid: i32, wanted: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.starts_with(wanted.as_bytes()))
}

/// A zombie counts as dead.
fn is_dead(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    matches!(state, None | Some(Some('Z' | 'X') | None))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_copied_directory_has_another_tag_and_a_moved_one_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        let before = tag("mark", &one).unwrap();
        std::fs::create_dir(&two).unwrap();
        assert_ne!(tag("mark", &two).unwrap(), before);
        std::fs::rename(&one, dir.path().join("three")).unwrap();
        assert_eq!(tag("mark", &dir.path().join("three")).unwrap(), before);
    }

    #[test]
    fn tagged_processes_are_killed_also_outside_their_group() {
        let tag = format!("test-{}/", uuid::Uuid::now_v7().simple());
        let start = |tag: &str| {
            let mut command = Command::new("setsid");
            command.args(["sleep", "600"]).stdin(Stdio::null());
            command.env(VARIABLE, tag).spawn().unwrap()
        };
        let mut other = start("another-tag/1");
        let (mut one, mut two) = (start(&format!("{tag}1")), start(&format!("{tag}2")));
        // `setsid` may fork: wait for its child.
        while find(&tag).len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(kill(&tag).len(), 2);
        assert!(find(&tag).is_empty());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        for child in [&mut one, &mut two, &mut other] {
            child.wait().unwrap();
        }
    }
}
