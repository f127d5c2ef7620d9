//! The shape of the code, checked: imports point down, and what belongs to one room stays there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rooms from the door to the ground. A room may use itself and what stands on a later line.
const FLOORS: [&[&str]; 12] = [
    &["main"],
    &["cli"],
    &["gateway"],
    &["config"],
    &["http", "ws"],
    &["desk"],
    &["web", "wire"],
    &["auth"],
    &["session"],
    &["limits", "runtime", "bus"],
    &["store"],
    &["domain"],
];
/// Used by every room, using none (but the ground).
const BESIDE: [&str; 3] = ["clock", "shutdown", "telemetry"];

/// Crates that are one room's business.
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
    assert!(
        found.len() > 50,
        "the sources are not where they are looked for"
    );
    found
}

/// The room that a file belongs to: the first step of its path under `src`.
fn room(path: &Path) -> String {
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

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

/// Every room named by `crate::room` in a text, comments aside.
fn rooms_used(text: &str) -> Vec<String> {
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
    if from == to || from == "lib" || BESIDE.contains(&to) {
        return false;
    }
    match (floor(from), floor(to)) {
        (Some(from), Some(to)) => to <= from,
        (None, Some(_)) => to != "domain",
        _ => false,
    }
}

#[test]
fn no_import_points_up() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let from = room(&path);
        for to in rooms_used(&text) {
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
        rooms_used("use crate::{http, auth::Auth};\n// crate::cli\n"),
        ["http", "auth"]
    );
    assert!(points_up("store", "http"));
    assert!(points_up("domain", "store"));
    assert!(points_up("ws", "http"), "doors do not know each other");
    assert!(points_up("clock", "auth"));
    assert!(!points_up("http", "auth"));
    assert!(!points_up("auth", "clock"));
}

#[test]
fn every_room_is_on_the_plan_and_says_what_it_is() {
    for (path, text) in sources() {
        let room = room(&path);
        let known = floor(&room).is_some() || BESIDE.contains(&room.as_str()) || room == "lib";
        assert!(known, "{} is on no floor", path.display());
        assert!(
            text.starts_with("//! "),
            "{} does not say what it is",
            path.display()
        );
    }
}

/// The rooms that the words after "Touches" name, at the top of a room's file.
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
fn a_room_says_what_it_touches() {
    assert_eq!(
        touches("//! A. Touches `b`\n//! and `c`. No `d`.\nuse e;").unwrap(),
        ["b", "c"]
    );
    let sources = sources();
    let mut compared = 0;
    for (path, text) in &sources {
        let from = room(path);
        let is_top = path.ends_with(format!("src/{from}.rs"));
        let is_room = |to: &String| floor(to).is_some() || BESIDE.contains(&to.as_str());
        // Those that build or read everything name no rooms.
        if !is_top || matches!(from.as_str(), "main" | "lib" | "cli" | "gateway" | "config") {
            continue;
        }
        let Some(said) = touches(text) else { continue };
        let said: BTreeSet<String> = said.into_iter().filter(is_room).collect();
        let files = sources.iter().filter(|(path, _)| room(path) == from);
        let used: BTreeSet<String> = files
            .flat_map(|(_, text)| rooms_used(text))
            .filter(|to| is_room(to) && *to != from)
            .collect();
        assert_eq!(
            said, used,
            "the \"Touches\" of src/{from}.rs, and its imports"
        );
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} rooms say what they touch");
}

#[test]
fn crates_stay_in_their_rooms() {
    for (path, text) in sources() {
        let room = room(&path);
        for (owned, owners) in OWNED {
            let used = text.contains(&format!("{owned}::"));
            assert!(
                !used || owners.contains(&room.as_str()),
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
        let allowed = path.ends_with("http/error.rs") || path.ends_with("http/documents.rs");
        assert!(!makes_one || allowed, "{}", path.display());
    }
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
fn no_statement_asks_for_whatever_columns_there_are() {
    // A program that runs while another adds a column would read the wrong ones.
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
