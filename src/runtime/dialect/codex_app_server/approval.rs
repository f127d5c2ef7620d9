//! Approvals: each request of the app server becomes a question to the user; the answer is its response.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::super::{Actions, FromAgent, text_of};
use super::turn_events::Turn;
use super::{item, permission_text};
use crate::domain::event::Level;
use crate::domain::id::RunId;
use crate::domain::question::{
    AnswerValue, Choice, ChoiceKind, Question, QuestionKind, Resolution, Severity, ToolUse,
};
use crate::runtime::event_truncation::excerpt;
use crate::runtime::jsonrpc;
use crate::runtime::open_questions::OpenQuestions;

/// The unanswered requests.
#[derive(Debug)]
pub(super) struct Approvals {
    pending: OpenQuestions<PendingApproval>,
}

#[derive(Debug)]
struct PendingApproval {
    id: Value,
    expects: ResponseShape,
}

#[derive(Debug)]
enum ResponseShape {
    /// One of `DECISIONS`. With `for_session`, accepting always holds for the session.
    Decision { for_session: bool },
    /// The granted part of these permissions.
    Permissions(Value),
    /// Consent to what an MCP server wants.
    Elicitation { content: Value },
    /// An answer to each of these questions; they are asked one after another.
    UserInput {
        run: Option<RunId>,
        questions: Vec<Value>,
        answers: Vec<(String, Value)>,
        timeout: Option<Duration>,
    },
}

pub(super) fn refusal(id: Value, message: &str) -> Value {
    jsonrpc::unversioned(jsonrpc::error(id, jsonrpc::METHOD_NOT_FOUND, message))
}

fn timeout_of(params: &Value) -> Option<Duration> {
    let millis = params["autoResolutionMs"].as_u64();
    millis.map(Duration::from_millis)
}

fn respond(id: Value, result: Value, out: &mut Actions) {
    out.write(jsonrpc::unversioned(jsonrpc::result(id, result)));
}

impl Default for Approvals {
    fn default() -> Self {
        let pending = OpenQuestions::named("approval");
        Self { pending }
    }
}

impl Approvals {
    pub(super) fn names(&self) -> Vec<String> {
        self.pending.names()
    }

    /// Asks the user. Without a turn there is no run to ask in: the request is declined.
    pub(super) fn ask(
        &mut self,
        id: Value,
        method: &str,
        params: &Value,
        turn: Option<&Turn>,
        out: &mut Actions,
    ) {
        let Some((expects, question)) = parse(method, params, turn) else {
            return out.write(refusal(id, &format!("unknown method {method}")));
        };
        let pending = PendingApproval { id, expects };
        let Some(turn) = turn else {
            let method = excerpt(method);
            out.unexpected(format!("{method} while no turn is under way"));
            return pending.resolve(&Resolution::Expired, out);
        };
        let Some(question) = question else {
            let server = text_of(&params["serverName"]);
            let text = format!("`{server}` asked for a form, which cannot be shown here.");
            out.emit_notice(Level::Warn, text);
            return pending.resolve(&Resolution::Expired, out);
        };
        self.ask_user(turn.run, pending, question, timeout_of(params), out);
    }

    fn ask_user(
        &mut self,
        run: RunId,
        pending: PendingApproval,
        question: Question,
        timeout: Option<Duration>,
        out: &mut Actions,
    ) {
        out.emit(FromAgent::QuestionAsked {
            run,
            question: self.pending.add(pending),
            content: Box::new(question),
            timeout,
        });
    }

    pub(super) fn answer(&mut self, question: &str, resolution: &Resolution, out: &mut Actions) {
        let Some(mut pending) = self.pending.take(question) else {
            return;
        };
        if let Some((run, question, timeout)) = pending.next_question(resolution) {
            return self.ask_user(run, pending, question, timeout, out);
        }
        pending.resolve(resolution, out);
    }

    /// Codex does not wait for it any more; most often because it was answered.
    pub(super) fn settle(&mut self, id: &Value, out: &mut Actions) {
        if let Some((question, _)) = self.pending.take_first(|pending| pending.id == *id) {
            out.emit(FromAgent::QuestionWithdrawn { question });
        }
    }
}

impl PendingApproval {
    /// Stores the answer to one of several questions and returns the next, unless one went unanswered.
    fn next_question(
        &mut self,
        resolution: &Resolution,
    ) -> Option<(RunId, Question, Option<Duration>)> {
        let ResponseShape::UserInput {
            run,
            questions,
            answers,
            timeout,
        } = &mut self.expects
        else {
            return None;
        };
        let current = questions.get(answers.len())?;
        let said = answer_texts(current, resolution)?;
        answers.push((text_of(&current["id"]), json!({ "answers": said })));
        let next = questions.get(answers.len())?;
        Some(((*run)?, user_input(next), *timeout))
    }

    fn resolve(self, resolution: &Resolution, out: &mut Actions) {
        let (accepted, for_session) = acceptance(resolution);
        let result = match self.expects {
            ResponseShape::Decision { for_session: true } if accepted && !for_session => {
                out.emit_notice(Level::Warn, NO_ACCEPT_ONCE);
                json!({ "decision": "decline" })
            }
            ResponseShape::Decision { .. } => json!({ "decision": decision(resolution) }),
            ResponseShape::Permissions(permissions) => json!({
                "permissions": if accepted { permissions } else { json!({}) },
                "scope": if accepted && for_session { "session" } else { "turn" },
            }),
            ResponseShape::Elicitation { content } => {
                let action = match resolution {
                    Resolution::Cancelled => "cancel",
                    _ if accepted => "accept",
                    _ => "decline",
                };
                let content = if accepted { content } else { Value::Null };
                json!({ "action": action, "content": content, "_meta": null })
            }
            ResponseShape::UserInput { answers, .. } => {
                json!({ "answers": answers.into_iter().collect::<Map<_, _>>() })
            }
        };
        respond(self.id, result, out);
    }
}

/// Whether it is accepted, and for the whole session.
fn acceptance(resolution: &Resolution) -> (bool, bool) {
    let Resolution::Answered(answer) = resolution else {
        return (false, false);
    };
    match &answer.value {
        AnswerValue::Ok(accepted) => (*accepted, answer.remember),
        AnswerValue::Option(id) => (id.starts_with("accept"), id == "acceptForSession"),
        AnswerValue::Text(_) | AnswerValue::Ids(_) => (false, false),
    }
}

fn decision(resolution: &Resolution) -> &'static str {
    let is_cancel = |said: &AnswerValue| *said == AnswerValue::Option("cancel".into());
    match (resolution, acceptance(resolution)) {
        (_, (true, true)) => "acceptForSession",
        (_, (true, false)) => "accept",
        (Resolution::Cancelled, _) => "cancel",
        (Resolution::Answered(answer), _) if is_cancel(&answer.value) => "cancel",
        _ => "decline",
    }
}

/// The shape of the response and the question, if it can be asked; none for an unknown method.
fn parse(
    method: &str,
    params: &Value,
    turn: Option<&Turn>,
) -> Option<(ResponseShape, Option<Question>)> {
    let parsed = match method {
        "item/commandExecution/requestApproval" => (
            ResponseShape::Decision { for_session: false },
            Some(command(params)),
        ),
        "item/fileChange/requestApproval" => {
            let for_session = params["grantRoot"].is_string();
            (
                ResponseShape::Decision { for_session },
                Some(file_change(params, turn)),
            )
        }
        "item/permissions/requestApproval" => {
            let mut granted = params["permissions"].clone();
            if let Some(fields) = granted.as_object_mut() {
                fields.retain(|_, value| !value.is_null());
            }
            (
                ResponseShape::Permissions(granted),
                Some(more_permissions(params)),
            )
        }
        "mcpServer/elicitation/request" => elicitation(params),
        "item/tool/requestUserInput" => {
            let questions = params["questions"].as_array().cloned().unwrap_or_default();
            let question = questions.first().map(user_input);
            let expects = ResponseShape::UserInput {
                run: turn.map(|turn| turn.run),
                questions,
                answers: Vec::new(),
                timeout: timeout_of(params),
            };
            (expects, question)
        }
        _ => return None,
    };
    Some(parsed)
}

const NO_ACCEPT_ONCE: &str = "A yes would have held for the rest of the session, and not only this \
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

/// An approval of a tool. Codex also offers to change its rules for good: those hold for every user of
/// the installation, so no single user is offered them.
fn approval(title: String, params: &Value, tool: ToolUse) -> Question {
    let offered = params["availableDecisions"].as_array();
    let is_offered = |id: &str| match offered {
        Some(offered) => id == "decline" || offered.iter().any(|decision| decision == id),
        None => true,
    };
    let options: Vec<Choice> = DECISIONS
        .iter()
        .filter(|(id, ..)| is_offered(id))
        .map(|(id, label, kind)| Choice {
            id: (*id).into(),
            label: (*label).into(),
            detail: None,
            kind: Some(*kind),
        })
        .collect();
    let message = text_of(&params["reason"]);
    Question {
        allow_remember: is_offered("acceptForSession"),
        options,
        tool: Some(tool),
        ..Question::new(QuestionKind::Permission, Severity::Warn, title, message)
    }
}

/// More than the sandbox allows: only a human may accept it.
fn beyond_sandbox(mut question: Question, what: &str) -> Question {
    question.severity = Severity::Critical;
    if !question.message.is_empty() {
        question.message.push_str("\n\n");
    }
    question.message.push_str(what);
    question
}

fn command(params: &Value) -> Question {
    let command_line = text_of(&params["command"]);
    let (network, more) = (
        &params["networkApprovalContext"],
        &params["additionalPermissions"],
    );
    let rights = permission_text::describe(more);
    let title = if !network.is_null() {
        format!("Connect to {}?", text_of(&network["host"]))
    } else if !more.is_null() {
        format!("Run `{command_line}` with more rights: {rights}?")
    } else if params["kind"] == "writeStdin" {
        "Write to the command that runs?".into()
    } else {
        format!("Run `{command_line}`?")
    };
    let mut args = json!({ "command": command_line, "cwd": params["cwd"] });
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
    let mut question = approval(title, params, tool);
    if !network.is_null() {
        let (host, protocol) = (text_of(&network["host"]), text_of(&network["protocol"]));
        let what = format!("It asks to connect to {host} ({protocol}).");
        question = beyond_sandbox(question, &what);
    }
    if !more.is_null() {
        question = beyond_sandbox(question, &format!("It asks for: {rights}"));
    }
    question
}

fn file_change(params: &Value, turn: Option<&Turn>) -> Question {
    let item = text_of(&params["itemId"]);
    let input = turn.and_then(|turn| turn.tool_input(&item));
    let mut args = json!({ "changes": input.map(|input| &input["changes"]) });
    let files = item::change_title(&args["changes"]);
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
    let mut question = approval(title, params, tool);
    let Some(root) = root else {
        return question;
    };
    // Accepting this always holds for the session.
    question.options.retain(|option| option.id != "accept");
    for option in &mut question.options {
        if option.kind == Some(ChoiceKind::AllowAlways) {
            option.label = format!("Yes, and let it write anywhere in {root} in this session");
        }
    }
    let what = format!("It asks to write anywhere in {root} for the rest of the session.");
    beyond_sandbox(question, &what)
}

fn more_permissions(params: &Value) -> Question {
    let tool = ToolUse {
        tool: text_of(&params["itemId"]),
        name: "request_permissions".into(),
        args: json!({ "permissions": params["permissions"], "cwd": params["cwd"] }),
    };
    let rights = permission_text::describe(&params["permissions"]);
    let question = approval(format!("Grant more rights: {rights}?"), params, tool);
    beyond_sandbox(question, &format!("It asks for: {rights}"))
}

fn elicitation(params: &Value) -> (ResponseShape, Option<Question>) {
    let fields = params["requestedSchema"]["properties"].as_object();
    let (content, more) = match params["mode"].as_str() {
        Some("url") => (Value::Null, format!("\n{}", text_of(&params["url"]))),
        Some("form") if fields.is_none_or(Map::is_empty) => (json!({}), String::new()),
        _ => {
            return (
                ResponseShape::Elicitation {
                    content: Value::Null,
                },
                None,
            );
        }
    };
    let title = format!("`{}` asks", text_of(&params["serverName"]));
    let message = format!("{}{more}", text_of(&params["message"]));
    let question = Question::new(QuestionKind::Confirm, Severity::Warn, title, message);
    (ResponseShape::Elicitation { content }, Some(question))
}

fn user_input(question: &Value) -> Question {
    let (title, message) = (text_of(&question["header"]), text_of(&question["question"]));
    let options = question["options"].as_array().into_iter().flatten();
    let options: Vec<Choice> = options
        .enumerate()
        .map(|(index, option)| Choice {
            id: index.to_string(),
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

fn answer_texts(question: &Value, resolution: &Resolution) -> Option<Vec<String>> {
    let Resolution::Answered(answer) = resolution else {
        return None;
    };
    let label = |id: &String| {
        let option = &question["options"][id.parse::<usize>().ok()?];
        option["label"].as_str().map(str::to_owned)
    };
    let texts: Vec<String> = match &answer.value {
        AnswerValue::Option(id) => label(id).into_iter().collect(),
        AnswerValue::Ids(ids) => ids.iter().filter_map(label).collect(),
        AnswerValue::Text(Some(text)) => vec![text.clone()],
        AnswerValue::Text(None) | AnswerValue::Ok(_) => Vec::new(),
    };
    Some(texts).filter(|texts| !texts.is_empty())
}
