//! Answers, what is said on the way, and what is asked of the agent itself.

use serde_json::{Map, Value};

use super::fields::{Fields, refuse_control_within};
use super::{Rejected, Rules};
use crate::domain::command::{Command, Inquiry, Topic};
use crate::domain::question::{Answer, Said};
use crate::domain::queue::Take;
use crate::wire::details::{Details, Limit};

/// The most that a client may tell about where its user is, in bytes.
const CONTEXT_BYTES: usize = 64 * 1024;
const TOOLS: usize = 256;
const REASON_CHARS: usize = 2_000;

const TAKES: [(&str, Take); 2] = [("one-at-a-time", Take::One), ("all", Take::All)];

pub(super) fn answer(mut payload: Fields, rules: &Rules) -> Result<Command, Rejected> {
    let question = payload
        .text("questionId")?
        .parse()
        .map_err(|_| Rejected::field("payload.questionId", "is not the id of a question"))?;
    let ok = payload.optional_bool("ok")?.map(Said::Ok);
    let option = payload.optional_text("optionId")?.map(Said::Option);
    let value = payload.optional_text("value")?;
    if let Some(text) = &value {
        check_length("payload.value", text, rules.prompt_chars)?;
    }
    let value = value.map(|text| Said::Value(Some(text)));
    let ids = if payload.has("ids") {
        Some(Said::Ids(payload.optional_texts("ids")?))
    } else {
        None
    };
    let mut said = [ok, option, value, ids].into_iter().flatten();
    let (Some(said), None) = (said.next(), said.next()) else {
        let fault = "has not exactly one of `ok`, `optionId`, `value` and `ids`";
        return Err(Rejected::field("payload", fault));
    };
    let answer = Answer {
        said,
        remember: payload.optional_bool("remember")?.unwrap_or(false),
        reason: payload.optional_text("reason")?,
    };
    if let Some(reason) = &answer.reason {
        check_length("payload.reason", reason, REASON_CHARS)?;
    }
    Ok(Command::Answer { question, answer })
}

fn check_length(path: &str, text: &str, most: usize) -> Result<(), Rejected> {
    if text.chars().count() <= most {
        return Ok(());
    }
    Err(Rejected::field(
        path,
        &format!("has more than {most} characters"),
    ))
}

pub(super) fn set_queue_mode(mut payload: Fields) -> Result<Command, Rejected> {
    let steering = payload.optional_choice("steering", TAKES)?;
    let follow_up = payload.optional_choice("followUp", TAKES)?;
    if steering.is_none() && follow_up.is_none() {
        return Err(Rejected::field("payload", "changes nothing"));
    }
    Ok(Command::SetQueueMode {
        steering,
        follow_up,
    })
}

pub(super) fn withdraw(mut payload: Fields) -> Result<Command, Rejected> {
    let run = payload
        .text("taskId")?
        .parse()
        .map_err(|_| Rejected::field("payload.taskId", "is not the id of a task"))?;
    Ok(Command::Withdraw { run })
}

pub(super) fn set_tools(mut payload: Fields, rules: &Rules) -> Result<Command, Rejected> {
    if !payload.has("tools") {
        return Err(Rejected::field("payload.tools", "is missing"));
    }
    let tools = payload.optional_texts("tools")?;
    if tools.len() > TOOLS {
        let fault = format!("has more than {TOOLS} entries");
        return Err(Rejected::field("payload.tools", &fault));
    }
    for (place, tool) in tools.iter().enumerate() {
        super::fields::check_id(&format!("payload.tools[{place}]"), tool, rules.id_bytes)?;
    }
    Ok(Command::SetTools { tools })
}

/// Where the user is: whatever the client tells, as an object of bounded size.
pub(super) fn context(map: Map<String, Value>, path: &str) -> Result<Value, Rejected> {
    let context = Value::Object(map);
    let bytes = context.to_string().len();
    if bytes > CONTEXT_BYTES {
        return Err(Rejected {
            details: Some(Box::new(Details::field(path).too_large(
                Limit::ContextBytes,
                CONTEXT_BYTES,
                bytes,
            ))),
            ..Rejected::field(path, &format!("has more than {CONTEXT_BYTES} bytes"))
        });
    }
    refuse_control_within(path, &context)?;
    Ok(context)
}

pub(super) fn query(mut payload: Fields) -> Result<Inquiry, Rejected> {
    let topics = [
        ("models", Topic::Models),
        ("mcp", Topic::Mcp),
        ("skills", Topic::Skills),
        ("commands", Topic::Commands),
        ("tree", Topic::Tree),
    ];
    let topic = payload
        .optional_choice("kind", topics)?
        .ok_or_else(|| Rejected::field("payload.kind", "is missing"))?;
    let params = Value::Object(payload.optional_object("params")?.rest());
    refuse_control_within("payload.params", &params)?;
    Ok(Inquiry::Query { topic, params })
}

pub(super) fn extension(mut payload: Fields, rules: &Rules) -> Result<Inquiry, Rejected> {
    let name = payload
        .optional_id("name", rules.id_bytes)?
        .ok_or_else(|| Rejected::field("payload.name", "is missing"))?;
    let payload = payload.take("payload").unwrap_or_default();
    refuse_control_within("payload.payload", &payload)?;
    Ok(Inquiry::Extension { name, payload })
}
