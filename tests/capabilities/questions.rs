//! Questions: asked by an agent, shown to every member, answered once, never lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, Settings, WsClient};

async fn joins(browser: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(browser.address(), browser.token.as_deref().unwrap(), query).await
}

fn id_of(question: &Value) -> String {
    question["payload"]["questionId"]
        .as_str()
        .unwrap()
        .to_owned()
}

impl WsClient {
    /// Sends a prompt that makes the agent ask.
    async fn is_asked(&mut self, prompt: &str) -> Value {
        self.prompts(prompt).await;
        self.sees("QUESTION").await
    }

    async fn answers(&mut self, question: &Value, answer: Value) {
        let mut payload = answer;
        payload["questionId"] = json!(id_of(question));
        self.sends("ANSWER", payload).await;
    }

    async fn open_questions(&mut self) -> Vec<Value> {
        self.sends("REQUEST_STATE", json!({})).await;
        let state = self.sees("FULL_STATE").await;
        state["payload"]["questions"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_permission_request_is_answered_and_obeyed() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    for (answer, outcome, status, text) in [
        (
            json!({ "optionId": "allow" }),
            "allowed",
            "completed",
            "I ran `date`",
        ),
        (
            json!({ "ok": true }),
            "allowed",
            "completed",
            "I ran `date`",
        ),
        (
            json!({ "optionId": "deny", "reason": "not now" }),
            "denied",
            "denied",
            "Because: not now",
        ),
        (json!({ "ok": false }), "denied", "denied", "I did not run"),
    ] {
        let mut root = joins(&browser, "").await;
        let question = root.is_asked("/tool").await;
        let asked = &question["payload"];
        assert_eq!(asked["kind"], "permission");
        assert_eq!(asked["level"], "WARN");
        assert_eq!(asked["tool"]["name"], "date");
        assert_eq!(asked["tool"]["args"], json!({ "command": ["date"] }));
        assert_eq!(asked["options"][0]["id"], "allow");
        root.answers(&question, answer).await;
        let resolved = root.sees("QUESTION_RESOLVED").await;
        assert_eq!(resolved["payload"]["questionId"], asked["questionId"]);
        assert_eq!(resolved["payload"]["by"], "root");
        assert_eq!(resolved["payload"]["outcome"], outcome);
        assert_eq!(root.sees_run_end().await["status"], "completed");
        assert!(root.text().contains(text), "{}", root.text());
        let of_tool = |event: &&Value| event["type"] == "TOOL_UPDATE";
        let last = root.events.iter().rfind(of_tool).unwrap();
        assert_eq!(last["payload"]["status"], status);
        assert!(root.open_questions().await.is_empty());
    }
}

#[tokio::test]
async fn each_kind_of_question_takes_only_its_own_answers() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    for (prompt, kind, wrong, answer, outcome, text) in [
        (
            "/confirm",
            "confirm",
            json!({ "optionId": "x" }),
            json!({ "ok": true }),
            "allowed",
            "You said yes.",
        ),
        (
            "/prompt",
            "prompt",
            json!({ "value": "two\nlines" }),
            json!({ "value": "Ada" }),
            "answered",
            "You said: Ada",
        ),
        (
            "/pick",
            "pick",
            json!({ "ids": ["red", "blue"] }),
            json!({ "ids": ["blue"] }),
            "answered",
            "You picked: blue",
        ),
        (
            "/pick multi",
            "pick",
            json!({ "ids": ["purple"] }),
            json!({ "ids": ["red", "blue"] }),
            "answered",
            "You picked: red, blue",
        ),
    ] {
        let mut root = joins(&browser, "").await;
        let question = root.is_asked(prompt).await;
        assert_eq!(question["payload"]["kind"], kind);
        for refused in [wrong, json!({}), json!({ "ok": true, "value": "x" })] {
            let mut payload = refused;
            payload["questionId"] = question["payload"]["questionId"].clone();
            root.sends_raw("ANSWER", payload).await;
            let error = root.sees("ERROR_MESSAGE").await;
            assert_eq!(error["payload"]["code"], "VALIDATION_ERROR", "{error}");
        }
        assert_eq!(root.open_questions().await.len(), 1, "it still waits");
        root.answers(&question, answer).await;
        let resolved = root.sees("QUESTION_RESOLVED").await;
        assert_eq!(resolved["payload"]["outcome"], outcome);
        root.sees_run_end().await;
        assert_eq!(root.text(), text);
    }
}

#[tokio::test]
async fn a_hundred_racing_answers_have_one_winner_and_all_clients_agree() {
    let settings = Settings::new().with("LIMITS__MESSAGES_PER_MINUTE", "1000");
    let gateway = settings.start().await;
    let browser = gateway.logged_in("root").await;
    let mut asker = joins(&browser, "").await;
    let question = asker.is_asked("/tool").await;
    let mut others = Vec::new();
    for _ in 0..10 {
        let query = asker.position();
        others.push(joins(&browser, &query).await);
    }
    for other in &mut others {
        for turn in 0..10 {
            let option = if turn % 2 == 0 { "allow" } else { "deny" };
            let payload = json!({ "questionId": id_of(&question), "optionId": option });
            let message = json!({
                "type": "ANSWER", "payload": payload, "messageId": format!("{option}-{turn}"),
            });
            other.writes(&message.to_string()).await;
        }
    }
    let (mut winners, mut printed) = (Vec::new(), Vec::new());
    for other in &mut others {
        let (mut acks, mut resolutions) = (0, 0);
        while acks < 10 || resolutions < 1 {
            let frame = other.receives().await.unwrap();
            if frame["type"] == "ACK" {
                acks += 1;
                printed.push(frame["payload"]["answer"]["optionId"].clone());
                if frame["payload"]["accepted"] == true {
                    winners.push(frame["messageId"].clone());
                }
            }
            resolutions += u32::from(frame["type"] == "QUESTION_RESOLVED");
        }
    }
    asker.sees_run_end().await;
    let resolved = |member: &WsClient| -> Vec<Value> {
        let events = member.events.iter();
        events
            .filter(|event| event["type"] == "QUESTION_RESOLVED")
            .cloned()
            .collect()
    };
    let reported = resolved(&asker);
    assert_eq!(reported.len(), 1);
    for other in &others {
        assert_eq!(resolved(other), reported, "everybody saw the same");
    }
    let option = &reported[0]["payload"]["answer"]["optionId"];
    assert!(
        printed.iter().all(|received| received == option),
        "{printed:?}"
    );
    // The same answer by the same user again is idempotent.
    assert!(!winners.is_empty());
    let prefix = option.as_str().unwrap();
    let same = |winner: &Value| winner.as_str().unwrap().starts_with(prefix);
    assert!(winners.iter().all(same), "{winners:?}");
}

#[tokio::test]
async fn an_unseen_question_can_be_answered_from_another_device_after_a_restart() {
    for graceful in [false, true] {
        let mut gateway = Gateway::start().await;
        let browser = gateway.logged_in("root").await;
        let mut first = joins(&browser, "").await;
        first.prompts("/tool").await;
        let session = first.session();
        // This client leaves before it sees the question.
        drop(first);
        let path = format!("/api/sessions/{session}");
        let waits = async |browser: &HttpClient| {
            let begin = Instant::now();
            loop {
                let shown = browser.gets(&path).await;
                if shown.status == 200 && shown.json()["openQuestions"] == 1 {
                    assert_eq!(shown.json()["status"], "waiting");
                    return;
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "{}", shown.text);
                tokio::task::yield_now().await;
            }
        };
        waits(&browser).await;
        if graceful {
            gateway.signal("-TERM");
            assert_eq!(gateway.exit_code(), Some(0));
        }
        gateway.restart();
        let phone = gateway.logged_in("root").await;
        waits(&phone).await;
        let mut second = joins(&phone, &format!("?session={session}")).await;
        let open = second.open_questions().await;
        assert_eq!(open.len(), 1);
        assert_eq!(open[0]["kind"], "permission");
        let payload = json!({ "questionId": open[0]["questionId"], "optionId": "allow" });
        second.sends("ANSWER", payload).await;
        assert_eq!(second.sees_run_end().await["status"], "completed");
        assert!(second.text().contains("I ran `date`"), "{}", second.text());
    }
}

#[tokio::test]
async fn an_unanswered_question_is_denied_at_its_deadline() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    let question = root.is_asked("/tool 1").await;
    assert!(question["payload"]["expiresAt"].is_string());
    let resolved = root.sees("QUESTION_RESOLVED").await;
    assert_eq!(resolved["payload"]["outcome"], "expired");
    assert_eq!(resolved["payload"]["by"], "timeout");
    assert_eq!(root.sees_run_end().await["status"], "completed");
    assert!(root.text().contains("I did not run"), "{}", root.text());
    root.answers(&question, json!({ "optionId": "allow" }))
        .await;
    let late = root.sees("ACK").await;
    assert_eq!(late["payload"]["accepted"], false);
    assert_eq!(late["payload"]["outcome"], "expired");
}

#[tokio::test]
async fn cancelling_a_run_resolves_its_questions() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    let question = root.is_asked("/confirm").await;
    root.sends("CANCEL_TASK", json!({})).await;
    let resolved = root.sees("QUESTION_RESOLVED").await;
    assert_eq!(resolved["payload"]["outcome"], "cancelled");
    assert_eq!(root.sees_run_end().await["status"], "cancelled");
    root.answers(&question, json!({ "ok": true })).await;
    let late = root.sees("ACK").await;
    assert_eq!(late["payload"]["accepted"], false);
    assert!(root.open_questions().await.is_empty());
    root.sends_raw("ANSWER", json!({ "questionId": "qst_0", "ok": true }))
        .await;
    let odd = root.sees("ERROR_MESSAGE").await;
    assert_eq!(odd["payload"]["code"], "VALIDATION_ERROR");
    let unknown = format!("qst_{}", "0".repeat(32));
    root.sends("ANSWER", json!({ "questionId": unknown, "ok": true }))
        .await;
    let unknown = root.sees("ERROR_MESSAGE").await;
    assert_eq!(unknown["payload"]["code"], "NOT_FOUND");
}

#[tokio::test]
async fn a_remembered_decision_is_not_asked_again() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    let question = root.is_asked("/tool").await;
    let always = json!({ "optionId": "allow", "remember": true });
    root.answers(&question, always).await;
    root.sees_run_end().await;
    root.prompts("/tool").await;
    root.sees_run_end().await;
    let asked = root
        .events
        .iter()
        .filter(|event| event["type"] == "QUESTION");
    assert_eq!(asked.count(), 1);
    // Not every question can be remembered.
    let question = root.is_asked("/confirm").await;
    root.answers(&question, json!({ "ok": true, "remember": true }))
        .await;
    let refused = root.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["payload"]["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn a_session_may_auto_approve_harmless_tools_and_nothing_else() {
    let switch = |on: bool| json!({ "settings": { "autoApprove": on } });
    for (permitted, asked) in [("true", 0), ("false", 1)] {
        let settings = Settings::new().with("AGENTS__DEMO__AUTO_APPROVE", permitted);
        let gateway = settings.start().await;
        let browser = gateway.logged_in("root").await;
        let mut root = joins(&browser, "").await;
        root.sends("UPDATE_SETTINGS", switch(asked == 0)).await;
        root.sees("STATE_UPDATE").await;
        if asked == 1 {
            root.sends("UPDATE_SETTINGS", switch(true)).await;
            let refused = root.sees("ERROR_MESSAGE").await["payload"].clone();
            assert_eq!(refused["code"], "VALIDATION_ERROR");
            let field = &refused["details"]["field"];
            assert_eq!(*field, "payload.settings.autoApprove", "{refused}");
        }
        let question = root.is_asked("/tool").await;
        assert_eq!(root.open_questions().await.len(), asked);
        if asked == 1 {
            root.answers(&question, json!({ "ok": false })).await;
        }
        if root.ends().is_empty() {
            root.sees_run_end().await;
        }
        let by = |event: &&Value| event["type"] == "QUESTION_RESOLVED";
        let resolved = root.events.iter().find(by).unwrap();
        let expected = if asked == 0 { "autoApprove" } else { "root" };
        assert_eq!(resolved["payload"]["by"], expected);
        // A critical question needs a user.
        let critical = root.is_asked("/confirm").await;
        assert_eq!(critical["payload"]["level"], "CRITICAL");
        assert_eq!(root.open_questions().await.len(), 1);
    }
}

#[tokio::test]
async fn a_secret_answer_reaches_only_the_agent() {
    let gateway = Gateway::start().await;
    let browser = gateway.logged_in("root").await;
    let mut root = joins(&browser, "").await;
    let question = root.is_asked("/prompt secret").await;
    assert_eq!(question["payload"]["secret"], true);
    let secret = "canary-4711-canary";
    root.answers(&question, json!({ "value": secret })).await;
    root.sees_run_end().await;
    assert_eq!(root.text(), "Your secret has 18 characters.");
    for event in &root.events {
        assert!(!event.to_string().contains(secret), "{event}");
    }
    let path = format!("/api/sessions/{}/events", root.session());
    assert!(!browser.gets(&path).await.text.contains(secret));
    assert!(!gateway.log().contains(secret));
}

#[tokio::test]
async fn every_decision_is_in_the_audit_log_with_its_tool_and_a_digest() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    let mut member = joins(&mia, "").await;
    for (prompt, answer) in [
        ("/tool", Some(json!({ "optionId": "allow" }))),
        ("/tool", Some(json!({ "optionId": "deny" }))),
        ("/tool 1", None),
    ] {
        let question = member.is_asked(prompt).await;
        if let Some(answer) = answer {
            member.answers(&question, answer).await;
        }
        member.sees_run_end().await;
    }
    let setting = json!({ "settings": { "autoApprove": true } });
    member.sends("UPDATE_SETTINGS", setting).await;
    member.is_asked("/tool").await;
    if member.ends().len() < 4 {
        member.sees_run_end().await;
    }
    let root = gateway.logged_in("root").await;
    let path = "/api/admin/audit?action=question.answered";
    let audit = root.gets(path).await.is(200).json();
    let rows = audit["acts"].as_array().unwrap();
    let reported: Vec<(&str, &str)> = rows
        .iter()
        .rev()
        .map(|row| {
            let target = row["target"].as_str().unwrap();
            assert!(target.starts_with(&member.session()), "{target}");
            assert!(target.contains(" tool=date args=sha256:"), "{target}");
            let word = target.split(' ').nth(2).unwrap();
            (row["actor"].as_str().unwrap(), word)
        })
        .collect();
    let expected = [
        ("mia", "granted"),
        ("mia", "denied"),
        ("(gateway)", "denied"),
        ("(gateway)", "granted"),
    ];
    assert_eq!(reported, expected);
    assert!(rows.last().unwrap()["address"].is_string(), "{rows:?}");
}
