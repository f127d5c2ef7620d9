//! Command digest: recognises the command under an idempotency key, whatever its envelope.
//!
//! Digests are stored: the same command must have the same one in every version.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub(super) fn digest(envelope: &Map<String, Value>) -> [u8; 32] {
    let kind = envelope.get("type").unwrap_or(&Value::Null);
    let payload = envelope.get("payload").unwrap_or(&Value::Null);
    let command = match (kind.as_str(), payload) {
        // An answer may be a secret, which is not even kept as a digest.
        (Some("ANSWER"), Value::Object(answer)) => {
            let public = answer.iter().filter(|(name, _)| *name != "value");
            let public: BTreeMap<&String, &Value> = public.collect();
            serde_json::to_vec(&(kind, public))
        }
        _ => serde_json::to_vec(&(kind, payload)),
    };
    let command = command.expect("a JSON value is JSON");
    let mut digest = [0; 32];
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &command);
    digest.copy_from_slice(hash.as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(envelope: &Value) -> [u8; 32] {
        digest(envelope.as_object().unwrap())
    }

    fn sha256(text: &str) -> [u8; 32] {
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        hash.as_ref().try_into().unwrap()
    }

    #[test]
    fn the_digest_depends_on_the_command_only() {
        let first =
            json!({ "type": "STEER", "payload": { "text": "a", "fence": 1 }, "messageId": "1" });
        let again = json!({ "type": "STEER", "payload": { "fence": 1, "text": "a" }, "fence": 2 });
        let other = json!({ "type": "STEER", "payload": { "text": "b", "fence": 1 } });
        assert_eq!(of(&first), of(&again));
        assert_ne!(of(&first), of(&other));
    }

    #[test]
    fn a_stored_digest_is_recognised_by_every_version() {
        let steer = json!({ "type": "STEER", "payload": { "text": "a", "fence": 1 } });
        assert_eq!(of(&steer), sha256(r#"["STEER",{"fence":1,"text":"a"}]"#));
        let bare = json!({ "type": "CANCEL_TASK" });
        assert_eq!(of(&bare), sha256(r#"["CANCEL_TASK",null]"#));
        let answer = json!({ "type": "ANSWER", "payload": { "questionId": "q", "value": "hush" } });
        assert_eq!(of(&answer), sha256(r#"["ANSWER",{"questionId":"q"}]"#));
    }
}
