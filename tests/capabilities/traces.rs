//! Traces: one prompt is one trace in an OpenTelemetry collector; none without one.

use serde_json::{Value, json};

use crate::actors::{Collector, Settings, WsClient};

mod delivery;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn exporting(endpoint: &str) -> Settings {
    Settings::new()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .with_variable("OTEL_BSP_SCHEDULE_DELAY", "20")
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found: Vec<&Value> = spans.iter().filter(|span| span["name"] == name).collect();
    assert_eq!(found.len(), 1, "{name} in {spans:#?}");
    found[0]
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let attributes = span["attributes"].as_array().unwrap();
    let found = attributes.iter().find(|shown| shown["key"] == key)?;
    found["value"].as_object().unwrap().values().next()
}

fn nanos(span: &Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_prompt_over_a_websocket_is_one_trace_from_frame_to_run_end() {
    let collector = Collector::start().await;
    let gateway = exporting(&collector.endpoint())
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", "x-key=for%20the%20collector")
        .with_variable("OTEL_SERVICE_NAME", "desk")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let mut root = WsClient::connects(page.address(), page.token.as_deref().unwrap(), "").await;
    root.prompts("/tool").await;
    let question = root.sees("QUESTION").await["payload"].clone();
    let answer = json!({ "questionId": question["questionId"], "optionId": "allow" });
    root.sends("ANSWER", answer).await;
    root.sees_run_end().await;
    let spans = collector
        .receives_spans(&["run", "tool", "question", "answer"])
        .await;

    let prompt = named(&spans, "submit_prompt");
    assert_eq!(prompt.get("parentSpanId"), None);
    assert_eq!(attribute(prompt, "door").unwrap(), "ws");
    assert_eq!(
        attribute(prompt, "session.id").unwrap(),
        &json!(root.session())
    );
    let of_prompt: Vec<Value> = spans
        .iter()
        .filter(|span| span["traceId"] == prompt["traceId"])
        .cloned()
        .collect();
    for (name, parent) in [
        ("session.command", "submit_prompt"),
        ("journal.commit", "session.command"),
        ("run", "session.command"),
        ("agent.dispatch", "run"),
        ("agent.first_output", "run"),
        ("question", "run"),
        ("tool", "run"),
    ] {
        let (span, parent) = (named(&of_prompt, name), named(&of_prompt, parent));
        assert_eq!(span["parentSpanId"], parent["spanId"], "{name}");
        let (start, end) = (
            nanos(span, "startTimeUnixNano"),
            nanos(span, "endTimeUnixNano"),
        );
        assert!(
            start <= end && start >= nanos(parent, "startTimeUnixNano"),
            "{name}"
        );
    }
    let run = named(&of_prompt, "run");
    assert_eq!(attribute(run, "outcome").unwrap(), "completed");
    assert_eq!(attribute(run, "agent").unwrap(), "demo");
    assert_eq!(
        attribute(named(&of_prompt, "question"), "outcome").unwrap(),
        "granted"
    );
    // The answer is a separate command.
    assert_ne!(named(&spans, "answer")["traceId"], prompt["traceId"]);

    let (head, body) = &collector.requests()[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(head.contains("x-key: for the collector"), "{head}");
    let resource = &body["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name").unwrap(), "desk");
    assert!(!gateway.log().contains("for the collector"));
}

#[tokio::test]
async fn a_clients_trace_is_continued() {
    let collector = Collector::start().await;
    let gateway = exporting(&collector.endpoint()).start().await;
    let mut page = gateway.logged_in("root").await;
    let made = page.posts("/api/sessions", json!({})).await.is(201).json();
    let path = format!("/api/sessions/{}/commands", made["id"].as_str().unwrap());
    page.headers.push(("traceparent", PARENT.to_owned()));
    let prompt =
        json!({ "type": "SUBMIT_PROMPT", "payload": { "text": "/echo x", "mode": "act" } });
    page.posts(&path, prompt).await.is(200);
    let header = [
        (
            "authorization",
            format!("Bearer {}", page.token.clone().unwrap()),
        ),
        ("traceparent", PARENT.replace("4bf9", "5bf9")),
    ];
    let mut root = WsClient::try_connect(page.address(), "", &header)
        .await
        .unwrap();
    root.prompts("/fail").await;
    root.sees_run_end().await;
    let is_in = |span: &&Value, trace: &str| {
        span["traceId"].as_str().unwrap().starts_with(trace) && span["name"] == "submit_prompt"
    };
    let spans = loop {
        let spans = collector.receives_spans(&["submit_prompt", "run"]).await;
        if spans.iter().filter(|span| span["name"] == "run").count() == 2 {
            break spans;
        }
        tokio::task::yield_now().await;
    };
    for (trace, door) in [("4bf92f35", "http"), ("5bf92f35", "ws")] {
        let span = spans.iter().find(|span| is_in(span, trace)).unwrap();
        assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
        assert_eq!(attribute(span, "door").unwrap(), door);
    }
    let failed = |span: &&Value| span["name"] == "run" && span["status"]["code"] == 2;
    let failed = spans.iter().find(failed).unwrap();
    assert_eq!(failed["status"]["message"], "TASK_FAILED");
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_exported() {
    let collector = Collector::start().await;
    for more in [
        None,
        Some(("OTEL_SDK_DISABLED", "true")),
        Some(("OTEL_TRACES_SAMPLER", "always_off")),
    ] {
        let settings = match more {
            None => Settings::new(),
            Some((name, value)) => exporting(&collector.endpoint()).with_variable(name, value),
        };
        let mut gateway = settings.start().await;
        let page = gateway.logged_in("root").await;
        let mut root = WsClient::connects(page.address(), page.token.as_deref().unwrap(), "").await;
        root.prompts("/echo x").await;
        root.sees_run_end().await;
        gateway.signal("-TERM");
        assert_eq!(gateway.exit_code(), Some(0));
    }
    assert_eq!(collector.requests(), []);
}

#[tokio::test]
async fn pending_spans_are_exported_at_shutdown() {
    let collector = Collector::start().await;
    let mut gateway = Settings::new()
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .with_variable("OTEL_BSP_SCHEDULE_DELAY", "3600000")
        .start()
        .await;
    let page = gateway.logged_in("root").await;
    let mut root = WsClient::connects(page.address(), page.token.as_deref().unwrap(), "").await;
    root.prompts("/echo x").await;
    root.sees_run_end().await;
    assert_eq!(collector.requests(), []);
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    collector.receives_spans(&["submit_prompt", "run"]).await;
}
