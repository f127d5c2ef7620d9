//! What is written down of what an agent says.

use super::*;

fn written(said: Vec<FromAgent>, run: RunId) -> Vec<Event> {
    noted(said, run, false).events
}

fn noted(said: Vec<FromAgent>, run: RunId, auto_approve: bool) -> Notes {
    let mut scribe = Scribe::new(run, Vec::new());
    let mut notes = Notes::default();
    let rules = Rules {
        at: Timestamp::UNIX_EPOCH,
        patience: Some(Duration::from_mins(1)),
        auto_approve,
    };
    for said in said {
        scribe.write(said, &rules, &mut notes);
    }
    notes
}

fn permission(run: RunId, severity: Severity) -> FromAgent {
    let asked = Question::new(QuestionKind::Permission, severity, "May I?", "");
    FromAgent::Asked {
        run,
        question: "q".into(),
        asked: Box::new(asked),
        patience: None,
    }
}

fn ended(run: RunId) -> FromAgent {
    FromAgent::Ended {
        run,
        outcome: RunOutcome::Cancelled,
        usage: None,
    }
}

#[test]
fn what_was_taken_back_has_nothing_in_its_place_and_the_next_piece_is_another_utterance() {
    let run = RunId::new();
    let say = |text: &str| FromAgent::Delta {
        run,
        channel: Channel::Text,
        text: text.into(),
    };
    let said = vec![say("wrong"), FromAgent::Withdrawn { run }, say("right")];
    let notes = noted(said, run, false);
    let [first, taken_back, second] = notes.events.as_slice() else {
        panic!("{:?}", notes.events);
    };
    let (Event::MessageDelta { message: one, .. }, Event::MessageDelta { message: two, .. }) =
        (first, second)
    else {
        panic!("{:?}", notes.events);
    };
    assert_ne!(one, two);
    assert!(
        matches!(taken_back, Event::MessageFinal { message, text: Some(text), .. }
            if message == one && text.is_empty()),
        "{taken_back:?}"
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
    let tool = FromAgent::Tool { run, tool };
    let events = written(vec![permission(run, Severity::Info), tool, ended(run)], run);
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
fn only_harmless_permissions_are_granted_without_asking() {
    let run = RunId::new();
    for (severity, granted) in [
        (Severity::Info, 1),
        (Severity::Warn, 1),
        (Severity::Critical, 0),
    ] {
        let notes = noted(vec![permission(run, severity)], run, true);
        assert_eq!(notes.answers.len(), granted, "{severity:?}");
        assert_eq!(notes.decided.len(), granted, "{severity:?}");
    }
    assert!(
        noted(vec![permission(run, Severity::Info)], run, false)
            .answers
            .is_empty()
    );
}

#[test]
fn a_run_that_is_being_cancelled_asks_nobody() {
    let run = RunId::new();
    let mut scribe = Scribe::new(run, Vec::new());
    let mut notes = Notes::default();
    scribe.cancel();
    let rules = Rules {
        at: Timestamp::UNIX_EPOCH,
        patience: None,
        auto_approve: true,
    };
    scribe.write(permission(run, Severity::Info), &rules, &mut notes);
    assert!(notes.events.is_empty());
    assert_eq!(notes.answers, [("q".to_owned(), Resolution::Cancelled)]);
}

fn delta(run: RunId, text: &str) -> FromAgent {
    FromAgent::Delta {
        run,
        channel: Channel::Text,
        text: text.into(),
    }
}

#[test]
fn pieces_are_numbered_and_the_end_holds_the_whole() {
    let run = RunId::new();
    let events = written(
        vec![
            delta(run, "a"),
            delta(run, "b"),
            FromAgent::Final { run, text: None },
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
fn an_answer_that_comes_at_once_is_sent_with_its_end() {
    let run = RunId::new();
    let text = Some("all of it".to_owned());
    let events = written(vec![FromAgent::Final { run, text }], run);
    assert!(matches!(events.as_slice(), [Event::MessageFinal { rest, .. }] if rest == "all of it"));
}

#[test]
fn an_answer_cut_off_by_the_end_is_completed() {
    let run = RunId::new();
    let events = written(vec![delta(run, "half"), ended(run)], run);
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
fn nothing_about_another_run_is_written() {
    assert!(written(vec![delta(RunId::new(), "x")], RunId::new()).is_empty());
}

#[test]
fn a_very_long_answer_is_not_kept_twice() {
    let run = RunId::new();
    let long = "x".repeat(WHOLE_BYTES);
    let events = written(
        vec![
            delta(run, &long),
            delta(run, "y"),
            FromAgent::Final { run, text: None },
        ],
        run,
    );
    assert!(matches!(
        events.last(),
        Some(Event::MessageFinal { text: None, rest, .. }) if rest.is_empty()
    ));
}
