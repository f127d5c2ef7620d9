//! Supply chain: every dependency has an allowed licence, comes from the registry and is not banned.
//!
//! The offline part of what `scripts/audit` asks of cargo-deny, by the same `deny.toml`, so that no change
//! lands without it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

const REGISTRY: &str = "registry+";

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--format-version", "1"])
        // Packages for other systems are not downloaded here; cargo-deny looks at them.
        .args(["--filter-platform", &host()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The system that this is built on, as rustc names it.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let about = String::from_utf8(output.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap().to_owned()
}

fn policy() -> toml::Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");
    std::fs::read_to_string(file).unwrap().parse().unwrap()
}

fn allowed_licences() -> BTreeSet<String> {
    let allowed = policy()["licenses"]["allow"].as_array().unwrap().clone();
    allowed
        .iter()
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

/// Whether an SPDX expression can be met with these licences.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    let met = any(&words, &mut position, allowed);
    met && position == words.len()
}

fn any(words: &[&str], position: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = all(words, position, allowed);
    while words.get(*position) == Some(&"OR") {
        *position += 1;
        met |= all(words, position, allowed);
    }
    met
}

fn all(words: &[&str], position: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, position, allowed);
    while words.get(*position) == Some(&"AND") {
        *position += 1;
        met &= one(words, position, allowed);
    }
    met
}

fn one(words: &[&str], position: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*position) else {
        return false;
    };
    *position += 1;
    if *word == "(" {
        let met = any(words, position, allowed);
        *position += 1;
        return met;
    }
    let mut met = allowed.contains(*word);
    if words.get(*position) == Some(&"WITH") {
        let exception = format!("{word} WITH {}", words[*position + 1]);
        met |= allowed.contains(&exception);
        *position += 2;
    }
    met
}

#[test]
fn an_expression_is_met_by_its_alternatives_and_parts() {
    let allowed = ["MIT", "ISC"].map(str::to_owned).into();
    for expression in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(ISC AND MIT) OR GPL-3.0",
    ] {
        assert!(is_met(expression, &allowed), "{expression}");
    }
    for expression in [
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT AND (GPL-3.0 OR AGPL-3.0)",
        "",
    ] {
        assert!(!is_met(expression, &allowed), "{expression}");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = allowed_licences();
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| {
            let licence = package["license"].as_str().unwrap_or_default();
            !is_met(licence, &allowed)
        })
        .map(|package| {
            format!(
                "{} {}: {}",
                package["name"], package["version"], package["license"]
            )
        })
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn no_dependency_accepts_any_version() {
    assert_eq!(policy()["bans"]["wildcards"].as_str(), Some("deny"));
    let mut compared = 0;
    for package in packages() {
        for dependency in package["dependencies"].as_array().unwrap() {
            let (from, to) = (&package["name"], &dependency["name"]);
            let is_local = dependency["path"].is_string();
            let is_wild = dependency["req"].as_str().unwrap().contains('*');
            assert!(is_local || !is_wild, "{from} accepts any version of {to}");
            compared += 1;
        }
    }
    assert!(compared > 100, "only {compared} dependencies");
}

/// The images that the files for containers name, with the file.
fn images() -> Vec<(&'static str, String)> {
    let files = [
        "Dockerfile",
        "deploy/docker/agents.Dockerfile",
        "docker-compose.yml",
    ];
    let mut images = Vec::new();
    for file in files {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let named = text.lines().filter_map(|line| {
            let line = line.trim();
            line.strip_prefix("FROM ")
                .or_else(|| line.strip_prefix("image: "))
        });
        images.extend(named.map(|named| (file, named.to_owned())));
    }
    images
}

/// An image with the version of its program down to the patch; a stage of the same file has no colon.
fn has_exact_version(image: &str) -> bool {
    let name = image.split_whitespace().next().unwrap_or_default();
    let name = name.trim_end_matches('}');
    let Some((_, tag)) = name.rsplit_once(':') else {
        return image.ends_with(" AS plan") || image.ends_with(" AS build");
    };
    let version = tag.trim_start_matches(['-', 'v']);
    let version = version.split(['-', '@']).next().unwrap_or_default();
    version.split('.').count() >= 2 && version.split('.').all(|part| part.parse::<u32>().is_ok())
}

#[test]
fn every_image_has_an_exact_version() {
    assert!(has_exact_version("node:20.20.2-bookworm-slim AS page"));
    assert!(!has_exact_version("node:20-slim AS page"));
    assert!(!has_exact_version("debian:latest"));
    assert!(!has_exact_version("debian"));
    let images = images();
    assert!(images.len() >= 9, "{images:?}");
    for (file, image) in images {
        assert!(has_exact_version(&image), "{file}: {image}");
    }
}

#[test]
fn every_dependency_comes_from_the_registry_and_none_is_banned() {
    let policy = policy();
    let banned: BTreeSet<&str> = policy["bans"]["deny"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ban| ban["crate"].as_str().unwrap())
        .collect();
    assert!(!banned.is_empty());
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(!banned.contains(name), "{name} is banned");
        let source = package["source"].as_str();
        let is_fine = source.is_none_or(|source| source.starts_with(REGISTRY));
        assert!(is_fine, "{name} comes from {source:?}");
    }
}
