//! Agent home: whether what an agent stores (logins, rules, conversations) belongs to one user alone.
//!
//! The one place that decides it. Only the operator's configuration counts as proof; without proof the
//! home is taken as shared.

use super::config::AgentConfig;

/// Whether no two users of this agent share the directory in which it stores things.
pub(super) fn belongs_to_one_user(config: &AgentConfig) -> bool {
    let per_user = |text: &String| text.contains("{user}") || text.contains("{session}");
    // The content of a file would win, and is the same for everybody.
    let is_file = |name: &str| config.env_files.contains_key(name);
    let variable = |name: &str| config.env.get(name).filter(|_| !is_file(name));
    if is_codex(config) && variable("CODEX_HOME").is_some_and(per_user) {
        return true;
    }
    match variable("HOME") {
        Some(home) => per_user(home),
        // The home of the system user that it runs as.
        None => !is_file("HOME") && config.user.as_ref().is_some_and(per_user),
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
        belongs_to_one_user(&serde_json::from_str(json).unwrap())
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
