//! Agent home: where an agent stores things (logins, rules, conversations), and whether they belong to one
//! user alone.
//!
//! The one place that decides it. Only the operator's configuration counts as proof; without proof the
//! home is taken as shared.

use super::config::AgentConfig;

/// Below the data directory.
pub(super) const HOMES_DIR: &str = "homes";
const USER_HOMES: &str = "homes/{user}";
/// What a new home begins with.
pub(super) const TEMPLATE: &str = "homes/template";
const USER: &str = "user";
const SHARED: &str = "shared";
/// Variables that move a part of what agents store away from their home.
const STORE_VARIABLES: [&str; 8] = [
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "OPENCODE_CONFIG_DIR",
    "VIBE_HOME",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// The home of an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Home<'a> {
    /// As `env` says, or the system user's.
    AsConfigured,
    /// This directory, relative to the data directory, with placeholders; made for the agent.
    Directory(&'a str),
    /// The gateway's own, the same for all users.
    Shared,
}

/// The home of an agent. New data directories have a home for each user; those that were made before
/// keep the shared one unless the configuration says otherwise.
pub(super) fn of(config: &AgentConfig, has_user_homes: bool) -> Home<'_> {
    match config.home.as_deref() {
        Some(USER) => Home::Directory(USER_HOMES),
        Some(SHARED) => Home::Shared,
        Some(path) => Home::Directory(path),
        None if is_set(config) || config.user.is_some() => Home::AsConfigured,
        None if has_user_homes => Home::Directory(USER_HOMES),
        None => Home::Shared,
    }
}

/// Whether the environment names a home.
pub(super) fn is_set(config: &AgentConfig) -> bool {
    config.env.contains_key("HOME") || config.env_files.contains_key("HOME")
}

fn is_per_user(text: &str) -> bool {
    text.contains("{user}") || text.contains("{session}")
}

/// Whether no two users of this agent share the directory in which it stores things.
pub(super) fn belongs_to_one_user(config: &AgentConfig, has_user_homes: bool) -> bool {
    // The content of a file would win, and is the same for everybody.
    let is_file = |name: &str| config.env_files.contains_key(name);
    let variable = |name: &str| config.env.get(name).filter(|_| !is_file(name));
    let is_shared_store = |name: &str| match variable(name) {
        Some(path) => !is_per_user(path),
        // The gateway's own value is the same for everybody.
        None => is_file(name) || config.pass_env.iter().any(|passed| passed == name),
    };
    if STORE_VARIABLES.into_iter().any(is_shared_store) {
        return false;
    }
    if is_codex(config) && variable("CODEX_HOME").is_some() {
        return true;
    }
    match of(config, has_user_homes) {
        Home::Directory(path) => is_per_user(path),
        Home::Shared => false,
        Home::AsConfigured => match variable("HOME") {
            Some(home) => is_per_user(home),
            // The home of the system user that it runs as.
            None => !is_file("HOME") && config.user.as_deref().is_some_and(is_per_user),
        },
    }
}

/// Codex stores everything in `CODEX_HOME`, and nothing in `HOME` if that is set.
fn is_codex(config: &AgentConfig) -> bool {
    config.command.iter().any(|word| word.contains("codex"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_private(json: &str) -> bool {
        belongs_to_one_user(&serde_json::from_str(json).unwrap(), false)
    }

    #[test]
    fn a_new_data_directory_has_a_home_for_each_user() {
        let config: AgentConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(of(&config, true), Home::Directory("homes/{user}"));
        assert!(belongs_to_one_user(&config, true));
        assert_eq!(of(&config, false), Home::Shared);
        let shared: AgentConfig = serde_json::from_str(r#"{"home": "shared"}"#).unwrap();
        assert!(!belongs_to_one_user(&shared, true));
        let set: AgentConfig = serde_json::from_str(r#"{"env": {"HOME": "/srv/x"}}"#).unwrap();
        assert_eq!(of(&set, true), Home::AsConfigured);
    }

    #[test]
    fn a_home_is_private_only_if_its_path_names_the_user() {
        for (expected, json) in [
            (false, "{}"),
            (false, r#"{"env": {"HOME": "/srv/agents"}}"#),
            (true, r#"{"env": {"HOME": "/srv/{user}"}}"#),
            (true, r#"{"env": {"HOME": "/srv/{session}"}}"#),
            (
                false,
                r#"{"env": {"HOME": "/srv/{user}"}, "env_files": {"HOME": "/etc/home"}}"#,
            ),
            (true, r#"{"home": "user"}"#),
            (true, r#"{"home": "/srv/{user}"}"#),
            (false, r#"{"home": "/srv/agents"}"#),
            (
                false,
                r#"{"command": ["codex-acp"], "home": "user", "env": {"CODEX_HOME": "/srv/codex"}}"#,
            ),
            (
                false,
                r#"{"home": "user", "env": {"XDG_DATA_HOME": "/srv/data"}}"#,
            ),
            (
                true,
                r#"{"home": "user", "env": {"XDG_DATA_HOME": "/srv/{user}"}}"#,
            ),
            (
                false,
                r#"{"home": "user", "pass_env": ["CLAUDE_CONFIG_DIR"]}"#,
            ),
            (
                false,
                r#"{"home": "user", "env_files": {"VIBE_HOME": "/etc/vibe"}}"#,
            ),
            (true, r#"{"user": "agent-{user}"}"#),
            (false, r#"{"user": "agent"}"#),
            (
                false,
                r#"{"user": "agent-{user}", "env": {"HOME": "/srv/agents"}}"#,
            ),
            (
                false,
                r#"{"user": "agent-{user}", "env_files": {"HOME": "/etc/home"}}"#,
            ),
            (
                true,
                r#"{"command": ["codex-acp"], "env": {"CODEX_HOME": "/srv/{user}"}}"#,
            ),
            (
                false,
                r#"{"command": ["vibe-acp"], "env": {"CODEX_HOME": "/srv/{user}"}}"#,
            ),
        ] {
            assert_eq!(is_private(json), expected, "{json}");
        }
    }
}
