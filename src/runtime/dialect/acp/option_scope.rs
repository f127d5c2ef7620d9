//! Option scope: how long an "always" of an agent holds, and whether it may be offered.
//!
//! The protocol does not tell an answer for the session from one that the agent stores in its home,
//! where it answers for every user who shares that home. So an "always" is offered only if it is known
//! to end with the session's process, or if the home belongs to one user alone.

use crate::domain::question::{Choice, ChoiceKind};

/// Options of the kind "always" that the agent forgets with its process, by the agent's name. Read in
/// the agents' sources: opencode 1.18, gemini-cli 0.61, codex-acp 2.6, claude-agent-acp 0.99,
/// qwen-code 0.15.
const SESSION_OPTIONS: &[(&str, &[&str])] = &[
    ("opencode", &["always"]),
    (
        "gemini-cli",
        &[
            "proceed_always",
            "proceed_always_server",
            "proceed_always_tool",
        ],
    ),
    (
        "codex-acp",
        &[
            "allow_for_session",
            "allow_permissions_session",
            "allow_session",
        ],
    ),
    // Modes of the session.
    (
        "claude-agent-acp",
        &[
            "exit-plan-auto",
            "exit-plan-bypass",
            "exit-plan-accept-edits",
            "exit-plan-clear-auto",
            "exit-plan-clear-bypass",
            "exit-plan-clear-accept-edits",
        ],
    ),
    ("qwen-code", &["proceed_always"]),
];

const IN_SESSION: &str = "Holds in this session, until its agent is restarted.";
const IN_HOME: &str =
    "Stored in the agent's home: holds in every session of this session's owner with this agent.";

/// The option with what it covers; none if it would answer for other users.
pub(super) fn offered(mut option: Choice, agent: &str, private_home: bool) -> Option<Choice> {
    use ChoiceKind::{AllowOnce, RejectOnce};
    // An option of a kind that is not known may be stored as well.
    if matches!(option.kind, Some(AllowOnce | RejectOnce)) {
        return Some(option);
    }
    let covers = if ends_with_session(agent, &option.id) {
        IN_SESSION
    } else if private_home {
        IN_HOME
    } else {
        return None;
    };
    option.detail = Some(covers.to_owned());
    Some(option)
}

/// `agent` as in `agentInfo.name`, which may have the scope of its package in front.
fn ends_with_session(agent: &str, option: &str) -> bool {
    let name = agent.rsplit('/').next().unwrap_or(agent);
    let known = SESSION_OPTIONS
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    known.is_some_and(|(_, options)| options.contains(&option))
}
