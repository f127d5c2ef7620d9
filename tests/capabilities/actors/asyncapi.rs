//! AsyncAPI check: validates every message of every test against its schema.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::schema::{Schemas, UnknownFields};

fn description() -> &'static Schemas {
    static DESCRIPTION: OnceLock<Schemas> = OnceLock::new();
    DESCRIPTION.get_or_init(|| Schemas::new(switchboard::http::asyncapi("")))
}

/// Fails the test unless AsyncAPI lets clients send this text.
#[track_caller]
pub(crate) fn check_client_message(text: &str) {
    let advice = "if that is meant, use `writes_raw` or `sends_raw`";
    let frame: Value = serde_json::from_str(text)
        .unwrap_or_else(|error| panic!("no JSON ({advice}): {error}: {}", shortened(text)));
    if let Err(fault) = check("client", &frame, UnknownFields::Allowed) {
        panic!("not as described ({advice}): {fault}: {}", shortened(text));
    }
}

/// Fails the test unless AsyncAPI lets the gateway send this frame; undescribed fields fail too.
#[track_caller]
pub(crate) fn check_gateway_message(frame: &Value) {
    if let Err(fault) = check("gateway", frame, UnknownFields::Refused) {
        let frame = frame.to_string();
        panic!(
            "the gateway broke its description: {fault}: {}",
            shortened(&frame)
        );
    }
}

fn check(sender: &str, frame: &Value, unknown_fields: UnknownFields) -> Result<(), String> {
    let kind = frame["type"].as_str().ok_or("it has no type")?;
    let place = format!("/components/messages/{sender}.{kind}/payload");
    let schema = description()
        .at(&place)
        .ok_or_else(|| format!("no message {kind} of the {sender} is described"))?;
    description().check(schema, frame, unknown_fields)
}

fn shortened(text: &str) -> String {
    text.chars().take(2_000).collect()
}

#[test]
fn a_frame_that_breaks_its_schema_is_detected() {
    let session = "ses_0193f7c4a1b27c3d8e4f5a6b7c8d9e0f";
    let good = json!({
        "type": "TITLE_UPDATE", "payload": { "title": "x" }, "offset": 3,
        "timestamp": "2026-03-01T08:00:00Z", "sessionId": session,
    });
    assert_eq!(check("gateway", &good, UnknownFields::Refused), Ok(()));
    for (place, value, fault) in [
        ("/payload/title", json!(7), "/payload/title"),
        ("/payload", json!({}), "title"),
        ("/payload", json!({ "title": "x", "secret": 1 }), "secret"),
        ("/offset", json!(-1), "/offset"),
        ("/offset", json!(null), "/offset"),
        ("/timestamp", json!("yesterday"), "/timestamp"),
        ("/sessionId", json!("ses_1"), "/sessionId"),
        ("/type", json!("NO_SUCH"), "NO_SUCH"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value;
        let found = check("gateway", &bad, UnknownFields::Refused).unwrap_err();
        assert!(found.contains(fault), "{bad}: {found}");
    }
    let prompt = |mode: &str| json!({ "type": "SUBMIT_PROMPT", "payload": { "text": "x", "mode": mode }, "more": 1 });
    assert_eq!(
        check("client", &prompt("act"), UnknownFields::Allowed),
        Ok(())
    );
    let fault = check("client", &prompt("fly"), UnknownFields::Allowed).unwrap_err();
    assert!(fault.contains("/payload/mode"), "{fault}");
}
