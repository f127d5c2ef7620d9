//! What a client sent under an idempotency key, as a digest: the command itself, not when or as what
//! it was sent.
//!
//! Digests are stored: the same command must have the same one in every version.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The digest of the command in an envelope.
pub(super) fn digest(envelope: &Map<String, Value>) -> [u8; 32] {
    let kind = envelope.get("type").unwrap_or(&Value::Null);
    let payload = envelope.get("payload").unwrap_or(&Value::Null);
    let essence = match (kind.as_str(), payload) {
        // What somebody answers may be a secret, which is not even kept as a digest.
        (Some("ANSWER"), Value::Object(answer)) => {
            let told = answer.iter().filter(|(name, _)| *name != "value");
            let told: BTreeMap<&String, &Value> = told.collect();
            serde_json::to_vec(&(kind, told))
        }
        _ => serde_json::to_vec(&(kind, payload)),
    };
    let essence = essence.expect("a JSON value is JSON");
    let mut digest = [0; 32];
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &essence);
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
    fn only_the_command_counts() {
        let first =
            json!({ "type": "STEER", "payload": { "text": "a", "fence": 1 }, "messageId": "1" });
        let again = json!({ "type": "STEER", "payload": { "fence": 1, "text": "a" }, "fence": 2 });
        let other = json!({ "type": "STEER", "payload": { "text": "b", "fence": 1 } });
        assert_eq!(of(&first), of(&again));
        assert_ne!(of(&first), of(&other));
    }

    #[test]
    fn what_was_stored_is_known_again() {
        let steer = json!({ "type": "STEER", "payload": { "text": "a", "fence": 1 } });
        assert_eq!(of(&steer), sha256(r#"["STEER",{"fence":1,"text":"a"}]"#));
        let bare = json!({ "type": "CANCEL_TASK" });
        assert_eq!(of(&bare), sha256(r#"["CANCEL_TASK",null]"#));
        let answer = json!({ "type": "ANSWER", "payload": { "questionId": "q", "value": "hush" } });
        assert_eq!(of(&answer), sha256(r#"["ANSWER",{"questionId":"q"}]"#));
    }
}
