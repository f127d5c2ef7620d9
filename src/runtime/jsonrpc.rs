//! JSON-RPC 2.0 messages: parses and builds them, with or without `jsonrpc`, with ids of any kind. Pure.

use serde_json::{Map, Value, json};

use crate::domain::run::AgentError;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// The response must carry `id` exactly as it came.
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    Response {
        id: Value,
        result: Result<Value, RpcError>,
    },
    Invalid(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RpcError {
    /// Each protocol has a table of its own.
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Value,
}

impl RpcError {
    /// The agent's own words, for clients.
    pub(super) fn in_its_words(&self) -> AgentError {
        AgentError {
            code: self.code.into(),
            message: self.message.clone(),
            data: self.data.clone(),
        }
    }
}

pub(super) const METHOD_NOT_FOUND: i64 = -32601;

pub(super) fn parse(line: Value) -> Message {
    let Value::Object(mut fields) = line else {
        return Message::Invalid(line);
    };
    let method = match fields.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        Some(_) => return Message::Invalid(Value::Object(fields)),
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
                let result = Ok(fields.remove("result").unwrap_or_default());
                Message::Response { id, result }
            }
            Value::Object(error) => Message::Response {
                id,
                result: Err(rpc_error(error)),
            },
            _ => Message::Invalid(Value::Object(fields)),
        },
        (None, None) => Message::Invalid(Value::Object(fields)),
    }
}

fn rpc_error(mut error: Map<String, Value>) -> RpcError {
    RpcError {
        code: error
            .get("code")
            .and_then(Value::as_i64)
            .unwrap_or_default(),
        message: super::dialect::text_of(error.get("message").unwrap_or(&Value::Null)),
        data: error.remove("data").unwrap_or_default(),
    }
}

pub(super) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    message([
        ("id", id.into()),
        ("method", method.into()),
        ("params", params),
    ])
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    message([("method", method.into()), ("params", params)])
}

pub(super) fn result(id: Value, result: Value) -> Value {
    message([("id", id), ("result", result)])
}

pub(super) fn error(id: Value, code: i64, message_text: &str) -> Value {
    message([
        ("id", id),
        ("error", json!({ "code": code, "message": message_text })),
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

/// Removes the member `jsonrpc`, for protocols that have none.
pub(super) fn unversioned(mut message: Value) -> Value {
    if let Some(fields) = message.as_object_mut() {
        fields.remove("jsonrpc");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
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
                Message::Response {
                    id: json!("a"),
                    result: Ok(Value::Null),
                },
            ),
            (
                json!({ "id": 1, "error": { "code": -1, "message": "no", "data": 2 } }),
                Message::Response {
                    id: json!(1),
                    result: Err(RpcError {
                        code: -1,
                        message: "no".into(),
                        data: json!(2),
                    }),
                },
            ),
            (json!({ "id": 1 }), Message::Invalid(json!({ "id": 1 }))),
            (
                json!({ "id": 1, "method": 2 }),
                Message::Invalid(json!({ "id": 1, "method": 2 })),
            ),
            (json!([]), Message::Invalid(json!([]))),
        ] {
            assert_eq!(parse(line), message);
        }
    }
}
