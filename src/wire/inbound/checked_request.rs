//! Checked request: what a client wants, made from its message, with the rules that a type cannot state.

use std::fmt;

use serde_json::{Map, Value};

use super::message::{
    Aloud, Answer, BranchSession, Context, Extension, SaidOnce, SetQueueMode, SetTools,
    SettingsToChange, SubmitPrompt, UpdateSettings,
};
use super::{Rejected, Rules, prompt_files, reader};
use crate::domain::command::{
    AgentRequest, Command, IfBusy, MAX_OTHER_SETTINGS, Prompt, SettingsChange,
};
use crate::domain::error_code::ErrorCode;
use crate::domain::question::{self, AnswerValue};
use crate::wire::error_details::{Details, Limit};

const MAX_TOKENS: u32 = 1_000_000;
const MAX_TEMPERATURE: f64 = 2.0;
const MAX_MODEL_CHARS: usize = 128;
const MAX_CONTEXT_BYTES: usize = 64 * 1024;
/// Of one setting that only the agent knows.
const MAX_SETTING_BYTES: usize = 4 * 1024;
const NAMED_SETTINGS: [&str; 5] = ["autoApprove", "model", "maxTokens", "temperature", "mode"];
const MAX_TOOLS: usize = 256;
const MAX_REASON_CHARS: usize = 2_000;

#[derive(Clone, PartialEq)]
pub(crate) enum Request {
    Command(Command),
    AgentRequest(AgentRequest),
    State {
        include_history: bool,
        include_settings: bool,
    },
    Heartbeat,
    RefreshAuth {
        token: String,
    },
    /// A new session with the journal of this one.
    Branch {
        /// Up to which event; all of them if absent.
        from: Option<u64>,
    },
    TakeControl {
        /// Also if another connection has it.
        steal: bool,
    },
    ReleaseControl,
}

/// By hand, so that no log ever shows a token.
impl fmt::Debug for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => formatter.debug_tuple("Command").field(command).finish(),
            Self::AgentRequest(request) => formatter
                .debug_tuple("AgentRequest")
                .field(request)
                .finish(),
            Self::State { .. } => formatter.write_str("State"),
            Self::Heartbeat => formatter.write_str("Heartbeat"),
            Self::RefreshAuth { .. } => formatter.write_str("RefreshAuth"),
            Self::Branch { from } => formatter.debug_tuple("Branch").field(from).finish(),
            Self::TakeControl { .. } => formatter.write_str("TakeControl"),
            Self::ReleaseControl => formatter.write_str("ReleaseControl"),
        }
    }
}

type Read = Result<Request, Rejected>;

pub(super) fn submit_prompt(message: SubmitPrompt, rules: &Rules) -> Read {
    let images = message.images.unwrap_or_default();
    prompt_files::check_images(&images)?;
    let attachments = message.attachments.unwrap_or_default().into_iter();
    let attachments = attachments
        .enumerate()
        .map(|(index, given)| prompt_files::attachment(index, given))
        .collect::<Result<_, _>>()?;
    Ok(Request::Command(Command::SubmitPrompt {
        prompt: Prompt {
            text: text(message.text, rules)?,
            mode: message.mode,
            images,
            attachments,
            context: optional_context(message.context, "payload.context")?,
            meta: optional_context(message.meta, "payload.meta")?,
        },
        if_busy: message.if_busy.unwrap_or(IfBusy::Queue),
    }))
}

pub(super) fn update_settings(message: UpdateSettings, rules: &Rules) -> Read {
    let (named, other) = message
        .settings
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .partition::<Map<_, _>, _>(|(name, _)| NAMED_SETTINGS.contains(&name.as_str()));
    check_other_settings(&other, rules)?;
    let SettingsToChange {
        auto_approve,
        model,
        max_tokens,
        temperature,
        mode,
    } = reader::read(Value::Object(named), "payload.settings")?;
    for (name, word) in [("model", &model), ("mode", &mode)] {
        if let Some(word) = word
            && !(1..=MAX_MODEL_CHARS).contains(&word.chars().count())
        {
            let fault = format!("does not have 1 to {MAX_MODEL_CHARS} characters");
            return Err(Rejected::field(&format!("payload.settings.{name}"), &fault));
        }
    }
    if max_tokens.is_some_and(|count| !(1..=MAX_TOKENS).contains(&count)) {
        let fault = format!("is not an integer from 1 to {MAX_TOKENS}");
        return Err(Rejected::field("payload.settings.maxTokens", &fault));
    }
    if temperature.is_some_and(|degree| !(0.0..=MAX_TEMPERATURE).contains(&degree)) {
        let fault = format!("is not a number from 0 to {MAX_TEMPERATURE}");
        return Err(Rejected::field("payload.settings.temperature", &fault));
    }
    let change = SettingsChange {
        auto_approve,
        model,
        max_tokens,
        temperature,
        mode,
        other,
    };
    if change.is_empty() {
        return Err(Rejected::field("payload.settings", "changes nothing"));
    }
    Ok(Request::Command(Command::UpdateSettings(change)))
}

/// Settings that only the agent knows: few, short and of bounded size.
fn check_other_settings(other: &Map<String, Value>, rules: &Rules) -> Result<(), Rejected> {
    if other.len() > MAX_OTHER_SETTINGS {
        let fault = format!("has more than {MAX_OTHER_SETTINGS} settings of the agent's own");
        return Err(Rejected::field("payload.settings", &fault));
    }
    for (name, value) in other {
        reader::check_id("payload.settings", name, rules.id_bytes)?;
        if value.to_string().len() > MAX_SETTING_BYTES {
            let fault = format!("has more than {MAX_SETTING_BYTES} bytes");
            return Err(Rejected::field(&format!("payload.settings.{name}"), &fault));
        }
    }
    Ok(())
}

pub(super) fn answer(message: Answer, rules: &Rules) -> Read {
    let value = match message.said {
        SaidOnce::Ok { ok } => AnswerValue::Ok(ok),
        SaidOnce::Option { option_id } => AnswerValue::Option(option_id),
        SaidOnce::Value { value } => {
            check_length("payload.value", &value, rules.prompt_chars)?;
            AnswerValue::Text(Some(value))
        }
        SaidOnce::Ids { ids } => AnswerValue::Ids(ids),
    };
    if let Some(reason) = &message.reason {
        check_length("payload.reason", reason, MAX_REASON_CHARS)?;
    }
    Ok(Request::Command(Command::Answer {
        question: message.question_id,
        answer: question::Answer {
            value,
            remember: message.remember.unwrap_or(false),
            reason: message.reason,
        },
    }))
}

pub(super) fn steer(message: Aloud, rules: &Rules) -> Read {
    let text = text(message.text, rules)?;
    Ok(Request::Command(Command::Steer { text }))
}

pub(super) fn follow_up(message: Aloud, rules: &Rules) -> Read {
    let text = text(message.text, rules)?;
    Ok(Request::Command(Command::FollowUp { text }))
}

pub(super) fn suggest(message: Aloud, rules: &Rules) -> Read {
    let text = text(message.text, rules)?;
    Ok(Request::Command(Command::Suggest { text }))
}

pub(super) fn set_queue_mode(message: SetQueueMode, _: &Rules) -> Read {
    let SetQueueMode {
        steering,
        follow_up,
    } = message;
    if steering.is_none() && follow_up.is_none() {
        return Err(Rejected::field("payload", "changes nothing"));
    }
    Ok(Request::Command(Command::SetQueueMode {
        steering,
        follow_up,
    }))
}

pub(super) fn set_tools(message: SetTools, rules: &Rules) -> Read {
    let tools = message.tools;
    if tools.len() > MAX_TOOLS {
        let fault = format!("has more than {MAX_TOOLS} entries");
        return Err(Rejected::field("payload.tools", &fault));
    }
    for (index, tool) in tools.iter().enumerate() {
        reader::check_id(&format!("payload.tools[{index}]"), tool, rules.id_bytes)?;
    }
    Ok(Request::Command(Command::SetTools { tools }))
}

pub(super) fn update_context(message: Context, _: &Rules) -> Read {
    let context = context(message.0, "payload")?;
    Ok(Request::Command(Command::UpdateContext(context)))
}

pub(super) fn extension(message: Extension, rules: &Rules) -> Read {
    let Extension { name, payload } = message;
    reader::check_id("payload.name", &name, rules.id_bytes)?;
    let payload = payload.unwrap_or_default();
    Ok(Request::AgentRequest(AgentRequest::Extension {
        name,
        payload,
    }))
}

pub(super) fn branch_session(message: BranchSession, _: &Rules) -> Read {
    let from = message.from_offset;
    if from == Some(0) {
        let fault = "is not the offset of an event: 1, 2, 3…";
        return Err(Rejected::field("payload.fromOffset", fault));
    }
    Ok(Request::Branch { from })
}

/// A text for the agent: within the limit, and not empty.
fn text(text: String, rules: &Rules) -> Result<String, Rejected> {
    let (max, actual) = (rules.prompt_chars, text.chars().count());
    if actual > max {
        return Err(Rejected::new(
            ErrorCode::ValidationError,
            format!("`payload.text` has {actual} characters, at most {max} are allowed"),
            Some(Details::field("payload.text").too_large(Limit::PromptChars, max, actual)),
        ));
    }
    if text.trim().is_empty() {
        return Err(Rejected::field("payload.text", "is empty"));
    }
    Ok(text)
}

fn check_length(path: &str, text: &str, max: usize) -> Result<(), Rejected> {
    if text.chars().count() <= max {
        return Ok(());
    }
    Err(Rejected::field(
        path,
        &format!("has more than {max} characters"),
    ))
}

fn optional_context(
    members: Option<Map<String, Value>>,
    path: &str,
) -> Result<Option<Value>, Rejected> {
    members.map(|members| context(members, path)).transpose()
}

/// What the client knows about where its user is: any object of bounded size.
fn context(members: Map<String, Value>, path: &str) -> Result<Value, Rejected> {
    let context = Value::Object(members);
    let bytes = context.to_string().len();
    if bytes <= MAX_CONTEXT_BYTES {
        return Ok(context);
    }
    let details = Details::field(path).too_large(Limit::ContextBytes, MAX_CONTEXT_BYTES, bytes);
    Err(Rejected {
        details: Some(Box::new(details)),
        ..Rejected::field(path, &format!("has more than {MAX_CONTEXT_BYTES} bytes"))
    })
}
