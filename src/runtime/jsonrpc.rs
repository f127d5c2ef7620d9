//! JSON-RPC, as agents write it: with or without `jsonrpc`, with ids of any kind. Pure.

use serde_json::{Map, Value, json};

/// What somebody wrote.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Wants an answer under this id.
    Request {
        /// To be given back as it came.
        id: Value,
        /// What is wanted.
        method: String,
        /// Of what.
        params: Value,
    },
    /// Wants to be known.
    Notification {
        /// What it is.
        method: String,
        /// About what.
        params: Value,
    },
    /// The answer to a request.
    Answer {
        /// Of this id.
        id: Value,
        /// What came of it.
        answer: Result<Value, Fault>,
    },
    /// None of these.
    Odd(Value),
}

/// What went wrong with a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    /// Which kind, by the protocol's own table.
    pub(super) code: i64,
    /// What a person reads.
    pub(super) message: String,
    /// More about it.
    pub(super) data: Value,
}

/// Method not found.
pub(super) const UNKNOWN_METHOD: i64 = -32601;

/// Reads one message.
pub(super) fn read(line: Value) -> Message {
    let Value::Object(mut fields) = line else {
        return Message::Odd(line);
    };
    let method = match fields.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        Some(_) => return Message::Odd(Value::Object(fields)),
        None => None,
    };
    let id = fields.get("id").filter(|id| !id.is_null()).cloned();
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    match (method, id) {
        (Some(method), Some(id)) => Message::Request {
            id,
            method,
            params: take("params"),
        },
        (Some(method), None) => Message::Notification {
            method,
            params: take("params"),
        },
        (None, Some(id)) => match take("error") {
            Value::Null if fields.contains_key("result") => {
                let answer = Ok(fields.remove("result").unwrap_or_default());
                Message::Answer { id, answer }
            }
            Value::Object(error) => Message::Answer {
                id,
                answer: Err(fault(error)),
            },
            _ => Message::Odd(Value::Object(fields)),
        },
        (None, None) => Message::Odd(Value::Object(fields)),
    }
}

fn fault(mut error: Map<String, Value>) -> Fault {
    Fault {
        code: error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        message: super::dialect::text_of(error.get("message").unwrap_or(&Value::Null)),
        data: error.remove("data").unwrap_or_default(),
    }
}

/// A request.
pub(super) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    message([
        ("id", id.into()),
        ("method", method.into()),
        ("params", params),
    ])
}

/// A notification.
pub(super) fn notification(method: &str, params: Value) -> Value {
    message([("method", method.into()), ("params", params)])
}

/// The answer to a request.
pub(super) fn result(id: Value, result: Value) -> Value {
    message([("id", id), ("result", result)])
}

/// The refusal of a request.
pub(super) fn error(id: Value, code: i64, text: &str) -> Value {
    message([
        ("id", id),
        ("error", json!({ "code": code, "message": text })),
    ])
}

fn message<const N: usize>(members: [(&str, Value); N]) -> Value {
    let version = ("jsonrpc", Value::from("2.0"));
    let members = std::iter::once(version).chain(members);
    Value::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// The same message without the member `jsonrpc`, for protocols that have none.
pub(super) fn bare(mut message: Value) -> Value {
    if let Some(fields) = message.as_object_mut() {
        fields.remove("jsonrpc");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_message_is_told_from_the_others() {
        let method = || "m".to_owned();
        for (line, message) in [
            (
                json!({ "jsonrpc": "2.0", "id": 0, "method": "m", "params": [1] }),
                Message::Request {
                    id: json!(0),
                    method: method(),
                    params: json!([1]),
                },
            ),
            (
                json!({ "method": "m", "id": null }),
                Message::Notification {
                    method: method(),
                    params: Value::Null,
                },
            ),
            (
                json!({ "id": "a", "result": null }),
                Message::Answer {
                    id: json!("a"),
                    answer: Ok(Value::Null),
                },
            ),
            (
                json!({ "id": 1, "error": { "code": -1, "message": "no", "data": 2 } }),
                Message::Answer {
                    id: json!(1),
                    answer: Err(Fault {
                        code: -1,
                        message: "no".into(),
                        data: json!(2),
                    }),
                },
            ),
            (json!({ "id": 1 }), Message::Odd(json!({ "id": 1 }))),
            (
                json!({ "id": 1, "method": 2 }),
                Message::Odd(json!({ "id": 1, "method": 2 })),
            ),
            (json!([]), Message::Odd(json!([]))),
        ] {
            assert_eq!(read(line), message);
        }
    }
}
