//! OTLP: spans as the OpenTelemetry protocol's JSON.

use serde_json::{Value as Json, json};

use super::trace::{Finished, Kind, Value};

pub(super) fn body(resource: &[(String, String)], spans: &[Finished]) -> Vec<u8> {
    let resource: Vec<Json> = resource
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": { "stringValue": value } }))
        .collect();
    let scope = json!({ "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") });
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let batch = json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": scope, "spans": spans }],
        }],
    });
    batch.to_string().into_bytes()
}

fn span(span: &Finished) -> Json {
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let attribute = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Word(word) => json!({ "stringValue": word }),
            Value::Name(name) => json!({ "stringValue": name }),
            // OTLP writes 64-bit numbers as text.
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::Truth(truth) => json!({ "boolValue": truth }),
        };
        json!({ "key": key, "value": value })
    };
    let mut told = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": span.start_nanos.to_string(),
        "endTimeUnixNano": span.end_nanos.to_string(),
        "attributes": span.attributes.iter().map(attribute).collect::<Vec<_>>(),
        "status": match span.error {
            Some(code) => json!({ "code": 2, "message": code }),
            None => json!({}),
        },
    });
    if let Some(parent) = span.parent {
        told["parentSpanId"] = format!("{parent:016x}").into();
    }
    told
}
