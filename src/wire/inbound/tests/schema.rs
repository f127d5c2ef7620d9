//! Schema tests: the parser and the described schema agree.

use std::collections::BTreeSet;

use super::*;
use crate::wire::asyncapi::MessageSchema;
use crate::wire::inbound::message;

/// Follows a reference, and drops `null` from a choice.
fn resolved<'a>(message_schema: &'a MessageSchema, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        return message_schema.schema(reference.rsplit('/').next().unwrap());
    }
    match schema["oneOf"].as_array() {
        Some(choices) if choices.iter().any(|one| one["type"] == "null") => resolved(
            message_schema,
            choices.iter().find(|one| one["type"] != "null").unwrap(),
        ),
        _ => schema,
    }
}

fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(kinds) => kinds[0].as_str().unwrap(),
        kind => kind.as_str().unwrap_or("anything"),
    }
}

/// A value as the schema wants it, with everything that may be there.
fn sample(message_schema: &MessageSchema, schema: &Value) -> Value {
    let schema = resolved(message_schema, schema);
    for given in [&schema["examples"][0], &schema["enum"][0]] {
        if !given.is_null() {
            return given.clone();
        }
    }
    match kind(schema) {
        "string" => json!("x"),
        "boolean" => json!(true),
        "integer" | "number" => json!(1),
        "array" => {
            let each = variants(message_schema, &schema["items"]);
            each.iter().map(|one| sample(message_schema, one)).collect()
        }
        "object" => {
            let of =
                |(name, schema): (&String, &Value)| (name.clone(), sample(message_schema, schema));
            let properties = schema["properties"].as_object();
            properties.into_iter().flatten().map(of).collect()
        }
        _ => json!({ "any": ["thing"] }),
    }
}

/// Every field of a payload by its path as the parser calls it, with its schema and whether it must
/// be there.
fn fields(
    message_schema: &MessageSchema,
    path: &str,
    schema: &Value,
    found: &mut Vec<(String, Value, bool)>,
) {
    let schema = resolved(message_schema, schema);
    if kind(schema) == "array" {
        for (place, one) in variants(message_schema, &schema["items"])
            .iter()
            .enumerate()
        {
            fields(message_schema, &format!("{path}[{place}]"), one, found);
        }
        return;
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let required = schema["required"].as_array().into_iter().flatten();
        let required = required.into_iter().any(|one| one == name);
        found.push((
            path.clone(),
            resolved(message_schema, field).clone(),
            required,
        ));
        fields(message_schema, &path, field, found);
    }
}

fn pointer(path: &str) -> String {
    let steps = path.replace(['.', '['], "/").replace(']', "");
    format!("/{steps}")
}

/// A path without the indices of lists.
fn anywhere(path: &str) -> String {
    path.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .collect()
}

fn asked() -> BTreeSet<String> {
    ASKED.with_borrow(|asked| asked.iter().cloned().collect())
}

fn read(message: &Value) -> Result<Inbound, Rejected> {
    ASKED.with_borrow_mut(Vec::clear);
    parse(&message.to_string(), joined(), &RULES)
}

/// The payload without combinations: one schema for each choice that it leaves.
fn variants(message_schema: &MessageSchema, schema: &Value) -> Vec<Value> {
    let schema = resolved(message_schema, schema);
    if let Some(choices) = schema["oneOf"].as_array() {
        return choices
            .iter()
            .flat_map(|one| variants(message_schema, one))
            .collect();
    }
    let Some(parts) = schema["allOf"].as_array() else {
        return vec![schema.clone()];
    };
    let mut whole = vec![json!({ "type": "object", "properties": {}, "required": [] })];
    for part in parts {
        let joined = |one: &Value| {
            variants(message_schema, part)
                .into_iter()
                .map(|part| join(one, &part))
                .collect::<Vec<_>>()
        };
        whole = whole.iter().flat_map(joined).collect();
    }
    whole
}

fn join(one: &Value, other: &Value) -> Value {
    let mut whole = one.clone();
    for (name, schema) in other["properties"].as_object().into_iter().flatten() {
        whole["properties"][name] = schema.clone();
    }
    let required = other["required"].as_array().cloned().unwrap_or_default();
    whole["required"].as_array_mut().unwrap().extend(required);
    whole
}

#[test]
fn every_described_field_is_read_with_its_type_and_no_other_field_is() {
    for message_schema in message::message_schemas() {
        let (mut all_asked, mut all_names) = (BTreeSet::new(), BTreeSet::new());
        for shape in variants(&message_schema, message_schema.payload()) {
            let message =
                json!({ "type": message_schema.kind, "payload": sample(&message_schema, &shape) });
            read(&message).unwrap_or_else(|rejected| panic!("{message}: {rejected:?}"));
            // Part of the envelope, also where it stands in the payload.
            let of_payload = asked()
                .into_iter()
                .filter(|path| path.starts_with("payload.") && path != "payload.fence");
            all_asked.extend(of_payload.map(|path| anywhere(&path)));
            let mut described = Vec::new();
            fields(&message_schema, "payload", &shape, &mut described);
            all_names.extend(described.iter().map(|(path, ..)| anywhere(path)));
            for (path, schema, required) in described {
                check_field(&message, &path, &schema, required);
            }
        }
        assert_eq!(all_asked, all_names, "{}", message_schema.kind);
    }
}

/// Left out, or of another type.
fn check_field(message: &Value, path: &str, schema: &Value, required: bool) {
    let with = |value: Value| {
        let mut changed = message.clone();
        *changed.pointer_mut(&pointer(path)).unwrap() = value;
        changed
    };
    let absent = read(&with(Value::Null));
    assert_eq!(absent.is_err(), required, "{path} left out of {message}");
    let wrong = match kind(schema) {
        "anything" => return,
        "string" => json!(7),
        _ => json!("x"),
    };
    let mistaken = with(wrong);
    let rejected = read(&mistaken).unwrap_err();
    assert!(names_field(&rejected, path), "{mistaken}: {rejected:?}");
}

fn names_field(rejected: &Rejected, path: &str) -> bool {
    json!(rejected.details)["field"] == path
}

#[test]
fn every_type_that_is_read_is_described() {
    let known: Vec<_> = message::message_schemas()
        .iter()
        .map(|message_schema| message_schema.kind)
        .collect();
    let source = include_str!("../message.rs");
    let is_kind = |text: &&str| {
        text.len() > 2
            && text
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_uppercase())
    };
    let read: Vec<_> = source
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(is_kind)
        .collect();
    assert!(read.len() >= known.len());
    for kind in read {
        let unserved =
            read_kind(kind).is_err_and(|rejected| rejected.code == ErrorCode::Unsupported);
        assert_eq!(unserved, !known.contains(&kind), "{kind}");
    }
}

fn read_kind(kind: &str) -> Result<Inbound, Rejected> {
    read(&json!({ "type": kind, "payload": {} }))
}

#[test]
fn the_envelope_is_read_as_described() {
    let session = joined().to_string();
    let whole = json!({
        "type": "HEARTBEAT", "payload": {}, "timestamp": "2026-03-01T08:00:00Z",
        "sessionId": session, "messageId": "m", "idempotencyKey": "k", "fence": 1,
    });
    read(&whole).unwrap();
    let described = crate::wire::asyncapi::document("");
    let heartbeat = &described["components"]["messages"]["client.HEARTBEAT"]["payload"];
    let names: BTreeSet<String> = heartbeat["properties"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    let asked: BTreeSet<String> = asked()
        .into_iter()
        .filter(|path| !path.contains('.'))
        .collect();
    assert_eq!(asked, names);
}
