//! The events that close a branch, and its title.

use super::*;
use crate::domain::command::{Mode, Prompt};
use crate::domain::event::Channel;
use crate::domain::id::{MessageId, RunId};
use crate::domain::queue::{PromptKind, QueueModes};

fn started(run: RunId) -> Event {
    Event::RunStarted {
        run,
        prompt: Prompt::new("why?", Mode::Act),
        message: MessageId::new(),
        correlation: None,
        by: None,
        senders: Vec::new(),
        merged: Vec::new(),
    }
}

fn after(events: Vec<Event>) -> SessionState {
    let mut state = SessionState::default();
    append(&mut state, events, Timestamp::UNIX_EPOCH);
    state
}

#[test]
fn queued_prompts_stay_in_the_source_and_end_in_the_branch() {
    let queued = QueuedPrompt {
        run: RunId::new(),
        kind: PromptKind::Prompt,
        prompt: Prompt::new("later", Mode::Act),
        by: None,
        sender: None,
        correlation: None,
    };
    let mut state = after(vec![Event::QueueUpdated {
        entries: vec![(&queued).into()],
        modes: QueueModes::default(),
        added: vec![queued.clone()],
        joined: Vec::new(),
    }]);
    let closing = closing_events(&state);
    assert!(matches!(
        closing.as_slice(),
        [Event::QueueUpdated { entries, .. }, Event::RunEnded { run, .. }]
            if entries.is_empty() && *run == queued.run
    ));
    append(&mut state, closing, Timestamp::UNIX_EPOCH);
    assert!(state.queue.entries.is_empty() && closing_events(&state).is_empty());
}

#[test]
fn a_run_under_way_is_closed_and_nothing_else() {
    let run = RunId::new();
    let mut state = after(vec![started(run)]);
    let closing = closing_events(&state);
    assert!(
        matches!(&closing[..], [Event::RunEnded { run: ended, outcome: RunOutcome::Cancelled, .. }] if *ended == run)
    );
    append(&mut state, closing, Timestamp::UNIX_EPOCH);
    assert_eq!(closing_events(&state), []);
    assert_eq!(closing_events(&SessionState::default()), []);
}

#[test]
fn a_message_under_way_gets_its_last_chunk_first() {
    let (run, message) = (RunId::new(), MessageId::new());
    let chunk = Event::MessageDelta {
        message,
        run,
        channel: Channel::Text,
        text: "half".into(),
        index: 0,
        joined: 0,
    };
    let mut state = after(vec![started(run), chunk]);
    let closing = closing_events(&state);
    assert!(matches!(
        &closing[..],
        [Event::MessageFinal { index: 1, .. }, Event::RunEnded { .. }]
    ));
    append(&mut state, closing, Timestamp::UNIX_EPOCH);
    assert_eq!((state.offset, state.live_run()), (4, None));
    let last = state.messages.back().unwrap();
    assert_eq!((last.text.as_str(), last.complete), ("half", true));
}

#[test]
fn the_title_of_a_branch_says_so_and_stays_short() {
    assert_eq!(branch_title("Parser"), "Parser (branch)");
    let long = branch_title(&"ü".repeat(200));
    assert_eq!(long.chars().count(), TITLE_CHARS);
    assert!(long.ends_with(TITLE_SUFFIX));
}
