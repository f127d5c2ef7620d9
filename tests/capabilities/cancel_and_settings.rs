//! Cancel and settings: cancelling runs, changing settings and tools, querying the agent.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, Settings, WsClient};

async fn joins(browser: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(browser.address(), browser.token.as_deref().unwrap(), query).await
}

impl WsClient {
    async fn cancels(&mut self, task: &Value) {
        self.sends("CANCEL_TASK", json!({ "taskId": task })).await;
        let ack = self.sees("ACK").await;
        assert_eq!(ack["payload"]["taskId"], *task);
    }

    async fn asks(&mut self, kind: &str, payload: Value) -> Value {
        self.sends(kind, payload).await;
        self.receives_reply().await
    }

    /// The same for payloads that violate the schema.
    async fn asks_oddly(&mut self, kind: &str, payload: Value) -> Value {
        self.sends_raw(kind, payload).await;
        self.receives_reply().await
    }

    async fn receives_reply(&mut self) -> Value {
        loop {
            let frame = self.receives().await.unwrap();
            if ["ACK", "QUERY_RESULT", "ERROR_MESSAGE"].contains(&frame["type"].as_str().unwrap()) {
                return frame["payload"].clone();
            }
        }
    }
}

#[tokio::test]
async fn a_run_can_be_cancelled_in_every_phase_and_sends_nothing_afterwards() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    for (prompt, phase) in [
        ("/stream 100000 1", "TASK_STATUS_UPDATE"),
        ("/stream 100000 1", "TASK_OUTPUT_CHUNK"),
        ("/hang", "AGENT_STATE"),
        ("/tool", "QUESTION"),
        ("/tool", "TOOL_UPDATE"),
    ] {
        let mut root = joins(&browser, "").await;
        root.prompts(prompt).await;
        let seen = root.sees(phase).await;
        let task = root.events[0]["payload"]["taskId"].clone();
        assert!(seen["offset"].is_u64());
        // Cancelling is idempotent, also after the end.
        root.cancels(&task).await;
        root.cancels(&task).await;
        if root.ends().is_empty() {
            root.sees_run_end().await;
        }
        root.cancels(&task).await;
        assert_eq!(root.ends(), ["cancelled"], "{prompt} at {phase}");
        let last = root.events.last().unwrap();
        assert_eq!(last["payload"]["status"], "cancelled");
        root.sees_nothing().await;
    }
}

#[tokio::test]
async fn cancelling_twice_does_not_cancel_the_next_run() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.prompts("/hang").await;
    root.sees("AGENT_STATE").await;
    let first = root.events[0]["payload"]["taskId"].clone();
    root.prompts("/hang").await;
    root.sees("ACK").await;
    root.cancels(&first).await;
    root.sees("AGENT_STATE").await;
    root.cancels(&first).await;
    root.sees_nothing().await;
    assert_eq!(root.ends(), ["cancelled"]);
}

#[tokio::test]
async fn only_settings_that_the_agent_allows_are_accepted() {
    let settings = Settings::new()
        .with("AGENTS__DEMO__MODELS", r#"["small","large"]"#)
        .with("AGENTS__DEMO__MODES", r#"["careful"]"#)
        .with("AGENTS__DEMO__MAX_TOKENS", "1000");
    let gateway = settings.start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    for (change, field) in [
        (json!({ "model": "huge" }), "model"),
        (json!({ "mode": "reckless" }), "mode"),
        (json!({ "maxTokens": 1001 }), "maxTokens"),
        (json!({ "shell": "zsh" }), "shell"),
    ] {
        let error = root
            .asks("UPDATE_SETTINGS", json!({ "settings": change }))
            .await;
        assert_eq!(error["code"], "VALIDATION_ERROR");
        let path = format!("payload.settings.{field}");
        assert_eq!(error["details"]["field"], path);
        assert!(
            error["message"].as_str().unwrap().contains(field),
            "{error}"
        );
    }
    let good = json!({ "model": "large", "mode": "careful", "maxTokens": 1000 });
    root.asks("UPDATE_SETTINGS", json!({ "settings": good }))
        .await;
    root.sends("REQUEST_STATE", json!({})).await;
    let state = root.sees("FULL_STATE").await;
    assert_eq!(state["payload"]["settings"]["model"], "large");
    assert_eq!(state["payload"]["settings"]["mode"], "careful");
}

#[tokio::test]
async fn agent_queries_are_answered_during_a_run_too() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    for busy in [false, true] {
        if busy {
            root.prompts("/hang").await;
            root.sees("AGENT_STATE").await;
        }
        for (kind, key) in [
            ("models", "models"),
            ("mcp", "servers"),
            ("skills", "skills"),
            ("commands", "commands"),
            ("tree", "nodes"),
        ] {
            let shown = root.asks("QUERY", json!({ "kind": kind })).await;
            assert_eq!(shown["kind"], kind);
            assert!(shown["result"][key].is_array(), "{shown}");
        }
    }
    let odd = root.asks_oddly("QUERY", json!({ "kind": "secrets" })).await;
    assert_eq!(odd["code"], "VALIDATION_ERROR");
    let echoed = root
        .asks(
            "EXTENSION",
            json!({ "name": "echo", "payload": { "a": 1 } }),
        )
        .await;
    assert_eq!(echoed["result"], json!({ "a": 1 }));
    let unknown = root.asks("EXTENSION", json!({ "name": "fly" })).await;
    assert_eq!(unknown["code"], "UNSUPPORTED");
}

#[tokio::test]
async fn an_agent_query_creates_no_session() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.asks("QUERY", json!({ "kind": "commands" })).await;
    let context = json!({ "cwd": "/src", "active_file": { "path": "a.rs" } });
    root.asks("UPDATE_CONTEXT", context).await;
    let listed = browser.gets("/api/sessions").await.json();
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn enabled_tools_can_be_set_and_survive_a_restart() {
    let mut gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.asks("SET_TOOLS", json!({ "tools": ["other"] })).await;
    root.prompts("/tool").await;
    root.sees_run_end().await;
    assert!(root.text().contains("switched off"), "{}", root.text());
    let query = format!("?session={}", root.session());
    gateway.restart();
    let mut back = joins(&gateway.logged_in("root").await, &query).await;
    back.prompts("/tool").await;
    back.sees_run_end().await;
    assert!(back.text().contains("switched off"), "{}", back.text());
    back.sends("REQUEST_STATE", json!({})).await;
    let state = back.sees("FULL_STATE").await;
    assert_eq!(state["payload"]["enabledTools"], json!(["other"]));
    let missing = back.asks_oddly("SET_TOOLS", json!({})).await;
    assert_eq!(missing["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn title_commands_and_context_usage_reach_every_client() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.prompts("/title My work").await;
    assert_eq!(
        root.sees("TITLE_UPDATE").await["payload"]["title"],
        "My work"
    );
    root.sees_run_end().await;
    root.prompts("/commands").await;
    let commands = root.sees("COMMANDS_UPDATE").await;
    assert_eq!(commands["payload"]["commands"][0]["name"], "/echo TEXT");
    root.sees_run_end().await;
    root.prompts("/usage").await;
    let usage = root.sees("USAGE_UPDATE").await;
    assert_eq!(usage["payload"]["contextLeftPercent"], 93);
    root.sees_run_end().await;
    root.sends("REQUEST_STATE", json!({})).await;
    let state = root.sees("FULL_STATE").await["payload"].clone();
    assert_eq!(state["title"], "My work");
    assert_eq!(state["contextLeftPercent"], 93);
    assert!(state["commands"].as_array().unwrap().len() > 10);
    let listed = browser.gets("/api/sessions").await.json();
    assert_eq!(listed["sessions"][0]["title"], "My work");
    // A title set by a user outranks the agent's, also after the next prompt.
    let path = format!("/api/sessions/{}", root.session());
    let renamed = json!({ "title": "Ours" });
    browser.sends("PATCH", &path, Some(renamed)).await.is(200);
    root.prompts("/echo x").await;
    root.sees_run_end().await;
    assert_eq!(browser.gets(&path).await.json()["title"], "Ours");
}

#[tokio::test]
async fn invalid_requests_are_refused_and_name_the_wrong_field() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    let long = "x".repeat(70_000);
    for (kind, payload, field) in [
        ("STEER", json!({}), "payload.text"),
        ("FOLLOW_UP", json!({ "text": "  " }), "payload.text"),
        ("SET_QUEUE_MODE", json!({}), "payload"),
        (
            "SET_QUEUE_MODE",
            json!({ "steering": "some" }),
            "payload.steering",
        ),
        ("SET_TOOLS", json!({ "tools": "date" }), "payload.tools"),
        ("UPDATE_CONTEXT", json!({ "cwd": long }), "payload"),
        ("WITHDRAW", json!({ "taskId": 7 }), "payload.taskId"),
        ("QUERY", json!({}), "payload.kind"),
        ("EXTENSION", json!({}), "payload.name"),
        ("ANSWER", json!({ "ok": true }), "payload.questionId"),
    ] {
        let error = root.asks_oddly(kind, payload).await;
        assert_eq!(error["code"], "VALIDATION_ERROR", "{kind}: {error}");
        assert_eq!(error["details"]["field"], field, "{kind}: {error}");
    }
}
