//! AsyncAPI: the description of the WebSocket, an AsyncAPI 3 document made from the message types.
//!
//! Each message is one line of a table: `outbound/schema.rs` for the gateway, `inbound/message.rs` for
//! clients. Pure. Touches nothing else.

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema as _, ToSchema};

use super::inbound::message::{self, ClientEnvelope, Empty};
use super::outbound;
use super::server_envelope::Envelope;

const COMPONENTS: &str = "#/components/schemas/";

/// What a message of the gateway belongs to, which decides what its envelope carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The journal of the session: it has an offset.
    Journal,
    /// The session, without an offset.
    Session,
    /// The session, or none as long as none is joined.
    OptionalSession,
    /// No session: it goes to every connection.
    Gateway,
}

pub(super) struct MessageSchema {
    pub(super) kind: &'static str,
    scope: Scope,
    summary: &'static str,
    payload: String,
    /// That schema first, and those that it refers to, by name.
    schemas: Vec<(String, Value)>,
}

impl MessageSchema {
    pub(super) fn new<P: ToSchema>(
        kind: &'static str,
        scope: Scope,
        summary: &'static str,
    ) -> Self {
        let mut schemas = vec![(P::name().into_owned(), P::schema())];
        P::schemas(&mut schemas);
        Self {
            kind,
            scope,
            summary,
            payload: P::name().into_owned(),
            schemas: schemas
                .into_iter()
                .map(|(name, schema)| (name, tidied(plain(&schema))))
                .collect(),
        }
    }

    /// The same without `null`: the gateway leaves out what is absent.
    pub(super) fn without_nulls(mut self) -> Self {
        for (_, schema) in &mut self.schemas {
            drop_nulls(schema);
        }
        self
    }

    #[cfg(test)]
    pub(super) fn schema(&self, name: &str) -> &Value {
        let found = self.schemas.iter().find(|(known, _)| known == name);
        &found.expect("every reference is resolvable").1
    }

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
        let mut envelope = tidied(plain(&Envelope::<Empty>::schema()));
        drop_nulls(&mut envelope);
        envelope["description"] = json!("Fields that are not named here may be added later.");
        let properties = envelope["properties"].as_object_mut();
        let properties = properties.expect("an envelope has properties");
        let mut required = vec!["type", "payload", "timestamp"];
        match self.scope {
            Scope::Journal => required.extend(["sessionId", "offset"]),
            Scope::Session => required.push("sessionId"),
            Scope::OptionalSession => {}
            Scope::Gateway => drop(properties.remove("sessionId")),
        }
        if self.scope != Scope::Journal {
            properties.remove("offset");
            properties.remove("meta");
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

pub(crate) fn document(base_path: &str) -> Value {
    let (client, gateway) = (message::message_schemas(), outbound::message_schemas());
    let mut messages = Map::new();
    let mut schemas = Map::new();
    for schema in &client {
        let message = schema.message(&schema.client_frame());
        messages.insert(format!("client.{}", schema.kind), message);
    }
    for schema in &gateway {
        let message = schema.message(&schema.gateway_frame());
        messages.insert(format!("gateway.{}", schema.kind), message);
    }
    for message in client.iter().chain(&gateway) {
        schemas.extend(message.schemas.iter().cloned());
    }
    for envelope in [ClientEnvelope::schemas, Envelope::<Empty>::schemas] {
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
    let operation = |action: &str, from: &str, summary: &str, schemas: &[MessageSchema]| {
        let address = "#/channels/session/messages";
        let messages: Vec<Value> = schemas
            .iter()
            .map(|message| reference(&format!("{address}/{from}.{}", message.kind)))
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

    fn all() -> Vec<MessageSchema> {
        let mut all = message::message_schemas();
        all.extend(outbound::message_schemas());
        all
    }

    #[test]
    fn a_schema_name_is_used_once() {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for (name, schema) in all().into_iter().flat_map(|message| message.schemas) {
            let before = known.insert(name.clone(), schema.clone());
            assert!(before.is_none_or(|before| before == schema), "{name}");
        }
    }

    #[test]
    fn a_message_type_is_described_once() {
        for table in [message::message_schemas(), outbound::message_schemas()] {
            let mut kinds: Vec<_> = table.iter().map(|message| message.kind).collect();
            kinds.sort_unstable();
            let mut once = kinds.clone();
            once.dedup();
            assert_eq!(kinds, once);
        }
    }

    /// String literals that look like the type of a message.
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
    fn every_message_the_gateway_sends_is_described() {
        let known: Vec<_> = outbound::message_schemas()
            .iter()
            .map(|message| message.kind)
            .collect();
        let sources = [
            include_str!("outbound.rs"),
            include_str!("outbound/presence.rs"),
            include_str!("outbound/reply.rs"),
            include_str!("outbound/error.rs"),
            include_str!("outbound/event.rs"),
            include_str!("outbound/state.rs"),
        ];
        let sent: Vec<_> = sources.into_iter().flat_map(kinds_in).collect();
        assert!(sent.len() >= known.len(), "{sent:?}");
        for kind in sent {
            assert!(known.contains(&kind), "{kind} is sent and not described");
        }
    }

    #[test]
    fn an_absent_field_is_never_described_as_null() {
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
