//! Samples of every command.

use super::*;
use crate::domain::command::Topic;
use crate::domain::id::QuestionId;
use crate::domain::question::{Answer, AnswerValue};
use crate::domain::queue::QueueMode;

const QUESTION: &str = "qst_018f0000000070008000000000000002";

fn commands() -> Vec<(ToAgent, Value)> {
    let run = run();
    let open = OpenQuestion {
        id: QUESTION.parse::<QuestionId>().unwrap(),
        native_id: "q1".into(),
        run: Some(run),
        expires_at: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        question: question(),
    };
    let mut open_sample = question_sample();
    open_sample["id"] = QUESTION.into();
    open_sample["asked_as"] = "q1".into();
    open_sample["run"] = RUN.into();
    open_sample["expires_at"] = "2026-01-02T03:04:05Z".into();
    let answer = |resolution| ToAgent::Answer {
        question: "q1".into(),
        resolution,
    };
    let answered = Answer {
        remember: true,
        reason: Some("fine".into()),
        ..Answer::new(AnswerValue::Option("yes".into()))
    };
    let query = AgentRequest::Query {
        topic: Topic::Models,
        params: json!({}),
    };
    let extension = AgentRequest::Extension {
        name: "undo".into(),
        payload: json!([1]),
    };
    let settings = SettingsChange {
        auto_approve: Some(true),
        model: Some("m".into()),
        max_tokens: Some(9),
        temperature: Some(0.5),
        mode: Some("fast".into()),
        other: [("style".to_owned(), json!("terse"))].into_iter().collect(),
    };
    let modes = QueueModes {
        steering: QueueMode::All,
        follow_up: QueueMode::One,
    };
    vec![
        (
            ToAgent::Prompt {
                run,
                prompt: prompt(),
            },
            data("prompt", &json!({ "run": RUN, "prompt": prompt_sample() })),
        ),
        (
            ToAgent::Resume {
                run,
                prompt: PromptContent::new("go", Mode::Act),
                questions: vec![open],
            },
            data(
                "resume",
                &json!({
                    "run": RUN, "prompt": { "text": "go", "mode": "act" },
                    "questions": [open_sample],
                }),
            ),
        ),
        (
            ToAgent::Steer {
                run,
                text: "left".into(),
            },
            data("steer", &json!({ "run": RUN, "text": "left" })),
        ),
        (
            ToAgent::FollowUp {
                run,
                queued: run,
                text: "then".into(),
            },
            data(
                "follow_up",
                &json!({ "run": RUN, "queued": RUN, "text": "then" }),
            ),
        ),
        (
            ToAgent::Cancel { run },
            data("cancel", &json!({ "run": RUN })),
        ),
        (
            answer(Resolution::Answered(answered)),
            data(
                "answer",
                &json!({
                    "question": "q1",
                    "resolution": {
                        "answered": {
                            "said": { "option": "yes" }, "remember": true, "reason": "fine",
                        },
                    },
                }),
            ),
        ),
        (
            answer(Resolution::Expired),
            data(
                "answer",
                &json!({ "question": "q1", "resolution": "expired" }),
            ),
        ),
        (
            ToAgent::Request {
                id: 7,
                request: query,
            },
            data(
                "request",
                &json!({ "id": 7, "request": { "type": "query", "topic": "models", "params": {} } }),
            ),
        ),
        (
            ToAgent::Request {
                id: 8,
                request: extension,
            },
            data(
                "request",
                &json!({
                    "id": 8, "request": { "type": "extension", "name": "undo", "payload": [1] },
                }),
            ),
        ),
        (
            ToAgent::Settings(settings),
            data(
                "settings",
                &json!({
                    "auto_approve": true, "model": "m", "max_tokens": 9, "temperature": 0.5,
                    "mode": "fast", "other": { "style": "terse" },
                }),
            ),
        ),
        (
            ToAgent::Tools(vec!["read".into()]),
            data("tools", &json!(["read"])),
        ),
        (
            ToAgent::Context(json!({ "file": "a" })),
            data("context", &json!({ "file": "a" })),
        ),
        (
            ToAgent::QueueModes(modes),
            data(
                "queue_modes",
                &json!({ "steering": "all", "follow_up": "one" }),
            ),
        ),
    ]
}

#[test]
fn every_command_has_a_stable_json_form() {
    let samples = commands();
    for (command, sample) in &samples {
        check(command, sample);
    }
    // A new variant needs a sample and a new count.
    let mut kinds: Vec<_> = samples
        .iter()
        .map(|(command, _)| kind_of(command))
        .collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 11, "{kinds:?}");
}

/// No wildcard: a new variant does not compile until it has its number here.
fn kind_of(command: &ToAgent) -> usize {
    match command {
        ToAgent::Prompt { .. } => 1,
        ToAgent::Resume { .. } => 2,
        ToAgent::Steer { .. } => 3,
        ToAgent::Cancel { .. } => 4,
        ToAgent::Answer { .. } => 5,
        ToAgent::Request { .. } => 6,
        ToAgent::Settings(_) => 7,
        ToAgent::Tools(_) => 8,
        ToAgent::Context(_) => 9,
        ToAgent::QueueModes(_) => 10,
        ToAgent::FollowUp { .. } => 11,
    }
}
