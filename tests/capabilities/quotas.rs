//! Quotas: what one user may store and send, over all sessions.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, Settings, WsClient};

async fn two_users(settings: Settings) -> (Gateway, HttpClient, HttpClient) {
    let gateway = settings.start().await;
    for name in ["mia", "ben"] {
        gateway.adds_user(name, "member");
    }
    let (mia, ben) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("ben").await,
    );
    (gateway, mia, ben)
}

async fn answers(member: &mut WsClient) {
    member.prompts("/echo fine").await;
    assert_eq!(member.sees_run_end().await["status"], "completed");
}

async fn is_over(member: &mut WsClient, limit: &str) -> Value {
    member.prompts("/echo too much").await;
    let error = member.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(error["code"], "VALIDATION_ERROR", "{error}");
    assert_eq!(error["details"]["limit"], limit, "{error}");
    error["details"].clone()
}

#[tokio::test]
async fn a_users_messages_are_limited_over_all_sessions() {
    let settings = Settings::new().with("LIMITS__USER_MESSAGES_PER_MINUTE", "12");
    let (_gateway, mia, ben) = two_users(settings).await;
    for _ in 0..3 {
        let mut member = mia.enters("").await;
        for _ in 0..4 {
            answers(&mut member).await;
        }
    }
    let mut member = mia.enters("").await;
    let prompt = json!({
        "type": "SUBMIT_PROMPT", "messageId": "m-13", "payload": { "text": "/echo x", "mode": "act" },
    });
    member.writes(&prompt.to_string()).await;
    let refused = member.sees("ERROR_MESSAGE").await;
    assert_eq!(refused["messageId"], "m-13", "{refused}");
    let error = &refused["payload"];
    assert_eq!(error["code"], "RATE_LIMITED", "{error}");
    assert_eq!(error["details"]["limit"], "userMessagesPerMinute");
    assert_eq!(error["details"]["max"], 12);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("12"), "it names the limit: {message}");
    let usage = mia.gets("/api/auth/usage").await.is(200).json();
    let expected = json!({ "used": 12, "max": 12 });
    assert_eq!(usage["messagesPerMinute"], expected, "{usage}");
    answers(&mut ben.enters("").await).await;
    let usage = ben.gets("/api/auth/usage").await.is(200).json();
    assert_eq!(usage["messagesPerMinute"]["used"], 1, "{usage}");
}

#[tokio::test]
async fn a_user_has_a_quota_of_sessions() {
    let settings = Settings::new().with("LIMITS__USER_SESSIONS", "3");
    let (_gateway, mia, ben) = two_users(settings).await;
    let mut last = String::new();
    for _ in 0..3 {
        last = mia.creates_session().await;
    }
    let refused = mia.posts("/api/sessions", json!({})).await;
    let refused = refused.refuses(422, "VALIDATION_ERROR").json();
    let expected = json!({ "limit": "userSessions", "max": 3, "actual": 4 });
    assert_eq!(refused["details"], expected);
    let mut draft = mia.enters("").await;
    let details = is_over(&mut draft, "userSessions").await;
    assert_eq!(details["max"], 3);
    let mut kept = mia.enters(&format!("?session={last}")).await;
    answers(&mut kept).await;
    kept.sends("BRANCH_SESSION", json!({})).await;
    let error = kept.sees("ERROR_MESSAGE").await;
    assert_eq!(error["payload"]["details"]["limit"], "userSessions");
    let path = format!("/api/sessions/{last}");
    mia.sends("DELETE", &path, None).await.is(204);
    answers(&mut draft).await;
    answers(&mut ben.enters("").await).await;
}

#[tokio::test]
async fn a_user_has_a_quota_of_journal_bytes_and_no_run_crosses_it_by_much() {
    const QUOTA: u64 = 1_000_000;
    let settings = Settings::new().with("LIMITS__USER_JOURNAL_BYTES", "1000000");
    let (mut gateway, mia, ben) = two_users(settings).await;
    let mut member = mia.enters("").await;
    member.prompts("/chunks 1000 10000").await;
    let end = member.sees_run_end().await;
    assert_eq!(end["status"], "error", "{end}");
    assert_eq!(end["error"]["code"], "VALIDATION_ERROR", "{end}");
    let details = is_over(&mut member, "userJournalBytes").await;
    assert_eq!(details["max"], QUOTA);
    is_over(&mut mia.enters("").await, "userJournalBytes").await;
    let refused = mia.posts("/api/sessions", json!({})).await;
    let refused = refused.refuses(422, "VALIDATION_ERROR").json();
    assert_eq!(refused["details"]["limit"], "userJournalBytes");
    let session = member.session();
    mia.shares(&session, "ben", "editor").await;
    let mut editor = ben.enters(&format!("?session={session}")).await;
    for (sender, message, payload) in [
        (&mut member, "BRANCH_SESSION", json!({})),
        (&mut editor, "SUGGEST", json!({ "text": "more" })),
    ] {
        sender.sends(message, payload).await;
        let error = sender.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(
            error["details"]["limit"], "userJournalBytes",
            "{message}: {error}"
        );
    }
    let usage = mia.gets("/api/auth/usage").await.is(200).json();
    let used = usage["journalBytes"]["used"].as_u64().unwrap();
    assert!((QUOTA..3 * QUOTA).contains(&used), "{usage}");
    assert_eq!(usage["journalBytes"]["max"], QUOTA);
    assert_eq!(usage["sessions"]["used"], 1);
    answers(&mut ben.enters("").await).await;
    let root = gateway.logged_in("root").await;
    let id = mia.me().await.is(200).json()["user"]["id"].clone();
    let path = format!("/api/admin/users/{}/usage", id.as_str().unwrap());
    // What the session recorded last may only be counted by now.
    let usage = mia.gets("/api/auth/usage").await.is(200).json();
    assert_eq!(root.gets(&path).await.is(200).json(), usage);
    let metrics = root.gets("/metrics").await.is(200).text;
    let refused = "switchboard_quota_refusals_total{quota=\"userJournalBytes\"}";
    assert!(metrics.contains(refused), "{metrics}");
    gateway.kill();
    gateway.restart();
    let token = mia.token.clone().unwrap();
    let mut back = WsClient::connects(gateway.address(), &token, &member.position()).await;
    is_over(&mut back, "userJournalBytes").await;
}

#[tokio::test]
async fn what_a_killed_gateway_had_not_counted_is_counted_later() {
    let settings = Settings::new().with("LIMITS__USER_JOURNAL_BYTES", "100000000");
    let (mut gateway, mia, _ben) = two_users(settings).await;
    let mut member = mia.enters("").await;
    member.prompts("/chunks 1000000 10000").await;
    while member.events.len() < 150 {
        member.receives().await.unwrap();
    }
    gateway.kill();
    gateway.restart();
    let token = mia.token.clone().unwrap();
    let mut back = WsClient::connects(gateway.address(), &token, &member.position()).await;
    assert_eq!(back.sees_run_end().await["status"], "error");
    let mut root = gateway.anonymous();
    root.token = Some(token);
    let usage = root.gets("/api/auth/usage").await.is(200).json();
    let used = usage["journalBytes"]["used"].as_u64().unwrap();
    assert!(used >= 1_500_000, "{usage}");
}
