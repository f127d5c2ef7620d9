//! Build script: run as cargo would, on machines without npm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
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

    /// Runs it in these sources with an empty PATH.
    fn runs(&self, sources: &Path, variables: &[(&str, &str)]) -> Output {
        Command::new(&self.program)
            .current_dir(sources)
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

/// Sources as small as they can be, without a repository around them.
fn archive() -> TempDir {
    let sources = tempfile::tempdir().unwrap();
    for file in [
        "migrations/postgres/1_first.sql",
        "migrations/sqlite/1_first.sql",
        "web/build.mjs",
        "web/index.html",
        "web/package-lock.json",
        "web/package.json",
        "web/plain/index.html",
        "web/src/main.tsx",
        "web/tsconfig.json",
        "clients/typescript/src/index.ts",
    ] {
        write(&sources.path().join(file), file);
    }
    sources
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A page as `web/build.mjs` bundles it.
fn write_page(into: &Path) {
    for name in ["index.html", "assets/page-1.js"] {
        write(&into.join(name), "x");
        write(&into.join(format!("{name}.gz")), "x");
    }
}

/// A directory with programs that stand for npm and node: one installs, the other bundles what npm
/// installed beside it.
fn node_and_npm() -> TempDir {
    let programs = tempfile::tempdir().unwrap();
    let npm = "#!/bin/sh\nset -e\necho npm >>\"$OUT_DIR/calls\"\ncat package-lock.json src/main.tsx >/dev/null\n\
               mkdir node_modules\n: >node_modules/.package-lock.json\n";
    let node = "#!/bin/sh\nset -e\necho node >>\"$OUT_DIR/calls\"\ncat node_modules/.package-lock.json \
                ../clients/typescript/src/index.ts $1 >/dev/null\nmkdir -p \"$2/assets\"\n\
                for name in index.html assets/page-1.js; do : >\"$2/$name\"; : >\"$2/$name.gz\"; done\n";
    for (name, script) in [("npm", npm), ("node", node)] {
        let program = programs.path().join(name);
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    programs
}

/// Every file under a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn without_npm_the_gateway_builds_and_says_what_is_missing() {
    let builder = Builder::new();
    let built = builder.runs(archive().path(), &[]);
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
    let built = Builder::new().runs(archive().path(), &[("SWITCHBOARD_WEB", "required")]);
    assert!(!built.status.success());
    assert!(
        printed(&built.stderr).contains("was not found"),
        "{}",
        printed(&built.stderr)
    );
}

#[test]
fn a_prebuilt_page_needs_no_npm() {
    let (sources, ready) = (archive(), tempfile::tempdir().unwrap());
    write_page(ready.path());
    let builder = Builder::new();
    let dist = ready.path().to_str().unwrap();
    let variables = [
        ("SWITCHBOARD_WEB_DIST", dist),
        ("SWITCHBOARD_WEB", "required"),
    ];
    let built = builder.runs(sources.path(), &variables);
    assert!(built.status.success(), "{}", printed(&built.stderr));
    let listed = builder.listed();
    assert!(listed.contains("\"assets/page-1.js\""), "{listed}");
    assert!(!listed.contains("\"assets/page-1.js.gz\""), "{listed}");
    let missing = builder.runs(sources.path(), &[("SWITCHBOARD_WEB_DIST", "/nowhere")]);
    assert!(!missing.status.success());
    assert!(printed(&missing.stderr).contains("/nowhere"));
}

#[test]
fn an_archive_with_its_page_needs_no_npm_and_a_checkout_does_not_trust_it() {
    let (builder, sources) = (Builder::new(), archive());
    write_page(&sources.path().join("web/dist"));
    let required = [("SWITCHBOARD_WEB", "required")];
    let built = builder.runs(sources.path(), &required);
    assert!(built.status.success(), "{}", printed(&built.stderr));
    let listed = builder.listed();
    assert!(listed.contains("web/dist/assets/page-1.js"), "{listed}");
    write(&sources.path().join(".git/HEAD"), "");
    let built = builder.runs(sources.path(), &required);
    assert!(!built.status.success(), "it may be of another revision");
}

#[test]
fn packages_are_installed_outside_of_the_sources_and_once() {
    let (builder, sources, programs) = (Builder::new(), archive(), node_and_npm());
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let variables = [("PATH", path.as_str()), ("SWITCHBOARD_WEB", "required")];
    let before = files(sources.path());
    for _ in 0..2 {
        let built = builder.runs(sources.path(), &variables);
        assert!(built.status.success(), "{}", printed(&built.stderr));
        assert!(builder.listed().contains("\"assets/page-1.js\""));
        assert_eq!(files(sources.path()), before, "nothing was written there");
    }
    let calls = fs::read_to_string(builder.out.path().join("calls")).unwrap();
    assert_eq!(calls, "npm\nnode\nnode\n");
}

#[test]
fn packages_that_are_installed_beside_the_sources_are_used() {
    let (builder, sources, programs) = (Builder::new(), archive(), node_and_npm());
    let installed = "web/node_modules/.package-lock.json";
    write(&sources.path().join(installed), "");
    let path = format!("{}:/usr/bin:/bin", programs.path().display());
    let built = builder.runs(sources.path(), &[("PATH", path.as_str())]);
    assert!(built.status.success(), "{}", printed(&built.stderr));
    let calls = fs::read_to_string(builder.out.path().join("calls")).unwrap();
    assert_eq!(calls, "node\n", "{}", printed(&built.stdout));
}
