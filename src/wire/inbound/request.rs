//! What a client wants, from the payload of its message.

use serde_json::Value;

use super::fields::{Fields, shown};
use super::{Rejected, Request, Rules, talk};
use crate::domain::code::Code;
use crate::domain::command::{Attachment, Command, IfBusy, Mode, Prompt, SettingsChange};
use crate::domain::name::{NAME_RULE, base_name};
use crate::wire::details::{Details, Limit};

const MOST_TOKENS: u32 = 1_000_000;
const HOTTEST: f64 = 2.0;
const MODEL_CHARS: usize = 128;

/// Reads the payload of a message of that type.
pub(super) fn read(kind: &str, mut payload: Fields, rules: &Rules) -> Result<Request, Rejected> {
    Ok(match kind {
        "SUBMIT_PROMPT" => Request::Command(submit_prompt(payload, rules)?),
        "CANCEL_TASK" => Request::Command(cancel_task(payload)?),
        "REQUEST_STATE" => Request::State {
            include_history: payload.optional_bool("includeHistory")?.unwrap_or(true),
            include_settings: payload.optional_bool("includeSettings")?.unwrap_or(true),
        },
        "UPDATE_SETTINGS" => Request::Command(update_settings(payload)?),
        "ANSWER" => Request::Command(talk::answer(payload, rules)?),
        "STEER" => Request::Command(Command::Steer {
            text: text(&mut payload, rules)?,
        }),
        "FOLLOW_UP" => Request::Command(Command::FollowUp {
            text: text(&mut payload, rules)?,
        }),
        "SUGGEST" => Request::Command(Command::Suggest {
            text: text(&mut payload, rules)?,
        }),
        "WITHDRAW" => Request::Command(talk::withdraw(payload)?),
        "SET_QUEUE_MODE" => Request::Command(talk::set_queue_mode(payload)?),
        "SET_TOOLS" => Request::Command(talk::set_tools(payload, rules)?),
        "UPDATE_CONTEXT" => {
            let context = talk::context(payload.rest(), "payload")?;
            Request::Command(Command::UpdateContext(context))
        }
        "QUERY" => Request::Inquiry(talk::query(payload)?),
        "EXTENSION" => Request::Inquiry(talk::extension(payload, rules)?),
        "HEARTBEAT" => Request::Heartbeat,
        "AUTH_REFRESH" => Request::RefreshAuth {
            token: payload.text("token")?,
        },
        "BRANCH_SESSION" => Request::Branch {
            from: from_offset(payload)?,
        },
        "TAKE_CONTROL" => Request::TakeControl {
            steal: payload.optional_bool("steal")?.unwrap_or(false),
        },
        "RELEASE_CONTROL" => Request::ReleaseControl,
        other => {
            let message = format!("The type {} is unknown", shown(other));
            return Err(Rejected::unreadable(message));
        }
    })
}

/// What is said to the agent: within the bound, and not empty.
fn text(payload: &mut Fields, rules: &Rules) -> Result<String, Rejected> {
    let text = payload.text("text")?;
    let (max, actual) = (rules.prompt_chars, text.chars().count());
    if actual > max {
        return Err(Rejected::new(
            Code::ValidationError,
            format!("`payload.text` has {actual} characters, at most {max} are allowed"),
            Some(Details::field("payload.text").too_large(Limit::PromptChars, max, actual)),
        ));
    }
    if text.trim().is_empty() {
        return Err(Rejected::field("payload.text", "is empty"));
    }
    Ok(text)
}

fn submit_prompt(mut payload: Fields, rules: &Rules) -> Result<Command, Rejected> {
    let text = text(&mut payload, rules)?;
    let mode = payload
        .optional_choice("mode", [("plan", Mode::Plan), ("act", Mode::Act)])?
        .ok_or_else(|| Rejected::field("payload.mode", "is missing"))?;
    let if_busy = payload.optional_choice(
        "ifBusy",
        [("queue", IfBusy::Queue), ("refuse", IfBusy::Refuse)],
    )?;
    let images = payload.optional_texts("images")?;
    let attachments = payload
        .optional_objects("attachments")?
        .into_iter()
        .map(attachment)
        .collect::<Result<_, _>>()?;
    let context = optional_context(&mut payload, "context")?;
    let meta = optional_context(&mut payload, "meta")?;
    Ok(Command::SubmitPrompt {
        prompt: Prompt {
            text,
            mode,
            images,
            attachments,
            context,
            meta,
        },
        if_busy: if_busy.unwrap_or(IfBusy::Queue),
    })
}

fn optional_context(payload: &mut Fields, name: &str) -> Result<Option<Value>, Rejected> {
    if !payload.has(name) {
        return Ok(None);
    }
    let map = payload.optional_object(name)?.rest();
    talk::context(map, &format!("payload.{name}")).map(Some)
}

fn attachment(mut entry: Fields) -> Result<Attachment, Rejected> {
    if let Some(id) = entry.optional_text("attachmentId")? {
        let fault = || entry.fault("attachmentId", "is not the id of a file");
        let id = id.parse().map_err(|_| fault())?;
        return Ok(Attachment::Named { id });
    }
    let given = entry.text("name")?;
    let name = base_name(&given).ok_or_else(|| entry.fault("name", NAME_RULE))?;
    Ok(Attachment::Inline {
        name: name.to_owned(),
        media_type: entry.text("type")?,
        content: entry.text("content")?,
    })
}

fn cancel_task(mut payload: Fields) -> Result<Command, Rejected> {
    let run = payload
        .optional_text("taskId")?
        .map(|id| id.parse())
        .transpose()
        .map_err(|_| Rejected::field("payload.taskId", "is not the id of a task"))?;
    Ok(Command::Cancel { run })
}

fn from_offset(mut payload: Fields) -> Result<Option<u64>, Rejected> {
    let Some(value) = payload.take("fromOffset") else {
        return Ok(None);
    };
    let offset = value.as_u64().filter(|offset| *offset > 0);
    let fault = "is not the offset of an event: 1, 2, 3…";
    offset
        .map(Some)
        .ok_or_else(|| Rejected::field("payload.fromOffset", fault))
}

/// Settings are an allow-list: one that is unknown here would look as if it had been changed.
fn update_settings(mut payload: Fields) -> Result<Command, Rejected> {
    let mut settings = payload.object("settings")?;
    let change = SettingsChange {
        auto_approve: settings.optional_bool("autoApprove")?,
        model: settings.optional_text("model")?,
        max_tokens: max_tokens(&mut settings)?,
        temperature: temperature(&mut settings)?,
        mode: settings.optional_text("mode")?,
    };
    for (name, word) in [("model", &change.model), ("mode", &change.mode)] {
        if let Some(word) = word
            && !(1..=MODEL_CHARS).contains(&word.chars().count())
        {
            let fault = format!("does not have 1 to {MODEL_CHARS} characters");
            return Err(Rejected::field(&format!("payload.settings.{name}"), &fault));
        }
    }
    if let Some(unknown) = settings.any_left() {
        let fault = format!("has no setting named {}", shown(unknown));
        return Err(Rejected::field("payload.settings", &fault));
    }
    if change == SettingsChange::default() {
        return Err(Rejected::field("payload.settings", "changes nothing"));
    }
    Ok(Command::UpdateSettings(change))
}

fn max_tokens(settings: &mut Fields) -> Result<Option<u32>, Rejected> {
    let Some(value) = settings.take("maxTokens") else {
        return Ok(None);
    };
    let count = value
        .as_u64()
        .and_then(|count| u32::try_from(count).ok())
        .filter(|count| (1..=MOST_TOKENS).contains(count));
    let fault = format!("is not an integer from 1 to {MOST_TOKENS}");
    count
        .map(Some)
        .ok_or_else(|| Rejected::field("payload.settings.maxTokens", &fault))
}

fn temperature(settings: &mut Fields) -> Result<Option<f64>, Rejected> {
    let Some(value) = settings.take("temperature") else {
        return Ok(None);
    };
    let degree = value
        .as_f64()
        .filter(|degree| (0.0..=HOTTEST).contains(degree));
    let fault = format!("is not a number from 0 to {HOTTEST}");
    degree
        .map(Some)
        .ok_or_else(|| Rejected::field("payload.settings.temperature", &fault))
}
