//! Queueing: one run at a time, and a queue for the rest.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, Settings, WsClient};

async fn joins(browser: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(browser.address(), browser.token.as_deref().unwrap(), query).await
}

impl WsClient {
    /// Queues a message and returns its task id.
    async fn queues(&mut self, kind: &str, text: &str) -> String {
        let mut payload = json!({ "text": text });
        if kind == "SUBMIT_PROMPT" {
            payload["mode"] = json!("act");
        }
        self.sends(kind, payload).await;
        let ack = self.sees("ACK").await;
        assert_eq!(ack["payload"]["queued"], true, "{ack}");
        ack["payload"]["taskId"].as_str().unwrap().to_owned()
    }

    /// The texts of the runs that started, in order.
    fn started_texts(&self) -> Vec<String> {
        let begun = self.events.iter().filter_map(|event| {
            let prompt = &event["payload"]["prompt"]["text"];
            prompt.as_str().map(str::to_owned)
        });
        begun.collect()
    }

    async fn sees_run_ends(&mut self, count: usize) {
        while self.ends().len() < count {
            self.sees_run_end().await;
        }
    }

    async fn queue(&mut self) -> Vec<String> {
        self.sends("REQUEST_STATE", json!({})).await;
        let state = self.sees("FULL_STATE").await;
        let line = state["payload"]["queue"].as_array().unwrap().clone();
        let text = |place: &Value| place["text"].as_str().unwrap().to_owned();
        line.iter().map(text).collect()
    }
}

/// A session with a run that lasts until it is cancelled.
async fn busy_session(gateway: &Gateway) -> (HttpClient, WsClient) {
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.prompts("/hang").await;
    root.sees("AGENT_STATE").await;
    (browser, root)
}

#[tokio::test]
async fn a_prompt_during_a_run_is_queued_and_keeps_its_task_id() {
    let gateway = Gateway::start().await;
    let (_, mut root) = busy_session(&gateway).await;
    let task = root.queues("SUBMIT_PROMPT", "/echo later").await;
    assert_eq!(root.queue().await, ["/echo later"]);
    root.sends("CANCEL_TASK", json!({})).await;
    root.sees_run_ends(2).await;
    assert_eq!(root.started_texts(), ["/hang", "/echo later"]);
    assert_eq!(root.ends(), ["cancelled", "completed"]);
    assert_eq!(root.text(), "later");
    let last = root.events.last().unwrap();
    assert_eq!(last["payload"]["taskId"], task.as_str());
    assert!(root.queue().await.is_empty());
}

#[tokio::test]
async fn a_prompt_that_must_not_queue_is_refused_during_a_run() {
    let gateway = Gateway::start().await;
    let (_, mut root) = busy_session(&gateway).await;
    let prompt = json!({ "text": "/echo x", "mode": "act", "ifBusy": "refuse" });
    root.sends("SUBMIT_PROMPT", prompt).await;
    assert_eq!(root.sees("ERROR_MESSAGE").await["payload"]["code"], "BUSY");
    assert!(root.queue().await.is_empty());
}

#[tokio::test]
async fn steering_messages_run_before_follow_ups_in_both_queue_modes() {
    let gateway = Gateway::start().await;
    for (mode, expected) in [
        (
            "one-at-a-time",
            vec!["/hang", "/echo s1", "/echo s2", "/echo f1", "/echo f2"],
        ),
        (
            "all",
            vec!["/hang", "/echo s1\n\n/echo s2", "/echo f1\n\n/echo f2"],
        ),
    ] {
        let (_, mut root) = busy_session(&gateway).await;
        let modes = json!({ "steering": mode, "followUp": mode });
        root.sends("SET_QUEUE_MODE", modes).await;
        root.sees("ACK").await;
        root.queues("FOLLOW_UP", "/echo f1").await;
        root.queues("STEER", "/echo s1").await;
        root.queues("FOLLOW_UP", "/echo f2").await;
        let merged = root.queues("STEER", "/echo s2").await;
        let line = root.queue().await;
        assert_eq!(line, ["/echo s1", "/echo s2", "/echo f1", "/echo f2"]);
        root.sends("CANCEL_TASK", json!({})).await;
        // Each of the five has its own end, whichever run it joined.
        root.sees_run_ends(5).await;
        assert_eq!(root.started_texts(), expected);
        if mode == "all" {
            let stands_for = |event: &Value| event["payload"]["mergedTaskIds"] == json!([merged]);
            assert!(root.events.iter().any(stands_for), "the others are named");
        }
        let of_queue = |event: &&Value| event["type"] == "QUEUE_UPDATE";
        let last = root.events.iter().rfind(of_queue).unwrap();
        assert_eq!(last["payload"]["queue"], json!([]));
        assert_eq!(last["payload"]["queueModes"]["steering"], mode);
    }
}

#[tokio::test]
async fn steering_or_following_up_on_an_idle_agent_starts_a_run_at_once() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.sends("STEER", json!({ "text": "/echo a" })).await;
    let ack = root.sees("ACK").await;
    assert!(ack["payload"]["taskId"].is_string());
    assert!(ack["payload"]["queued"].is_null());
    root.sees_run_ends(1).await;
    root.sends("FOLLOW_UP", json!({ "text": "/echo b" })).await;
    root.sees_run_ends(2).await;
    assert_eq!(root.text(), "ab");
}

#[tokio::test]
async fn a_queued_prompt_can_be_withdrawn_until_it_starts() {
    let gateway = Gateway::start().await;
    let (browser, mut root) = busy_session(&gateway).await;
    let mut other = joins(&browser, &root.position()).await;
    let first = root.queues("SUBMIT_PROMPT", "/echo first").await;
    let second = root.queues("SUBMIT_PROMPT", "/echo second").await;
    for _ in 0..2 {
        other.sends("WITHDRAW", json!({ "taskId": first })).await;
        let ack = other.sees("ACK").await;
        assert_eq!(
            ack["payload"]["taskId"],
            first.as_str(),
            "said twice or not"
        );
    }
    assert_eq!(root.queue().await, ["/echo second"]);
    // Cancelling a queued prompt withdraws it, too.
    other
        .sends("CANCEL_TASK", json!({ "taskId": second }))
        .await;
    other.sees("ACK").await;
    assert!(root.queue().await.is_empty());
    assert_eq!(
        root.ends(),
        ["cancelled", "cancelled"],
        "what was withdrawn has its end"
    );
    let live = root.events[0]["payload"]["taskId"].clone();
    root.sends("WITHDRAW", json!({ "taskId": live })).await;
    let begun = root.sees("ERROR_MESSAGE").await;
    assert_eq!(begun["payload"]["code"], "VALIDATION_ERROR");
    let unknown = format!("run_{}", "0".repeat(32));
    root.sends("WITHDRAW", json!({ "taskId": unknown })).await;
    let unknown = root.sees("ERROR_MESSAGE").await;
    assert_eq!(unknown["payload"]["code"], "NOT_FOUND");
    root.sends("CANCEL_TASK", json!({})).await;
    root.sees_run_ends(3).await;
    assert_eq!(
        root.started_texts(),
        ["/hang"],
        "nothing withdrawn has begun"
    );
}

#[tokio::test]
async fn the_queue_survives_a_restart_and_continues_without_a_client() {
    let mut gateway = Gateway::start().await;
    let (_, mut root) = busy_session(&gateway).await;
    root.queues("SUBMIT_PROMPT", "/echo one").await;
    root.queues("SUBMIT_PROMPT", "/echo two").await;
    let query = root.position();
    gateway.restart();
    // No client joins: the session list alone shows the progress.
    let browser = gateway.logged_in("root").await;
    let path = format!("/api/sessions/{}", root.session());
    let begin = std::time::Instant::now();
    loop {
        let shown = browser.gets(&path).await.json();
        if shown["status"] == "idle" && shown["queuedPrompts"] == 0 {
            break;
        }
        assert!(begin.elapsed().as_secs() < 20, "{shown}");
        tokio::task::yield_now().await;
    }
    let mut back = joins(&browser, &query).await;
    back.sees_run_ends(3).await;
    assert_eq!(back.ends(), ["error", "completed", "completed"]);
    assert_eq!(back.text(), "onetwo");
    let mut offsets = root.offsets();
    offsets.extend(back.offsets());
    assert!(offsets.iter().copied().eq(1..=offsets.len() as u64));
}

#[tokio::test]
async fn the_101st_prompt_that_waits_is_refused_with_the_limit() {
    let settings = Settings::new().with("LIMITS__MESSAGES_PER_MINUTE", "1000");
    let gateway = settings.start().await;
    let (_, mut root) = busy_session(&gateway).await;
    for number in 0..100 {
        root.queues("SUBMIT_PROMPT", &format!("/echo {number}"))
            .await;
    }
    root.prompts("/echo too many").await;
    let full = root.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(full["code"], "RATE_LIMITED");
    assert_eq!(full["recoverable"], true);
    let details = json!({ "limit": "queueMax", "max": 100, "actual": 101 });
    assert_eq!(full["details"], details);
    assert_eq!(root.queue().await.len(), 100);
}

#[tokio::test]
async fn an_operator_chooses_how_many_prompts_may_wait() {
    let settings = Settings::new().with("SESSIONS__QUEUE_MAX", "2");
    let gateway = settings.start().await;
    let (_, mut root) = busy_session(&gateway).await;
    let first = root.queues("SUBMIT_PROMPT", "/echo one").await;
    root.queues("FOLLOW_UP", "/echo two").await;
    root.sends("FOLLOW_UP", json!({ "text": "/echo three" }))
        .await;
    let full = root.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(full["code"], "RATE_LIMITED");
    assert_eq!(full["details"]["max"], 2);
    root.sends("WITHDRAW", json!({ "taskId": first })).await;
    root.sees("ACK").await;
    root.queues("FOLLOW_UP", "/echo three").await;
    assert_eq!(root.queue().await, ["/echo two", "/echo three"]);
}

#[tokio::test]
async fn cancelling_a_steering_message_cancels_its_run() {
    let gateway = Gateway::start().await;
    let (_, mut root) = busy_session(&gateway).await;
    root.sends("SET_QUEUE_MODE", json!({ "steering": "all" }))
        .await;
    root.sees("ACK").await;
    root.queues("STEER", "/hang").await;
    let part = root.queues("STEER", "and this").await;
    root.sends("CANCEL_TASK", json!({})).await;
    while root.started_texts().len() < 2 {
        root.receives().await.unwrap();
    }
    root.sends("WITHDRAW", json!({ "taskId": part })).await;
    let begun = root.sees("ERROR_MESSAGE").await;
    assert_eq!(begun["payload"]["code"], "VALIDATION_ERROR");
    root.sends("CANCEL_TASK", json!({ "taskId": part })).await;
    root.sees_run_ends(3).await;
    assert_eq!(root.ends(), ["cancelled", "cancelled", "cancelled"]);
}

#[tokio::test]
async fn a_flood_of_agent_queries_does_not_stop_a_stream() {
    let settings = Settings::new().with("LIMITS__MESSAGES_PER_MINUTE", "1000");
    let gateway = settings.start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    root.prompts("/stream 60000").await;
    root.sees("TASK_OUTPUT_CHUNK").await;
    let path = format!("/api/sessions/{}/commands", root.session());
    let query = json!({ "type": "QUERY", "payload": { "kind": "models" } });
    // Concurrently by POST: on a socket each would wait for the reply before it.
    let asking = (0..80).map(|_| browser.posts(&path, query.clone()));
    for reported in futures_util::future::join_all(asking).await {
        let kind = reported.json()["type"].clone();
        assert!(
            kind == "QUERY_RESULT" || reported.status == 409,
            "{}",
            reported.text
        );
    }
    root.sees_run_ends(1).await;
    assert_eq!(root.ends(), ["completed"]);
}
