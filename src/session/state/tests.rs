//! The rules of the fold, one by one, and what holds for any journal.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tool::MAX_TOOLS;
use super::*;
use crate::domain::command::{Mode, Prompt, SettingsChange};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{Level, Resolver, TextFormat};
use crate::domain::id::QuestionId;
use crate::domain::question::{
    Answer, AnswerValue, OpenQuestion, Question, QuestionKind, Resolution, Severity,
};
use crate::domain::queue::{PromptKind, QueueModes, QueuedPrompt};
use crate::domain::run::Progress;

fn run(number: u8) -> RunId {
    format!("run_{number:032x}").parse().unwrap()
}

fn message(number: u8) -> MessageId {
    format!("msg_{number:032x}").parse().unwrap()
}

fn at(offset: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(offset).unwrap()).unwrap()
}

fn started(number: u8, text: &str) -> Event {
    Event::RunStarted {
        run: run(number),
        prompt: Prompt::new(text, Mode::Act),
        message: message(number),
        correlation: None,
        by: None,
        senders: Vec::new(),
        merged: Vec::new(),
    }
}

fn question(number: u8) -> QuestionId {
    format!("qst_{number:032x}").parse().unwrap()
}

fn asked(of: u8, number: u8) -> Event {
    Event::QuestionAsked(OpenQuestion {
        id: question(number),
        native_id: format!("q{number}"),
        run: Some(run(of)),
        expires_at: Some(at(1)),
        question: Question::new(QuestionKind::Confirm, Severity::Warn, "Shall I?", "Really"),
    })
}

fn resolved(of: u8, number: u8, granted: bool) -> Event {
    Event::QuestionResolved {
        question: question(number),
        run: Some(run(of)),
        by: Resolver::Timeout,
        granted,
        resolution: Resolution::Answered(Answer::new(AnswerValue::Ok(granted))),
    }
}

fn queue_updated(line: &[u8], added: &[u8]) -> Event {
    let queued = |number: &u8| QueuedPrompt {
        run: run(*number),
        kind: PromptKind::Prompt,
        prompt: Prompt::new(format!("prompt {number}"), Mode::Plan),
        by: None,
        sender: None,
        correlation: None,
    };
    let all: Vec<QueuedPrompt> = line.iter().map(queued).collect();
    Event::QueueUpdated {
        entries: all.iter().map(Into::into).collect(),
        modes: QueueModes::default(),
        added: added.iter().map(queued).collect(),
        joined: Vec::new(),
    }
}

#[test]
fn a_question_that_no_run_asked_outlives_runs() {
    let mut beside = asked(1, 1);
    if let Event::QuestionAsked(open) = &mut beside {
        open.run = None;
    }
    let state = fold([beside.clone()]);
    assert_eq!(state.questions.open.len(), 1, "without a run");
    let state = fold([started(1, "x"), beside, asked(1, 2), ended(1, None)]);
    let open: Vec<_> = state.questions.open.iter().map(|open| open.id).collect();
    assert_eq!(open, [question(1)]);
}

#[test]
fn a_question_is_open_until_it_is_resolved_or_its_run_ends() {
    let begun = || [started(1, "x"), asked(1, 1), asked(1, 2), asked(2, 3)];
    let open = |events: Vec<Event>| {
        let state = fold(begun().into_iter().chain(events));
        let ids = state.questions.open.iter().map(|open| open.id);
        (ids.collect::<Vec<_>>(), state)
    };
    assert_eq!(
        open(vec![]).0,
        [question(1), question(2)],
        "not of another run"
    );
    let (left, state) = open(vec![resolved(1, 1, true), resolved(1, 1, false)]);
    assert_eq!(left, [question(2)]);
    assert!(
        state.questions.ended(question(1)).unwrap().granted,
        "the first counts"
    );
    assert!(open(vec![resolved(1, 1, true), asked(1, 1)]).0 == [question(2)]);
    assert!(open(vec![ended(1, None)]).0.is_empty());
    assert!(open(vec![started(2, "y")]).0.is_empty());
}

#[test]
fn the_queue_holds_the_whole_queued_prompts() {
    let state = fold([
        queue_updated(&[4], &[4]),
        queue_updated(&[4, 5], &[5]),
        queue_updated(&[5], &[]),
    ]);
    let queued = &state.queue.entries;
    assert_eq!(queued.len(), 1);
    assert_eq!(
        (queued[0].run, queued[0].prompt.text.as_str()),
        (run(5), "prompt 5")
    );
    assert!(state.past_runs.contains(&run(4)), "it left the queue");
}

fn progress(number: u8, current: u64) -> Event {
    Event::RunProgress {
        run: run(number),
        progress: Some(Progress {
            current,
            total: 9,
            description: "reading".into(),
        }),
    }
}

fn ended(number: u8, usage: Option<Usage>) -> Event {
    Event::RunEnded {
        run: run(number),
        outcome: RunOutcome::Completed,
        usage,
        cause: None,
        agent_error: None,
    }
}

fn chunk(of: u8, number: u8, text: &str, index: u64) -> Event {
    Event::MessageDelta {
        message: message(number),
        run: run(of),
        channel: Channel::Text,
        text: text.into(),
        index,
        joined: 0,
    }
}

fn thought(of: u8, number: u8, index: u64) -> Event {
    Event::MessageDelta {
        message: message(number),
        run: run(of),
        channel: Channel::Thought,
        text: "hm".into(),
        index,
        joined: 0,
    }
}

fn complete_message(of: u8, number: u8, author: Author, text: &str, index: u64) -> Event {
    Event::MessageFinal {
        message: message(number),
        run: run(of),
        author,
        text: Some(text.into()),
        rest: String::new(),
        index,
    }
}

fn tool(of: u8, id: &str, status: &str, input: Option<Value>, output: Option<Value>) -> Event {
    let tool = Tool {
        kind: "other".into(),
        id: id.into(),
        name: "shell".into(),
        title: "Run `date`".into(),
        status: status.into(),
        input,
        output,
    };
    Event::ToolUpdate { run: run(of), tool }
}

fn used(input: u64, output: u64, cost: Option<f64>) -> Usage {
    Usage {
        input,
        output,
        cost,
    }
}

fn journal(events: impl IntoIterator<Item = Event>) -> Vec<Recorded> {
    (1..)
        .zip(events)
        .map(|(offset, event)| Recorded {
            offset,
            at: at(offset),
            event,
        })
        .collect()
}

fn apply_all(state: &mut SessionState, events: &[Recorded], bounds: &Bounds) {
    for recorded in events {
        state.apply(recorded, bounds);
    }
}

fn fold_within(bounds: Bounds, events: impl IntoIterator<Item = Event>) -> SessionState {
    let mut state = SessionState::default();
    apply_all(&mut state, &journal(events), &bounds);
    state
}

fn fold(events: impl IntoIterator<Item = Event>) -> SessionState {
    fold_within(Bounds::default(), events)
}

fn stored_and_read(state: &SessionState) -> SessionState {
    serde_json::from_str(&serde_json::to_string(state).unwrap()).unwrap()
}

fn texts(state: &SessionState) -> Vec<&str> {
    state.messages.iter().map(|it| it.text.as_str()).collect()
}

fn current(state: &SessionState) -> &CurrentRun {
    state.current.as_ref().expect("a run was started")
}

#[test]
fn an_empty_session_has_no_settings_and_no_run() {
    let state = SessionState::default();
    assert!(state.settings.current.is_empty() && state.settings.chosen.is_empty());
    assert_eq!(state.offset, 0);
    assert_eq!((state.current, state.activity), (None, Activity::Idle));
}

#[test]
fn a_started_run_puts_its_prompt_into_the_conversation() {
    let state = fold([started(1, "hello")]);
    let prompt = Message {
        id: message(1),
        author: Author::User,
        text: "hello".into(),
        at: at(1),
        run: Some(run(1)),
        complete: true,
        usage: None,
        details: None,
    };
    assert_eq!(state.messages, [Arc::new(prompt)]);
    assert_eq!(state.message_count, 1);
    assert_eq!(state.last_user_message.as_deref(), Some("hello"));
    let live = state.live_run().unwrap();
    assert_eq!((live.id, &live.status), (run(1), &RunStatus::Starting));
    assert_eq!((live.prompt.as_str(), live.started_at), ("hello", at(1)));
}

#[test]
fn the_last_user_message_is_shortened_to_200_characters() {
    let state = fold([started(1, &"ü".repeat(300))]);
    assert_eq!(state.last_user_message, Some("ü".repeat(200)));
    assert_eq!(state.messages[0].text.chars().count(), 300);
}

#[test]
fn progress_makes_a_run_running_and_an_event_without_it_keeps_it() {
    let silent = Event::RunProgress {
        run: run(1),
        progress: None,
    };
    let state = fold([started(1, "hi"), progress(1, 3), silent]);
    assert_eq!(current(&state).status, RunStatus::Running);
    assert_eq!(current(&state).progress.as_ref().unwrap().current, 3);
}

#[test]
fn chunks_grow_into_one_open_message_of_the_assistant() {
    let state = fold([
        started(1, "hi"),
        chunk(1, 9, "Hel", 0),
        chunk(1, 9, "lo", 1),
    ]);
    let answer = &state.messages[1];
    assert_eq!((answer.author, answer.complete), (Author::Assistant, false));
    assert_eq!((answer.text.as_str(), answer.at), ("Hello", at(2)));
    assert_eq!(answer.run, Some(run(1)));
    assert_eq!(current(&state).message, Some(message(9)));
    assert_eq!((current(&state).chunks, state.message_count), (2, 2));
}

#[test]
fn thoughts_count_as_chunks_but_change_no_message() {
    let state = fold([started(1, "hi"), thought(1, 9, 0), thought(1, 9, 1)]);
    assert_eq!(texts(&state), ["hi"]);
    assert_eq!((current(&state).chunks, current(&state).message), (2, None));
}

#[test]
fn a_complete_message_replaces_its_chunks() {
    let state = fold([
        started(1, "hi"),
        chunk(1, 9, "Helo", 0),
        complete_message(1, 9, Author::Assistant, "Hello", 1),
    ]);
    assert_eq!(texts(&state), ["hi", "Hello"]);
    assert!(state.messages[1].complete);
    assert_eq!((current(&state).chunks, current(&state).message), (2, None));
}

#[test]
fn a_complete_message_without_chunks_is_created_with_its_author() {
    let state = fold([
        started(1, "hi"),
        complete_message(1, 8, Author::System, "compacted", 0),
        complete_message(1, 9, Author::User, "and faster", 1),
    ]);
    let authors: Vec<_> = state.messages.iter().map(|it| it.author).collect();
    assert_eq!(authors, [Author::User, Author::System, Author::User]);
    assert!(state.messages.iter().all(|it| it.complete));
    assert_eq!(state.last_user_message.as_deref(), Some("and faster"));
}

#[test]
fn a_chunk_after_the_complete_message_is_not_appended_to_it() {
    let state = fold([
        started(1, "hi"),
        complete_message(1, 9, Author::Assistant, "Hello", 0),
        chunk(1, 9, "lo", 1),
        chunk(1, 1, "lo", 2),
    ]);
    assert_eq!(texts(&state), ["hi", "Hello"]);
    assert_eq!((current(&state).chunks, current(&state).message), (3, None));
}

#[test]
fn a_run_cannot_rewrite_the_messages_of_another_run() {
    let state = fold([
        started(1, "hi"),
        complete_message(1, 9, Author::Assistant, "Hello", 0),
        ended(1, None),
        started(2, "more"),
        complete_message(2, 9, Author::Assistant, "Goodbye", 0),
        chunk(2, 9, "!", 1),
    ]);
    assert_eq!(texts(&state), ["hi", "Hello", "more"]);
}

#[test]
fn the_end_of_a_run_closes_everything_it_left_open() {
    let state = fold([
        started(1, "hi"),
        progress(1, 1),
        Event::AgentState {
            activity: Activity::Thinking,
        },
        chunk(1, 8, "one", 0),
        chunk(1, 9, "two", 1),
        ended(1, Some(used(10, 5, Some(0.5)))),
    ]);
    assert!(state.live_run().is_none());
    assert!(state.messages.iter().all(|it| it.complete));
    let usages: Vec<_> = state.messages.iter().map(|it| it.usage).collect();
    assert_eq!(usages, [None, None, Some(used(10, 5, Some(0.5)))]);
    assert_eq!(state.usage, used(10, 5, Some(0.5)));
    assert_eq!(state.activity, Activity::Idle);
    let run = current(&state);
    assert_eq!(
        (&run.status, run.ended_at),
        (&RunStatus::Completed, Some(at(6)))
    );
    assert_eq!((&run.progress, run.message), (&None, None));
}

#[test]
fn a_failed_run_says_why() {
    let state = fold([
        started(1, "hi"),
        Event::RunEnded {
            run: run(1),
            outcome: RunOutcome::Failed {
                code: ErrorCode::ConnectionLost,
                message: "the agent is gone".into(),
            },
            usage: None,
            cause: None,
            agent_error: None,
        },
    ]);
    let failed = RunStatus::Failed {
        code: ErrorCode::ConnectionLost,
        message: "the agent is gone".into(),
    };
    assert_eq!(current(&state).status, failed);
    assert_eq!(state.messages[0].usage, None);
}

#[test]
fn events_of_a_run_after_its_end_only_move_the_offset() {
    let before = vec![
        started(1, "hi"),
        chunk(1, 9, "Hello", 0),
        ended(1, Some(used(1, 1, None))),
    ];
    let late = [
        chunk(1, 9, "!", 1),
        thought(1, 9, 2),
        complete_message(1, 7, Author::Assistant, "late", 3),
        progress(1, 5),
        tool(1, "t", "running", None, None),
        ended(1, Some(used(1, 1, None))),
        started(1, "again"),
        progress(2, 1),
        chunk(2, 6, "who?", 0),
        ended(2, Some(used(1, 1, None))),
    ];
    let mut expected = fold(before.clone());
    expected.offset += late.len() as u64;
    assert_eq!(fold(before.into_iter().chain(late)), expected);
}

#[test]
fn a_run_that_never_ended_is_closed_by_the_next_one() {
    let state = fold([
        started(1, "hi"),
        chunk(1, 9, "Hel", 0),
        tool(1, "t", "running", None, None),
        started(2, "more"),
        ended(1, None),
    ]);
    assert!(state.messages.iter().all(|it| it.complete));
    assert!(state.tools.is_empty());
    let live = state.live_run().unwrap();
    assert_eq!((live.id, live.chunks), (run(2), 0));
}

#[test]
fn a_tool_call_is_created_by_its_first_update_and_changed_by_later_ones() {
    let state = fold([
        started(1, "hi"),
        tool(1, "a", "pending", Some(json!({"command": "date"})), None),
        tool(1, "b", "pending", None, None),
        tool(1, "a", "completed", Some(Value::Null), Some(json!("noon"))),
    ]);
    let ids: Vec<_> = state.tools.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let first = &state.tools[0];
    assert_eq!(first.status, "completed");
    assert_eq!(first.input, Some(json!({"command": "date"})));
    assert_eq!(first.output, Some(json!("noon")));
}

#[test]
fn only_the_newest_100_tools_are_kept() {
    let tools = (0..103).map(|id| tool(1, &id.to_string(), "running", None, None));
    let state = fold(std::iter::once(started(1, "hi")).chain(tools));
    assert_eq!(state.tools.len(), 100);
    assert_eq!(state.tools[0].id, "3");
}

#[test]
fn usage_is_summed_over_everything() {
    let state = fold([
        Event::Usage(used(1, 2, None)),
        started(1, "hi"),
        ended(1, Some(used(10, 20, Some(0.25)))),
        Event::Usage(used(u64::MAX, 0, Some(f64::NAN))),
    ]);
    assert_eq!(state.usage, used(u64::MAX, 22, Some(0.25)));
}

#[test]
fn a_cost_beyond_all_numbers_can_still_be_stored() {
    let dear = Event::Usage(used(0, 0, Some(f64::MAX)));
    let state = fold([dear.clone(), dear]);
    assert_eq!(stored_and_read(&state).usage.cost, Some(f64::MAX));
}

#[test]
fn settings_that_are_absent_stay() {
    let state = fold([
        Event::SettingsChanged(SettingsChange {
            model: Some("large".into()),
            temperature: Some(0.5),
            ..SettingsChange::default()
        }),
        Event::SettingsChanged(SettingsChange {
            auto_approve: Some(true),
            max_tokens: Some(10),
            temperature: Some(f64::NAN),
            ..SettingsChange::default()
        }),
    ]);
    let current = SettingsChange {
        model: Some("large".into()),
        max_tokens: Some(10),
        temperature: Some(0.5),
        ..SettingsChange::default()
    };
    assert!(state.settings.auto_approve());
    assert_eq!(state.settings.current, current);
}

#[test]
fn plan_title_and_activity_are_the_latest_reported() {
    let step = |title: &str| PlanStep {
        title: title.into(),
        status: "pending".into(),
    };
    let state = fold([
        Event::PlanUpdated {
            run: None,
            steps: vec![step("a"), step("b")],
        },
        Event::PlanUpdated {
            run: None,
            steps: vec![step("c")],
        },
        Event::TitleChanged {
            title: "Dates".into(),
        },
        Event::AgentState {
            activity: Activity::WaitingForInput,
        },
    ]);
    assert_eq!(state.plan, [step("c")]);
    assert_eq!(state.title.as_deref(), Some("Dates"));
    assert_eq!(state.activity, Activity::WaitingForInput);
}

#[test]
fn a_gap_in_the_journal_is_accepted() {
    let mut events = journal([started(1, "hi"), chunk(1, 9, "Hello", 4)]);
    events[1].offset = 70;
    let mut state = SessionState::default();
    apply_all(&mut state, &events, &Bounds::default());
    assert_eq!((state.offset, texts(&state)), (70, vec!["hi", "Hello"]));
}

#[test]
fn the_oldest_messages_are_dropped_when_there_are_too_many() {
    let bounds = Bounds {
        messages: 2,
        bytes: 100,
    };
    let state = fold_within(bounds, [started(1, "a"), started(2, "b"), started(3, "c")]);
    assert_eq!(texts(&state), ["b", "c"]);
    assert_eq!((state.truncated, state.message_count), (true, 3));
}

#[test]
fn the_oldest_messages_are_dropped_when_a_later_one_grows() {
    let bounds = Bounds {
        messages: 9,
        bytes: 8,
    };
    let before = [started(1, "abcd"), chunk(1, 9, "efgh", 0)];
    let state = fold_within(bounds, before.clone());
    assert_eq!(
        (texts(&state), state.truncated),
        (vec!["abcd", "efgh"], false)
    );
    let state = fold_within(bounds, before.into_iter().chain([chunk(1, 9, "i", 1)]));
    assert_eq!((texts(&state), state.truncated), (vec!["efghi"], true));
}

#[test]
fn a_message_longer_than_the_bound_keeps_its_beginning() {
    let bounds = Bounds {
        messages: 9,
        bytes: 4,
    };
    let state = fold_within(bounds, [started(1, "abcüd")]);
    assert_eq!((texts(&state), state.truncated), (vec!["abc"], true));
}

#[test]
fn nothing_is_appended_to_a_message_that_was_cut() {
    let bounds = Bounds {
        messages: 1,
        bytes: 4,
    };
    let pieces = [
        started(1, "hi"),
        chunk(1, 9, "abcü", 0),
        chunk(1, 9, "d", 1),
    ];
    let state = fold_within(bounds, pieces.clone());
    assert_eq!(texts(&state), ["abc"]);
    let settled = complete_message(1, 9, Author::Assistant, "ok", 2);
    let state = fold_within(bounds, pieces.into_iter().chain([settled]));
    assert_eq!(texts(&state), ["ok"]);
}

#[test]
fn a_dropped_message_begins_again_with_its_next_chunk() {
    let bounds = Bounds {
        messages: 1,
        bytes: 4,
    };
    let state = fold_within(
        bounds,
        [
            started(1, "hi"),
            chunk(1, 8, "abcde", 0),
            chunk(1, 9, "f", 1),
            chunk(1, 8, "g", 2),
            chunk(1, 8, "h", 3),
        ],
    );
    assert_eq!(texts(&state), ["gh"]);
}

#[test]
fn the_stored_form_is_stable() {
    let state = fold([
        started(1, "hi"),
        chunk(1, 9, "Hello", 0),
        tool(1, "t", "completed", None, Some(json!(1))),
        Event::RunEnded {
            run: run(1),
            outcome: RunOutcome::Failed {
                code: ErrorCode::TaskFailed,
                message: "no".into(),
            },
            usage: Some(used(1, 2, None)),
            cause: None,
            agent_error: None,
        },
    ]);
    let (run, asked, said) = (run(1), message(1), message(9));
    // As written by the first versions, which knew less.
    let first = json!({
        "offset": 4,
        "messages": [
            {"id": asked, "author": "user", "text": "hi", "at": "2023-11-14T22:13:21Z",
             "run": run, "complete": true, "usage": null},
            {"id": said, "author": "assistant", "text": "Hello", "at": "2023-11-14T22:13:22Z",
             "run": run, "complete": true, "usage": {"input": 1, "output": 2}},
        ],
        "truncated": false,
        "message_count": 2,
        "last_user_message": "hi",
        "current": {
            "id": run, "status": {"failed": {"code": "TASK_FAILED", "message": "no"}},
            "prompt": "hi", "started_at": "2023-11-14T22:13:21Z",
            "ended_at": "2023-11-14T22:13:24Z", "progress": null, "chunks": 1, "message": null,
        },
        "settings": {"auto_approve": false, "model": "default", "max_tokens": 4096,
                     "temperature": 1.0},
        "usage": {"input": 1, "output": 2},
        "activity": "idle",
        "plan": [],
        "tools": [{"id": "t", "name": "shell", "title": "Run `date`", "status": "completed",
                   "input": null, "output": 1}],
        "title": null,
        "text_bytes": 7,
        "cut": null,
    });
    let mut expected = first.clone();
    expected["tools"] = json!([{"tool": "t", "name": "shell", "title": "Run `date`",
                                "status": "completed", "output": 1}]);
    let since = json!({
        "questions": {"open": [], "ended": []},
        "queue": {"entries": [], "modes": {"steering": "one", "follow_up": "one"}},
        "past_runs": [run],
        "chosen_tools": null,
        "commands": [],
        "context_left": null,
    });
    for (name, value) in since.as_object().unwrap() {
        expected[name] = value.clone();
    }
    expected["current"]["mode"] = json!("act");
    expected["current"]["merged"] = json!([]);
    expected["settings"]["mode"] = Value::Null;
    expected["settings"]["chosen"] = json!({});
    expected["settings"]["current"] = json!({});
    assert_eq!(serde_json::to_value(&state).unwrap(), expected);
    assert_eq!(stored_and_read(&state), state);
    let mut read: SessionState = serde_json::from_value(first).unwrap();
    assert!(read.past_runs.is_empty());
    read.past_runs.clone_from(&state.past_runs);
    assert_eq!(read, state);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zäß€😀\u{301}]{0,12}", any::<String>()]
}

/// Quarters: sums of them are exact, so that equal means equal.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-400_i32..400).prop_map(|quarters| f64::from(quarters) / 4.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::MAX),
    ]
}

fn any_usage() -> impl Strategy<Value = Usage> {
    (
        any::<u64>(),
        any::<u64>(),
        proptest::option::of(any_number()),
    )
        .prop_map(|(input, output, cost)| used(input, output, cost))
}

fn any_index() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 0..20_u64, 1 => Just(u64::MAX)]
}

fn any_author() -> impl Strategy<Value = Author> {
    prop_oneof![
        Just(Author::User),
        Just(Author::Assistant),
        Just(Author::System)
    ]
}

fn any_value() -> impl Strategy<Value = Option<Value>> {
    proptest::option::of(prop_oneof![
        Just(Value::Null),
        any_text().prop_map(Value::String),
        any::<i64>().prop_map(|number| json!({"number": [number]})),
    ])
}

fn any_outcome() -> impl Strategy<Value = RunOutcome> {
    prop_oneof![
        Just(RunOutcome::Completed),
        Just(RunOutcome::Cancelled),
        any_text().prop_map(|message| RunOutcome::Failed {
            code: ErrorCode::TaskFailed,
            message,
        }),
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    let (runs, messages) = (0..3_u8, 0..6_u8);
    let (runs4, questions) = (0..3_u8, 0..4_u8);
    let spoken = (runs.clone(), messages.clone(), any_text(), any_index()).boxed();
    prop_oneof![
        3 => (runs.clone(), messages, any_text()).prop_map(|(number, said, text)| {
            let mut event = started(number, &text);
            if let Event::RunStarted { message: id, .. } = &mut event {
                *id = message(said);
            }
            event
        }),
        1 => (runs.clone(), 0..9_u64).prop_map(|(number, current)| progress(number, current)),
        1 => (runs.clone(), any_outcome(), proptest::option::of(any_usage())).prop_map(
            |(number, outcome, usage)| Event::RunEnded { run: run(number), outcome, usage, cause: None, agent_error: None }
        ),
        6 => spoken.clone().prop_map(|(of, number, text, index)| chunk(of, number, &text, index)),
        1 => (runs.clone(), any_index()).prop_map(|(of, index)| thought(of, 9, index)),
        2 => (spoken, any_author()).prop_map(|((of, number, text, index), author)| {
            complete_message(of, number, author, &text, index)
        }),
        2 => (runs, "[a-d]", any_text(), any_value(), any_value())
            .prop_map(|(of, id, status, input, output)| tool(of, &id, &status, input, output)),
        1 => Just(Event::AgentState { activity: Activity::ExecutingTool }),
        1 => any_usage().prop_map(Event::Usage),
        1 => any_text().prop_map(|title| {
            Event::PlanUpdated { run: None, steps: vec![PlanStep { title, status: "pending".into() }] }
        }),
        1 => (proptest::option::of(any_number()), proptest::option::of(any_text()))
            .prop_map(|(temperature, model)| Event::SettingsChanged(SettingsChange {
                auto_approve: Some(true), model, temperature, ..SettingsChange::default()
            })),
        1 => (proptest::option::of(any_number()), any_text()).prop_map(|(temperature, name)| {
            Event::SettingsReported(SettingsChange {
                temperature,
                other: [(name.clone(), json!(name))].into_iter().collect(),
                ..SettingsChange::default()
            })
        }),
        2 => (runs4, questions.clone()).prop_map(|(of, number)| asked(of, number)),
        1 => (0..3_u8, questions, any::<bool>()).prop_map(|(of, number, granted)| {
            resolved(of, number, granted)
        }),
        2 => (proptest::collection::vec(4..9_u8, 0..4), proptest::collection::vec(4..9_u8, 0..2))
            .prop_map(|(line, added)| queue_updated(&line, &added)),
        1 => any::<u8>().prop_map(|percent| Event::ContextLeft { percent }),
        1 => any_text().prop_map(|tool| Event::ToolsChanged { tools: vec![tool] }),
        1 => any_text().prop_map(|name| Event::CommandsAvailable {
            commands: vec![AgentCommand { name, description: String::new() }],
        }),
        1 => any_text().prop_map(|text| Event::Raw { dialect: "x".into(), value: json!(text) }),
        1 => any_text().prop_map(|title| Event::TitleChanged { title }),
        1 => any_text().prop_map(|text| Event::AgentNotice { level: Level::Info, text }),
    ]
}

/// A journal with gaps.
fn any_journal() -> impl Strategy<Value = Vec<Recorded>> {
    proptest::collection::vec((any_event(), 1..3_u64), 0..40).prop_map(|events| {
        let mut offset = 0;
        let record = |(event, step)| {
            offset += step;
            Recorded {
                offset,
                at: at(offset),
                event,
            }
        };
        events.into_iter().map(record).collect()
    })
}

fn any_bounds() -> impl Strategy<Value = Bounds> {
    let tight = (0..6_usize, 0..60_usize).prop_map(|(messages, bytes)| Bounds { messages, bytes });
    prop_oneof![3 => tight, 1 => Just(Bounds::default())]
}

/// A journal without gaps in which one message after the other streams in chunks.
fn any_stream() -> impl Strategy<Value = Vec<Recorded>> {
    let streamed = proptest::collection::vec(any_text(), 0..12);
    proptest::collection::vec((any_event(), any::<bool>(), streamed), 0..12).prop_map(|turns| {
        let (mut events, mut index) = (vec![started(0, "go")], 0..);
        for (said, (event, aloud, streamed)) in (20..).zip(turns) {
            events.push(event);
            let spoken = |(text, index): (String, u64)| {
                if aloud {
                    chunk(0, said, &text, index)
                } else {
                    thought(0, said, index)
                }
            };
            events.extend(streamed.into_iter().zip(index.by_ref()).map(spoken));
        }
        let record = |(offset, event)| Recorded {
            offset,
            at: at(offset),
            event,
        };
        (1..).zip(events).map(record).collect()
    })
}

proptest! {
    #[test]
    fn joined_chunks_fold_to_the_same(events in any_stream(), bounds in any_bounds()) {
        let joined = crate::session::compaction::compact(events.clone());
        let (mut whole, mut fewer) = (SessionState::default(), SessionState::default());
        apply_all(&mut whole, &events, &bounds);
        apply_all(&mut fewer, &joined, &bounds);
        prop_assert_eq!(fewer, whole);
    }

    #[test]
    fn a_snapshot_stands_for_the_events_before_it(events in any_journal(), bounds in any_bounds()) {
        let mut whole = SessionState::default();
        apply_all(&mut whole, &events, &bounds);
        let mut first = SessionState::default();
        for split in 0..=events.len() {
            let mut resumed = stored_and_read(&first);
            prop_assert_eq!(&resumed, &first);
            apply_all(&mut resumed, &events[split..], &bounds);
            prop_assert_eq!(&resumed, &whole);
            if let Some(next) = events.get(split) {
                first.apply(next, &bounds);
            }
        }
    }

    #[test]
    fn the_bounds_hold_after_every_event(events in any_journal(), bounds in any_bounds()) {
        let mut state = SessionState::default();
        for recorded in &events {
            state.apply(recorded, &bounds);
            let bytes: usize = state.messages.iter().map(|it| it.text.len()).sum();
            prop_assert_eq!(state.text_bytes, bytes);
            prop_assert!(bytes <= bounds.bytes);
            prop_assert!(state.messages.len() <= bounds.messages.max(1));
            prop_assert!(state.tools.len() <= MAX_TOOLS);
            let kept = state.messages.len() as u64;
            prop_assert!(state.truncated || state.message_count == kept);
        }
    }

    #[test]
    fn any_order_of_offsets_is_survived(
        events in any_journal(),
        offsets in proptest::collection::vec(0..9_u64, 40),
        bounds in any_bounds(),
    ) {
        let mut state = SessionState::default();
        for (mut recorded, offset) in events.into_iter().zip(offsets) {
            recorded.offset = offset;
            let before = state.clone();
            state.apply(&recorded, &bounds);
            if offset <= before.offset {
                prop_assert_eq!(&state, &before);
            } else {
                prop_assert_eq!(state.offset, offset);
            }
        }
    }

    #[test]
    fn no_message_stays_open_without_a_live_run(events in any_journal(), bounds in any_bounds()) {
        let mut state = SessionState::default();
        for recorded in &events {
            state.apply(recorded, &bounds);
            let live = state.live_run().map(|run| run.id);
            for message in &state.messages {
                prop_assert!(message.complete || message.run == live);
            }
        }
    }

    #[test]
    fn replaying_what_was_folded_changes_nothing(events in any_journal(), bounds in any_bounds()) {
        let mut state = SessionState::default();
        apply_all(&mut state, &events, &bounds);
        let before = state.clone();
        for recorded in &events {
            state.apply(recorded, &bounds);
            prop_assert_eq!(&state, &before);
        }
    }
}

#[test]
fn what_an_agent_says_about_a_message_counts_against_the_bounds() {
    let metadata = json!({ "source_documents": ["x".repeat(600)] });
    let described = |number: u8| Event::MessageDescribed {
        message: message(number),
        run: run(1),
        text: "an answer".into(),
        details: Box::new(MessageDetails {
            format: TextFormat::Text,
            metadata: metadata.as_object().unwrap().clone(),
        }),
    };
    let events = [
        started(1, "hello"),
        complete_message(1, 2, Author::Assistant, "an answer", 0),
        described(2),
        described(9),
    ];
    let mut state = fold(events);
    assert_eq!(state.messages.len(), 2);
    let kept = state.messages[1].details.as_ref().unwrap();
    assert_eq!(kept.format, TextFormat::Text);
    let sum: usize = state.messages.iter().map(|message| message.bytes()).sum();
    assert_eq!(state.text_bytes, sum);
    state.trim(&Bounds {
        messages: 9,
        bytes: 100,
    });
    assert_eq!(state.messages.len(), 1);
    assert!(state.messages[0].details.is_none());
    assert_eq!(state.text_bytes, "an answer".len());
}
