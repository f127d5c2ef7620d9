//! Preflight: `config check`, `doctor` and `agent test` name what keeps an agent from working.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use super::FakeAgent;
use crate::actors::program;

/// A directory with a configuration file.
fn configured(file: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("switchboard.toml"), file).unwrap();
    dir
}

/// Runs a command there, with this home.
fn runs(dir: &Path, arguments: &[&str]) -> Output {
    let home = dir.display().to_string();
    let path = format!("{home}/bin:{}", std::env::var("PATH").unwrap());
    program(dir, arguments, &[("HOME", &home), ("PATH", &path)])
}

fn printed(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}

/// The doctor's findings about agents.
fn findings(dir: &Path) -> Vec<Value> {
    let output = runs(dir, &["doctor", "--json", "--listen", "127.0.0.1:0"]);
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let is_agent = |finding: &Value| finding["what"] == "agents";
    findings.into_iter().filter(is_agent).collect()
}

/// A program in `bin/` that answers `--version`.
fn installs(dir: &Path, name: &str) {
    let path = dir.join("bin").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "#!/bin/sh\necho 9.8.7\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_an_agent_lacks_on_this_machine_is_found_before_anybody_asks_it() {
    let dir = configured(
        r#"
        [agents.missing]
        protocol = "acp"
        command = ["no-such-program-here"]

        [agents.keyless]
        protocol = "acp"
        command = ["sh"]
        env_files = { SOME_KEY = "/no/such/key-file" }

        [agents.literal]
        protocol = "acp"
        command = ["sh"]
        options = { auth_method = "key-of-{user}" }

        [agents.misspelt]
        protocol = "acp"
        command = ["sh"]
        env = { DATA = "/srv/{username}" }

        [agents.nobody]
        protocol = "acp"
        command = ["sh"]
        user = "no-such-account"

        [agents.unplugged]
        protocol = "nous"
        socket = "/no/such.sock"

        [agents.off]
        protocol = "acp"
        command = ["another-missing-program"]
        enabled = false
        "#,
    );
    let expected = [
        ("missing", "no-such-program-here"),
        ("keyless", "/no/such/key-file"),
        ("literal", "{user}"),
        ("misspelt", "{username}"),
        ("nobody", "no-such-account"),
        ("unplugged", "/no/such.sock"),
    ];
    let checked = runs(dir.path(), &["config", "check"]);
    assert_eq!(checked.status.code(), Some(78), "{}", printed(&checked));
    let shown = printed(&checked);
    let findings = findings(dir.path());
    for (agent, word) in expected {
        let line = shown
            .lines()
            .find(|line| line.contains(&format!("agents.{agent}")));
        assert!(line.is_some_and(|line| line.contains(word)), "{shown}");
        let of_agent = |finding: &&Value| {
            let found = finding["found"].as_str().unwrap();
            found.starts_with(&format!("{agent}:")) && found.contains(word)
        };
        let finding = findings.iter().find(of_agent);
        let finding = finding.unwrap_or_else(|| panic!("{agent}: {findings:#?}"));
        assert_eq!(finding["verdict"], "problem", "{finding}");
        assert!(finding["fix"].as_str().is_some(), "{finding}");
    }
    assert!(!shown.contains("another-missing-program"), "{shown}");
    let tested = runs(dir.path(), &["agent", "test", "keyless"]);
    assert_eq!(tested.status.code(), Some(1));
    let shown = printed(&tested);
    assert!(
        shown.contains("FAILED") && shown.contains("/no/such/key-file"),
        "{shown}"
    );
}

#[test]
fn a_program_that_is_not_logged_in_is_found_without_starting_it() {
    let dir = configured(
        r#"
        [agents.opencode]
        protocol = "acp"
        command = ["opencode", "acp"]

        [agents.codex]
        protocol = "acp"
        command = ["codex-acp"]
        env = { OPENAI_API_KEY = "sk-test" }
        "#,
    );
    installs(dir.path(), "opencode");
    installs(dir.path(), "codex-acp");
    // Not a problem of the configuration: there are logins that leave no file.
    let checked = runs(dir.path(), &["config", "check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", printed(&checked));
    assert!(
        printed(&checked).contains("opencode auth login"),
        "{}",
        printed(&checked)
    );
    let warned = |agent: &str| {
        let findings = findings(dir.path());
        let of_agent = |finding: &&Value| finding["found"].as_str().unwrap().starts_with(agent);
        let finding = findings.iter().find(of_agent).unwrap().clone();
        assert!(finding["found"].as_str().unwrap().contains("9.8.7"));
        finding["verdict"] == "warning"
    };
    assert!(warned("opencode:"));
    // Its key alone does not log it in: it has to be told to use it.
    assert!(warned("codex:"));
    let login = dir.path().join(".local/share/opencode/auth.json");
    std::fs::create_dir_all(login.parent().unwrap()).unwrap();
    std::fs::write(login, "{}").unwrap();
    std::fs::create_dir_all(dir.path().join(".codex")).unwrap();
    std::fs::write(dir.path().join(".codex/auth.json"), "{}").unwrap();
    assert!(!warned("opencode:"));
    assert!(!warned("codex:"));
}

#[test]
fn an_agent_test_tells_whether_the_agent_asks() {
    let agents = ["acp", "nous"].map(FakeAgent::named);
    let reckless = agents[0].configuration("env = { FAKE_ASK = \"never\" }");
    let reckless = reckless.replacen("[agents.acp]", "[agents.reckless]", 1);
    let file: String = agents
        .iter()
        .map(|agent| agent.configuration(""))
        .chain([reckless])
        .collect();
    let dir = configured(&file);
    for (agent, expected) in [
        ("demo", "it asks before it uses a tool"),
        ("acp", "it asks before it uses a tool"),
        ("reckless", "WARNING: it used a tool without asking"),
        ("nous", "WARNING: it used a tool without asking"),
    ] {
        let tested = runs(dir.path(), &["agent", "test", agent, "--prompt"]);
        let shown = printed(&tested);
        assert_eq!(tested.status.code(), Some(0), "{agent}: {shown}");
        assert!(shown.contains(expected), "{agent}: {shown}");
    }
    // Without a prompt nothing is asked, and nothing is said about it.
    let tested = runs(dir.path(), &["agent", "test", "acp"]);
    assert!(!printed(&tested).contains("asks"), "{}", printed(&tested));
    // What the test made is removed.
    let left = dir.path().join("data/workspaces/agent-test");
    assert!(!left.exists(), "{}", left.display());
}
