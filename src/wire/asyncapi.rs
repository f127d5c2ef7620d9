//! The description of the WebSocket for programs: an AsyncAPI 3 document, made from the types that are
//! sent and from the shapes of what is read.
//!
//! Each message stands in one line of a table: `outbound/described.rs` for what the gateway says,
//! `inbound/shapes.rs` for what clients say. Pure. Touches nothing else.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema as _, ToSchema};

use super::envelope::Envelope;
use super::inbound::shapes::{self, ClientEnvelope};
use super::outbound;

const COMPONENTS: &str = "#/components/schemas/";

/// Where a message of the gateway belongs, which decides what its envelope carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the journal of the session: it has its offset.
    Journal,
    /// In the session, and in no journal.
    Session,
    /// In the session, or in none when there is none yet.
    Anywhere,
    /// In no session: everybody hears it.
    Nowhere,
}

/// A kind of message and the shape of its payload.
pub(super) struct Described {
    /// Its `type`.
    pub(super) kind: &'static str,
    place: Place,
    summary: &'static str,
    /// The name of the payload's schema.
    payload: String,
    /// That schema first, and those that it refers to, by name.
    schemas: Vec<(String, Value)>,
}

impl Described {
    /// A message whose payload is a `P`.
    pub(super) fn new<P: ToSchema>(
        kind: &'static str,
        place: Place,
        summary: &'static str,
    ) -> Self {
        let mut schemas = vec![(P::name().into_owned(), P::schema())];
        P::schemas(&mut schemas);
        Self {
            kind,
            place,
            summary,
            payload: P::name().into_owned(),
            schemas: schemas
                .into_iter()
                .map(|(name, schema)| (name, tidied(plain(&schema))))
                .collect(),
        }
    }

    /// The same, of which nothing is ever `null`: what is not there is absent.
    pub(super) fn without_nulls(mut self) -> Self {
        for (_, schema) in &mut self.schemas {
            drop_nulls(schema);
        }
        self
    }

    /// The schema of that name.
    #[cfg(test)]
    pub(super) fn schema(&self, name: &str) -> &Value {
        let found = self.schemas.iter().find(|(known, _)| known == name);
        &found.expect("a reference leads somewhere").1
    }

    /// The schema of the payload.
    #[cfg(test)]
    pub(super) fn payload(&self) -> &Value {
        self.schema(&self.payload)
    }

    fn requires_payload(&self) -> bool {
        self.schemas
            .iter()
            .find(|(name, _)| *name == self.payload)
            .is_some_and(|(_, schema)| schema["required"].is_array())
    }

    /// The schema of the whole frame.
    fn frame(&self, mut envelope: Value, required: &[&str]) -> Value {
        let properties = &mut envelope["properties"];
        properties["type"] = json!({ "const": self.kind });
        properties["payload"] = json!({ "$ref": format!("{COMPONENTS}{}", self.payload) });
        envelope["required"] = json!(required);
        envelope
    }

    fn client_frame(&self) -> Value {
        let mut envelope = tidied(plain(&ClientEnvelope::schema()));
        envelope["description"] = json!("Fields that are not named here are ignored.");
        if self.requires_payload() {
            self.frame(envelope, &["type", "payload"])
        } else {
            self.frame(envelope, &["type"])
        }
    }

    fn gateway_frame(&self) -> Value {
        let mut envelope = tidied(plain(&Envelope::<shapes::Empty>::schema()));
        drop_nulls(&mut envelope);
        envelope["description"] = json!("Fields that are not named here may be added later.");
        let properties = envelope["properties"].as_object_mut();
        let properties = properties.expect("an envelope has properties");
        let mut required = vec!["type", "payload", "timestamp"];
        match self.place {
            Place::Journal => required.extend(["sessionId", "offset"]),
            Place::Session => required.push("sessionId"),
            Place::Anywhere => {}
            Place::Nowhere => drop(properties.remove("sessionId")),
        }
        if self.place != Place::Journal {
            properties.remove("offset");
        }
        self.frame(envelope, &required)
    }

    fn message(&self, payload: &Value) -> Value {
        json!({
            "name": self.kind,
            "title": self.kind,
            "summary": self.summary,
            "contentType": "application/json",
            "payload": payload,
        })
    }
}

/// The description of the WebSocket of a gateway under this path.
pub(crate) fn document(base_path: &str) -> Value {
    let (client, gateway) = (shapes::described(), outbound::described());
    let mut messages = Map::new();
    let mut schemas = Map::new();
    for said in &client {
        let message = said.message(&said.client_frame());
        messages.insert(format!("client.{}", said.kind), message);
    }
    for said in &gateway {
        let message = said.message(&said.gateway_frame());
        messages.insert(format!("gateway.{}", said.kind), message);
    }
    for said in client.iter().chain(&gateway) {
        schemas.extend(said.schemas.iter().cloned());
    }
    for envelope in [ClientEnvelope::schemas, Envelope::<shapes::Empty>::schemas] {
        let mut parts = Vec::new();
        envelope(&mut parts);
        schemas.extend(
            parts
                .iter()
                .map(|(name, schema)| (name.clone(), tidied(plain(schema)))),
        );
    }
    let channel_messages: Map<String, Value> = messages
        .keys()
        .map(|key| {
            (
                key.clone(),
                reference(&format!("#/components/messages/{key}")),
            )
        })
        .collect();
    let operation = |action: &str, from: &str, summary: &str, said: &[Described]| {
        let messages: Vec<Value> = said
            .iter()
            .map(|said| reference(&format!("#/channels/session/messages/{from}.{}", said.kind)))
            .collect();
        json!({
            "action": action,
            "channel": reference("#/channels/session"),
            "summary": summary,
            "security": [reference("#/components/securitySchemes/bearer")],
            "messages": messages,
        })
    };
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Switchboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The WebSocket of the gateway: one connection is in one session and hears \
                            the events of that session only. The HTTP API is in /api/openapi.json.",
        },
        "defaultContentType": "application/json",
        "channels": { "session": {
            "address": format!("{base_path}/ws"),
            "title": "A session",
            "description": "Text frames, one message each. A client that knows a place in the journal \
                            names it with `after` and `epoch` and gets everything after it.",
            "messages": channel_messages,
            "bindings": { "ws": { "method": "GET", "query": query(), "bindingVersion": "0.1.0" } },
        } },
        "operations": {
            "hear": operation("receive", "client", "What clients say", &client),
            "say": operation("send", "gateway", "What the gateway says", &gateway),
        },
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "bearerFormat": "JWT",
                "description": "A token from /api/auth/login in the header `Authorization`, as the \
                                subprotocols `switchboard.v1` and `bearer.TOKEN`, or a one-time \
                                `ticket` in the query.",
            } },
        },
    })
}

/// What may stand in the query of the address.
fn query() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "properties": {
            "session": text("The session to join; a new one without it."),
            "agent": text("The agent of a new session."),
            "after": {
                "type": "integer",
                "minimum": 0,
                "description": "The offset of the last event that the client has.",
            },
            "epoch": text("Which counting of offsets `after` means."),
            "ticket": text("A ticket from /api/auth/ticket, in place of a token."),
        },
    })
}

fn reference(to: &str) -> Value {
    json!({ "$ref": to })
}

fn plain(schema: &impl serde::Serialize) -> Value {
    serde_json::to_value(schema).expect("a schema is plain JSON")
}

/// OpenAPI's `example` is JSON Schema's `examples`.
fn tidied(mut schema: Value) -> Value {
    each_object(&mut schema, &mut |object| {
        if let Some(example) = object.remove("example") {
            object.insert("examples".into(), json!([example]));
        }
    });
    schema
}

/// Takes `null` out of every choice of types.
fn drop_nulls(schema: &mut Value) {
    each_object(schema, &mut |object| {
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [kind] = types.as_slice() {
                let kind = kind.clone();
                object.insert("type".into(), kind);
            }
        }
        if let Some(Value::Array(choices)) = object.get_mut("oneOf") {
            choices.retain(|choice| *choice != json!({ "type": "null" }));
            if let [Value::Object(choice)] = choices.as_slice() {
                let choice = choice.clone();
                object.remove("oneOf");
                object.extend(choice);
            }
        }
    });
}

fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            for inner in object.values_mut() {
                each_object(inner, change);
            }
        }
        Value::Array(list) => {
            for inner in list {
                each_object(inner, change);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn all() -> Vec<Described> {
        let mut all = shapes::described();
        all.extend(outbound::described());
        all
    }

    #[test]
    fn a_name_stands_for_one_schema() {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for (name, schema) in all().into_iter().flat_map(|said| said.schemas) {
            let before = known.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == schema), "{name}");
        }
    }

    #[test]
    fn a_message_stands_in_its_table_once() {
        for table in [shapes::described(), outbound::described()] {
            let mut kinds: Vec<_> = table.iter().map(|said| said.kind).collect();
            kinds.sort_unstable();
            let mut once = kinds.clone();
            once.dedup();
            assert_eq!(kinds, once);
        }
    }

    /// Texts that look like the type of a message, tests aside.
    fn kinds_in(source: &str) -> Vec<&str> {
        let is_kind = |text: &&str| {
            text.len() > 2
                && text
                    .bytes()
                    .all(|byte| byte == b'_' || byte.is_ascii_uppercase())
        };
        source
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(is_kind)
            .collect()
    }

    #[test]
    fn whatever_the_gateway_says_is_described() {
        let known: Vec<_> = outbound::described().iter().map(|said| said.kind).collect();
        let sources = [
            include_str!("outbound.rs"),
            include_str!("outbound/circle.rs"),
            include_str!("outbound/done.rs"),
            include_str!("outbound/error.rs"),
            include_str!("outbound/event.rs"),
            include_str!("outbound/state.rs"),
        ];
        let said: Vec<_> = sources.into_iter().flat_map(kinds_in).collect();
        assert!(said.len() >= known.len(), "{said:?}");
        for kind in said {
            assert!(known.contains(&kind), "{kind} is sent and not described");
        }
    }

    #[test]
    fn what_is_absent_is_never_null() {
        let mut schema = json!({
            "properties": {
                "a": { "type": ["string", "null"] },
                "b": { "oneOf": [{ "type": "null" }, { "$ref": "x" }], "description": "d" },
                "c": { "oneOf": [{ "type": "null" }, { "$ref": "x" }, { "$ref": "y" }] },
            }
        });
        drop_nulls(&mut schema);
        let expected = json!({
            "properties": {
                "a": { "type": "string" },
                "b": { "$ref": "x", "description": "d" },
                "c": { "oneOf": [{ "$ref": "x" }, { "$ref": "y" }] },
            }
        });
        assert_eq!(schema, expected);
    }
}
