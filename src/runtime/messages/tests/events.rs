//! Samples of every event.

use super::*;
use crate::domain::event::TextFormat;

fn run_events() -> Vec<(FromAgent, Value)> {
    let run = run();
    let tool = Tool {
        id: "t1".into(),
        name: "shell".into(),
        title: "date".into(),
        kind: "execute".into(),
        status: "completed".into(),
        input: Some(json!({ "command": "date" })),
        output: Some(json!("now")),
    };
    let usage = Usage {
        input: 3,
        output: 4,
        cost: Some(0.25),
    };
    let asked = |timeout| FromAgent::QuestionAsked {
        run,
        question: "q1".into(),
        content: Box::new(question()),
        timeout,
    };
    let asked_sample = json!({ "run": RUN, "question": "q1", "content": question_sample() });
    let mut timed_sample = asked_sample.clone();
    timed_sample["timeout_ms"] = 1500.into();
    let ended = |outcome, usage| FromAgent::RunEnded {
        run,
        outcome,
        usage,
    };
    let failed = RunOutcome::Failed {
        code: ErrorCode::TaskFailed,
        message: "no".into(),
    };
    vec![
        (
            FromAgent::FollowUpTaken { run, queued: run },
            data("follow_up_taken", &json!({ "run": RUN, "queued": RUN })),
        ),
        (
            FromAgent::RunAccepted { run },
            data("run_accepted", &json!({ "run": RUN })),
        ),
        (
            FromAgent::RunProgress {
                run,
                progress: Progress {
                    current: 1,
                    total: 2,
                    description: "half".into(),
                },
            },
            data(
                "run_progress",
                &json!({
                    "run": RUN, "progress": { "current": 1, "total": 2, "description": "half" },
                }),
            ),
        ),
        (
            FromAgent::MessageDelta {
                run,
                channel: Channel::Thought,
                text: "hm".into(),
            },
            data(
                "message_delta",
                &json!({ "run": RUN, "channel": "thought", "text": "hm" }),
            ),
        ),
        (
            FromAgent::MessageFinal {
                run,
                text: Some("done".into()),
            },
            data("message_final", &json!({ "run": RUN, "text": "done" })),
        ),
        (
            FromAgent::MessageWhole {
                run,
                text: "done".into(),
                details: Box::new(MessageDetails {
                    format: TextFormat::Text,
                    metadata: [("latency_ms".to_owned(), json!(7))].into_iter().collect(),
                }),
            },
            data(
                "message_whole",
                &json!({
                    "run": RUN, "text": "done",
                    "details": { "format": "text", "metadata": { "latency_ms": 7 } },
                }),
            ),
        ),
        (
            FromAgent::MessageWithdrawn { run },
            data("message_withdrawn", &json!({ "run": RUN })),
        ),
        (
            FromAgent::ToolUpdate { run, tool },
            data(
                "tool_update",
                &json!({
                    "run": RUN,
                    "tool": {
                        "tool": "t1", "name": "shell", "title": "date", "tool_kind": "execute",
                        "status": "completed", "input": { "command": "date" }, "output": "now",
                    },
                }),
            ),
        ),
        (asked(None), data("question_asked", &asked_sample)),
        (
            asked(Some(Duration::from_millis(1500))),
            data("question_asked", &timed_sample),
        ),
        (
            FromAgent::QuestionWithdrawn {
                question: "q1".into(),
            },
            data("question_withdrawn", &json!({ "question": "q1" })),
        ),
        (
            ended(RunOutcome::Completed, Some(usage)),
            data(
                "run_ended",
                &json!({
                    "run": RUN, "outcome": { "outcome": "completed" },
                    "usage": { "input": 3, "output": 4, "cost": 0.25 },
                }),
            ),
        ),
        (
            ended(failed, None),
            data(
                "run_ended",
                &json!({
                    "run": RUN, "usage": null,
                    "outcome": { "outcome": "failed", "code": "TASK_FAILED", "message": "no" },
                }),
            ),
        ),
        (
            ended(RunOutcome::Cancelled, None),
            data(
                "run_ended",
                &json!({ "run": RUN, "outcome": { "outcome": "cancelled" }, "usage": null }),
            ),
        ),
    ]
}

fn other_events() -> Vec<(FromAgent, Value)> {
    let response = |result| FromAgent::Response { id: 7, result };
    let declined = Declined {
        code: ErrorCode::Unsupported,
        message: "no".into(),
    };
    let command = AgentCommand {
        name: "undo".into(),
        description: "Takes it back".into(),
    };
    let step = PlanStep {
        title: "read".into(),
        status: "pending".into(),
    };
    vec![
        (
            response(Ok(json!(null))),
            data("response", &json!({ "id": 7, "result": { "ok": null } })),
        ),
        (
            response(Err(declined)),
            data(
                "response",
                &json!({
                    "id": 7, "result": { "error": { "code": "UNSUPPORTED", "message": "no" } },
                }),
            ),
        ),
        (
            FromAgent::Usage(Usage {
                input: 1,
                output: 2,
                cost: None,
            }),
            data("usage", &json!({ "input": 1, "output": 2 })),
        ),
        (
            FromAgent::RunError {
                run: run(),
                error: Box::new(AgentError {
                    code: json!(-32001),
                    message: "no".into(),
                    data: json!({ "hint": 1 }),
                }),
            },
            data(
                "run_error",
                &json!({
                    "run": RUN,
                    "error": { "code": -32001, "message": "no", "data": { "hint": 1 } },
                }),
            ),
        ),
        (
            FromAgent::Settings(SettingsChange {
                model: Some("m".into()),
                other: [("style".to_owned(), json!("terse"))].into_iter().collect(),
                ..SettingsChange::default()
            }),
            data(
                "settings",
                &json!({ "model": "m", "other": { "style": "terse" } }),
            ),
        ),
        (FromAgent::ContextLeft(40), data("context_left", &json!(40))),
        (
            FromAgent::CommandsAvailable(vec![command]),
            data(
                "commands_available",
                &json!([{ "name": "undo", "description": "Takes it back" }]),
            ),
        ),
        (
            FromAgent::Raw {
                dialect: "acp".into(),
                value: json!({ "x": 1 }),
            },
            data("raw", &json!({ "dialect": "acp", "value": { "x": 1 } })),
        ),
        (
            FromAgent::PlanUpdated(vec![step]),
            data(
                "plan_updated",
                &json!([{ "title": "read", "status": "pending" }]),
            ),
        ),
        (
            FromAgent::Activity(Activity::Thinking),
            data("activity", &json!("thinking")),
        ),
        (
            FromAgent::SessionQuestion(Box::new(SessionQuestion {
                question: "q2".into(),
                content: question(),
                timeout: Some(Duration::from_millis(1500)),
            })),
            data(
                "session_question",
                &json!({ "question": "q2", "content": question_sample(), "timeout_ms": 1500 }),
            ),
        ),
        (
            FromAgent::WithMeta {
                event: Box::new(FromAgent::ContextLeft(7)),
                meta: json!({ "a": 1 }).as_object().cloned().unwrap(),
            },
            data(
                "with_meta",
                &json!({ "event": data("context_left", &json!(7)), "meta": { "a": 1 } }),
            ),
        ),
        (
            FromAgent::TitleChanged("A title".into()),
            data("title_changed", &json!("A title")),
        ),
        (
            FromAgent::Notice {
                level: Level::Warn,
                text: "careful".into(),
            },
            data("notice", &json!({ "level": "warn", "text": "careful" })),
        ),
        (
            FromAgent::LinkFailed(FailureCause::NotInstalled),
            data("link_failed", &json!("not_installed")),
        ),
        (
            FromAgent::Thread("t-1".into()),
            data("thread", &json!("t-1")),
        ),
        (
            FromAgent::Undelivered {
                run: run(),
                reason: Declined {
                    code: ErrorCode::ConnectionLost,
                    message: "gone".into(),
                },
            },
            data(
                "undelivered",
                &json!({
                    "run": RUN, "reason": { "code": "CONNECTION_LOST", "message": "gone" },
                }),
            ),
        ),
    ]
}

#[test]
fn every_event_has_a_stable_json_form() {
    let samples: Vec<_> = run_events().into_iter().chain(other_events()).collect();
    for (event, sample) in &samples {
        check(event, sample);
    }
    let mut kinds: Vec<_> = samples
        .iter()
        .map(|(event, _)| kind_of_event(event))
        .collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 27, "{kinds:?}");
}

fn kind_of_event(event: &FromAgent) -> usize {
    match event {
        FromAgent::RunAccepted { .. } => 1,
        FromAgent::RunProgress { .. } => 2,
        FromAgent::MessageDelta { .. } => 3,
        FromAgent::MessageFinal { .. } => 4,
        FromAgent::MessageWithdrawn { .. } => 5,
        FromAgent::ToolUpdate { .. } => 6,
        FromAgent::QuestionAsked { .. } => 7,
        FromAgent::QuestionWithdrawn { .. } => 8,
        FromAgent::RunEnded { .. } => 9,
        FromAgent::Response { .. } => 10,
        FromAgent::Usage(_) => 11,
        FromAgent::ContextLeft(_) => 12,
        FromAgent::CommandsAvailable(_) => 13,
        FromAgent::Raw { .. } => 14,
        FromAgent::PlanUpdated(_) => 15,
        FromAgent::Activity(_) => 16,
        FromAgent::TitleChanged(_) => 17,
        FromAgent::Notice { .. } => 18,
        FromAgent::Thread(_) => 19,
        FromAgent::Undelivered { .. } => 20,
        FromAgent::LinkFailed(_) => 21,
        FromAgent::Settings(_) => 22,
        FromAgent::RunError { .. } => 23,
        FromAgent::FollowUpTaken { .. } => 24,
        FromAgent::SessionQuestion(_) => 25,
        FromAgent::WithMeta { .. } => 26,
        FromAgent::MessageWhole { .. } => 27,
    }
}

#[test]
fn an_event_without_its_optional_fields_can_be_read() {
    let sample = data(
        "question_asked",
        &json!({ "run": RUN, "question": "q1", "content": question_sample() }),
    );
    let event: FromAgent = serde_json::from_value(sample).unwrap();
    assert!(matches!(
        event,
        FromAgent::QuestionAsked { timeout: None, .. }
    ));
    let sample = data(
        "run_ended",
        &json!({ "run": RUN, "outcome": { "outcome": "completed" } }),
    );
    assert!(serde_json::from_value::<FromAgent>(sample).is_ok());
}
