//! Wire enums: the words for a choice of few, each set defined once for reading, sending and describing.

use serde::de::{Deserialize, Deserializer, Error as _};
use utoipa::openapi::{ObjectBuilder, Type, schema::Schema};

use crate::domain::command::{Encoding, IfBusy, Mode, Topic};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Activity, Author, Channel, Level, TextFormat};
use crate::domain::question::{ChoiceKind, QuestionKind, Severity};
use crate::domain::queue::{PromptKind, QueueMode};
use crate::domain::run::FailureCause;

/// A domain type with its words on the wire. Apart from its stored form, which may be another one.
pub(super) trait WireEnum: Copy + 'static {
    const WORDS: &'static [&'static str];
    const VALUES: &'static [Self];

    fn word(self) -> &'static str;
}

macro_rules! wire_enums {
    ($($schema:ident: $domain:ty { $($variant:ident = $word:literal),+ })+) => {$(
        impl WireEnum for $domain {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const VALUES: &'static [Self] = &[$(Self::$variant),+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
        }

        pub(super) fn $schema() -> Schema {
            one_of(<$domain>::WORDS)
        }
    )+};
}

wire_enums! {
    mode: Mode { Plan = "plan", Act = "act" }
    if_busy: IfBusy { Queue = "queue", Refuse = "refuse" }
    encoding: Encoding { Text = "text", Base64 = "base64" }
    topic: Topic {
        Models = "models", Mcp = "mcp", Skills = "skills", Commands = "commands", Tree = "tree"
    }
    queue_mode: QueueMode { One = "one-at-a-time", All = "all" }
    prompt_kind: PromptKind { Steer = "steer", FollowUp = "followUp", Prompt = "prompt" }
    author: Author { User = "user", Assistant = "assistant", System = "system" }
    text_format: TextFormat { Markdown = "markdown", Text = "text" }
    channel: Channel { Text = "text", Thought = "thought" }
    activity: Activity {
        Idle = "idle", Thinking = "thinking", ExecutingTool = "executing_tool",
        WaitingForInput = "waiting_for_input"
    }
    level: Level { Info = "info", Warn = "warn", Error = "error" }
    failure_cause: FailureCause {
        NotInstalled = "not_installed", NotStarted = "not_started", Crashed = "crashed",
        GatewayRestarted = "gateway_restarted"
    }
    question_kind: QuestionKind {
        Permission = "permission", Confirm = "confirm", Prompt = "prompt", Pick = "pick"
    }
    severity: Severity { Info = "INFO", Warn = "WARN", Critical = "CRITICAL" }
    choice_kind: ChoiceKind {
        AllowOnce = "allow_once", AllowAlways = "allow_always", RejectOnce = "reject_once",
        RejectAlways = "reject_always"
    }
}

/// Reads a word; for `deserialize_with`.
pub(super) fn read_word<'de, T: WireEnum, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Word::deserialize(deserializer).map(|word| word.0)
}

/// Reads a word that may be absent; for `deserialize_with`.
pub(super) fn read_optional<'de, T: WireEnum, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let word = Option::<Word<T>>::deserialize(deserializer)?;
    Ok(word.map(|word| word.0))
}

struct Word<T>(T);

impl<'de, T: WireEnum> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What is no string is no word either, and the words say more than the type.
        let text = String::deserialize(deserializer).unwrap_or_default();
        let known = T::VALUES.iter().find(|value| value.word() == text);
        let value = known.ok_or_else(|| D::Error::unknown_variant(&text, T::WORDS))?;
        Ok(Self(*value))
    }
}

fn one_of(words: &[&str]) -> Schema {
    let object = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(words.iter().copied()));
    Schema::Object(object.build())
}

pub(super) fn task_status() -> Schema {
    one_of(&["starting", "running", "completed", "cancelled", "error"])
}

pub(super) fn tool_status() -> Schema {
    one_of(&[
        "pending",
        "running",
        "completed",
        "failed",
        "denied",
        "skipped",
        "cancelled",
    ])
}

pub(super) fn code() -> Schema {
    one_of(&ErrorCode::ALL.map(ErrorCode::as_str))
}

pub(super) fn outcome() -> Schema {
    one_of(&["allowed", "denied", "answered", "expired", "cancelled"])
}

pub(super) fn control_mode() -> Schema {
    one_of(&["open", "exclusive"])
}

pub(super) fn access() -> Schema {
    one_of(&["viewer", "editor", "owner"])
}
