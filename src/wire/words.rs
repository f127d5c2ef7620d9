//! The words that stand on the wire where a choice of few is meant, for the description.

use utoipa::openapi::{ObjectBuilder, Type, schema::Schema};

fn one_of<const N: usize>(words: [&str; N]) -> Schema {
    let object = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words));
    Schema::Object(object.build())
}

pub(super) fn task_status() -> Schema {
    one_of(["starting", "running", "completed", "cancelled", "error"])
}

pub(super) fn tool_status() -> Schema {
    one_of([
        "pending",
        "running",
        "completed",
        "failed",
        "denied",
        "skipped",
        "cancelled",
    ])
}

pub(super) fn activity() -> Schema {
    one_of(["idle", "thinking", "executing_tool", "waiting_for_input"])
}

pub(super) fn level() -> Schema {
    one_of(["info", "warn", "error"])
}

pub(super) fn mode() -> Schema {
    one_of(["plan", "act"])
}

pub(super) fn if_busy() -> Schema {
    one_of(["queue", "refuse"])
}

pub(super) fn author() -> Schema {
    one_of(["user", "assistant", "system"])
}

pub(super) fn channel() -> Schema {
    one_of(["text", "thought"])
}

pub(super) fn code() -> Schema {
    one_of(crate::domain::code::Code::ALL.map(crate::domain::code::Code::as_str))
}

pub(super) fn topic() -> Schema {
    one_of(["models", "mcp", "skills", "commands", "tree"])
}

pub(super) fn take() -> Schema {
    one_of(["one-at-a-time", "all"])
}

pub(super) fn waiting() -> Schema {
    one_of(["steer", "followUp", "prompt"])
}

pub(super) fn question_kind() -> Schema {
    one_of(["permission", "confirm", "prompt", "pick"])
}

pub(super) fn severity() -> Schema {
    one_of(["INFO", "WARN", "CRITICAL"])
}

pub(super) fn choice_kind() -> Schema {
    one_of(["allow_once", "allow_always", "reject_once", "reject_always"])
}

pub(super) fn outcome() -> Schema {
    one_of(["allowed", "denied", "answered", "expired", "cancelled"])
}

pub(super) fn control_mode() -> Schema {
    one_of(["open", "exclusive"])
}

pub(super) fn access() -> Schema {
    one_of(["viewer", "editor", "owner"])
}
