//! API docs: OpenAPI and AsyncAPI describe exactly what the gateway serves.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::actors::{Gateway, Settings, WsClient, program};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

#[tokio::test]
async fn openapi_lists_exactly_the_routes() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    let document = visitor.gets("/api/openapi.json").await.is(200).json();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 15, "{}", paths.len());
    for (path, item) in paths {
        let concrete = path.replace("{id}", "x");
        for method in METHODS {
            let described = !item[method].is_null();
            let answer = visitor.sends(&method.to_uppercase(), &concrete, None).await;
            let served = answer.status != 405;
            assert_eq!(served, described, "{method} {path}: {}", answer.status);
            let unknown = answer.text.contains("There is nothing here");
            assert!(!unknown, "{method} {path} is described and not served");
        }
    }
    for page in ["/", "/setup", "/invite"] {
        assert!(!paths.contains_key(page), "pages are not part of the API");
    }
}

#[tokio::test]
async fn the_openapi_command_prints_the_served_document() {
    let gateway = Gateway::start().await;
    let served = gateway.anonymous().gets("/api/openapi.json").await.json();
    let dir = tempfile::tempdir().unwrap();
    let printed = program(dir.path(), &["schema", "openapi"], &[]);
    assert!(printed.status.success());
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed, served);
    assert!(
        std::fs::read_dir(dir.path()).unwrap().next().is_none(),
        "printing opens nothing"
    );
}

#[tokio::test]
async fn openapi_marks_every_route_that_needs_a_token() {
    let gateway = Gateway::start().await;
    let visitor = gateway.anonymous();
    let document = visitor.gets("/api/openapi.json").await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let operation = &item[method];
            if operation.is_null() {
                continue;
            }
            let concrete = path.replace("{id}", "x");
            let answer = visitor.sends(&method.to_uppercase(), &concrete, None).await;
            let needs_token = operation["security"]
                .as_array()
                .is_some_and(|list| !list.is_empty());
            if needs_token {
                assert_eq!(answer.status, 401, "{method} {path}");
            } else if path != "/api/auth/refresh" {
                assert_ne!(answer.status, 401, "{method} {path}");
            }
        }
    }
}

/// Checks the structure of an AsyncAPI 3 document.
fn is_asyncapi(document: &Value, address: &str) {
    assert_eq!(document["asyncapi"], "3.0.0");
    for field in ["title", "version"] {
        assert!(document["info"][field].is_string(), "info.{field}");
    }
    let allowed = [
        "asyncapi",
        "info",
        "defaultContentType",
        "channels",
        "operations",
        "components",
    ];
    for field in document.as_object().unwrap().keys() {
        assert!(allowed.contains(&field.as_str()), "{field}");
    }
    let channels = document["channels"].as_object().unwrap();
    assert_eq!(channels.len(), 1);
    let channel = &channels["session"];
    assert_eq!(channel["address"], address);
    for (key, message) in channel["messages"].as_object().unwrap() {
        let target = format!("#/components/messages/{key}");
        assert_eq!(message["$ref"], target, "{key}");
    }
    let mut operated = BTreeSet::new();
    for (name, operation) in document["operations"].as_object().unwrap() {
        let action = operation["action"].as_str().unwrap();
        assert!(["send", "receive"].contains(&action), "{name}: {action}");
        assert_eq!(operation["channel"]["$ref"], "#/channels/session");
        for message in operation["messages"].as_array().unwrap() {
            let to = message["$ref"].as_str().unwrap();
            let key = to.strip_prefix("#/channels/session/messages/").unwrap();
            let sender = key.split('.').next().unwrap();
            // From the gateway's point of view.
            assert_eq!(sender == "gateway", action == "send", "{key}");
            assert!(operated.insert(key.to_owned()), "{key} twice");
        }
    }
    let messages = document["components"]["messages"].as_object().unwrap();
    let all: BTreeSet<String> = messages.keys().cloned().collect();
    assert_eq!(operated, all, "every message is said by one of the two");
    for (key, message) in messages {
        let payload = &message["payload"];
        assert_eq!(payload["type"], "object", "{key}");
        assert_eq!(payload["properties"]["type"]["const"], message["name"]);
        assert!(message["summary"].as_str().unwrap().len() > 5, "{key}");
    }
}

/// Every reference in a document.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get("$ref").and_then(Value::as_str));
            object.values().for_each(|inner| references(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| references(inner, found)),
        _ => {}
    }
}

#[tokio::test]
async fn asyncapi_describes_the_websocket_and_every_reference_resolves() {
    let gateway = Gateway::start().await;
    let document = gateway.anonymous().gets("/api/asyncapi.json").await.is(200);
    let document = document.json();
    is_asyncapi(&document, "/ws");
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 50, "{}", found.len());
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let used: BTreeSet<&str> = found.into_iter().collect();
    for name in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys()
    {
        let reference = format!("#/components/schemas/{name}");
        assert!(used.contains(reference.as_str()), "nobody uses {name}");
    }
}

#[tokio::test]
async fn asyncapi_uses_the_base_path() {
    let gateway = Settings::new()
        .with("SERVER__BASE_PATH", "/agents")
        .start()
        .await;
    let visitor = gateway.anonymous();
    let document = visitor.gets("/agents/api/asyncapi.json").await.is(200);
    is_asyncapi(&document.json(), "/agents/ws");
    visitor.gets("/api/asyncapi.json").await.is(404);
    let printed: Value = serde_json::from_str(&gateway.prints(&["schema", "asyncapi"])).unwrap();
    assert_eq!(printed, document.json());
}

#[tokio::test]
async fn the_message_types_of_the_acknowledgement_are_those_of_asyncapi() {
    let gateway = Gateway::start().await;
    let page = gateway.logged_in("root").await;
    let token = page.token.as_deref().unwrap();
    let mut root = WsClient::connects(gateway.address(), token, "").await;
    let document = page.gets("/api/asyncapi.json").await.json();
    let messages = document["components"]["messages"].as_object().unwrap();
    let kinds = messages
        .keys()
        .filter_map(|key| key.strip_prefix("client."));
    for kind in kinds {
        let frame = format!(r#"{{"type":"{kind}","messageId":"{kind}","payload":{{}}}}"#);
        root.writes_raw(&frame).await;
        let answer = loop {
            let frame = root.receives().await.unwrap();
            if frame["messageId"] == kind {
                break frame;
            }
        };
        assert_ne!(answer["payload"]["code"], "INVALID_MESSAGE", "{answer}");
        assert_ne!(answer["payload"]["code"], "UNSUPPORTED", "{answer}");
    }
    root.writes_raw(r#"{"type":"NOT_DESCRIBED","payload":{}}"#)
        .await;
    let answer = root.sees("ERROR_MESSAGE").await;
    assert_eq!(answer["payload"]["code"], "INVALID_MESSAGE");
}

#[tokio::test]
async fn openapi_lists_every_response_of_commands_files_and_grants() {
    let gateway = Gateway::start().await;
    let document = gateway.anonymous().gets("/api/openapi.json").await.json();
    let described = |method: &str, path: &str| {
        let path = format!("/api/sessions/{path}");
        let responses = document["paths"][&path][method]["responses"].clone();
        responses
            .as_object()
            .unwrap_or_else(|| panic!("{path}"))
            .clone()
    };
    for (method, path, statuses) in [
        (
            "post",
            "{id}/commands",
            "200 400 401 403 404 409 413 415 422 429 502 503",
        ),
        (
            "post",
            "{id}/attachments",
            "201 400 401 403 404 408 413 422 503",
        ),
        ("get", "{id}/grants", "200 401 403 404"),
        ("put", "{id}/grants/{username}", "200 401 403 404 422"),
        ("delete", "{id}/grants/{username}", "204 401 403 404"),
    ] {
        let known = described(method, path);
        let known: Vec<&str> = known.keys().map(String::as_str).collect();
        assert_eq!(known.join(" "), statuses, "{method} {path}");
    }
    let export = &described("get", "{id}/export")["200"]["content"];
    for kind in ["application/x-ndjson", "text/markdown"] {
        assert!(export[kind].is_object(), "{export}");
    }
}
