//! Nous contract: the required keys of every command, response and event of the frozen version 1.

use serde_json::Value;

/// Commands with their required and their optional keys, and the type of their response.
pub(crate) const COMMANDS: [(&str, &[&str], &[&str], &str); 14] = [
    ("prompt", &["text"], &["wait", "leaf_id"], "accepted"),
    ("steer", &["text"], &[], "accepted"),
    ("follow_up", &["text"], &[], "accepted"),
    ("abort", &[], &[], "accepted"),
    ("get_state", &[], &[], "state"),
    ("get_messages", &[], &["session_id", "leaf_id"], "messages"),
    ("new_session", &[], &[], "session"),
    ("switch_session", &["session_id"], &[], "session"),
    ("branch_session", &["session_id"], &[], "session"),
    ("set_active_tools", &["tools"], &[], "accepted"),
    ("set_steering_mode", &["mode"], &[], "accepted"),
    ("set_follow_up_mode", &["mode"], &[], "accepted"),
    (
        "extension_command",
        &["name"],
        &["payload"],
        "extension_result",
    ),
    ("ping", &[], &[], "pong"),
];

/// Commands of the program beyond the frozen ones.
const LATER_COMMANDS: [(&str, &[&str], &[&str], &str); 2] = [
    ("get_tree", &[], &["session_id"], "tree"),
    ("set_leaf", &["leaf_id"], &["session_id"], "leaf"),
];

/// Responses with their required keys; of `accepted`, by its command.
const RESPONSES: [(&str, &[&str]); 15] = [
    ("pong", &["message"]),
    ("accepted:prompt", &["command", "run_id"]),
    ("accepted:steer", &["command", "run_id"]),
    ("accepted:follow_up", &["command", "run_id"]),
    ("accepted:abort", &["command", "run_id"]),
    ("accepted:set_active_tools", &["command"]),
    ("accepted:set_steering_mode", &["command", "mode"]),
    ("accepted:set_follow_up_mode", &["command", "mode"]),
    (
        "state",
        &[
            "run_state",
            "run_id",
            "session_id",
            "steering_mode",
            "follow_up_mode",
            "pending_counts",
        ],
    ),
    ("messages", &["session_id", "messages"]),
    ("session", &["session_id", "active"]),
    ("extension_result", &[]),
    ("tree", &["session_id", "nodes"]),
    ("leaf", &["session_id", "leaf_id"]),
    ("error", &[]),
];

/// Events with the keys that a client relies on.
pub(crate) const EVENTS: [(&str, &[&str]); 13] = [
    ("agent_start", &["run_id"]),
    ("agent_end", &["run_id"]),
    ("turn_start", &["run_id", "turn_id"]),
    ("turn_end", &["run_id", "turn_id"]),
    (
        "message_start",
        &["run_id", "turn_id", "message_id", "role"],
    ),
    (
        "message_update",
        &["run_id", "turn_id", "message_id", "delta"],
    ),
    ("message_end", &["run_id", "turn_id", "message_id"]),
    (
        "tool_execution_start",
        &["run_id", "turn_id", "tool_call_id", "tool_name"],
    ),
    (
        "tool_execution_update",
        &["run_id", "turn_id", "tool_call_id"],
    ),
    ("tool_execution_end", &["run_id", "turn_id", "tool_call_id"]),
    ("status", &["run_id", "message"]),
    ("warning", &["run_id", "code", "message"]),
    ("error", &["run_id", "code", "message"]),
];

/// Checks a command of the gateway: all required keys, and none that the protocol does not know.
pub(crate) fn check_command(command: &Value) {
    check_envelope(command);
    let kind = command["type"].as_str().unwrap();
    let mut known = COMMANDS.iter().chain(&LATER_COMMANDS);
    let found = known.find(|(name, ..)| *name == kind);
    let (_, required, optional, _) = found.unwrap_or_else(|| panic!("unknown: {command}"));
    require(command, required);
    for key in command["payload"].as_object().unwrap().keys() {
        let key = key.as_str();
        assert!(
            required.contains(&key) || optional.contains(&key),
            "{command}"
        );
    }
}

/// Checks a response to a command of this type.
pub(crate) fn check_response(response: &Value, asked: &str) {
    check_envelope(response);
    let kind = response["type"].as_str().unwrap();
    if response["ok"] == false {
        assert_eq!(kind, "error", "{response}");
        assert!(response["error"]["code"].is_string(), "{response}");
        assert!(response["error"]["message"].is_string(), "{response}");
        return;
    }
    assert_eq!(response["ok"], true, "{response}");
    let mut known = COMMANDS.iter().chain(&LATER_COMMANDS);
    let (.., answer) = known.find(|(name, ..)| *name == asked).unwrap();
    assert_eq!(kind, *answer, "{response}");
    let name = match kind {
        "accepted" => {
            assert_eq!(response["payload"]["command"], asked, "{response}");
            format!("accepted:{asked}")
        }
        kind => kind.to_owned(),
    };
    let (_, required) = RESPONSES.iter().find(|(known, _)| *known == name).unwrap();
    require(response, required);
    if kind == "state" {
        let pending = &response["payload"]["pending_counts"];
        assert!(
            pending["steer"].is_u64() && pending["follow_up"].is_u64(),
            "{response}"
        );
    }
}

pub(crate) fn check_event(event: &Value) {
    check_envelope(event);
    let found = EVENTS.iter().find(|(name, _)| event["type"] == *name);
    let (_, required) = found.unwrap_or_else(|| panic!("unknown: {event}"));
    require(event, required);
}

fn check_envelope(line: &Value) {
    assert_eq!(line["v"], "1", "{line}");
    assert!(
        line["id"].as_str().is_some_and(|id| !id.is_empty()),
        "{line}"
    );
    assert!(line["type"].is_string(), "{line}");
    assert!(line["payload"].is_object(), "{line}");
}

fn require(line: &Value, keys: &[&str]) {
    for key in keys {
        assert!(!line["payload"][key].is_null(), "no {key}: {line}");
    }
}
