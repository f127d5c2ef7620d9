//! Lost rights: the work of a user who was disabled or unshared does not go on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, WsClient};

/// Deadline for the end of a disabled user's work.
const DEADLINE: Duration = Duration::from_secs(3);

struct Team {
    gateway: Gateway,
    mia: HttpClient,
    ben: HttpClient,
}

impl Team {
    async fn start() -> Self {
        let gateway = Gateway::start().await;
        for name in ["mia", "ben"] {
            gateway.adds_user(name, "member");
        }
        let (mia, ben) = (
            gateway.logged_in("mia").await,
            gateway.logged_in("ben").await,
        );
        Self { gateway, mia, ben }
    }

    /// A session of mia's with a long run of the first sender and a queued prompt of the second; `ben`
    /// has that role in it.
    async fn busy_session(&self, role: &str) -> (WsClient, WsClient) {
        let mut mia = self.mia.enters("").await;
        mia.prompts("/echo first").await;
        mia.sees_run_end().await;
        let session = mia.session();
        self.mia.shares(&session, "ben", role).await;
        let ben = self.ben.enters(&format!("?session={session}")).await;
        (mia, ben)
    }
}

/// Reads until the run with this text in its prompt has ended.
async fn sees_end_of(member: &mut WsClient, run: &str) -> Value {
    let since = Instant::now();
    loop {
        let frame = member.receives().await.unwrap();
        let payload = &frame["payload"];
        let is_end = ["completed", "cancelled", "error"]
            .iter()
            .any(|status| payload["status"] == *status);
        if frame["type"] == "TASK_STATUS_UPDATE" && payload["taskId"] == run && is_end {
            return frame;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "{run} goes on");
    }
}

/// Submits a prompt that is queued; returns its run.
async fn queues(member: &mut WsClient, text: &str) -> String {
    member.prompts(text).await;
    let ack = member.sees("ACK").await;
    ack["payload"]["taskId"].as_str().unwrap().to_owned()
}

async fn starts(member: &mut WsClient, text: &str) -> String {
    member.prompts(text).await;
    let started = member.sees("TASK_STATUS_UPDATE").await;
    started["payload"]["taskId"].as_str().unwrap().to_owned()
}

fn text_of(member: &WsClient) -> String {
    let events = member.events.iter();
    events.map(Value::to_string).collect::<Vec<_>>().concat()
}

#[tokio::test]
async fn a_disabled_users_run_is_cancelled_and_the_queued_prompt_does_not_start() {
    let team = Team::start().await;
    let (mut mia, mut ben) = team.busy_session("viewer").await;
    let running = starts(&mut mia, "/stream 1000000 10").await;
    let queued = queues(&mut mia, "/echo never-said").await;
    team.gateway.prints(&["user", "disable", "mia"]);
    let disabled = Instant::now();
    let end = sees_end_of(&mut ben, &queued).await;
    assert_eq!(end["payload"]["status"], "error", "{end}");
    assert_eq!(end["payload"]["error"]["code"], "FORBIDDEN", "{end}");
    let end = sees_end_of(&mut ben, &running).await;
    assert_eq!(end["payload"]["status"], "cancelled");
    assert!(disabled.elapsed() < DEADLINE, "{:?}", disabled.elapsed());
    ben.sees_nothing().await;
    assert!(!text_of(&ben).contains("\"content\":\"never-said"));
    let root = team.gateway.logged_in("root").await;
    let log = root.gets("/api/admin/audit?action=run.cancelled").await;
    let log = log.is(200).text;
    assert!(log.contains(&running) && log.contains(&queued), "{log}");
}

#[tokio::test]
async fn a_disabled_users_run_in_another_users_session_is_cancelled() {
    let team = Team::start().await;
    let (mut mia, mut ben) = team.busy_session("editor").await;
    let running = starts(&mut ben, "/stream 1000000 10").await;
    team.gateway.prints(&["user", "disable", "ben"]);
    let end = sees_end_of(&mut mia, &running).await;
    assert_eq!(end["payload"]["status"], "cancelled");
    mia.prompts("/echo it goes on").await;
    assert_eq!(mia.sees_run_end().await["status"], "completed");
}

#[tokio::test]
async fn the_queued_prompts_of_an_editor_who_may_not_any_more_end_visibly() {
    for role in [None, Some("viewer")] {
        let team = Team::start().await;
        let (mut mia, mut ben) = team.busy_session("editor").await;
        let running = starts(&mut mia, "/stream 1000000 10").await;
        let queued = queues(&mut ben, "/echo never-said").await;
        let own = queues(&mut mia, "/echo said-by-mia").await;
        let grant = format!("/api/sessions/{}/grants/ben", mia.session());
        match role {
            None => team.mia.sends("DELETE", &grant, None).await.is(204),
            Some(role) => {
                let role = Some(json!({ "role": role }));
                team.mia.sends("PUT", &grant, role).await.is(200)
            }
        };
        let end = sees_end_of(&mut mia, &queued).await;
        assert_eq!(end["payload"]["error"]["code"], "FORBIDDEN", "{end}");
        mia.sends("CANCEL_TASK", json!({ "taskId": running })).await;
        let end = sees_end_of(&mut mia, &own).await;
        assert_eq!(end["payload"]["status"], "completed", "others' prompts run");
        assert!(!text_of(&mia).contains("\"content\":\"never-said"));
    }
}

#[tokio::test]
async fn a_queued_prompt_is_checked_again_after_a_restart() {
    let mut team = Team::start().await;
    let (mut mia, mut ben) = team.busy_session("editor").await;
    starts(&mut mia, "/stream 1000000 10").await;
    let queued = queues(&mut ben, "/echo never-said").await;
    let query = mia.position();
    team.gateway.kill();
    team.gateway.prints(&["user", "disable", "ben"]);
    team.gateway.restart();
    let token = team.mia.token.clone().unwrap();
    let mut back = WsClient::connects(team.gateway.address(), &token, &query).await;
    let end = sees_end_of(&mut back, &queued).await;
    assert_eq!(end["payload"]["error"]["code"], "FORBIDDEN", "{end}");
    back.sees_nothing().await;
    assert!(!text_of(&back).contains("\"content\":\"never-said"));
}

/// The run waits for an answer, which would be resumed after the restart.
#[tokio::test]
async fn a_run_of_a_user_who_was_disabled_while_the_gateway_was_down_is_not_resumed() {
    let mut team = Team::start().await;
    let (mut mia, ben) = team.busy_session("viewer").await;
    let session = mia.session();
    let running = starts(&mut mia, "/tool").await;
    mia.sees("QUESTION").await;
    drop((mia, ben));
    team.gateway.kill();
    team.gateway.prints(&["user", "disable", "mia"]);
    team.gateway.starts_at("127.0.0.1:0");
    let ben = team.gateway.logged_in("ben").await;
    let path = format!("/api/sessions/{session}");
    let since = Instant::now();
    loop {
        let shown = ben.gets(&path).await.is(200).json();
        if shown["status"] == "idle" && shown["openQuestions"] == 0 {
            break;
        }
        assert!(since.elapsed() < DEADLINE, "{shown}");
        tokio::task::yield_now().await;
    }
    let root = team.gateway.logged_in("root").await;
    let log = root.gets("/api/admin/audit?action=run.cancelled").await;
    let log = log.is(200).text;
    assert!(log.contains(&running), "{log}");
}
