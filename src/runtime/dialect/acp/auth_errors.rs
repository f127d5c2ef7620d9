//! Agents that want a login first. Pure text.

use serde_json::Value;

use crate::runtime::jsonrpc::Fault;

/// The protocol's own code for it.
const AUTH_REQUIRED: i64 = -32000;

/// How agents put it when they use another code.
const SIGNS: &[&str] = &[
    "auth_required",
    "authenticat",
    "unauthorized",
    "not logged in",
    "log in",
    "login",
    "api key",
    "credential",
];

/// The ways to log in that the agent named, each with what it says about it.
pub(super) fn ways(methods: &Value) -> Vec<String> {
    let way = |method: &Value| {
        let name = method["name"].as_str().or(method["id"].as_str())?;
        Some(match method["description"].as_str() {
            Some(about) if !about.is_empty() => format!("{name} ({about})"),
            _ => name.to_owned(),
        })
    };
    let methods = method_list(methods);
    methods.iter().filter_map(way).collect()
}

fn method_list(methods: &Value) -> &[Value] {
    methods.as_array().map_or(&[], Vec::as_slice)
}

/// Does it fail for want of a login? An agent that needs none is not suspected for its words.
pub(super) fn is_needed(fault: &Fault, ways: &[String]) -> bool {
    let said = said(fault).to_lowercase();
    fault.code == AUTH_REQUIRED || !ways.is_empty() && SIGNS.iter().any(|sign| said.contains(sign))
}

/// What to do about it.
pub(super) fn needed(agent: &str, fault: &Fault, ways: &[String]) -> String {
    let said = said(fault);
    let ways = if ways.is_empty() {
        String::new()
    } else {
        format!(" It offers: {}.", ways.join("; "))
    };
    format!(
        "The agent `{agent}` is not logged in: {said} Run its own login once, as the user that the \
         gateway runs as.{ways}"
    )
}

/// What the agent said about a failure, as a sentence. Many say only that it was internal, and put
/// the reason behind it.
pub(super) fn said(fault: &Fault) -> String {
    let details = match &fault.data {
        Value::String(text) => text.clone(),
        data => ["details", "message", "error"]
            .iter()
            .find_map(|name| data[*name].as_str())
            .map(str::to_owned)
            .unwrap_or_default(),
    };
    let mut text = fault.message.clone();
    if !details.is_empty() && !text.contains(&details) {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&details);
    }
    if text.is_empty() {
        text = format!("error {}", fault.code);
    }
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}
