//! Documentation: shell blocks run, examples match their schemas, cited tests exist.

use std::process::{Command, Stdio};

use crate::actors::{PASSWORD, Settings, Storage, program};

mod message_examples;

/// Commands that cannot run in a test, and their substitutes, applied in this order. Everything else
/// runs as written.
const SUBSTITUTIONS: [(&str, &str); 12] = [
    // The test's gateway is built and runs already, with the administrator that the setup link would
    // create.
    ("cargo build --release", "switchboard --version"),
    (
        "cargo run --release     # build and start",
        "switchboard health     # started",
    ),
    ("./target/release/switchboard serve", "switchboard health"),
    (
        "./scripts/test          # every",
        "test -x \"$REPOSITORY/scripts/test\"  # every",
    ),
    ("http://127.0.0.1:7717", "http://$ADDRESS"),
    // Quoted the other way.
    ("ws://127.0.0.1:7717/ws\"", "ws://'\"$ADDRESS\"'/ws\""),
    // What Debian's package node-ws brings, without the network.
    (
        "npm i --silent --prefix /tmp/talk ws",
        "test -e /usr/share/nodejs/ws",
    ),
    (
        "NODE_PATH=/tmp/talk/node_modules",
        "NODE_PATH=/usr/share/nodejs",
    ),
    ("./target/release/switchboard", "switchboard"),
    // Placeholders.
    ("'the password you chose'", "\"$THE_PASSWORD\""),
    (
        "'what stands behind #t= in the link'",
        "\"$(sed -n 's/.*#t=//p' \"$PRINTED\" | tail -1)\"",
    ),
    ("ses_…", "$(the_session)"),
];
/// Programs that download, build or change the machine: none may remain.
const FORBIDDEN_PROGRAMS: [&str; 8] = [
    "cargo ",
    "npm ",
    "npx ",
    "docker",
    "podman",
    "sudo ",
    "apt",
    "systemctl",
];

fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let lines = |block: &str| block.split("```").next().unwrap().to_owned();
    page.split(&begin).skip(1).map(lines).collect()
}

/// The blocks of a page as one script.
fn script(page: &str) -> String {
    let mut script = blocks(page, "sh").concat();
    assert!(
        script.len() > 200,
        "the blocks are not where they are looked for"
    );
    for (printed, done) in SUBSTITUTIONS {
        script = script.replace(printed, done);
    }
    for line in script.lines() {
        let left = FORBIDDEN_PROGRAMS.iter().find(|word| line.contains(**word));
        assert_eq!(left, None, "no equivalent for: {line}");
    }
    assert!(!script.contains('…'), "nobody fills this in: {script}");
    script
}

async fn runs(page: &str) -> String {
    // The quickstart uses SQLite.
    let gateway = Settings::without_admin()
        .with_storage(Storage::Sqlite(None))
        .with("ADMIN__USERNAME", "admin")
        .with("ADMIN__PASSWORD", PASSWORD)
        .start()
        .await;
    let dir = tempfile::tempdir().unwrap();
    let own = gateway.shell_function("own");
    let script = format!(
        "set -euo pipefail\n{own}\n\
         switchboard() {{ own \"$@\" | tee -a \"$PRINTED\"; }}\n\
         the_session() {{ curl -s -H \"Authorization: Bearer $TOKEN\" \"http://$ADDRESS/api/sessions\" \
         | grep -o 'ses_[0-9a-f]*' | head -1; }}\n{}",
        script(page)
    );
    let address = gateway.address().to_string();
    let place = dir.path().to_owned();
    let ran = tokio::task::spawn_blocking(move || {
        Command::new("bash")
            .args(["-c", &script])
            .current_dir(&place)
            .env("ADDRESS", address)
            .env("PRINTED", place.join("printed"))
            .env("REPOSITORY", env!("CARGO_MANIFEST_DIR"))
            .env("THE_PASSWORD", PASSWORD)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    });
    let ran = ran.await.unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && complaints.is_empty(),
        "{complaints}{printed}"
    );
    printed
}

#[tokio::test]
async fn every_shell_block_of_the_readme_runs() {
    let printed = runs(include_str!("../../README.md")).await;
    for words in ["mia (member)", "/invite#t=", "\"sessions\":"] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
}

#[tokio::test]
async fn every_shell_block_of_the_quickstart_runs() {
    let page = include_str!("../../docs/quickstart.md");
    let printed = runs(page).await;
    for words in [
        "hello",
        "/invite#t=",
        "The configuration is good",
        "holds a checked copy",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    for file in blocks(page, "toml") {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("switchboard.toml"), file).unwrap();
        // The reader has installed it.
        let installed = dir.path().join("opencode");
        std::fs::copy("/bin/true", &installed).unwrap();
        let path = dir.path().to_str().unwrap();
        let checked = program(dir.path(), &["config", "check"], &[("PATH", path)]);
        assert!(checked.status.success(), "{checked:?}");
    }
}

#[test]
fn the_configuration_reference_is_current() {
    let dir = tempfile::tempdir().unwrap();
    let made = program(dir.path(), &["config", "reference"], &[]);
    assert!(
        String::from_utf8(made.stdout).unwrap() == include_str!("../../docs/configuration.md"),
        "bring it up to date: switchboard config reference > docs/configuration.md"
    );
}

#[test]
fn every_test_that_the_threat_model_cites_exists() {
    let page = include_str!("../../docs/security.md");
    let table = page.split("## Threat model").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    assert!(rows.len() > 20, "{}", rows.len());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut sources, mut left) = (String::new(), vec![root.join("tests"), root.join("src")]);
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit("| ").next().unwrap();
        let mut named = 0;
        for name in tests.split(", ").map(|name| name.trim_matches('`')) {
            assert!(
                sources.contains(&format!("fn {name}(")),
                "there is no test {name}"
            );
            named += 1;
        }
        assert!(named > 0, "{row}");
    }
}
