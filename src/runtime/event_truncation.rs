//! Event truncation: bounds the size of an agent's events, and replaces NUL, which PostgreSQL cannot store. Pure.

use serde_json::{Map, Value};

use super::messages::FromAgent;
use crate::domain::command::{MAX_OTHER_SETTINGS, SettingsChange};
use crate::domain::question::Question;
use crate::domain::run::AgentError;
use crate::domain::tool::Tool;

/// Of one delta; an answer may have any number of them.
const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Of a tool's input or output.
const MAX_VALUE_BYTES: usize = 256 * 1024;
const MAX_NAME_BYTES: usize = 1_000;
/// Plan steps, commands, options.
const MAX_ENTRIES: usize = 500;
/// Of the data in an agent's error.
const MAX_ERROR_DATA_BYTES: usize = 16 * 1024;
/// Of one setting that only its agent knows.
const MAX_SETTING_BYTES: usize = 4 * 1024;
/// Of one field that only its agent's protocol knows.
const MAX_META_BYTES: usize = 4 * 1024;
const MAX_META_FIELDS: usize = 32;
/// Of an agent's data about a message.
const MAX_METADATA_BYTES: usize = 64 * 1024;
/// Of tools and questions.
const MAX_ID_BYTES: usize = 256;
/// Of what a dialect keeps of its conversation. A longer one is dropped: a part of it is of no use.
pub(super) const MAX_THREAD_BYTES: usize = 1024 * 1024;

pub(super) fn bounded(mut event: FromAgent) -> FromAgent {
    match &mut event {
        FromAgent::MessageDelta { text, .. }
        | FromAgent::MessageFinal {
            text: Some(text), ..
        } => truncate(text, MAX_TEXT_BYTES),
        FromAgent::MessageWhole { text, details, .. } => {
            truncate(text, MAX_TEXT_BYTES);
            truncate_metadata(&mut details.metadata);
        }
        FromAgent::ToolUpdate { tool, .. } => truncate_tool(tool),
        FromAgent::QuestionAsked {
            content, question, ..
        } => {
            truncate(question, MAX_ID_BYTES);
            truncate_question(content);
        }
        FromAgent::SessionQuestion(asked) => {
            truncate(&mut asked.question, MAX_ID_BYTES);
            truncate_question(&mut asked.content);
        }
        FromAgent::Response {
            result: Ok(value), ..
        }
        | FromAgent::Raw { value, .. } => truncate_value(value),
        FromAgent::Response {
            result: Err(declined),
            ..
        } => truncate(&mut declined.message, MAX_NAME_BYTES),
        FromAgent::CommandsAvailable(commands) => {
            commands.truncate(MAX_ENTRIES);
            for command in commands {
                truncate(&mut command.name, MAX_NAME_BYTES);
                truncate(&mut command.description, MAX_NAME_BYTES);
            }
        }
        FromAgent::PlanUpdated(steps) => {
            steps.truncate(MAX_ENTRIES);
            for step in steps {
                truncate(&mut step.title, MAX_NAME_BYTES);
                truncate(&mut step.status, MAX_NAME_BYTES);
            }
        }
        FromAgent::RunProgress { progress, .. } => {
            truncate(&mut progress.description, MAX_NAME_BYTES);
        }
        FromAgent::Settings(settings) => truncate_settings(settings),
        FromAgent::WithMeta { event, meta } => {
            **event = bounded((**event).clone());
            truncate_meta(meta);
        }
        FromAgent::RunError { error, .. } => truncate_error(error),
        FromAgent::TitleChanged(text) => truncate(text, MAX_NAME_BYTES),
        FromAgent::Thread(thread) if thread.len() > MAX_THREAD_BYTES => thread.clear(),
        FromAgent::Thread(thread) => replace_nul(thread),
        FromAgent::Notice { text, .. } => truncate(text, MAX_VALUE_BYTES),
        FromAgent::RunEnded {
            outcome: crate::domain::run::RunOutcome::Failed { message, .. },
            ..
        } => shorten(message),
        FromAgent::Undelivered { reason, .. } => shorten(&mut reason.message),
        FromAgent::QuestionWithdrawn { question } => truncate(question, MAX_ID_BYTES),
        FromAgent::RunAccepted { .. }
        | FromAgent::FollowUpTaken { .. }
        | FromAgent::MessageFinal { .. }
        | FromAgent::MessageWithdrawn { .. }
        | FromAgent::Usage(_)
        | FromAgent::ContextLeft(_)
        | FromAgent::Activity(_)
        | FromAgent::LinkFailed(_)
        | FromAgent::RunEnded { .. } => {}
    }
    event
}

/// Members that are too large are left out, and so are those beyond the first ones.
fn truncate_metadata(metadata: &mut Map<String, Value>) {
    let is_small = |name: &str, value: &Value| {
        name.len() <= MAX_ID_BYTES && !name.contains('\0') && bytes_of(value) <= MAX_METADATA_BYTES
    };
    let mut left = MAX_METADATA_BYTES;
    metadata.retain(|name, value| {
        let bytes = name.len() + bytes_of(value);
        let fits = is_small(name, value) && bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    });
    metadata.values_mut().for_each(replace_nuls);
}

fn truncate_error(error: &mut AgentError) {
    shorten(&mut error.message);
    truncate_value_to(&mut error.code, MAX_ID_BYTES);
    truncate_value_to(&mut error.data, MAX_ERROR_DATA_BYTES);
}

/// Settings with a long name or a large value are left out.
fn truncate_settings(settings: &mut SettingsChange) {
    for word in [&mut settings.model, &mut settings.mode]
        .into_iter()
        .flatten()
    {
        truncate(word, MAX_NAME_BYTES);
    }
    let is_small = |name: &str, value: &Value| {
        name.len() <= MAX_ID_BYTES && !name.contains('\0') && bytes_of(value) <= MAX_SETTING_BYTES
    };
    settings.other.retain(|name, value| is_small(name, value));
    let surplus = settings.other.keys().skip(MAX_OTHER_SETTINGS);
    for name in surplus.cloned().collect::<Vec<_>>() {
        settings.other.remove(&name);
    }
    settings.other.values_mut().for_each(replace_nuls);
}

/// Fields with a long name are left out, and those after `MAX_META_FIELDS`.
fn truncate_meta(meta: &mut Map<String, Value>) {
    let fields = std::mem::take(meta).into_iter();
    let is_short = |(name, _): &(String, Value)| name.len() <= MAX_ID_BYTES && !name.contains('\0');
    for (name, mut value) in fields.filter(is_short).take(MAX_META_FIELDS) {
        truncate_value_to(&mut value, MAX_META_BYTES);
        meta.insert(name, value);
    }
}

fn truncate_tool(tool: &mut Tool) {
    truncate(&mut tool.id, MAX_ID_BYTES);
    for name in [
        &mut tool.name,
        &mut tool.title,
        &mut tool.kind,
        &mut tool.status,
    ] {
        truncate(name, MAX_NAME_BYTES);
    }
    for value in [&mut tool.input, &mut tool.output].into_iter().flatten() {
        truncate_value(value);
    }
}

fn truncate_question(question: &mut Question) {
    truncate(&mut question.title, MAX_NAME_BYTES);
    truncate(&mut question.message, MAX_VALUE_BYTES);
    question.options.truncate(MAX_ENTRIES);
    for option in &mut question.options {
        truncate(&mut option.id, MAX_ID_BYTES);
        truncate(&mut option.label, MAX_NAME_BYTES);
        option
            .detail
            .iter_mut()
            .for_each(|detail| truncate(detail, MAX_NAME_BYTES));
    }
    for label in [&mut question.confirm_label, &mut question.cancel_label] {
        for label in label.iter_mut() {
            truncate(label, MAX_NAME_BYTES);
        }
    }
    question
        .default_value
        .iter_mut()
        .for_each(|text| truncate(text, MAX_VALUE_BYTES));
    if let Some(tool) = &mut question.tool {
        truncate(&mut tool.tool, MAX_ID_BYTES);
        truncate(&mut tool.name, MAX_NAME_BYTES);
        truncate_value(&mut tool.args);
    }
}

/// A value that is too large becomes the beginning of its text.
fn truncate_value(value: &mut Value) {
    truncate_value_to(value, MAX_VALUE_BYTES);
}

fn truncate_value_to(value: &mut Value, max_bytes: usize) {
    if bytes_of(value) > max_bytes {
        let mut text = match value.take() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        truncate(&mut text, max_bytes);
        text.push('…');
        *value = Value::String(text);
    } else {
        replace_nuls(value);
    }
}

/// About how many bytes a value takes as JSON.
pub(super) fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(values) => {
            2 + values
                .iter()
                .map(|value| 1 + bytes_of(value))
                .sum::<usize>()
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| name.len() + 4 + bytes_of(value);
            2 + fields.iter().map(field).sum::<usize>()
        }
    }
}

fn replace_nuls(value: &mut Value) {
    match value {
        Value::String(text) => replace_nul(text),
        Value::Array(values) => values.iter_mut().for_each(replace_nuls),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                let all = std::mem::take(fields).into_iter();
                *fields = all
                    .map(|(name, value)| (name.replace('\0', "\u{fffd}"), value))
                    .collect();
            }
            fields.values_mut().for_each(replace_nuls);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

pub(super) fn shorten(message: &mut String) {
    truncate(message, 4 * MAX_NAME_BYTES);
}

/// The first printable characters of a name that an agent gave: it may be anything, and the operator
/// reads it.
pub(super) fn excerpt(name: &str) -> String {
    let printable = name.chars().filter(|char| !char.is_control());
    printable.take(64).collect()
}

fn truncate(text: &mut String, bytes: usize) {
    text.truncate(text.floor_char_boundary(bytes));
    replace_nul(text);
}

fn replace_nul(text: &mut String) {
    if text.contains('\0') {
        *text = text.replace('\0', "\u{fffd}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::id::RunId;

    #[test]
    fn metadata_that_is_too_large_is_left_out() {
        let Value::Object(mut metadata) = json!({
            "a": "x".repeat(40_000), "b": "x".repeat(40_000), "c\0": 1, "d": ["\0"],
        }) else {
            panic!("it is an object");
        };
        truncate_metadata(&mut metadata);
        let names: Vec<_> = metadata.keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "d"]);
        assert_eq!(metadata["d"], json!(["\u{fffd}"]));
    }

    #[test]
    fn large_values_are_cut_and_nul_is_replaced() {
        let run = RunId::new();
        let mut tool = Tool::new("t\0", "n".repeat(5_000), "running");
        tool.input = Some(json!({ "a\0": ["b\0"] }));
        tool.output = Some(json!(vec!["é".repeat(1_000); 1_000]));
        let FromAgent::ToolUpdate { tool, .. } = bounded(FromAgent::ToolUpdate { run, tool })
        else {
            panic!("it is a tool");
        };
        assert_eq!(
            (tool.id.as_str(), tool.name.len()),
            ("t\u{fffd}", MAX_NAME_BYTES)
        );
        assert_eq!(tool.input, Some(json!({ "a\u{fffd}": ["b\u{fffd}"] })));
        let output = tool.output.unwrap();
        assert!(output.as_str().unwrap().len() <= MAX_VALUE_BYTES + 3);
    }
}
