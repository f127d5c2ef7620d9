//! Build script: bundles the page with npm, and lists the page's files and the migrations for embedding.
//!
//! `SWITCHBOARD_WEB_DIST=DIRECTORY` embeds a page that was bundled before (`npm run build` in `web/`); npm
//! is not needed then, and neither with a source archive that has its page in `web/dist`. Nothing is written
//! outside of cargo's own directory. Without npm the gateway is built with the plain pages only and cargo prints a
//! warning; `SWITCHBOARD_WEB=required` makes that an error.

#![expect(clippy::print_stderr, reason = "cargo shows it when the build fails")]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

/// Sources of the page.
const SOURCES: [&str; 7] = [
    "web/src",
    "web/tsconfig.json",
    "web/index.html",
    "web/build.mjs",
    "web/package.json",
    "web/package-lock.json",
    "clients/typescript/src",
];
/// The page of a source archive.
const ARCHIVED: &str = "web/dist";
/// A file that never exists: cargo runs this script again each time, and finds npm once it is installed.
const NEVER_THERE: &str = "web/.look-again";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    for watched in ["web/plain", "migrations"].iter().chain(&SOURCES) {
        println!("cargo::rerun-if-changed={watched}");
    }
    for variable in ["SWITCHBOARD_WEB", "SWITCHBOARD_WEB_DIST"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?);
    fs::write(out.join("page.rs"), list(page(&out)?.as_deref())?)?;
    fs::write(out.join("migrations.rs"), migrations()?)?;
    println!(
        "cargo::rustc-env=SWITCHBOARD_WEB_HASH={:016x}",
        hash("web/plain")?
    );
    Ok(())
}

/// The directory of the page, bundled before or now; none if it cannot be had and is not required.
fn page(out: &Path) -> io::Result<Option<PathBuf>> {
    if let Some(ready) = env::var_os("SWITCHBOARD_WEB_DIST") {
        let found = fs::canonicalize(&ready).map_err(|error| {
            let ready = ready.display();
            io::Error::other(format!(
                "SWITCHBOARD_WEB_DIST={ready} cannot be used: {error}"
            ))
        });
        return found.map(Some);
    }
    if has_archived_page() {
        println!("cargo::rerun-if-changed={ARCHIVED}");
        return fs::canonicalize(ARCHIVED).map(Some);
    }
    match bundle(out) {
        Ok(page) => Ok(Some(page)),
        Err(error) if env::var_os("SWITCHBOARD_WEB").is_some_and(|word| word == "required") => {
            Err(error)
        }
        Err(error) => {
            println!("cargo::rerun-if-changed={NEVER_THERE}");
            println!(
                "cargo::warning=Built without the chat page ({error}). Install Node.js 18 or newer \
                 with npm and build again; signing in, setup and invitations work meanwhile."
            );
            Ok(None)
        }
    }
}

/// In a checkout `web/dist` is what somebody bundled some time ago; an archive is never older than itself.
fn has_archived_page() -> bool {
    !Path::new(".git").exists() && Path::new(ARCHIVED).join("index.html").exists()
}

/// Bundles the page into cargo's directory.
fn bundle(out: &Path) -> io::Result<PathBuf> {
    let locked = modified(Path::new("web/package-lock.json"));
    // npm writes this file last.
    let is_installed = |web: &Path| {
        let installed = modified(&web.join("node_modules/.package-lock.json"));
        installed.is_some() && installed >= locked
    };
    let mut web = PathBuf::from("web");
    if !is_installed(&web) {
        // Packages are found beside the sources that use them: beside a copy, as the sources may be read-only.
        let copy = out.join("page-source");
        copy_sources(&copy)?;
        web = copy.join("web");
        if !is_installed(&web) {
            let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
            call(&web, "npm", &arguments)?;
        }
    }
    let into = out.join("web");
    call(&web, "node", &["build.mjs".as_ref(), into.as_os_str()])?;
    Ok(into)
}

fn copy_sources(into: &Path) -> io::Result<()> {
    for source in SOURCES {
        let copy = into.join(source);
        if copy.is_dir() {
            fs::remove_dir_all(&copy)?;
        }
        copy_all(Path::new(source), &copy)?;
    }
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        let names = names(from)?;
        return names
            .iter()
            .try_for_each(|name| copy_all(&from.join(name), &to.join(name)));
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map(drop)
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).ok()?.modified().ok()
}

fn call<A: AsRef<std::ffi::OsStr>>(
    within: &Path,
    program: &str,
    arguments: &[A],
) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(within);
    let done = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("{program} was not found")),
        _ => io::Error::other(format!("{program} cannot be started: {error}")),
    })?;
    if done.status.success() {
        return Ok(());
    }
    // The whole output goes to the build log, the first line with an error into the warning.
    let output = String::from_utf8_lossy(&done.stderr);
    eprintln!("{output}");
    let problem = output
        .lines()
        .find(|line| line.to_lowercase().contains("error"))
        .unwrap_or("see the output of the build script")
        .trim();
    Err(io::Error::other(format!("{program} failed: {problem}")))
}

/// The migrations of both databases as Rust constants: version, description, SQL.
fn migrations() -> io::Result<String> {
    let mut constants = String::new();
    for (constant, directory) in [
        ("SQLITE", "migrations/sqlite"),
        ("POSTGRES", "migrations/postgres"),
    ] {
        let directory = fs::canonicalize(directory)?;
        let mut rows = String::new();
        for name in names(&directory)? {
            let (version, description) = name
                .strip_suffix(".sql")
                .and_then(|stem| stem.split_once('_'))
                .and_then(|(version, rest)| {
                    Some((version.parse::<i64>().ok()?, rest.replace('_', " ")))
                })
                .ok_or_else(|| {
                    io::Error::other(format!("{name}: expected NUMBER_description.sql"))
                })?;
            let path = directory.join(&name);
            let path = path.to_string_lossy();
            writeln!(
                rows,
                "    ({version}, {description:?}, include_str!({path:?})),"
            )
            .map_err(io::Error::other)?;
        }
        let kind = "&[(i64, &str, &str)]";
        writeln!(
            constants,
            "pub(super) const {constant}: {kind} = &[\n{rows}];"
        )
        .map_err(io::Error::other)?;
    }
    Ok(constants)
}

/// The page's files as a Rust constant, each with its compressed form.
fn list(page: Option<&Path>) -> io::Result<String> {
    let mut files = Vec::new();
    if let Some(page) = page {
        files.push(("index.html".to_owned(), page.join("index.html")));
        for name in names(&page.join("assets"))? {
            if Path::new(&name).extension().is_none_or(|end| end != "gz") {
                files.push((format!("assets/{name}"), page.join("assets").join(&name)));
            }
        }
    }
    let file = |(name, path): &(String, PathBuf)| {
        let path = path.to_string_lossy();
        let packed = format!("{path}.gz");
        format!(
            "    File {{ name: {name:?}, content: include_bytes!({path:?}), packed: include_bytes!({packed:?}) }},\n"
        )
    };
    let listed: String = files.iter().map(file).collect();
    Ok(format!("const FILES: &[File] = &[\n{listed}];\n"))
}

/// The names in a directory, sorted: the same order on every machine.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

/// Hash of the plain pages, so that browsers notice a new build.
fn hash(directory: &str) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for name in names(Path::new(directory))? {
        fs::read(Path::new(directory).join(name))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
