//! Architecture: imports point down, crates stay in their modules, files stay one noun long.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The layers from the entrances down. A module may use itself and modules on later lines.
const LAYERS: [&[&str]; 13] = [
    &["main"],
    &["cli"],
    &["gateway"],
    &["config"],
    &["http", "ws"],
    &["member"],
    &["web", "wire"],
    &["auth"],
    &["session"],
    &["runtime", "bus"],
    &["limits"],
    &["store"],
    &["domain"],
];
/// Used by every module; they use none but `domain`.
const SHARED: [&str; 3] = ["clock", "shutdown", "telemetry"];

/// Crates that only some modules may use.
const OWNED: [(&str, &[&str]); 6] = [
    ("sqlx", &["store"]),
    ("jsonwebtoken", &["auth"]),
    ("argon2", &["auth"]),
    ("anyhow", &["cli"]),
    ("rustls", &["cli", "telemetry"]),
    ("webpki_roots", &["cli", "telemetry"]),
];

fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 50, "sources not found");
    found
}

/// The module that a file belongs to: the first step of its path under `src`.
fn module(path: &Path) -> String {
    let inside = path
        .strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    first.trim_end_matches(".rs").to_owned()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// Every module named by `crate::module` in a text, comments aside.
fn modules_used(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let mut used = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let names: Vec<&str> = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap().split(',').collect(),
            None => vec![rest],
        };
        for name in names {
            let name: String = name
                .trim_start()
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            used.push(name);
        }
    }
    used
}

fn points_up(from: &str, to: &str) -> bool {
    if from == to || from == "lib" || SHARED.contains(&to) {
        return false;
    }
    match (layer(from), layer(to)) {
        (Some(from), Some(to)) => to <= from,
        (None, Some(_)) => to != "domain",
        _ => false,
    }
}

#[test]
fn no_import_points_up() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = module(&path);
        for to in modules_used(&text) {
            if points_up(&from, &to) {
                wrong.push(format!("{}: uses crate::{to}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_import_that_points_up_would_be_found() {
    assert_eq!(
        modules_used("use crate::{http, auth::Auth};\n// crate::cli\n"),
        ["http", "auth"]
    );
    assert!(points_up("store", "http"));
    assert!(points_up("domain", "store"));
    assert!(points_up("ws", "http"), "entrances do not know each other");
    assert!(points_up("clock", "auth"));
    assert!(!points_up("http", "auth"));
    assert!(!points_up("auth", "clock"));
}

#[test]
fn every_module_has_a_layer_and_every_file_a_header() {
    for (path, text) in sources() {
        let module = module(&path);
        let known =
            layer(&module).is_some() || SHARED.contains(&module.as_str()) || module == "lib";
        assert!(known, "{} is in no layer", path.display());
        assert!(
            text.starts_with("//! "),
            "{} has no //! header",
            path.display()
        );
        let first = text.split_whitespace().nth(1).unwrap_or_default();
        let is_riddle = [
            "What", "How", "Who", "Whose", "Whether", "Where", "Which", "Why",
        ]
        .contains(&first);
        assert!(
            !is_riddle,
            "{}: a header begins with a noun",
            path.display()
        );
    }
}

/// The modules named after "Touches" in a module's header.
fn touches(text: &str) -> Option<Vec<String>> {
    let words: Vec<&str> = text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .collect();
    let words = words.join(" ");
    let (_, sentence) = words.split_once("Touches ")?;
    let sentence = sentence.split(". ").next()?;
    let named = sentence.split('`').skip(1).step_by(2).map(str::to_owned);
    Some(named.collect())
}

#[test]
fn the_touches_sentence_names_the_imports() {
    assert_eq!(
        touches("//! A. Touches `b`\n//! and `c`. No `d`.\nuse e;").unwrap(),
        ["b", "c"]
    );
    let sources = sources();
    let mut compared = 0;
    for (path, text) in &sources {
        let from = module(path);
        let is_top = path.ends_with(format!("src/{from}.rs"));
        let is_module = |to: &String| layer(to).is_some() || SHARED.contains(&to.as_str());
        // Composition roots touch everything.
        if !is_top || matches!(from.as_str(), "main" | "lib" | "cli" | "gateway" | "config") {
            continue;
        }
        let Some(said) = touches(text) else { continue };
        let said: BTreeSet<String> = said.into_iter().filter(is_module).collect();
        let files = sources.iter().filter(|(path, _)| module(path) == from);
        let used: BTreeSet<String> = files
            .flat_map(|(_, text)| modules_used(text))
            .filter(|to| is_module(to) && *to != from)
            .collect();
        assert_eq!(
            said, used,
            "the \"Touches\" of src/{from}.rs, and its imports"
        );
        compared += 1;
    }
    assert!(
        compared >= 10,
        "only {compared} modules say what they touch"
    );
}

#[test]
fn crates_stay_in_their_modules() {
    for (path, text) in sources() {
        let module = module(&path);
        for (owned, owners) in OWNED {
            let used = text.contains(&format!("{owned}::"));
            assert!(
                !used || owners.contains(&module.as_str()),
                "{} uses {owned}, which belongs to {owners:?}",
                path.display()
            );
        }
    }
}

#[test]
fn error_responses_are_made_in_one_place() {
    for (path, text) in sources() {
        let makes_one = text.contains("problem+json") && !text.trim_start().is_empty();
        let allowed = path.ends_with("http/error.rs") || path.ends_with("http/api_docs.rs");
        assert!(!makes_one || allowed, "{}", path.display());
    }
}

/// Whether a text reads a journal, whose reader must be checked for each page.
fn reads_journal(text: &str) -> bool {
    let code: String = text.split_whitespace().collect();
    [".events(", ".events_after(", ".offset_before"]
        .iter()
        .any(|call| code.contains(call))
}

#[test]
fn only_the_journal_reader_reads_journals_over_http() {
    assert!(reads_journal("state\n    .sessions\n    .events(id)"));
    assert!(reads_journal("sessions.offset_before_last(id)"));
    assert!(!reads_journal("routes!(journal_events::events)"));
    let mut readers = Vec::new();
    for (path, text) in sources() {
        if module(&path) == "http" && reads_journal(&text) {
            readers.push(path.file_name().unwrap().to_owned());
        }
    }
    assert_eq!(readers, ["journal_reader.rs"]);
}

#[test]
fn files_stay_one_noun_long() {
    let is_test = |path: &Path| {
        path.iter()
            .any(|step| step == "tests" || step == "tests.rs")
    };
    for (path, text) in sources().into_iter().filter(|(path, _)| !is_test(path)) {
        let lines = text.lines().count();
        assert!(
            lines <= 500,
            "{} has {lines} lines: more than one noun?",
            path.display()
        );
    }
}

#[test]
fn statements_name_their_columns() {
    // During an upgrade, an older program must not read columns that a newer one has added.
    let asks = |line: &str| {
        let all = line.contains("select * from ") && !line.trim_end().ends_with('(');
        let of_a_table = line
            .split(".*")
            .skip(1)
            .any(|rest| rest.starts_with([',', ' ']));
        (all || of_a_table) && !line.contains("unnest")
    };
    assert!(asks("select users.*, id from users") && asks("select * from users"));
    assert!(!asks("select * from ("));
    for (path, text) in sources() {
        if path.to_string_lossy().contains("/store/") {
            let found = text.lines().find(|line| asks(line));
            assert_eq!(found, None, "{}", path.display());
        }
    }
}
