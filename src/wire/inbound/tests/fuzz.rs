//! Arbitrary input breaks nothing.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..5)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn any_type() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "SUBMIT_PROMPT",
        "CANCEL_TASK",
        "REQUEST_STATE",
        "UPDATE_SETTINGS",
        "HEARTBEAT",
        "AUTH_REFRESH",
        "STEER",
    ];
    prop_oneof![prop::sample::select(KNOWN).prop_map(str::to_owned), ".*"]
}

fn any_field() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "text",
        "mode",
        "images",
        "attachments",
        "ifBusy",
        "taskId",
        "settings",
        "token",
    ];
    prop_oneof![prop::sample::select(KNOWN).prop_map(str::to_owned), ".*"]
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes: Vec<u8>) {
        let frame = String::from_utf8_lossy(&bytes);
        prop_assert!(read(&frame).is_err());
        kind(&frame);
    }

    #[test]
    fn arbitrary_text_in_a_json_shape_does_no_harm(frame in r#"[\[\]{}",:a-z0-9\\u. -]{0,200}"#) {
        prop_assert!(read(&frame).is_err());
        kind(&frame);
    }

    #[test]
    fn arbitrary_payloads_do_no_harm(
        name in any_type(),
        fields in prop::collection::hash_map(any_field(), any_json(), 0..6),
        id in any_json(),
    ) {
        let payload: Value = fields.into_iter().collect();
        let frame = json!({ "type": name, "payload": payload, "messageId": id }).to_string();
        let counted = kind(&frame);
        prop_assert_eq!(counted == Kind::Heartbeat, name == "HEARTBEAT");
        prop_assert_eq!(counted == Kind::StateRequest, name == "REQUEST_STATE");
        if let Err(rejected) = read(&frame) {
            prop_assert!(rejected.message_id.is_none() || id == json!(rejected.message_id));
        }
    }

    #[test]
    fn an_envelope_with_any_key_twice_is_refused(
        key in prop_oneof![
            prop::sample::select(&["type", "payload", "timestamp", "sessionId", "messageId", "idempotencyKey"][..])
                .prop_map(str::to_owned),
            any::<String>(),
        ],
        one in any_json(),
        two in any_json(),
    ) {
        let name = Value::from(key);
        let frame = format!(r#"{{{name}:{one},"type":"HEARTBEAT",{name}:{two}}}"#);
        prop_assert_eq!(refused(&frame).code, ErrorCode::InvalidMessage);
    }
}
