//! Bounds what an agent says: sizes, and the one character that not every database can keep. Pure.

use serde_json::Value;

use super::talk::FromAgent;
use crate::domain::question::Question;
use crate::domain::tool::Tool;

/// A piece of text; an answer may have any number of them.
const TEXT: usize = 1024 * 1024;
/// What a tool was given, and what came out.
const VALUE: usize = 256 * 1024;
/// Names, titles, labels.
const NAME: usize = 1_000;
/// Steps of a plan, commands, options.
const COUNT: usize = 500;
/// Ids of tools and questions.
const ID: usize = 256;

/// The same, within bounds.
pub(super) fn bounded(mut said: FromAgent) -> FromAgent {
    match &mut said {
        FromAgent::Delta { text, .. }
        | FromAgent::Final {
            text: Some(text), ..
        } => cut(text, TEXT),
        FromAgent::Tool { tool, .. } => bound_tool(tool),
        FromAgent::Asked {
            asked, question, ..
        } => {
            cut(question, ID);
            bound_question(asked);
        }
        FromAgent::Told {
            answer: Ok(value), ..
        }
        | FromAgent::Raw { value, .. } => bound_value(value),
        FromAgent::Told {
            answer: Err(declined),
            ..
        } => cut(&mut declined.message, NAME),
        FromAgent::Commands(commands) => {
            commands.truncate(COUNT);
            for command in commands {
                cut(&mut command.name, NAME);
                cut(&mut command.description, NAME);
            }
        }
        FromAgent::Plan(steps) => {
            steps.truncate(COUNT);
            for step in steps {
                cut(&mut step.title, NAME);
                cut(&mut step.status, NAME);
            }
        }
        FromAgent::Progress { progress, .. } => cut(&mut progress.description, NAME),
        FromAgent::Title(text) | FromAgent::Thread(text) => cut(text, NAME),
        FromAgent::Notice { text, .. } => cut(text, VALUE),
        FromAgent::Ended {
            outcome: crate::domain::run::RunOutcome::Failed { message, .. },
            ..
        } => shorten(message),
        FromAgent::Settled { question } => cut(question, ID),
        FromAgent::Accepted { .. }
        | FromAgent::Final { .. }
        | FromAgent::Withdrawn { .. }
        | FromAgent::Usage(_)
        | FromAgent::ContextLeft(_)
        | FromAgent::Activity(_)
        | FromAgent::Ended { .. } => {}
    }
    said
}

fn bound_tool(tool: &mut Tool) {
    cut(&mut tool.id, ID);
    for name in [
        &mut tool.name,
        &mut tool.title,
        &mut tool.kind,
        &mut tool.status,
    ] {
        cut(name, NAME);
    }
    for value in [&mut tool.input, &mut tool.output].into_iter().flatten() {
        bound_value(value);
    }
}

fn bound_question(question: &mut Question) {
    cut(&mut question.title, NAME);
    cut(&mut question.message, VALUE);
    question.options.truncate(COUNT);
    for option in &mut question.options {
        cut(&mut option.id, ID);
        cut(&mut option.label, NAME);
        option
            .detail
            .iter_mut()
            .for_each(|detail| cut(detail, NAME));
    }
    for label in [&mut question.confirm_label, &mut question.cancel_label] {
        for label in label.iter_mut() {
            cut(label, NAME);
        }
    }
    question
        .default_value
        .iter_mut()
        .for_each(|text| cut(text, VALUE));
    if let Some(tool) = &mut question.tool {
        cut(&mut tool.tool, ID);
        cut(&mut tool.name, NAME);
        bound_value(&mut tool.args);
    }
}

/// A value that is too large is replaced by the beginning of how it reads.
fn bound_value(value: &mut Value) {
    if bytes_of(value) > VALUE {
        let mut text = match value.take() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        cut(&mut text, VALUE);
        text.push('…');
        *value = Value::String(text);
    } else {
        clean(value);
    }
}

/// About how much room a value takes.
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

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => without_nul(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains('\0')) {
                let odd = std::mem::take(fields).into_iter();
                *fields = odd
                    .map(|(name, value)| (name.replace('\0', "\u{fffd}"), value))
                    .collect();
            }
            fields.values_mut().for_each(clean);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An error message that people read in one piece.
pub(super) fn shorten(message: &mut String) {
    cut(message, 4 * NAME);
}

fn cut(text: &mut String, bytes: usize) {
    text.truncate(text.floor_char_boundary(bytes));
    without_nul(text);
}

/// `PostgreSQL` keeps every character but this one.
fn without_nul(text: &mut String) {
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
    fn what_is_too_large_is_cut_and_what_cannot_be_kept_replaced() {
        let run = RunId::new();
        let mut tool = Tool::new("t\0", "n".repeat(5_000), "running");
        tool.input = Some(json!({ "a\0": ["b\0"] }));
        tool.output = Some(json!(vec!["é".repeat(1_000); 1_000]));
        let FromAgent::Tool { tool, .. } = bounded(FromAgent::Tool { run, tool }) else {
            panic!("it is a tool");
        };
        assert_eq!((tool.id.as_str(), tool.name.len()), ("t\u{fffd}", NAME));
        assert_eq!(tool.input, Some(json!({ "a\u{fffd}": ["b\u{fffd}"] })));
        let output = tool.output.unwrap();
        assert!(output.as_str().unwrap().len() <= VALUE + 3);
    }
}
