//! Frames that are read and frames that are refused, against the examples in `golden/`.

mod fuzz;
mod payload;
mod schema;

use serde_json::{Value, json};

use super::*;
use crate::domain::command::{Attachment, Command, IfBusy, Mode, Prompt, SettingsChange};

const RULES: Rules = Rules {
    message_bytes: 1_048_576,
    prompt_chars: 100_000,
    depth: 64,
    id_bytes: 128,
};
const RUN: &str = "run_0193f7c4a1b27c3d8e4f5a6b7c8d9e10";

thread_local! {
    /// The fields that the reader looked for, by path.
    static ASKED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

pub(super) fn note_asked(path: String) {
    ASKED.with_borrow_mut(|asked| asked.push(path));
}

fn joined() -> SessionId {
    "ses_0193f7c4a1b27c3d8e4f5a6b7c8d9e0f".parse().unwrap()
}

fn read(frame: &str) -> Result<Inbound, Rejected> {
    parse(frame, joined(), &RULES)
}

fn accepted(frame: &str) -> Inbound {
    read(frame).unwrap_or_else(|rejected| panic!("{frame}: {rejected:?}"))
}

fn refused(frame: &str) -> Rejected {
    match read(frame) {
        Err(rejected) => rejected,
        Ok(inbound) => panic!("{frame} was accepted as {inbound:?}"),
    }
}

fn message(kind: &str, payload: &Value) -> String {
    json!({ "type": kind, "payload": payload, "messageId": "m" }).to_string()
}

fn prompt(text: &str) -> Value {
    json!({ "text": text, "mode": "act" })
}

#[test]
fn the_documented_prompt_is_read() {
    let inbound = accepted(include_str!("../golden/client_submit_prompt.json"));
    let command = Command::SubmitPrompt {
        prompt: Prompt {
            text: "Fix the failing test".into(),
            mode: Mode::Act,
            images: vec!["iVBORw0KGgo=".into()],
            attachments: vec![Attachment::Inline {
                name: "trace.txt".into(),
                media_type: "text/plain".into(),
                content: "line 1\nline 2".into(),
                encoding: None,
            }],
            context: None,
            meta: None,
        },
        if_busy: IfBusy::Queue,
    };
    assert_eq!(inbound.message_id.as_deref(), Some("msg-456"));
    assert_eq!(inbound.request, Request::Command(command));
}

#[test]
fn the_other_documented_messages_are_read() {
    let run = Some(RUN.parse().unwrap());
    let change = SettingsChange {
        auto_approve: Some(true),
        model: Some("large".into()),
        max_tokens: Some(4096),
        temperature: None,
        mode: None,
        other: serde_json::Map::new(),
    };
    let state = Request::State {
        include_history: true,
        include_settings: false,
    };
    let token = "a.b.c".into();
    for (frame, request) in [
        (
            include_str!("../golden/client_cancel_task.json"),
            Request::Command(Command::Cancel { run }),
        ),
        (include_str!("../golden/client_request_state.json"), state),
        (
            include_str!("../golden/client_update_settings.json"),
            Request::Command(Command::UpdateSettings(change)),
        ),
        (
            include_str!("../golden/client_heartbeat.json"),
            Request::Heartbeat,
        ),
        (
            include_str!("../golden/client_auth_refresh.json"),
            Request::RefreshAuth { token },
        ),
    ] {
        assert_eq!(accepted(frame).request, request);
    }
}

#[test]
fn an_optional_field_may_be_absent_or_null() {
    let frame = r#"{"type":"REQUEST_STATE","payload":null,"sessionId":null,"messageId":null,
        "idempotencyKey":null,"timestamp":null,"future":[1]}"#;
    let both = Request::State {
        include_history: true,
        include_settings: true,
    };
    for frame in [frame, r#"{"type":"REQUEST_STATE"}"#] {
        let inbound = accepted(frame);
        assert_eq!(inbound.request, both);
        assert_eq!((inbound.message_id, inbound.idempotency_key), (None, None));
    }
    let inbound = accepted(r#"{"type":"CANCEL_TASK","idempotencyKey":"k"}"#);
    assert_eq!(inbound.idempotency_key.unwrap().key, "k");
    let command = Command::Cancel { run: None };
    assert_eq!(inbound.request, Request::Command(command));
}

#[test]
fn only_the_type_decides_what_a_frame_counts_as() {
    for (frame, expected) in [
        (
            r#"{"payload":{"type":"X"},"type":"HEARTBEAT"}"#,
            Kind::Heartbeat,
        ),
        (r#" {"type":"HEARTBEAT","messageId":7}"#, Kind::Heartbeat),
        (
            r#"{"type":"REQUEST\u005fSTATE","payload":7}"#,
            Kind::StateRequest,
        ),
        (r#"{"type":"SUBMIT_PROMPT"}"#, Kind::Message),
        (r#"{"type":"HEARTBEAT""#, Kind::Message),
        (r#"{"type":"HEARTBEAT"} x"#, Kind::Message),
        (
            r#"{"type":"HEARTBEAT","type":"SUBMIT_PROMPT"}"#,
            Kind::Message,
        ),
        (r#"{"type":1}"#, Kind::Message),
        (r#"{"payload":{"type":"HEARTBEAT"}}"#, Kind::Message),
        (r#"["HEARTBEAT"]"#, Kind::Message),
        (r#""HEARTBEAT""#, Kind::Message),
        ("", Kind::Message),
    ] {
        assert_eq!(kind(frame), expected, "{frame}");
    }
}

#[test]
fn a_frame_that_cannot_be_read_is_an_invalid_message() {
    let deep = format!(
        r#"{{"type":"HEARTBEAT","x":{}{}}}"#,
        "[".repeat(64),
        "]".repeat(64)
    );
    let bottomless = "[".repeat(500_000);
    for frame in [
        "",
        "hello",
        "[]",
        "null",
        r#"["HEARTBEAT"]"#,
        r#"{"type":"HEARTBEAT"}{}"#,
        r#"{"payload":{}}"#,
        r#"{"type":null}"#,
        r#"{"type":7}"#,
        r#"{"type":"DANCE"}"#,
        r#"{"type":"heartbeat"}"#,
        r#"{"type":"HEARTBEAT","payload":"\ud800""#,
        r#"{"type":"HEARTBEAT","a":"\ud800","a":1}"#,
        r#"{"type":"HEARTBEAT","type":"HEARTBEAT"}"#,
        r#"{"type":"HEARTBEAT","payload":{"a":1,"a":1}}"#,
        &deep,
        &bottomless,
    ] {
        assert_eq!(
            refused(frame).code,
            ErrorCode::InvalidMessage,
            "{frame:.80}"
        );
    }
}

#[test]
fn half_of_a_character_is_refused_with_its_field() {
    for (frame, field) in [
        (
            r#"{"messageId":"m","type":"SUBMIT_PROMPT","payload":{"mode":"act","text":"a\ud83d"}}"#,
            "payload.text",
        ),
        (
            r#"{"type":"UPDATE_CONTEXT","payload":{"a":[1,{"b":"\ude00"}]},"messageId":"m"}"#,
            "payload.a[1].b",
        ),
        (
            r#"{"messageId":"m","type":"UPDATE_CONTEXT","payload":{"\ud83d":1}}"#,
            "payload",
        ),
        (
            r#"{"messageId":"m","type":"HEARTBEAT","future":"\ud83d"}"#,
            "future",
        ),
        (
            r#"{"messageId":"m","type":"HEARTBEAT","\ud83d":1}"#,
            "message",
        ),
    ] {
        let rejected = refused(frame);
        assert_eq!(rejected.code, ErrorCode::ValidationError, "{frame}");
        assert_eq!(
            json!(rejected.details),
            json!({ "field": field }),
            "{frame}"
        );
        assert!(
            rejected.message.contains("surrogate"),
            "{}",
            rejected.message
        );
        assert_eq!(rejected.message_id.as_deref(), Some("m"), "{frame}");
    }
    accepted(r#"{"type":"UPDATE_CONTEXT","payload":{"a":"\ud83d\ude00"}}"#);
}

#[test]
fn sixty_four_levels_are_not_too_deep() {
    let frame = format!(
        r#"{{"type":"HEARTBEAT","x":{}{}}}"#,
        "[".repeat(63),
        "]".repeat(63)
    );
    accepted(&frame);
}

#[test]
fn a_refused_frame_keeps_its_message_id_whenever_it_can_be_read() {
    let large = format!(
        r#"{{"messageId":"m","x":"{}"}}"#,
        "x".repeat(RULES.message_bytes)
    );
    let deep = format!(
        r#"{{"messageId":"m","x":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for frame in [
        &large,
        &deep,
        r#"{"messageId":"m"}"#,
        r#"{"messageId":"m","type":"DANCE"}"#,
        r#"{"messageId":"m","type":"STEER"}"#,
        r#"{"messageId":"m","type":"HEARTBEAT","a":1,"a":2}"#,
    ] {
        assert_eq!(
            refused(frame).message_id.as_deref(),
            Some("m"),
            "{frame:.80}"
        );
    }
    for frame in [
        r#"{"messageId":"m","messageId":"n"}"#,
        r#"{"messageId":"","type":"HEARTBEAT"}"#,
        r#"{"messageId":7,"type":"HEARTBEAT"}"#,
        r#"{"messageId":"m""#,
    ] {
        assert_eq!(refused(frame).message_id, None, "{frame}");
    }
}

#[test]
fn the_refusal_of_a_large_frame_names_the_limit() {
    let frame = message("SUBMIT_PROMPT", &prompt("hello"));
    let rules = Rules {
        message_bytes: frame.len() - 1,
        ..RULES
    };
    let rejected = parse(&frame, joined(), &rules).unwrap_err();
    assert_eq!(rejected.code, ErrorCode::ValidationError);
    let (max, actual) = (frame.len() - 1, frame.len());
    let details = json!({ "limit": "messageBytes", "max": max, "actual": actual });
    assert_eq!(json!(rejected.details), details);
    let rules = Rules {
        message_bytes: frame.len(),
        ..RULES
    };
    assert!(parse(&frame, joined(), &rules).is_ok());
}

#[test]
fn the_envelope_is_checked_before_anything_is_done() {
    let long = "x".repeat(129);
    for (field, value) in [
        ("sessionId", json!(SessionId::new())),
        ("sessionId", json!("session-123")),
        ("sessionId", json!(7)),
        ("messageId", json!("")),
        ("messageId", json!(long)),
        ("messageId", json!("a\u{0}")),
        ("idempotencyKey", json!("")),
        ("idempotencyKey", json!(long)),
        ("idempotencyKey", json!({})),
        ("timestamp", json!("yesterday")),
        ("timestamp", json!(1_735_639_200)),
    ] {
        let mut frame = json!({ "type": "HEARTBEAT" });
        frame[field] = value;
        let rejected = refused(&frame.to_string());
        assert_eq!(rejected.code, ErrorCode::ValidationError, "{frame}");
        assert_eq!(json!(rejected.details), json!({ "field": field }));
    }
    for time in [
        "2024-12-31T10:00:00Z",
        "2024-12-31T10:00:00.123456+01:00",
        "2024-12-31T10:00:00",
    ] {
        accepted(&json!({ "type": "HEARTBEAT", "timestamp": time }).to_string());
    }
    accepted(&json!({ "type": "HEARTBEAT", "messageId": &long[1..] }).to_string());
}

#[test]
fn a_token_is_never_shown() {
    let inbound = accepted(include_str!("../golden/client_auth_refresh.json"));
    assert!(!format!("{inbound:?}").contains("a.b.c"));
}

#[test]
fn a_refusal_repeats_only_the_beginning_of_what_was_sent() {
    let long = "x".repeat(100_000);
    for frame in [
        json!({ "type": long }).to_string(),
        message("UPDATE_SETTINGS", &json!({ "settings": { &long: 1 } })),
        format!(r#"{{"type":"HEARTBEAT","{long}":1,"{long}":1}}"#),
        format!(r#"{{"type":"HEARTBEAT","{long}":"\ud800"}}"#),
        message(
            "EXTENSION",
            &json!({ "name": "x", "payload": { &long: "\0" } }),
        ),
    ] {
        let rejected = refused(&frame);
        assert!(rejected.message.len() < 200);
        assert!(json!(rejected.details).to_string().len() < 200);
    }
}
