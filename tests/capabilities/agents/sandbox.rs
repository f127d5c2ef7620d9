//! Sandbox: what an agent can reach of the machine, tried from inside by the probe.

use std::process::{Command, Output};

use tempfile::TempDir;

use super::FakeAgent;

/// Runs `switchboard agent test acp --sandbox` with a database, and further keys of the agent.
fn probes(keys: &str) -> (TempDir, Output) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("switchboard.toml");
    std::fs::write(&file, FakeAgent::named("acp").configuration(keys)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.arg("--config").arg(&file);
        command.arg("--data-dir").arg(dir.path().join("data"));
        command.args(arguments).output().unwrap()
    };
    assert!(run(&["user", "list"]).status.success());
    let probed = run(&["agent", "test", "acp", "--sandbox"]);
    (dir, probed)
}

#[test]
fn an_agent_reaches_nothing_of_the_gateway_and_everything_it_needs() {
    let (dir, probed) = probes("sandbox = \"required\"");
    let told = String::from_utf8_lossy(&probed.stdout).into_owned();
    assert!(probed.status.success(), "{told}");
    let data = dir.path().join("data");
    for line in [
        format!("denied: read {}", data.join("switchboard.db").display()),
        format!("denied: list {}", data.join("workspaces").display()),
        format!("denied: list {}", data.join("homes").display()),
        format!(
            "denied: read {}",
            dir.path().join("switchboard.toml").display()
        ),
        "denied: read /etc/shadow".into(),
        "denied: write in /tmp".into(),
        "denied: read the environment of process".into(),
        "denied: read the memory of process".into(),
        "denied: signal process".into(),
        "denied: read the environment of the supervisor".into(),
        "allowed: write in .".into(),
        "allowed: write in $HOME".into(),
        "allowed: write in $TMPDIR".into(),
    ] {
        assert!(told.contains(&line), "{line}\n{told}");
    }
    // Nothing of the test is left.
    assert!(!data.join("homes/agent-test").exists());
}

#[test]
fn a_sandbox_with_a_hole_is_reported() {
    let (_dir, probed) = probes("write = ['/var/tmp']");
    let told = String::from_utf8_lossy(&probed.stdout).into_owned();
    assert!(!probed.status.success(), "{told}");
    assert!(told.contains("REACHED: write in /var/tmp"), "{told}");
    let (_dir, probed) = probes("sandbox = \"off\"");
    assert!(!probed.status.success());
}

#[test]
fn no_path_of_the_gateway_can_be_granted() {
    let (_dir, probed) = probes("read = ['/etc/shadow']");
    let told = String::from_utf8_lossy(&probed.stdout).into_owned();
    assert!(!probed.status.success(), "{told}");
    assert!(told.contains("which no agent may reach"), "{told}");
}
