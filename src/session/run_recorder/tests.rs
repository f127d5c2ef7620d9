//! Agent events of a run, and the journal events they become.

use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::domain::question::{Question, QuestionKind, Severity};

fn events_of(events: Vec<FromAgent>, run: RunId) -> Vec<Event> {
    recorded(events, run, false).events
}

fn recorded(events: Vec<FromAgent>, run: RunId, auto_approve: bool) -> Batch {
    let mut recorder = RunRecorder::new(run, Vec::new());
    let mut batch = Batch::default();
    let policy = QuestionPolicy {
        now: Timestamp::UNIX_EPOCH,
        timeout: Some(Duration::from_mins(1)),
        auto_approve,
    };
    for event in events {
        recorder.record(event, &policy, &mut batch);
    }
    batch
}

fn permission(run: RunId, severity: Severity) -> FromAgent {
    let asked = Question::new(QuestionKind::Permission, severity, "May I?", "");
    FromAgent::QuestionAsked {
        run,
        question: "q".into(),
        content: Box::new(asked),
        timeout: None,
    }
}

fn ended(run: RunId) -> FromAgent {
    FromAgent::RunEnded {
        run,
        outcome: RunOutcome::Cancelled,
        usage: None,
    }
}

#[test]
fn a_retracted_message_becomes_empty_and_the_next_chunk_begins_another() {
    let run = RunId::new();
    let say = |text: &str| FromAgent::MessageDelta {
        run,
        channel: Channel::Text,
        text: text.into(),
    };
    let events = vec![
        say("wrong"),
        FromAgent::MessageWithdrawn { run },
        say("right"),
    ];
    let batch = recorded(events, run, false);
    let [first, retracted, second] = batch.events.as_slice() else {
        panic!("{:?}", batch.events);
    };
    let (Event::MessageDelta { message: one, .. }, Event::MessageDelta { message: two, .. }) =
        (first, second)
    else {
        panic!("{:?}", batch.events);
    };
    assert_ne!(one, two);
    assert!(
        matches!(retracted, Event::MessageFinal { message, text: Some(text), .. }
            if message == one && text.is_empty()),
        "{retracted:?}"
    );
}

#[test]
fn a_question_and_a_tool_end_with_their_run() {
    let run = RunId::new();
    let tool = Tool {
        kind: "other".into(),
        id: "t".into(),
        name: "n".into(),
        title: "n".into(),
        status: "running".into(),
        input: None,
        output: None,
    };
    let tool = FromAgent::ToolUpdate { run, tool };
    let events = events_of(vec![permission(run, Severity::Info), tool, ended(run)], run);
    let [
        Event::QuestionAsked(asked),
        Event::ToolUpdate { .. },
        Event::QuestionResolved {
            question,
            granted: false,
            resolution: Resolution::Cancelled,
            ..
        },
        Event::ToolUpdate { tool, .. },
        Event::RunEnded { .. },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert_eq!((asked.id, tool.status.as_str()), (*question, "cancelled"));
    assert_eq!(asked.expires_at, Timestamp::from_second(60).ok());
}

#[test]
fn auto_approve_grants_all_but_critical_permissions() {
    let run = RunId::new();
    for (severity, granted) in [
        (Severity::Info, 1),
        (Severity::Warn, 1),
        (Severity::Critical, 0),
    ] {
        let batch = recorded(vec![permission(run, severity)], run, true);
        assert_eq!(batch.answers.len(), granted, "{severity:?}");
        assert_eq!(batch.auto_approved.len(), granted, "{severity:?}");
    }
    assert!(
        recorded(vec![permission(run, Severity::Info)], run, false)
            .answers
            .is_empty()
    );
}

#[test]
fn a_question_of_a_run_that_is_being_cancelled_is_cancelled_at_once() {
    let run = RunId::new();
    let mut recorder = RunRecorder::new(run, Vec::new());
    let mut batch = Batch::default();
    recorder.cancel();
    let policy = QuestionPolicy {
        now: Timestamp::UNIX_EPOCH,
        timeout: None,
        auto_approve: true,
    };
    recorder.record(permission(run, Severity::Info), &policy, &mut batch);
    assert!(batch.events.is_empty());
    assert_eq!(batch.answers, [("q".to_owned(), Resolution::Cancelled)]);
}

fn delta(run: RunId, text: &str) -> FromAgent {
    FromAgent::MessageDelta {
        run,
        channel: Channel::Text,
        text: text.into(),
    }
}

#[test]
fn chunks_are_numbered_and_the_final_message_holds_the_whole_text() {
    let run = RunId::new();
    let events = events_of(
        vec![
            delta(run, "a"),
            delta(run, "b"),
            FromAgent::MessageFinal { run, text: None },
        ],
        run,
    );
    let [
        Event::MessageDelta {
            index: 0,
            message: first,
            ..
        },
        Event::MessageDelta {
            index: 1,
            message: second,
            ..
        },
        Event::MessageFinal {
            index: 2,
            text: Some(text),
            rest,
            message: last,
            ..
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert!(first == second && second == last);
    assert_eq!((text.as_str(), rest.as_str()), ("ab", ""));
}

#[test]
fn a_message_without_chunks_is_sent_with_its_end() {
    let run = RunId::new();
    let text = Some("all of it".to_owned());
    let events = events_of(vec![FromAgent::MessageFinal { run, text }], run);
    assert!(matches!(events.as_slice(), [Event::MessageFinal { rest, .. }] if rest == "all of it"));
}

#[test]
fn a_message_cut_off_by_the_end_of_the_run_is_completed() {
    let run = RunId::new();
    let events = events_of(vec![delta(run, "half"), ended(run)], run);
    assert!(matches!(
        events.as_slice(),
        [
            Event::MessageDelta { .. },
            Event::MessageFinal { .. },
            Event::RunEnded { .. }
        ]
    ));
}

#[test]
fn nothing_of_another_run_is_recorded() {
    assert!(events_of(vec![delta(RunId::new(), "x")], RunId::new()).is_empty());
}

#[test]
fn a_very_long_message_is_not_stored_twice() {
    let run = RunId::new();
    let long = "x".repeat(WHOLE_MESSAGE_BYTES);
    let events = events_of(
        vec![
            delta(run, &long),
            delta(run, "y"),
            FromAgent::MessageFinal { run, text: None },
        ],
        run,
    );
    assert!(matches!(
        events.last(),
        Some(Event::MessageFinal { text: None, rest, .. }) if rest.is_empty()
    ));
}

#[test]
fn the_shorter_of_both_timeouts_is_the_deadline_of_a_question() {
    let run = RunId::new();
    for (of_agent, deadline) in [(None, 60), (Some(5), 5), (Some(600), 60)] {
        let mut event = permission(run, Severity::Info);
        if let FromAgent::QuestionAsked { timeout, .. } = &mut event {
            *timeout = of_agent.map(Duration::from_secs);
        }
        let events = events_of(vec![event], run);
        let [Event::QuestionAsked(asked)] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(asked.expires_at, Timestamp::from_second(deadline).ok());
    }
}

#[test]
fn the_end_of_a_run_leaves_the_questions_of_the_session_open() {
    let (mut recorder, mut batch) = (RunRecorder::new(RunId::new(), Vec::new()), Batch::default());
    let policy = QuestionPolicy {
        now: Timestamp::UNIX_EPOCH,
        timeout: None,
        auto_approve: true,
    };
    let asked = || Question::new(QuestionKind::Confirm, Severity::Info, "t", "");
    batch.ask(None, "beside".into(), asked(), None, &policy);
    recorder.ask("inside".into(), asked(), None, &policy, &mut batch);
    recorder.end(&RunOutcome::Completed, None, &mut batch);
    let resolved: Vec<_> = batch
        .events
        .iter()
        .filter_map(|event| match event {
            Event::QuestionResolved { run, .. } => Some(run.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(resolved, [true]);
    batch.settle("beside");
    let last = batch.events.last();
    assert!(matches!(
        last,
        Some(Event::QuestionResolved { run: None, .. })
    ));
}

#[test]
fn a_question_that_the_agent_settles_is_cancelled_once() {
    let run = RunId::new();
    let settled = || FromAgent::QuestionWithdrawn {
        question: "q".into(),
    };
    let asked = permission(run, Severity::Info);
    let events = events_of(vec![asked, settled(), settled(), ended(run)], run);
    assert!(matches!(
        events.as_slice(),
        [
            Event::QuestionAsked(_),
            Event::QuestionResolved {
                resolution: Resolution::Cancelled,
                ..
            },
            Event::RunEnded { .. }
        ]
    ));
}
