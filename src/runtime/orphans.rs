//! Orphans: finds processes by the tag in their environment, and kills them.
//!
//! A process can leave its process group, but not its environment. The tag names the data directory
//! and the link, so what an earlier gateway process left behind is found, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(super) const VARIABLE: &str = "SWITCHBOARD_LINK";
/// A dying process may have started another one, and takes a moment to disappear.
const MAX_ROUNDS: usize = 100;
const ROUND_DELAY: Duration = Duration::from_millis(5);

/// Kills every process whose tag has this prefix, and returns their ids. Blocks while it scans all
/// processes.
pub(super) fn kill(tag: &str) -> BTreeSet<i32> {
    let mut killed = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let found = find(tag);
        if found.is_empty() {
            break;
        }
        for pid in found {
            if Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
                killed.insert(pid);
            }
        }
        std::thread::sleep(ROUND_DELAY);
    }
    killed
}

fn find(tag: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let wanted = format!("{VARIABLE}={tag}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && has_variable(*pid, &wanted) && !is_dead(*pid))
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
