//! RSS: the resident memory of process groups.

use std::collections::{BTreeMap, BTreeSet};

const MAX_PROCESSES: usize = 10_000;

/// Resident bytes by process group. Scans all processes once; not at all without a wanted group.
pub(super) fn of_groups(wanted: &BTreeSet<i32>) -> BTreeMap<i32, u64> {
    let mut bytes = BTreeMap::new();
    if wanted.is_empty() {
        return bytes;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return bytes;
    };
    let page = rustix::param::page_size() as u64;
    let processes = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in processes.take(MAX_PROCESSES) {
        // The process may have ended since.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if let Some((group, pages)) = read(&stat)
            && wanted.contains(&group)
        {
            *bytes.entry(group).or_default() += pages * page;
        }
    }
    bytes
}

/// The group and the resident pages of a process. Its name may contain anything, but ends with `)`.
fn read(stat: &str) -> Option<(i32, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some((fields.get(2)?.parse().ok()?, fields.get(21)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_memory_of_wanted_groups_is_counted() {
        let own = rustix::process::getpgrp().as_raw_nonzero().get();
        let bytes = of_groups(&BTreeSet::from([own]));
        assert!(bytes[&own] > 1024 * 1024, "{bytes:?}");
        assert_eq!(bytes.len(), 1);
        assert!(of_groups(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn a_process_name_cannot_fake_the_fields() {
        let stat = "7 (a) 1 2 (b) S 1 42 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 1000 33 0";
        assert_eq!(read(stat), Some((42, 33)));
        assert_eq!(read(""), None);
    }
}
