//! Flaky tests: one that passes only the second time fails the run, unless it is listed with a reason.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::{Command, Output};

const LOG: &str = "
        PASS [   0.011s] (1/3) switchboard::capabilities quotas::fine
   FLAKY 2/2 [   1.204s] (2/3) switchboard::capabilities limits::slow
     Summary [   2.001s] 3 tests run: 3 passed (2 flaky), 0 skipped
   FLAKY 2/2 [   1.204s] (2/3) switchboard::capabilities limits::slow
   FLAKY 2/2 [   0.104s] (3/3) switchboard::browser phone::slower
";

fn check(log: &str, list: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let (log_file, list_file) = (dir.path().join("log"), dir.path().join("list"));
    std::fs::write(&log_file, log).unwrap();
    std::fs::write(&list_file, list).unwrap();
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/check-flaky"))
        .args([log_file, list_file])
        .output()
        .unwrap()
}

#[test]
fn a_test_that_passes_only_the_second_time_fails_the_run() {
    let checked = check(LOG, "# none\n");
    let said = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.contains("\nlimits::slow\nphone::slower\n"), "{said}");
    assert!(!said.contains("fine"), "{said}");
}

#[test]
fn a_flaky_test_is_excused_by_name_and_reason_only() {
    let reasons = "limits::slow the clock of the machine\nphone::slower starts a browser\n";
    assert!(check(LOG, reasons).status.success());
    let without = check(LOG, "limits::slow\nphone::slower starts a browser\n");
    let said = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(1));
    assert!(said.ends_with("\nlimits::slow\n"), "{said}");
    assert!(check("Summary 3 passed\n", "").status.success());
}

#[test]
fn the_test_script_asks() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test");
    let script = std::fs::read_to_string(script).unwrap();
    assert!(script.contains("run scripts/check-flaky \"$log\""));
}
