//! Bundles the page with npm and lists what is to be embedded.
//!
//! `SWITCHBOARD_WEB_DIST=DIRECTORY` takes a page that was bundled before (`npm run build` in `web/`) and
//! asks for no npm. Without npm the gateway is built with the plain pages only, and a warning says so;
//! `SWITCHBOARD_WEB=required` makes that an error.

#![expect(clippy::print_stderr, reason = "cargo shows it when the build fails")]

use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

/// What the page is made from.
const SOURCES: [&str; 6] = [
    "web/src",
    "web/index.html",
    "web/build.mjs",
    "web/package.json",
    "web/package-lock.json",
    "clients/typescript/src",
];
/// Nothing has this name: cargo asks again each time, and notices npm when it is there.
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
    let page = match env::var_os("SWITCHBOARD_WEB_DIST") {
        Some(ready) => Some(fs::canonicalize(&ready).map_err(|error| {
            let ready = ready.display();
            io::Error::other(format!(
                "SWITCHBOARD_WEB_DIST={ready} cannot be used: {error}"
            ))
        })?),
        None => match bundle(&out.join("web")) {
            Ok(page) => Some(page),
            Err(error) if env::var_os("SWITCHBOARD_WEB").is_some_and(|word| word == "required") => {
                return Err(error);
            }
            Err(error) => {
                println!("cargo::rerun-if-changed={NEVER_THERE}");
                println!(
                    "cargo::warning=Built without the chat page ({error}). Install Node.js 18 or newer \
                     with npm and build again; signing in, setup and invitations work meanwhile."
                );
                None
            }
        },
    };
    fs::write(out.join("page.rs"), list(page.as_deref())?)?;
    println!(
        "cargo::rustc-env=SWITCHBOARD_WEB_HASH={:016x}",
        hash("web/plain")?
    );
    Ok(())
}

/// Bundles the page into a directory.
fn bundle(into: &Path) -> io::Result<PathBuf> {
    let web = Path::new("web");
    // What npm puts there last, when all is installed.
    let installed = modified(&web.join("node_modules/.package-lock.json"));
    if installed.is_none() || installed < modified(&web.join("package-lock.json")) {
        call(
            web,
            "npm",
            &["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        )?;
    }
    call(web, "node", &["build.mjs".as_ref(), into.as_os_str()])?;
    Ok(into.to_owned())
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
    // All of it where a build's output is kept, and the first words of trouble in the warning.
    let said = String::from_utf8_lossy(&done.stderr);
    eprintln!("{said}");
    let trouble = said
        .lines()
        .find(|line| line.to_lowercase().contains("error"))
        .unwrap_or("see the output of the build script")
        .trim();
    Err(io::Error::other(format!("{program} failed: {trouble}")))
}

/// The files of the page as a Rust constant, each with its compressed form.
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

/// What is in a directory, in one order on every machine.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = fs::read_dir(directory)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<_>, _>>()?;
    names.sort();
    Ok(names)
}

/// Names the state of the plain pages, so that browsers notice a new build.
fn hash(directory: &str) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for name in names(Path::new(directory))? {
        fs::read(Path::new(directory).join(name))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
