//! How much memory the processes of agents hold, with whatever they have started.

use std::collections::{BTreeMap, BTreeSet};

/// No more processes than this are looked at.
const MOST: usize = 10_000;

/// Resident bytes by process group. One look at all processes, and none if nobody is asked for.
pub(super) fn of_groups(wanted: &BTreeSet<i32>) -> BTreeMap<i32, u64> {
    let mut held = BTreeMap::new();
    if wanted.is_empty() {
        return held;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return held;
    };
    let page = rustix::param::page_size() as u64;
    let processes = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in processes.take(MOST) {
        // It may have ended since.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some((group, pages)) = read(&stat)
            && wanted.contains(&group)
        {
            *held.entry(group).or_default() += pages * page;
        }
    }
    held
}

/// The group and the pages of a process. Its name may contain anything, but ends with `)`.
fn read(stat: &str) -> Option<(i32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(21)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_group_holds_is_counted_and_nobody_elses() {
        let own = rustix::process::getpgrp().as_raw_nonzero().get();
        let held = of_groups(&BTreeSet::from([own]));
        assert!(held[&own] > 1024 * 1024, "{held:?}");
        assert_eq!(held.len(), 1);
        assert!(of_groups(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn a_name_cannot_pretend() {
        let stat = "7 (a) 1 2 (b) S 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 1000 33 0";
        assert_eq!(read(stat), Some((42, 33)));
        assert_eq!(read(""), None);
    }
}
