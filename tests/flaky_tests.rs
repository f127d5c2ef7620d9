//! Flaky tests: one that passes only the second time is run again by itself, and must pass then.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

const LOG: &str = "
        PASS [   0.011s] (1/3) switchboard::capabilities quotas::fine
   FLAKY 2/2 [   1.204s] (2/3) switchboard::capabilities limits::slow
     Summary [   2.001s] 3 tests run: 3 passed (2 flaky), 0 skipped
   FLAKY 2/2 [   1.204s] (2/3) switchboard::capabilities limits::slow
   FLAKY 2/2 [   0.104s] (3/3) switchboard::browser phone::slower
";

/// Checks a log. Instead of cargo, `cargo` is a script of this body; what it was asked for is returned
/// too, one line for each time.
fn check(log: &str, list: &str, cargo: &str) -> (Output, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("log"), log).unwrap();
    std::fs::write(path("list"), list).unwrap();
    let asked = path("asked");
    let script = format!(
        "#!/bin/sh\necho \"$SWITCHBOARD_TEST_DATABASE $*\" >>'{}'\n{cargo}\n",
        asked.display()
    );
    std::fs::write(path("cargo"), script).unwrap();
    std::fs::set_permissions(path("cargo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!(
        "{}:{}",
        dir.path().display(),
        std::env::var("PATH").unwrap()
    );
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/check-flaky"))
        .args([path("log"), path("list")])
        .env("PATH", search)
        .output()
        .unwrap();
    let asked = std::fs::read_to_string(asked).unwrap_or_default();
    (output, asked.lines().map(Into::into).collect())
}

#[test]
fn a_test_that_passes_only_the_second_time_is_run_again_by_itself() {
    let (checked, asked) = check(LOG, "# none\n", "true");
    let said = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success(), "{said}");
    assert!(said.contains(": limits::slow\n"), "{said}");
    assert!(said.contains(": phone::slower\n"), "{said}");
    assert!(!said.contains("fine"), "{said}");
    let of = |word: &str| asked.iter().filter(|line| line.contains(word)).count();
    let slow = "binary_id(switchboard::capabilities) & test(=limits::slow)";
    assert_eq!(of(slow), 10, "{asked:?}");
    assert_eq!(of("test(=phone::slower)"), 5, "{asked:?}");
    assert_eq!(of("postgres nextest run"), 5, "{asked:?}");
    assert_eq!(of("--retries 0"), 15, "{asked:?}");
}

#[test]
fn a_test_that_then_fails_fails_the_run() {
    let fails = "case $* in *limits::slow*) echo the reason; exit 1 ;; esac";
    let (checked, asked) = check(LOG, "", fails);
    let said = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(said.starts_with("the reason\n"), "{said}");
    assert!(said.ends_with(": limits::slow\n"), "{said}");
    assert_eq!(asked.len(), 6, "{asked:?}");
}

#[test]
fn a_flaky_test_is_excused_by_name_and_reason_only() {
    let reasons = "limits::slow the clock of the machine\nphone::slower starts a browser\n";
    let (checked, asked) = check(LOG, reasons, "exit 1");
    assert!(checked.status.success() && asked.is_empty(), "{asked:?}");
    let without = "limits::slow\nphone::slower starts a browser\n";
    let (checked, asked) = check(LOG, without, "exit 1");
    assert_eq!(checked.status.code(), Some(1));
    assert_eq!(asked.len(), 1, "{asked:?}");
    let (checked, asked) = check("Summary 3 passed\n", "", "exit 1");
    assert!(checked.status.success() && asked.is_empty(), "{asked:?}");
}

#[test]
fn the_test_script_asks() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/test");
    let script = std::fs::read_to_string(script).unwrap();
    assert!(script.contains("run scripts/check-flaky \"$log\""));
}
