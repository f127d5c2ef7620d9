//! Payloads that are accepted and payloads that are refused.

use serde_json::{Value, json};

use super::*;

/// The field that a message with that payload is refused for; it keeps its `messageId`.
fn refused_field(kind: &str, payload: &Value) -> String {
    let rejected = refused(&message(kind, payload));
    assert_eq!(rejected.code, ErrorCode::ValidationError, "{rejected:?}");
    assert_eq!(rejected.message_id.as_deref(), Some("m"));
    let field = rejected.details.unwrap().field.unwrap();
    assert!(rejected.message.contains(&field), "{}", rejected.message);
    field
}

#[test]
fn a_prompt_is_measured_in_characters() {
    let most = "ä".repeat(RULES.prompt_chars);
    accepted(&message("SUBMIT_PROMPT", &prompt(&most)));
    let rejected = refused(&message("SUBMIT_PROMPT", &prompt(&(most + "ä"))));
    assert_eq!(rejected.code, ErrorCode::ValidationError);
    let details = json!(rejected.details);
    assert_eq!(
        (&details["max"], &details["actual"]),
        (&json!(100_000), &json!(100_001))
    );
}

#[test]
fn a_prompt_that_is_not_acceptable_is_refused_with_its_field() {
    let with = |field: &str, value: Value| {
        let mut payload = prompt("hello");
        payload[field] = value;
        payload
    };
    let file = |name: Value| json!([{ "name": "a", "type": "t", "content": "" }, name]);
    for (payload, field) in [
        (json!({ "mode": "act" }), "payload.text"),
        (with("text", json!(7)), "payload.text"),
        (prompt(" \n\t\u{2003}"), "payload.text"),
        (prompt("a\u{0}"), "payload.text"),
        (prompt("a\u{1b}[31m"), "payload.text"),
        (prompt("a\u{85}"), "payload.text"),
        (json!({ "text": "hello" }), "payload.mode"),
        (with("mode", json!("dream")), "payload.mode"),
        (with("mode", json!(1)), "payload.mode"),
        (with("ifBusy", json!("wait")), "payload.ifBusy"),
        (with("images", json!("x")), "payload.images"),
        (
            with("images", json!(["iVBORw0KGgo=", 1])),
            "payload.images[1]",
        ),
        (with("attachments", json!({})), "payload.attachments"),
        (
            with("attachments", file(json!(1))),
            "payload.attachments[1]",
        ),
        (
            with("attachments", file(json!({}))),
            "payload.attachments[1].name",
        ),
        (
            with("attachments", file(json!({ "name": "a\u{7}" }))),
            "payload.attachments[1].name",
        ),
        (
            with("attachments", file(json!({ "name": "a", "type": "t" }))),
            "payload.attachments[1].content",
        ),
        (json!("hello"), "payload"),
        (Value::Null, "payload.text"),
    ] {
        assert_eq!(refused_field("SUBMIT_PROMPT", &payload), field);
    }
    accepted(&message("SUBMIT_PROMPT", &prompt("a\tb\r\nc 👩‍💻")));
    let file = json!([{ "attachmentId": "att_1" }]);
    let field = "payload.attachments[0].attachmentId";
    assert_eq!(
        refused_field("SUBMIT_PROMPT", &with("attachments", file)),
        field
    );
    let file = json!([{ "attachmentId": "att_0199c0ffee0070008000000000000000" }]);
    accepted(&message("SUBMIT_PROMPT", &with("attachments", file)));
}

#[test]
fn settings_have_bounds() {
    for (settings, field) in [
        (json!({}), "payload.settings"),
        (json!({ "model": null }), "payload.settings"),
        (json!({ "x".repeat(129): 1 }), "payload.settings"),
        (
            json!({ "shell": "z".repeat(4096) }),
            "payload.settings.shell",
        ),
        (json!({ "shell": "a\u{0}" }), "payload.settings.shell"),
        (
            (0..65).map(|n| (format!("s{n}"), json!(n))).collect(),
            "payload.settings",
        ),
        (json!([]), "payload.settings"),
        (Value::Null, "payload.settings"),
        (json!({ "autoApprove": 1 }), "payload.settings.autoApprove"),
        (json!({ "model": "" }), "payload.settings.model"),
        (
            json!({ "model": "m".repeat(129) }),
            "payload.settings.model",
        ),
        (json!({ "model": "a\u{0}" }), "payload.settings.model"),
        (json!({ "maxTokens": 0 }), "payload.settings.maxTokens"),
        (json!({ "maxTokens": -1 }), "payload.settings.maxTokens"),
        (json!({ "maxTokens": 1.5 }), "payload.settings.maxTokens"),
        (
            json!({ "maxTokens": 1_000_001 }),
            "payload.settings.maxTokens",
        ),
        (
            json!({ "maxTokens": u64::MAX }),
            "payload.settings.maxTokens",
        ),
        (
            json!({ "temperature": 2.1 }),
            "payload.settings.temperature",
        ),
        (
            json!({ "temperature": -0.1 }),
            "payload.settings.temperature",
        ),
        (
            json!({ "temperature": "1" }),
            "payload.settings.temperature",
        ),
    ] {
        let payload = json!({ "settings": settings });
        assert_eq!(refused_field("UPDATE_SETTINGS", &payload), field);
    }
    for settings in [
        json!({ "maxTokens": 1, "temperature": 0 }),
        json!({ "autoApprove": true, "shell": "zsh" }),
        json!({ "maxTokens": 1_000_000, "temperature": 2.0, "model": "ä".repeat(128) }),
    ] {
        accepted(&message(
            "UPDATE_SETTINGS",
            &json!({ "settings": settings }),
        ));
    }
}

#[test]
fn other_payloads_that_are_not_acceptable_are_refused_with_their_field() {
    for (kind, payload, field) in [
        (
            "CANCEL_TASK",
            json!({ "taskId": "task-1" }),
            "payload.taskId",
        ),
        ("CANCEL_TASK", json!({ "taskId": 1 }), "payload.taskId"),
        (
            "REQUEST_STATE",
            json!({ "includeHistory": "no" }),
            "payload.includeHistory",
        ),
        (
            "REQUEST_STATE",
            json!({ "includeSettings": 0 }),
            "payload.includeSettings",
        ),
        ("AUTH_REFRESH", json!({}), "payload.token"),
        ("HEARTBEAT", json!([]), "payload"),
    ] {
        assert_eq!(refused_field(kind, &payload), field);
    }
}

#[test]
fn control_characters_are_refused_wherever_a_client_may_put_what_it_likes() {
    let within = |kind: &str, field: &str, value: Value| match kind {
        "SUBMIT_PROMPT" => {
            let mut payload = prompt("hello");
            payload[field] = value;
            payload
        }
        "QUERY" => json!({ "kind": "models", field: value }),
        "EXTENSION" => json!({ "name": "x", field: value }),
        _ => value,
    };
    for (kind, field) in [
        ("SUBMIT_PROMPT", "context"),
        ("SUBMIT_PROMPT", "meta"),
        ("UPDATE_CONTEXT", ""),
        ("QUERY", "params"),
        ("EXTENSION", "payload"),
    ] {
        let root = match field {
            "" => "payload".to_owned(),
            field => format!("payload.{field}"),
        };
        for (value, place) in [
            (json!({ "a": "\0" }), ".a"),
            (
                json!({ "a": [1, { "b": ["x", "\u{1b}[31m"] }] }),
                ".a[1].b[1]",
            ),
            (json!({ "a": { "b\u{7}": 1 } }), ".a"),
            (json!({ "\u{85}": 1 }), ""),
        ] {
            let payload = within(kind, field, value);
            assert_eq!(refused_field(kind, &payload), format!("{root}{place}"));
        }
        let harmless = json!({ "a\tb": ["c\r\nd 👩‍💻", null, 0.5] });
        accepted(&message(kind, &within(kind, field, harmless)));
    }
    let payload = json!({ "name": "x", "payload": "\0" });
    assert_eq!(refused_field("EXTENSION", &payload), "payload.payload");
}

#[test]
fn a_refusal_says_in_words_what_is_wrong_with_the_field() {
    let file = |file: Value| json!({ "text": "x", "mode": "act", "attachments": [file] });
    for (kind, payload, expected) in [
        ("SUBMIT_PROMPT", json!({}), "`payload.text` is missing"),
        (
            "STEER",
            json!({ "text": 7 }),
            "`payload.text` is not a string",
        ),
        ("STEER", json!({ "text": " " }), "`payload.text` is empty"),
        (
            "STEER",
            json!({ "text": "a\0" }),
            "`payload.text` contains the control character U+0000",
        ),
        (
            "SUBMIT_PROMPT",
            json!({ "text": "x", "mode": 1 }),
            r#"`payload.mode` is not "plan" or "act""#,
        ),
        (
            "SUBMIT_PROMPT",
            file(json!({ "name": "a" })),
            "`payload.attachments[0].type` is missing",
        ),
        (
            "SUBMIT_PROMPT",
            file(json!([])),
            "`payload.attachments[0]` is not an object",
        ),
        (
            "CANCEL_TASK",
            json!({ "taskId": "7" }),
            "`payload.taskId` is not an id of the form run_…",
        ),
        (
            "UPDATE_SETTINGS",
            json!({ "settings": { "maxTokens": 0 } }),
            "`payload.settings.maxTokens` is not an integer from 1 to 1000000",
        ),
        (
            "ANSWER",
            json!({ "questionId": "qst_0193f7c4a1b27c3d8e4f5a6b7c8d9e0f" }),
            "`payload` has not exactly one of `ok`, `optionId`, `value` and `ids`",
        ),
        (
            "BRANCH_SESSION",
            json!({ "fromOffset": -1 }),
            "`payload.fromOffset` is not an integer of 0 or more",
        ),
        (
            "HEARTBEAT",
            json!({ "fence": "x" }),
            "`payload.fence` is not an integer of 0 or more",
        ),
        (
            "UPDATE_CONTEXT",
            json!({ "a": { "b\u{7}": 1 } }),
            "`payload.a` has a key with the control character U+0007",
        ),
    ] {
        assert_eq!(refused(&message(kind, &payload)).message, expected);
    }
}

#[test]
fn a_picture_that_is_none_is_refused_before_anything_is_queued() {
    let png = "iVBORw0KGgo=";
    let with = |name: &str, value: Value| {
        let mut payload = json!({ "text": "x", "mode": "act" });
        payload[name] = value;
        payload
    };
    for image in ["hello", "aGVsbG8=", "iVBORw0KGgo", "", "data:image/png,abc"] {
        let payload = with("images", json!([png, image]));
        assert_eq!(
            refused_field("SUBMIT_PROMPT", &payload),
            "payload.images[1]",
            "{image}"
        );
    }
    let images = json!([png, format!("data:image/png;base64,{png}")]);
    accepted(&message("SUBMIT_PROMPT", &with("images", images)));
}

#[test]
fn the_content_of_a_file_is_text_unless_its_type_or_encoding_says_base64() {
    let file = |media_type: &str, content: &str, encoding: Option<&str>| {
        let file = json!({
            "name": "f", "type": media_type, "content": content, "encoding": encoding,
        });
        json!({ "text": "x", "mode": "act", "attachments": [file] })
    };
    for (media_type, content, encoding) in [
        ("image/png", "hello", None),
        ("image/png", "aGVsbG8=", None),
        ("application/pdf", "%PDF-1.7", None),
        ("application/octet-stream", "a b", None),
        ("audio/ogg", "?", None),
        ("text/plain;base64", "?", None),
        ("text/plain", "?", Some("base64")),
    ] {
        let payload = file(media_type, content, encoding);
        let field = refused_field("SUBMIT_PROMPT", &payload);
        assert_eq!(field, "payload.attachments[0].content", "{media_type}");
    }
    let payload = file("text/plain", "x", Some("hex"));
    let field = refused_field("SUBMIT_PROMPT", &payload);
    assert_eq!(field, "payload.attachments[0].encoding");
    for (media_type, content, encoding) in [
        ("text/plain", "a b", None),
        ("image/svg+xml", "<svg/>", None),
        ("application/json", "{}", None),
        ("image/png", "iVBORw0KGgo=", None),
        ("application/octet-stream", "AAE=", None),
        ("application/octet-stream", "a b", Some("text")),
        ("application/x-own", "AAE=", Some("base64")),
    ] {
        accepted(&message(
            "SUBMIT_PROMPT",
            &file(media_type, content, encoding),
        ));
    }
}
