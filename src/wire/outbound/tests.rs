//! Frames of the gateway, against the examples in `golden/`.

mod joined_chunks;
mod state;

use serde_json::{Value, json};

use super::*;
use crate::domain::command::{Mode, Prompt, SettingsChange};
use crate::domain::error_code::ErrorCode;
use crate::domain::event::{
    Activity, Author, Channel, Event, MessageDetails, PlanStep, Recorded, TextFormat,
};
use crate::domain::id::{MessageId, RunId};
use crate::domain::run::{Progress, RunOutcome, Usage};
use crate::domain::tool::Tool;
use crate::session::Reply;
use crate::wire::error_details::Details;

const CAPABILITIES: [&str; 2] = ["prompts", "cancel"];

fn session() -> SessionId {
    "ses_0193f7c4a1b27c3d8e4f5a6b7c8d9e0f".parse().unwrap()
}

fn run() -> RunId {
    "run_0193f7c4a1b27c3d8e4f5a6b7c8d9e10".parse().unwrap()
}

fn question() -> MessageId {
    "msg_0193f7c4a1b27c3d8e4f5a6b7c8d9e11".parse().unwrap()
}

fn answer() -> MessageId {
    "msg_0193f7c4a1b27c3d8e4f5a6b7c8d9e12".parse().unwrap()
}

fn epoch() -> Epoch {
    "epo_0193f7c4a1b27c3d8e4f5a6b7c8d9e14".parse().unwrap()
}

fn now() -> Timestamp {
    "2024-12-31T10:00:00Z".parse().unwrap()
}

fn recorded(offset: u64, event: Event) -> Recorded {
    let at = now();
    Recorded { offset, at, event }
}

fn json_of(frame: &str) -> Value {
    serde_json::from_str(frame).unwrap()
}

fn sent(offset: u64, fact: Event) -> Value {
    json_of(&event(session(), &recorded(offset, fact)))
}

fn started() -> Event {
    Event::RunStarted {
        run: run(),
        prompt: Prompt {
            text: "Fix the failing test".into(),
            mode: Mode::Act,
            images: vec!["aW1hZ2U=".into()],
            attachments: Vec::new(),
            context: None,
            meta: None,
        },
        message: question(),
        correlation: Some("msg-456".into()),
        by: None,
        senders: Vec::new(),
        merged: Vec::new(),
    }
}

fn progress() -> Event {
    let progress = Progress {
        current: 1,
        total: 3,
        description: "Reading files".into(),
    };
    Event::RunProgress {
        run: run(),
        progress: Some(progress),
    }
}

fn piece(text: &str, index: u64) -> Event {
    Event::MessageDelta {
        message: answer(),
        run: run(),
        channel: Channel::Text,
        text: text.into(),
        index,
        joined: 0,
    }
}

fn whole(message: MessageId, author: Author) -> Event {
    Event::MessageFinal {
        message,
        run: run(),
        author,
        text: Some("Hello world".into()),
        rest: " world".into(),
        index: 1,
    }
}

fn described_answer() -> Event {
    let metadata = json!({ "latency_ms": 1200, "source_documents": ["a.md"] });
    let details = MessageDetails {
        format: TextFormat::Text,
        metadata: metadata.as_object().unwrap().clone(),
    };
    Event::MessageDescribed {
        message: answer(),
        run: run(),
        text: "Hello world".into(),
        details: Box::new(details),
    }
}

fn usage() -> Usage {
    Usage {
        input: 10,
        output: 5,
        cost: Some(0.25),
    }
}

fn ended(outcome: RunOutcome, usage: Option<Usage>) -> Event {
    let run = run();
    Event::RunEnded {
        run,
        outcome,
        usage,
        cause: None,
        agent_error: None,
    }
}

fn failed() -> Event {
    let outcome = RunOutcome::Failed {
        code: ErrorCode::TaskFailed,
        message: "The agent gave up".into(),
    };
    ended(outcome, None)
}

fn tool(input: Option<Value>, output: Option<Value>) -> Event {
    let tool = Tool {
        kind: "other".into(),
        id: "call-1".into(),
        name: "read_file".into(),
        title: "Read lib.rs".into(),
        status: "completed".into(),
        input,
        output,
    };
    Event::ToolUpdate { run: run(), tool }
}

fn plan() -> Event {
    let step = PlanStep {
        title: "Read".into(),
        status: "completed".into(),
    };
    Event::PlanUpdated {
        run: Some(run()),
        steps: vec![step],
    }
}

fn title() -> Event {
    let title = "The failing test".into();
    Event::TitleChanged { title }
}

#[test]
fn events_of_a_task_are_sent_as_documented() {
    let text = SettingsChange {
        auto_approve: Some(true),
        max_tokens: Some(4096),
        ..SettingsChange::default()
    };
    for (offset, event, golden) in [
        (
            1,
            started(),
            include_str!("../golden/server_task_status_starting.json"),
        ),
        (
            2,
            progress(),
            include_str!("../golden/server_task_status_running.json"),
        ),
        (
            3,
            piece("Hello", 0),
            include_str!("../golden/server_task_output_chunk.json"),
        ),
        (
            4,
            whole(answer(), Author::Assistant),
            include_str!("../golden/server_task_output_chunk_last.json"),
        ),
        (
            5,
            Event::SettingsChanged(text),
            include_str!("../golden/server_state_update.json"),
        ),
        (
            6,
            ended(RunOutcome::Completed, Some(usage())),
            include_str!("../golden/server_task_status_completed.json"),
        ),
        (
            6,
            ended(RunOutcome::Cancelled, None),
            include_str!("../golden/server_task_status_cancelled.json"),
        ),
        (
            6,
            failed(),
            include_str!("../golden/server_task_status_error.json"),
        ),
    ] {
        assert_eq!(sent(offset, event), json_of(golden));
    }
}

#[test]
fn an_utterance_that_was_taken_back_says_so() {
    let taken_back = |text: Option<&str>| Event::MessageFinal {
        message: answer(),
        run: run(),
        author: Author::Assistant,
        text: text.map(str::to_owned),
        rest: String::new(),
        index: 3,
    };
    assert_eq!(sent(4, taken_back(Some("")))["payload"]["withdrawn"], true);
    assert!(sent(4, taken_back(None))["payload"]["withdrawn"].is_null());
    assert!(sent(4, taken_back(Some("Hello")))["payload"]["withdrawn"].is_null());
}

#[test]
fn other_events_are_sent_under_their_own_names() {
    let activity = Activity::ExecutingTool;
    let (level, text) = (Level::Warn, "Low on disk".into());
    let tokens = json!({ "input": 10, "output": 5, "total": 15, "cost": 0.25 });
    let mut call = json!({
        "toolCallId": "call-1", "taskId": run(), "name": "read_file", "title": "Read lib.rs",
        "kind": "other", "status": "completed",
    });
    let bare = call.clone();
    call["input"] = json!({ "path": "lib.rs" });
    let said = json!({
        "id": question(), "taskId": run(), "role": "user", "content": "Hello world",
        "format": "markdown",
    });
    let described = json!({
        "id": answer(), "taskId": run(), "role": "assistant", "content": "Hello world",
        "format": "text", "metadata": { "latency_ms": 1200, "source_documents": ["a.md"] },
    });
    for (event, kind, payload) in [
        (whole(question(), Author::User), "MESSAGE", said),
        (described_answer(), "MESSAGE", described),
        (
            tool(Some(json!({ "path": "lib.rs" })), None),
            "TOOL_UPDATE",
            call,
        ),
        (tool(None, Some(Value::Null)), "TOOL_UPDATE", bare),
        (
            Event::AgentState { activity },
            "AGENT_STATE",
            json!({ "state": "executing_tool" }),
        ),
        (Event::Usage(usage()), "USAGE_UPDATE", tokens),
        (
            plan(),
            "PLAN_UPDATE",
            json!({ "taskId": run(), "steps": [{ "title": "Read", "status": "completed" }] }),
        ),
        (
            title(),
            "TITLE_UPDATE",
            json!({ "title": "The failing test" }),
        ),
        (
            Event::AgentNotice { level, text },
            "AGENT_NOTICE",
            json!({ "level": "warn", "text": "Low on disk" }),
        ),
    ] {
        let frame = sent(7, event);
        assert_eq!(frame["type"], kind);
        assert_eq!(frame["payload"], payload);
        assert_eq!(frame["offset"], 7);
        assert_eq!(frame["sessionId"], session().to_string());
    }
}

#[test]
fn a_message_in_chunks_ends_with_a_chunk_whoever_its_author() {
    let event = Event::MessageFinal {
        message: answer(),
        run: run(),
        author: Author::System,
        text: None,
        rest: " world".into(),
        index: 1,
    };
    let golden = include_str!("../golden/server_task_output_chunk_last.json");
    assert_eq!(sent(4, event), json_of(golden));
}

#[test]
fn a_cost_that_is_no_number_is_not_sent() {
    let cost = Some(f64::NAN);
    let frame = sent(1, Event::Usage(Usage { cost, ..usage() }));
    assert_eq!(
        frame["payload"],
        json!({ "input": 10, "output": 5, "total": 15 })
    );
}

#[test]
fn an_acknowledgement_is_sent_as_documented() {
    let frame = connection_ack(&Ack {
        session: session(),
        server_version: "0.1.0",
        capabilities: &CAPABILITIES,
        connection: "con_0193f7c4a1b27c3d8e4f5a6b7c8d9e13".parse().unwrap(),
        agent: "demo",
        epoch: epoch(),
        offset: 9,
        resume: Resume::Snapshot,
        heartbeat_seconds: 25,
        limits: AckLimits {
            messages_per_minute: 100,
            state_requests_per_minute: 10,
            heartbeats_per_minute: 60,
            message_bytes: 1_048_576,
            prompt_chars: 100_000,
            attachment_bytes: 10_485_760,
            depth: 64,
            id_bytes: 128,
        },
        token_expires_at: "2024-12-31T23:59:59Z".parse().unwrap(),
        at: now(),
    });
    let golden = include_str!("../golden/server_connection_ack.json");
    assert_eq!(json_of(&frame), json_of(golden));
}

#[test]
fn an_error_is_sent_as_documented() {
    let details = Details {
        retry_after_ms: Some(1500),
        ..Details::default()
    };
    let frame = error(
        Some(session()),
        ErrorCode::RateLimited,
        "Too many requests",
        Some(&details),
        Some("msg-456"),
        now(),
    );
    let golden = include_str!("../golden/server_error_message.json");
    assert_eq!(json_of(&frame), json_of(golden));
}

#[test]
fn an_error_before_any_session_names_none() {
    let frame = error(None, ErrorCode::AuthFailed, "No", None, None, now());
    let payload = json!({ "code": "AUTH_FAILED", "message": "No", "recoverable": false });
    let expected = json!({
        "type": "ERROR_MESSAGE", "payload": payload, "timestamp": "2024-12-31T10:00:00Z",
    });
    assert_eq!(json_of(&frame), expected);
}

#[test]
fn an_error_before_a_close_is_never_recoverable() {
    for code in ErrorCode::ALL {
        let frame = json_of(&last_word(Some(session()), code, "No", now()));
        let payload = json!({ "code": code, "message": "No", "recoverable": false });
        assert_eq!(frame["payload"], payload);
        assert_eq!(frame["type"], "ERROR_MESSAGE");
    }
}

#[test]
fn answers_and_notices_have_their_shapes() {
    let golden = include_str!("../golden/server_heartbeat.json");
    let frame = json_of(&reply(session(), None, &Reply::Heartbeat, now()));
    assert_eq!(frame, json_of(golden));
    assert_eq!(
        json_of(&reply(session(), Some("m"), &Reply::Heartbeat, now()))["messageId"],
        "m"
    );

    let frame = json_of(&notice(Level::Info, "Lunch", now()));
    assert_eq!(
        frame["payload"],
        json!({ "level": "info", "message": "Lunch" })
    );
    assert_eq!(frame.get("sessionId"), None);

    let frame = json_of(&token_expiring(session(), now(), now()));
    assert_eq!(frame["type"], "TOKEN_EXPIRING");
    assert_eq!(
        frame["payload"],
        json!({ "expiresAt": "2024-12-31T10:00:00Z" })
    );
}
