//! Finds processes by the mark that agents carry in their environment, and ends them.
//!
//! A process group holds what an agent starts, unless that leaves the group; the mark stays with it.
//! It names the data directory's gateway and the link, hence what a former life of this gateway has
//! left behind is found, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// The variable with the mark.
pub(super) const VARIABLE: &str = "SWITCHBOARD_LINK";
/// One that dies may have started another one meanwhile, and takes a moment to be gone.
const ROUNDS: usize = 100;
const BETWEEN: Duration = Duration::from_millis(5);

/// Kills every process whose mark begins with this, and says which they were. Blocks for as long as
/// it takes to look at all processes.
pub(super) fn kill(mark: &str) -> BTreeSet<i32> {
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS {
        let found = find(mark);
        if found.is_empty() {
            break;
        }
        for pid in found {
            if Pid::from_raw(pid).is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok()) {
                killed.insert(pid);
            }
        }
        std::thread::sleep(BETWEEN);
    }
    killed
}

/// The living processes whose mark begins with this.
fn find(mark: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    let wanted = format!("{VARIABLE}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && carries(*pid, &wanted) && !is_dead(*pid))
        .collect()
}

fn carries(pid: i32, wanted: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable.starts_with(wanted.as_bytes()))
}

/// One that is dead and not buried yet is not found again.
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
    fn what_carries_the_mark_is_ended_wherever_it_went() {
        let mark = format!("test-{}/", uuid::Uuid::now_v7().simple());
        let start = |mark: &str| {
            let mut command = Command::new("setsid");
            command.args(["sleep", "600"]).stdin(Stdio::null());
            command.env(VARIABLE, mark).spawn().unwrap()
        };
        let mut other = start("somebody-else/1");
        let (mut one, mut two) = (start(&format!("{mark}1")), start(&format!("{mark}2")));
        // `setsid` may fork, and its child must be there before it is looked for.
        while find(&mark).len() < 2 {
            std::thread::yield_now();
        }
        assert_eq!(kill(&mark).len(), 2);
        assert!(find(&mark).is_empty());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        for child in [&mut one, &mut two, &mut other] {
            child.wait().unwrap();
        }
    }
}
