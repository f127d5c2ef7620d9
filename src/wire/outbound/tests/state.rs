//! The whole state, folded from events.

use serde_json::json;

use super::*;
use crate::session::state::{Bounds, SessionState};

/// A session after those events, with the settings of the example.
fn state_after(events: impl IntoIterator<Item = Event>) -> SessionState {
    let mut state = SessionState::default();
    for (offset, event) in (1..).zip(events) {
        state.apply(&recorded(offset, event), &Bounds::default());
    }
    let chosen = SettingsChange {
        auto_approve: Some(true),
        model: Some("large".into()),
        max_tokens: Some(4096),
        temperature: Some(0.5),
        ..SettingsChange::default()
    };
    state.settings.chosen.merge(&chosen);
    state.settings.fill(&chosen);
    state
}

fn sent_state(state: &SessionState, history: bool) -> Value {
    let settings = true;
    sent_parts(state, StateParts { history, settings })
}

fn sent_parts(state: &SessionState, what: StateParts) -> Value {
    let id = Some("msg-789");
    json_of(&full_state(
        session(),
        state,
        epoch(),
        &CAPABILITIES,
        what,
        id,
        now(),
    ))
}

#[test]
fn the_state_is_sent_as_documented() {
    let state = state_after([
        started(),
        progress(),
        tool(Some(json!({ "path": "lib.rs" })), Some(json!("text"))),
        plan(),
        title(),
        piece("Hello", 0),
        whole(answer(), Author::Assistant),
        Event::AgentState {
            activity: Activity::Thinking,
        },
        ended(RunOutcome::Completed, Some(usage())),
    ]);
    let golden = json_of(include_str!("../../golden/server_full_state.json"));
    assert_eq!(sent_state(&state, true), golden);
}

#[test]
fn a_state_without_history_has_an_empty_conversation_and_all_the_rest() {
    let state = state_after([started(), progress(), piece("Hel", 0)]);
    let (with, mut without) = (sent_state(&state, true), sent_state(&state, false));
    assert_eq!(without["payload"]["conversationHistory"], json!([]));
    without["payload"]["conversationHistory"] = with["payload"]["conversationHistory"].clone();
    assert_eq!(without, with);
}

#[test]
fn settings_that_nobody_reported_or_wanted_are_absent() {
    let what = StateParts::WHOLE;
    let payload = sent_parts(&SessionState::default(), what)["payload"].clone();
    assert_eq!(payload["settings"], json!({ "autoApprove": false }));
    let what = StateParts {
        history: true,
        settings: false,
    };
    let payload = sent_parts(&state_after([]), what)["payload"].clone();
    assert_eq!(payload.get("settings"), None);
}

#[test]
fn settings_by_the_agents_own_names_stand_beside_the_others() {
    let reported = SettingsChange {
        model: Some("small".into()),
        other: [("style".to_owned(), json!("terse"))].into_iter().collect(),
        ..SettingsChange::default()
    };
    let frame = event(
        session(),
        &recorded(1, Event::SettingsReported(reported.clone())),
    );
    let frame = json_of(&frame);
    assert_eq!(frame["type"], "STATE_UPDATE");
    let expected = json!({ "model": "small", "style": "terse" });
    assert_eq!(frame["payload"]["updates"]["settings"], expected);
    let mut state = SessionState::default();
    state.apply(
        &recorded(1, Event::SettingsReported(reported)),
        &Bounds::default(),
    );
    let settings = sent_state(&state, true)["payload"]["settings"].clone();
    let expected = json!({ "autoApprove": false, "model": "small", "style": "terse" });
    assert_eq!(settings, expected);
}

#[test]
fn a_task_under_way_is_running_and_its_utterance_is_not_complete() {
    let state = state_after([started()]);
    let task = sent_state(&state, true)["payload"]["currentTask"].clone();
    let expected = json!({
        "id": run(), "status": "running", "prompt": "Fix the failing test",
        "startTime": "2024-12-31T10:00:00Z",
    });
    assert_eq!(task, expected);
    let frame = sent_state(&state_after([started(), progress(), piece("Hel", 0)]), true);
    let payload = &frame["payload"];
    assert_eq!(payload["currentTask"]["status"], "running");
    assert_eq!(
        payload["currentTask"]["progress"]["description"],
        "Reading files"
    );
    assert_eq!(payload["conversationHistory"][1]["isComplete"], false);
}

#[test]
fn a_state_tells_how_the_last_task_failed_and_leaves_out_what_is_absent() {
    let payload = sent_state(&state_after([started(), failed()]), true)["payload"].clone();
    assert_eq!(payload["currentTask"]["status"], "error");
    let error = json!({ "code": "TASK_FAILED", "message": "The agent gave up" });
    assert_eq!(payload["currentTask"]["error"], error);
    let payload = sent_state(&state_after([]), true)["payload"].clone();
    assert_eq!(payload.get("currentTask"), None);
    assert_eq!(payload.get("title"), None);
}
