//! What the app server asks: each of its requests is a question to a human, and the answer goes back
//! under the id of the request.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::{Act, FromAgent, Out, text_of};
use super::turn::Turn;
use super::{events, item, rights};
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::{
    Choice, ChoiceKind, Question, QuestionKind, Resolution, Said, Severity, ToolUse,
};
use crate::runtime::jsonrpc;

/// The requests that wait for an answer, by the name that we gave the question: ids of requests may be
/// anything.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    asked: u64,
    open: HashMap<String, Open>,
}

/// A request, and what its answer looks like.
#[derive(Debug)]
struct Open {
    id: Value,
    wants: Wants,
}

#[derive(Debug)]
enum Wants {
    /// One of the decisions. A yes to some of them holds for longer, whatever is said.
    Decision { lasts: bool },
    /// As much of these permissions as is granted.
    Permissions(Value),
    /// The consent to what an MCP server wants.
    Consent { content: Value },
    /// An answer to each of these questions; they are put one after another.
    Input {
        run: Option<RunId>,
        questions: Vec<Value>,
        answers: Vec<(String, Value)>,
        patience: Option<Duration>,
    },
}

/// The refusal of a request.
pub(super) fn refusal(id: Value, message: &str) -> Value {
    jsonrpc::bare(jsonrpc::error(id, jsonrpc::UNKNOWN_METHOD, message))
}

fn reply(id: Value, result: Value, out: &mut Out) {
    out.write(jsonrpc::bare(jsonrpc::result(id, result)));
}

impl Approvals {
    /// Puts the request to a human. Without a turn nobody can be asked: that is a no.
    pub(super) fn ask(
        &mut self,
        id: Value,
        method: &str,
        params: &Value,
        turn: Option<&Turn>,
        out: &mut Out,
    ) {
        let Some((wants, asked)) = read(method, params, turn) else {
            return out.write(refusal(id, &format!("unknown method {method}")));
        };
        let open = Open { id, wants };
        let Some(turn) = turn else {
            let method = events::shortened(method);
            out.act(Act::Odd(format!("{method} while no turn is under way")));
            return open.resolve(&Resolution::Expired, out);
        };
        let Some(asked) = asked else {
            let server = text_of(&params["serverName"]);
            let text = format!("`{server}` asked for a form, which cannot be shown here.");
            out.notice(Level::Warn, text);
            return open.resolve(&Resolution::Expired, out);
        };
        let patience = params["autoResolutionMs"].as_u64();
        let patience = patience.map(Duration::from_millis);
        self.put(turn.run, open, asked, patience, out);
    }

    fn put(
        &mut self,
        run: RunId,
        open: Open,
        asked: Question,
        patience: Option<Duration>,
        out: &mut Out,
    ) {
        self.asked += 1;
        let question = format!("approval-{}", self.asked);
        self.open.insert(question.clone(), open);
        out.tell(FromAgent::Asked {
            run,
            question,
            asked: Box::new(asked),
            patience,
        });
    }

    /// A question has its end.
    pub(super) fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Out) {
        let Some(mut open) = self.open.remove(question) else {
            return;
        };
        if let Some((run, asked, patience)) = open.next(resolution) {
            return self.put(run, open, asked, patience, out);
        }
        open.resolve(resolution, out);
    }

    /// The agent does not wait for it any more; most often because it was answered.
    pub(super) fn settle(&mut self, id: &Value, out: &mut Out) {
        let found = self.open.iter().find(|(_, open)| open.id == *id);
        if let Some(question) = found.map(|(name, _)| name.clone()) {
            self.open.remove(&question);
            out.tell(FromAgent::Settled { question });
        }
    }
}

impl Open {
    /// Notes the answer to one of several questions, and tells the next one, if all went well so far.
    fn next(&mut self, resolution: &Resolution) -> Option<(RunId, Question, Option<Duration>)> {
        let Wants::Input {
            run,
            questions,
            answers,
            patience,
        } = &mut self.wants
        else {
            return None;
        };
        let current = questions.get(answers.len())?;
        let said = words(current, resolution)?;
        answers.push((text_of(&current["id"]), json!({ "answers": said })));
        let next = questions.get(answers.len())?;
        Some(((*run)?, input(next), *patience))
    }

    fn resolve(self, resolution: &Resolution, out: &mut Out) {
        let (yes, lasting) = verdict(resolution);
        let result = match self.wants {
            Wants::Decision { lasts: true } if yes && !lasting => {
                out.notice(Level::Warn, ONLY_FOR_LONGER);
                json!({ "decision": "decline" })
            }
            Wants::Decision { .. } => json!({ "decision": decision(resolution) }),
            Wants::Permissions(permissions) => json!({
                "permissions": if yes { permissions } else { json!({}) },
                "scope": if yes && lasting { "session" } else { "turn" },
            }),
            Wants::Consent { content } => {
                let action = match resolution {
                    Resolution::Cancelled => "cancel",
                    _ if yes => "accept",
                    _ => "decline",
                };
                let content = if yes { content } else { Value::Null };
                json!({ "action": action, "content": content, "_meta": null })
            }
            Wants::Input { answers, .. } => {
                json!({ "answers": answers.into_iter().collect::<Map<_, _>>() })
            }
        };
        reply(self.id, result, out);
    }
}

/// Is it a yes, and does it hold for longer?
fn verdict(resolution: &Resolution) -> (bool, bool) {
    let Resolution::Answered(answer) = resolution else {
        return (false, false);
    };
    match &answer.said {
        Said::Ok(yes) => (*yes, answer.remember),
        Said::Option(id) => (id.starts_with("accept"), id == "acceptForSession"),
        Said::Value(_) | Said::Ids(_) => (false, false),
    }
}

fn decision(resolution: &Resolution) -> &'static str {
    let stops = |said: &Said| *said == Said::Option("cancel".into());
    match (resolution, verdict(resolution)) {
        (_, (true, true)) => "acceptForSession",
        (_, (true, false)) => "accept",
        (Resolution::Cancelled, _) => "cancel",
        (Resolution::Answered(answer), _) if stops(&answer.said) => "cancel",
        _ => "decline",
    }
}

/// What the answer wants to look like, and the question; no question if it cannot be put. Nothing at
/// all for requests that are unknown.
fn read(method: &str, params: &Value, turn: Option<&Turn>) -> Option<(Wants, Option<Question>)> {
    let read = match method {
        "item/commandExecution/requestApproval" => {
            (Wants::Decision { lasts: false }, Some(command(params)))
        }
        "item/fileChange/requestApproval" => {
            let lasts = params["grantRoot"].is_string();
            (Wants::Decision { lasts }, Some(change(params, turn)))
        }
        "item/permissions/requestApproval" => {
            let mut granted = params["permissions"].clone();
            if let Some(fields) = granted.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            (Wants::Permissions(granted), Some(permissions(params)))
        }
        "mcpServer/elicitation/request" => elicitation(params),
        "item/tool/requestUserInput" => {
            let questions = params["questions"].as_array().cloned().unwrap_or_default();
            let asked = questions.first().map(input);
            let wants = Wants::Input {
                run: turn.map(|turn| turn.run),
                questions,
                answers: Vec::new(),
                patience: params["autoResolutionMs"]
                    .as_u64()
                    .map(Duration::from_millis),
            };
            (wants, asked)
        }
        _ => return None,
    };
    Some(read)
}

/// What is said to somebody whose yes would have meant more than they said.
const ONLY_FOR_LONGER: &str = "A yes would have held for the rest of the session, and not only this \
    time: it was not allowed. Choose one of the options instead.";

const DECISIONS: [(&str, &str, ChoiceKind); 4] = [
    ("accept", "Yes", ChoiceKind::AllowOnce),
    (
        "acceptForSession",
        "Yes, and do not ask again in this session",
        ChoiceKind::AllowAlways,
    ),
    ("decline", "No", ChoiceKind::RejectOnce),
    ("cancel", "No, and stop", ChoiceKind::RejectOnce),
];

/// A permission to use a tool. Codex also offers to change its rules for good: those hold for everybody
/// who uses the same installation, so they are not put to one of them.
fn permission(title: String, params: &Value, tool: ToolUse) -> Question {
    let offered = params["availableDecisions"].as_array();
    let offers = |id: &str| match offered {
        Some(offered) => id == "decline" || offered.iter().any(|decision| decision == id),
        None => true,
    };
    let options: Vec<Choice> = DECISIONS
        .iter()
        .filter(|(id, ..)| offers(id))
        .map(|(id, label, kind)| Choice {
            id: (*id).into(),
            label: (*label).into(),
            detail: None,
            kind: Some(*kind),
        })
        .collect();
    let message = text_of(&params["reason"]);
    Question {
        allow_remember: offers("acceptForSession"),
        options,
        tool: Some(tool),
        ..Question::new(QuestionKind::Permission, Severity::Warn, title, message)
    }
}

/// The same, but only a human may say yes: it asks for more than the sandbox allows.
fn beyond_sandbox(mut asked: Question, what: &str) -> Question {
    asked.severity = Severity::Critical;
    if !asked.message.is_empty() {
        asked.message.push_str("\n\n");
    }
    asked.message.push_str(what);
    asked
}

fn command(params: &Value) -> Question {
    let line = text_of(&params["command"]);
    let (network, more) = (
        &params["networkApprovalContext"],
        &params["additionalPermissions"],
    );
    let rights = rights::words(more);
    let title = if !network.is_null() {
        format!("Connect to {}?", text_of(&network["host"]))
    } else if !more.is_null() {
        format!("Run `{line}` with more rights: {rights}?")
    } else if params["kind"] == "writeStdin" {
        "Write to the command that runs?".into()
    } else {
        format!("Run `{line}`?")
    };
    let mut args = json!({ "command": line, "cwd": params["cwd"] });
    for name in ["networkApprovalContext", "additionalPermissions"] {
        if !params[name].is_null() {
            args[name] = params[name].clone();
        }
    }
    let tool = ToolUse {
        tool: text_of(&params["itemId"]),
        name: "shell".into(),
        args,
    };
    let mut asked = permission(title, params, tool);
    if !network.is_null() {
        let (host, protocol) = (text_of(&network["host"]), text_of(&network["protocol"]));
        let what = format!("It asks to connect to {host} ({protocol}).");
        asked = beyond_sandbox(asked, &what);
    }
    if !more.is_null() {
        asked = beyond_sandbox(asked, &format!("It asks for: {rights}"));
    }
    asked
}

fn change(params: &Value, turn: Option<&Turn>) -> Question {
    let item = text_of(&params["itemId"]);
    let input = turn.and_then(|turn| turn.input_of(&item));
    let mut args = json!({ "changes": input.map(|input| &input["changes"]) });
    let files = item::files(&args["changes"]);
    let root = params["grantRoot"].as_str();
    let title = match root {
        Some(root) => format!("{files}, and write anywhere in {root} from now on?"),
        None => format!("{files}?"),
    };
    if let Some(root) = root {
        args["grantRoot"] = root.into();
    }
    let tool = ToolUse {
        tool: item,
        name: "apply_patch".into(),
        args,
    };
    let mut asked = permission(title, params, tool);
    let Some(root) = root else {
        return asked;
    };
    // No yes to this is for once.
    asked.options.retain(|option| option.id != "accept");
    for option in &mut asked.options {
        if option.kind == Some(ChoiceKind::AllowAlways) {
            option.label = format!("Yes, and let it write anywhere in {root} in this session");
        }
    }
    let what = format!("It asks to write anywhere in {root} for the rest of the session.");
    beyond_sandbox(asked, &what)
}

fn permissions(params: &Value) -> Question {
    let tool = ToolUse {
        tool: text_of(&params["itemId"]),
        name: "request_permissions".into(),
        args: json!({ "permissions": params["permissions"], "cwd": params["cwd"] }),
    };
    let rights = rights::words(&params["permissions"]);
    let asked = permission(format!("Grant more rights: {rights}?"), params, tool);
    beyond_sandbox(asked, &format!("It asks for: {rights}"))
}

fn elicitation(params: &Value) -> (Wants, Option<Question>) {
    let fields = params["requestedSchema"]["properties"].as_object();
    let (content, more) = match params["mode"].as_str() {
        Some("url") => (Value::Null, format!("\n{}", text_of(&params["url"]))),
        Some("form") if fields.is_none_or(Map::is_empty) => (json!({}), String::new()),
        _ => {
            return (
                Wants::Consent {
                    content: Value::Null,
                },
                None,
            );
        }
    };
    let title = format!("`{}` asks", text_of(&params["serverName"]));
    let message = format!("{}{more}", text_of(&params["message"]));
    let asked = Question::new(QuestionKind::Confirm, Severity::Warn, title, message);
    (Wants::Consent { content }, Some(asked))
}

/// One of the questions of the agent itself.
fn input(question: &Value) -> Question {
    let (title, message) = (text_of(&question["header"]), text_of(&question["question"]));
    let options = question["options"].as_array().into_iter().flatten();
    let options: Vec<Choice> = options
        .enumerate()
        .map(|(place, option)| Choice {
            id: place.to_string(),
            label: text_of(&option["label"]),
            detail: option["description"].as_str().map(str::to_owned),
            kind: None,
        })
        .collect();
    let kind = if options.is_empty() {
        QuestionKind::Prompt
    } else {
        QuestionKind::Pick
    };
    Question {
        options,
        secret: question["isSecret"] == true,
        multiline: kind == QuestionKind::Prompt && question["isSecret"] != true,
        ..Question::new(kind, Severity::Info, title, message)
    }
}

/// What was answered to it, in its own words; nothing if nobody wanted to.
fn words(question: &Value, resolution: &Resolution) -> Option<Vec<String>> {
    let Resolution::Answered(answer) = resolution else {
        return None;
    };
    let label = |id: &String| {
        let option = &question["options"][id.parse::<usize>().ok()?];
        option["label"].as_str().map(str::to_owned)
    };
    let words: Vec<String> = match &answer.said {
        Said::Option(id) => label(id).into_iter().collect(),
        Said::Ids(ids) => ids.iter().filter_map(label).collect(),
        Said::Value(Some(text)) => vec![text.clone()],
        Said::Value(None) | Said::Ok(_) => Vec::new(),
    };
    Some(words).filter(|words| !words.is_empty())
}
