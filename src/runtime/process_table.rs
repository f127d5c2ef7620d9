//! Process table: the processes of the machine, as `/proc` lists them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One process, at the moment it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Ended, and not waited for yet.
    pub(super) is_zombie: bool,
    /// In clock ticks since the machine started: tells a process from a later one with the same id.
    pub(super) started: u64,
    /// In pages.
    pub(super) resident: u64,
}

/// All processes. Blocks for a few microseconds per process.
pub(super) fn all() -> Vec<Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(entry)
        .collect()
}

/// One process; none if it is gone.
pub(super) fn entry(pid: i32) -> Option<Entry> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The ids of a process's children, over all its threads. None if the kernel does not list them.
pub(super) fn children(pid: i32) -> Option<Vec<i32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))
        .ok()?
        .flatten()
    {
        let text = std::fs::read_to_string(thread.path().join("children")).ok()?;
        found.extend(
            text.split_whitespace()
                .filter_map(|id| id.parse::<i32>().ok()),
        );
    }
    Some(found)
}

/// The processes below a process, itself not included. Nobody leaves this tree if its root is a child
/// subreaper.
pub(super) fn descendants(root: i32) -> Vec<Entry> {
    let all = all();
    let by_parent = by_parent(&all);
    below(root, &by_parent).into_iter().copied().collect()
}

/// The entries by their parent's id.
pub(super) fn by_parent(all: &[Entry]) -> HashMap<i32, Vec<&Entry>> {
    let mut by_parent: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in all {
        by_parent.entry(entry.parent).or_default().push(entry);
    }
    by_parent
}

/// The entries below a root.
pub(super) fn below<'a>(root: i32, by_parent: &HashMap<i32, Vec<&'a Entry>>) -> Vec<&'a Entry> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([root]));
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in by_parent.get(&parent).into_iter().flatten() {
            // The table is not read in one moment: an id may occur twice.
            if seen.insert(child.pid) {
                parents.push(child.pid);
                found.push(*child);
            }
        }
    }
    found
}

/// Resident bytes of the wanted process groups. Reads nothing without one.
pub(super) fn resident_by_group(wanted: &BTreeSet<i32>) -> BTreeMap<i32, u64> {
    let mut bytes = BTreeMap::new();
    if wanted.is_empty() {
        return bytes;
    }
    let page = rustix::param::page_size() as u64;
    for entry in all() {
        if wanted.contains(&entry.group) {
            *bytes.entry(entry.group).or_default() += entry.resident * page;
        }
    }
    bytes
}

/// A line of `/proc/PID/stat`. The name in it may contain anything, but ends with the last `)`.
fn parse(stat: &str) -> Option<Entry> {
    let (pid, _) = stat.split_once(' ')?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    Some(Entry {
        pid: pid.parse().ok()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        // The first thread may have ended before the others.
        is_zombie: fields.nth(14)?.parse::<u64>().ok()? <= 1 && matches!(state, "Z" | "X"),
        started: fields.nth(1)?.parse().ok()?,
        resident: fields.nth(1)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_fake_the_fields() {
        let stat = "7 (a) 1 2 (b) S 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 1000 33 0";
        let wanted = Entry {
            pid: 7,
            parent: 1,
            group: 42,
            is_zombie: false,
            started: 9,
            resident: 33,
        };
        assert_eq!(parse(stat), Some(wanted));
        assert_eq!(parse(""), None);
    }

    #[test]
    fn only_the_memory_of_wanted_groups_is_counted() {
        let own = rustix::process::getpgrp().as_raw_nonzero().get();
        let bytes = resident_by_group(&BTreeSet::from([own]));
        assert!(bytes[&own] > 1024 * 1024, "{bytes:?}");
        assert_eq!(bytes.len(), 1);
        assert!(resident_by_group(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn children_are_found_with_their_children() {
        let own = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 600 & wait"])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        while descendants(pid).is_empty() {
            std::thread::yield_now();
        }
        assert!(children(own).is_none_or(|children| children.contains(&pid)));
        let below: Vec<i32> = descendants(own).iter().map(|entry| entry.pid).collect();
        let grandchild = descendants(pid)[0].pid;
        assert!(
            below.contains(&pid) && below.contains(&grandchild),
            "{below:?}"
        );
        for pid in [grandchild, pid] {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
    }
}
