//! Authentication: an agent's login methods, and errors that mean it is not logged in.

use serde_json::Value;

use crate::runtime::jsonrpc::RpcError;

/// The protocol's own code.
const AUTH_REQUIRED: i64 = -32000;

/// In the messages of agents that use another code.
const AUTH_WORDS: &[&str] = &[
    "auth_required",
    "authenticat",
    "unauthorized",
    "not logged in",
    "log in",
    "login",
    "api key",
    "credential",
];

/// The login methods that the agent offers, each with its description.
pub(super) fn method_names(methods: &Value) -> Vec<String> {
    let describe = |method: &Value| {
        let name = method["name"].as_str().or(method["id"].as_str())?;
        Some(match method["description"].as_str() {
            Some(about) if !about.is_empty() => format!("{name} ({about})"),
            _ => name.to_owned(),
        })
    };
    let methods = methods.as_array().into_iter().flatten();
    methods.filter_map(describe).collect()
}

/// Whether an error means a missing login. The words count only for an agent that offers a login.
pub(super) fn is_auth_error(error: &RpcError, methods: &[String]) -> bool {
    let text = error_text(error).to_lowercase();
    error.code == AUTH_REQUIRED
        || !methods.is_empty() && AUTH_WORDS.iter().any(|sign| text.contains(sign))
}

pub(super) fn login_message(agent: &str, error: &RpcError, methods: &[String]) -> String {
    let text = error_text(error);
    let methods = if methods.is_empty() {
        String::new()
    } else {
        format!(" It offers: {}.", methods.join("; "))
    };
    format!(
        "The agent `{agent}` is not logged in: {text} Run its own login once, as the user that the \
         gateway runs as.{methods}"
    )
}

/// An error as a sentence. Many agents say only "internal error" and put the reason into `data`.
pub(super) fn error_text(error: &RpcError) -> String {
    let details = match &error.data {
        Value::String(text) => text.clone(),
        data => ["details", "message", "error"]
            .iter()
            .find_map(|name| data[*name].as_str())
            .map(str::to_owned)
            .unwrap_or_default(),
    };
    let mut text = error.message.clone();
    if !details.is_empty() && !text.contains(&details) {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&details);
    }
    if text.is_empty() {
        text = format!("error {}", error.code);
    }
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
