//! Granted paths: what an agent needs of the file system, without what it must never reach.
//!
//! Landlock only grants. So where something protected lies below a directory that an agent needs, the
//! directory's other entries are granted in its place. Only reads the file system.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Programs, libraries and settings of the system, as everybody may read them.
const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix/store",
    "/proc",
    "/sys",
    // The name servers, to which /etc/resolv.conf may lead.
    "/run/systemd/resolve",
    "/run/resolvconf",
];

/// Never granted: passwords, and keys of this machine and of the gateway.
const PROTECTED: [&str; 9] = [
    "/etc/switchboard",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/ssh",
];

/// What programs in a `bin` directory need beside it.
const BESIDE_BIN: [&str; 5] = ["lib", "lib64", "libexec", "share", "include"];
/// Directories that hold a program by chance: only the program itself is granted there.
const TOO_WIDE: [&str; 6] = ["/", "/home", "/root", "/srv", "/tmp", "/var/tmp"];
/// A script may name an interpreter that is a script again.
const MAX_INTERPRETERS: usize = 4;
const MAX_FIRST_LINE_BYTES: usize = 256;

/// What an agent is started with.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) struct Program<'a> {
    pub(in crate::runtime) path: &'a Path,
    pub(in crate::runtime) arguments: &'a [String],
    /// `PATH`.
    pub(in crate::runtime) search_path: Option<&'a OsStr>,
    /// A home of several users: nothing is granted there because a program lies in it.
    pub(in crate::runtime) home: Option<&'a Path>,
}

/// What a program needs to run, to be read and executed: the system, itself, its interpreters, and the
/// programs that it finds.
pub(in crate::runtime) fn needed_by(program: Program<'_>) -> Vec<PathBuf> {
    let mut needed: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    let searched = program.search_path.map(std::env::split_paths);
    for directory in searched.into_iter().flatten() {
        if directory.is_absolute() && !is_too_wide(&directory, program.home) {
            needed.extend(beside(&directory));
            needed.push(directory);
        }
    }
    let scripts = program.arguments.iter().map(Path::new);
    let scripts = scripts.filter(|path| path.is_absolute() && path.exists());
    for file in std::iter::once(program.path).chain(scripts) {
        add_program(file, program, &mut needed);
    }
    needed
}

/// A program, what it leads to, and their surroundings.
fn add_program(file: &Path, program: Program<'_>, needed: &mut Vec<PathBuf>) {
    let mut next = Some(file.to_owned());
    for _ in 0..MAX_INTERPRETERS {
        let Some(path) = next else { return };
        for path in [Some(path.clone()), path.canonicalize().ok()] {
            needed.extend(
                path.iter()
                    .flat_map(|path| surroundings(path, program.home)),
            );
        }
        next = interpreter(&path, program.search_path);
    }
}

/// A file with what belongs to it: its package, its installation, or the directory it lies in.
fn surroundings(file: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut found = vec![file.to_owned()];
    let packages = |part: &Path| part.file_name() == Some(OsStr::new("node_modules"));
    // The outermost one: packages use each other.
    if let Some(packages) = file.ancestors().filter(|part| packages(part)).last() {
        found.push(packages.to_owned());
    }
    if let Some(directory) = file.parent().filter(|parent| !is_too_wide(parent, home)) {
        found.extend(beside(directory));
        found.push(directory.to_owned());
    }
    found
}

/// What the programs of a directory need beside it.
fn beside(directory: &Path) -> Vec<PathBuf> {
    let name = directory.file_name().unwrap_or_default();
    let is_known = name == "bin" || name == "shims";
    let Some(prefix) = directory.parent().filter(|_| is_known) else {
        return Vec::new();
    };
    // A Python environment, and version managers, whose programs look for the real ones.
    if prefix.join("pyvenv.cfg").exists() || name == "shims" {
        return vec![prefix.to_owned()];
    }
    let parts = BESIDE_BIN.iter().map(|name| prefix.join(name));
    parts.filter(|part| part.is_dir()).collect()
}

fn is_too_wide(directory: &Path, home: Option<&Path>) -> bool {
    TOO_WIDE.iter().any(|wide| directory == Path::new(wide))
        || directory.parent() == Some(Path::new("/home"))
        || home.is_some_and(|home| home.starts_with(directory))
}

/// The program that runs a script, by the script's first line.
fn interpreter(script: &Path, search_path: Option<&OsStr>) -> Option<PathBuf> {
    use std::io::Read as _;
    let mut first = Vec::new();
    let file = std::fs::File::open(script).ok()?;
    file.take(MAX_FIRST_LINE_BYTES as u64)
        .read_to_end(&mut first)
        .ok()?;
    let line = first.strip_prefix(b"#!")?.split(|byte| *byte == b'\n');
    let line = String::from_utf8_lossy(line.into_iter().next()?).into_owned();
    let mut words = line.split_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name() != Some(OsStr::new("env")) {
        return Some(program.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    let mut found = std::env::split_paths(search_path?).map(|directory| directory.join(name));
    found.find(|path| path.is_file())
}

/// The paths to grant so that nothing protected is among them, nor below them.
pub(in crate::runtime) fn without_protected(
    paths: Vec<PathBuf>,
    protected: &[PathBuf],
) -> Vec<PathBuf> {
    let resolve = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let always = PROTECTED.iter().map(PathBuf::from);
    let protected: Vec<PathBuf> = protected
        .iter()
        .cloned()
        .chain(always)
        .map(|path| resolve(&path))
        .collect();
    let mut granted = Vec::new();
    for path in paths {
        expand(resolve(&path), &protected, &mut granted);
    }
    granted.sort();
    // What lies below a granted directory is granted with it.
    granted.dedup_by(|path, before| path.starts_with(before));
    granted
}

fn expand(path: PathBuf, protected: &[PathBuf], granted: &mut Vec<PathBuf>) {
    if protected.iter().any(|kept| path.starts_with(kept)) {
        return;
    }
    if protected.iter().all(|kept| !kept.starts_with(&path)) {
        granted.push(path);
        return;
    }
    let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
    for entry in entries {
        // A link is granted where it leads to, if at all.
        if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            expand(entry.path(), protected, granted);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let root = dir.path().canonicalize().unwrap();
        (dir, root)
    }

    #[test]
    fn a_directory_with_something_protected_is_granted_without_it() {
        let (_dir, root) = tree(&["etc/hosts", "etc/ours/key", "etc/ssl/a/cert", "etc/ssl/key"]);
        let protected = [root.join("etc/ours"), root.join("etc/ssl/key")];
        let granted = without_protected(vec![root.join("etc")], &protected);
        assert_eq!(granted, [root.join("etc/hosts"), root.join("etc/ssl/a")]);
        for inside in ["etc/ours", "etc/ours/key"] {
            assert!(without_protected(vec![root.join(inside)], &protected).is_empty());
        }
    }

    #[test]
    fn a_link_leads_to_nothing_protected() {
        let (_dir, root) = tree(&["data/db", "opt/tool"]);
        symlink(root.join("data"), root.join("opt/data")).unwrap();
        let protected = [root.join("data")];
        assert!(without_protected(vec![root.join("opt/data")], &protected).is_empty());
        let both = without_protected(vec![root.join("opt"), root.join("opt/tool")], &protected);
        assert_eq!(both, [root.join("opt")]);
    }

    #[test]
    fn a_script_needs_its_interpreter_and_a_package_its_neighbours() {
        let (_dir, root) = tree(&[
            "node/bin/node",
            "node/lib/x",
            "app/node_modules/cli/bin/cli.js",
            "app/node_modules/other/x",
            "bin/x",
        ]);
        let script = root.join("app/node_modules/cli/bin/cli.js");
        std::fs::write(&script, "#!/usr/bin/env -S node --flag\n").unwrap();
        symlink(&script, root.join("bin/cli")).unwrap();
        let search = root.join("node/bin");
        let needed = needed_by(Program {
            path: &root.join("bin/cli"),
            arguments: &[],
            search_path: Some(search.as_os_str()),
            home: None,
        });
        for path in ["app/node_modules", "node/bin", "node/lib", "bin/cli"] {
            assert!(needed.contains(&root.join(path)), "{path}: {needed:?}");
        }
    }

    #[test]
    fn a_program_in_a_home_does_not_grant_the_home() {
        let (_dir, root) = tree(&["home/agent", "home/.ssh/key"]);
        let (program, home) = (root.join("home/agent"), root.join("home"));
        let needed = needed_by(Program {
            path: &program,
            arguments: &[],
            search_path: Some(home.as_os_str()),
            home: Some(&home),
        });
        assert!(needed.contains(&program));
        assert!(!needed.contains(&home));
    }
}
