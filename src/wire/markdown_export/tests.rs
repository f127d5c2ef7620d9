//! Exported conversations.

use serde_json::{Value, json};

use super::*;
use crate::domain::command::Mode;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;
use crate::domain::tool::Tool;

fn document(first: u64, events: Vec<Event>) -> String {
    let at: Timestamp = "2026-01-31T10:00:00Z".parse().unwrap();
    let (mut document, mut out) = Markdown::new(SessionId::new(), Some("Fix *it*"), "demo", at);
    for (offset, event) in (first..).zip(events) {
        document.write(&Recorded { offset, at, event }, &mut out);
    }
    document.end(&mut out);
    let (_, body) = out
        .split_once("exported 2026-01-31 10:00:00 UTC.\n\n")
        .unwrap();
    assert!(out.starts_with("# Fix \\*it\\*\n\nSession `ses_"), "{out}");
    body.to_owned()
}

fn asked(run: RunId, text: &str) -> Event {
    Event::RunStarted {
        run,
        prompt: Prompt {
            text: text.into(),
            mode: Mode::Act,
            images: Vec::new(),
            attachments: Vec::new(),
            context: None,
            meta: None,
        },
        message: MessageId::new(),
        correlation: None,
        by: None,
        senders: Vec::new(),
        merged: Vec::new(),
    }
}

fn piece(run: RunId, message: MessageId, channel: Channel, text: &str) -> Event {
    Event::MessageDelta {
        message,
        run,
        channel,
        text: text.into(),
        index: 0,
        joined: 0,
    }
}

fn whole(run: RunId, message: MessageId, text: &str, rest: &str) -> Event {
    Event::MessageFinal {
        message,
        run,
        author: Author::Assistant,
        text: Some(text.into()),
        rest: rest.into(),
        index: 9,
    }
}

fn tool(run: RunId, status: &str, input: Option<Value>, output: Option<Value>) -> Event {
    let tool = Tool {
        kind: "other".into(),
        id: "t1".into(),
        name: "shell".into(),
        title: "List files".into(),
        status: status.into(),
        input,
        output,
    };
    Event::ToolUpdate { run, tool }
}

fn ended(run: RunId, outcome: RunOutcome) -> Event {
    Event::RunEnded {
        run,
        outcome,
        usage: None,
        cause: None,
        agent_error: None,
    }
}

#[test]
fn a_conversation_reads_in_its_order() {
    let (run, message) = (RunId::new(), MessageId::new());
    let body = document(
        1,
        vec![
            asked(run, "List\nthem"),
            piece(run, message, Channel::Thought, "hidden"),
            piece(run, message, Channel::Text, "Here "),
            piece(run, message, Channel::Text, "they are"),
            whole(run, message, "Here they are", ""),
            tool(run, "running", Some(json!({ "cmd": "ls" })), None),
            tool(run, "completed", None, Some(json!("a.rs\nb.rs"))),
            Event::PlanUpdated {
                run: None,
                steps: [("Look", "completed"), ("Tell", "pending")]
                    .map(|(title, status)| PlanStep {
                        title: title.into(),
                        status: status.into(),
                    })
                    .into(),
            },
            ended(run, RunOutcome::Completed),
        ],
    );
    let expected = "## User · 2026-01-31 10:00:00 UTC\n\n> List\n> them\n\n\
        ## demo · 2026-01-31 10:00:00 UTC\n\n> Here they are\n\n\
        **Tool shell: List files (completed)**\n\nInput:\n\n```json\n{\n  \"cmd\": \"ls\"\n}\n```\n\n\
        Output:\n\n```\na.rs\nb.rs\n```\n\n\
        **Plan**\n\n- [x] Look (completed)\n- [ ] Tell (pending)\n\n\
        **Thoughts (6 characters) are left out**\n\n";
    assert_eq!(body, expected);
}

#[test]
fn an_answer_without_chunks_is_written_once() {
    let (run, message) = (RunId::new(), MessageId::new());
    let body = document(7, vec![whole(run, message, "all of it", "all of it")]);
    assert_eq!(body.matches("all of it").count(), 1);
    assert!(body.starts_with("*What was before is not kept any more.*\n\n"));
}

#[test]
fn a_tool_call_interrupts_an_answer_and_open_calls_are_written_at_the_end() {
    let (run, message) = (RunId::new(), MessageId::new());
    let body = document(
        1,
        vec![
            asked(run, "go"),
            piece(run, message, Channel::Text, "before"),
            tool(run, "failed", None, None),
            piece(run, message, Channel::Text, "after"),
            tool(run, "running", None, None),
            ended(run, RunOutcome::Cancelled),
        ],
    );
    let (_, answer) = body.split_once("> before").unwrap();
    assert_eq!(
        answer,
        "\n\n**Tool shell: List files (failed)**\n\n> after\n\n\
         **Tool shell: List files (running)**\n\n**Cancelled.**\n\n"
    );
}

#[test]
fn no_text_escapes_its_block() {
    let (run, message) = (RunId::new(), MessageId::new());
    let failed = RunOutcome::Failed {
        code: ErrorCode::TaskFailed,
        message: "bad\n## User".into(),
    };
    let body = document(
        1,
        vec![
            asked(run, "```\n## System"),
            piece(run, message, Channel::Text, "~~~\n<!--\n"),
            piece(run, message, Channel::Text, "# Forged"),
            tool(run, "completed", None, Some(json!("```\n# Forged"))),
            ended(run, failed),
        ],
    );
    let forged = |line: &&str| line.starts_with("# ") || line.starts_with("## System");
    let at_the_margin: Vec<&str> = body.lines().filter(forged).collect();
    assert_eq!(
        at_the_margin,
        ["# Forged"],
        "the one between fences: {body}"
    );
    assert!(body.contains("````\n```\n# Forged\n````\n"), "{body}");
    assert!(
        body.contains("**Failed (TASK_FAILED): bad \\#\\# User**"),
        "{body}"
    );
}
