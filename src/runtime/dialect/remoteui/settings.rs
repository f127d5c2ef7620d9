//! Settings as the specification writes them. Pure.

use serde_json::{Map, Value, json};

use crate::domain::command::SettingsChange;

/// `settings` of a message to the extension.
pub(super) fn to_wire(change: &SettingsChange) -> Map<String, Value> {
    let mut settings = change.other.clone();
    let named = [
        (
            "autoApprove",
            change.auto_approve.map(|approves| json!(approves)),
        ),
        ("model", change.model.as_ref().map(|model| json!(model))),
        ("maxTokens", change.max_tokens.map(|tokens| json!(tokens))),
        (
            "temperature",
            change.temperature.map(|temperature| json!(temperature)),
        ),
        ("mode", change.mode.as_ref().map(|mode| json!(mode))),
    ];
    for (name, value) in named {
        if let Some(value) = value {
            settings.insert(name.to_owned(), value);
        }
    }
    settings
}

/// `settings` of a message of the extension. `autoApprove` is the gateway's own and left out; a value
/// of another type than the specification's is unknown.
pub(super) fn from_wire(settings: &Value) -> SettingsChange {
    let Some(settings) = settings.as_object() else {
        return SettingsChange::default();
    };
    let value = |name: &str| settings.get(name);
    let text = |name: &str| value(name)?.as_str().map(str::to_owned);
    let tokens = value("maxTokens").and_then(Value::as_u64);
    let is_own =
        |name: &str| !["autoApprove", "model", "maxTokens", "temperature", "mode"].contains(&name);
    let other = settings
        .iter()
        .filter(|(name, value)| is_own(name) && !value.is_null());
    SettingsChange {
        auto_approve: None,
        model: text("model"),
        max_tokens: tokens.and_then(|tokens| u32::try_from(tokens).ok()),
        temperature: value("temperature").and_then(Value::as_f64),
        mode: text("mode"),
        other: other
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}
