//! Build script: run as cargo would, on machines without npm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// The build script as a program, and its output directory.
struct Builder {
    program: PathBuf,
    out: TempDir,
}

impl Builder {
    fn new() -> Self {
        let out = tempfile::tempdir().unwrap();
        let program = out.path().join("build-script");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let made = Command::new(rustc)
            .args(["--edition", "2024", "-o"])
            .arg(&program)
            .arg(root().join("build.rs"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", printed(&made.stderr));
        Self { program, out }
    }

    /// Runs it with an empty PATH.
    fn runs(&self, variables: &[(&str, &str)]) -> Output {
        Command::new(&self.program)
            .current_dir(root())
            .env_clear()
            .env("OUT_DIR", self.out.path())
            .env("PATH", "")
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// The list of files to embed.
    fn listed(&self) -> String {
        fs::read_to_string(self.out.path().join("page.rs")).unwrap()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn without_npm_the_gateway_builds_and_says_what_is_missing() {
    let builder = Builder::new();
    let built = builder.runs(&[]);
    assert!(built.status.success(), "{}", printed(&built.stderr));
    let words = printed(&built.stdout);
    let warning = words
        .lines()
        .find(|line| line.starts_with("cargo::warning="));
    let warning = warning.expect("a warning");
    assert!(
        warning.contains("was not found") && warning.contains("Install Node.js"),
        "{warning}"
    );
    assert!(!builder.listed().contains("index.html"));
}

#[test]
fn a_missing_page_is_an_error_where_it_is_required() {
    let built = Builder::new().runs(&[("SWITCHBOARD_WEB", "required")]);
    assert!(!built.status.success());
    assert!(
        printed(&built.stderr).contains("was not found"),
        "{}",
        printed(&built.stderr)
    );
}

#[test]
fn a_prebuilt_page_needs_no_npm() {
    let ready = tempfile::tempdir().unwrap();
    fs::create_dir(ready.path().join("assets")).unwrap();
    for name in ["index.html", "assets/page-1.js"] {
        fs::write(ready.path().join(name), "x").unwrap();
        fs::write(ready.path().join(format!("{name}.gz")), "x").unwrap();
    }
    let builder = Builder::new();
    let dist = ready.path().to_str().unwrap();
    let built = builder.runs(&[
        ("SWITCHBOARD_WEB_DIST", dist),
        ("SWITCHBOARD_WEB", "required"),
    ]);
    assert!(built.status.success(), "{}", printed(&built.stderr));
    let listed = builder.listed();
    assert!(listed.contains("\"assets/page-1.js\""), "{listed}");
    assert!(!listed.contains("\"assets/page-1.js.gz\""), "{listed}");
    let missing = builder.runs(&[("SWITCHBOARD_WEB_DIST", "/nowhere")]);
    assert!(!missing.status.success());
    assert!(printed(&missing.stderr).contains("/nowhere"));
}
