//! Admin: what administrators see and do, and the content that stays hidden from them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD, Settings, WsClient};

/// Appears in a conversation and nowhere else.
const CANARY: &str = "canary-7f3a";

/// Every admin route in OpenAPI: method, and path with `x` for its parameters.
async fn admin_routes(gateway: &Gateway) -> Vec<(String, String)> {
    let document = gateway.anonymous().gets("/api/openapi.json").await.json();
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        if path.starts_with("/api/admin/") {
            for method in item.as_object().unwrap().keys() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    assert!(routes.len() >= 16, "{routes:?}");
    routes
}

async fn joins(page: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(page.address(), page.token.as_deref().unwrap(), query).await
}

/// The audit log as `actor action target`, the newest first.
async fn acts(page: &HttpClient, query: &str) -> Vec<String> {
    let log = page.gets(&format!("/api/admin/audit{query}")).await.is(200);
    let word = |act: &Value, name: &str| act[name].as_str().unwrap().to_owned();
    let line = |act: &Value| {
        format!(
            "{} {} {}",
            word(act, "actor"),
            word(act, "action"),
            word(act, "target")
        )
    };
    let body = log.json();
    body["acts"].as_array().unwrap().iter().map(line).collect()
}

fn limit(body: &Value, name: &str) -> Value {
    let limits = body["limits"].as_array().unwrap();
    let found = limits.iter().find(|limit| limit["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {body}"))
        .clone()
}

#[tokio::test]
async fn members_get_403_on_every_admin_route() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    for (method, path) in admin_routes(&gateway).await {
        let concrete = path.replace("{id}", "x");
        let body = (method != "GET" && method != "DELETE").then(|| json!({}));
        let answer = mia.sends(&method, &concrete, body.clone()).await;
        answer.refuses(403, "FORBIDDEN");
        let visitor = gateway.anonymous();
        visitor.sends(&method, &concrete, body).await.is(401);
    }
}

#[tokio::test]
async fn admin_responses_contain_no_conversation_content() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let page = gateway.logged_in("mia").await;
    let titled = json!({ "title": format!("title {CANARY}") });
    let made = page.posts("/api/sessions", titled).await.is(201).json();
    let id = made["id"].as_str().unwrap().to_owned();
    let mut mia = joins(&page, &format!("?session={id}")).await;
    mia.prompts(&format!("/echo {CANARY}")).await;
    mia.sees_run_end().await;
    mia.prompts(&format!("/hang {CANARY}")).await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let owners = page.gets("/api/sessions").await.text;
    assert!(owners.matches(CANARY).count() >= 2, "{owners}");

    let root = gateway.logged_in("root").await;
    let user = page_id(&page);
    for (method, path) in admin_routes(&gateway).await {
        if method != "GET" {
            continue;
        }
        let concrete = path.replace("{id}", &user);
        let answer = root.gets(&concrete).await.is(200);
        assert!(!answer.text.contains(CANARY), "{path}: {}", answer.text);
    }
    root.sends("DELETE", &format!("/api/admin/sessions/{id}"), None)
        .await
        .is(204);
    let log = root.gets("/api/admin/audit?limit=1000").await.is(200);
    assert!(!log.text.contains(CANARY));
}

/// The user id, from the token.
fn page_id(page: &HttpClient) -> String {
    use base64::Engine as _;
    let claims = page.token.as_deref().unwrap().split('.').nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims);
    let claims: Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    claims["sub"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn administrators_filter_all_sessions_by_user_agent_and_status() {
    let gateway = Settings::new()
        .with("AGENTS__TOY__PROTOCOL", "demo")
        .start()
        .await;
    for name in ["mia", "tom"] {
        gateway.adds_user(name, "member");
    }
    let (mia, tom) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("tom").await,
    );
    let root = gateway.logged_in("root").await;
    let mut running = joins(&mia, "?agent=toy").await;
    running.prompts("/hang").await;
    running.sees("TASK_STATUS_UPDATE").await;
    let _second = joins(&mia, &format!("?session={}", running.session())).await;
    let made = tom.posts("/api/sessions", json!({})).await.is(201).json();
    let idle = made["id"].as_str().unwrap().to_owned();
    let made = tom.posts("/api/sessions", json!({})).await.is(201).json();
    let away = made["id"].as_str().unwrap().to_owned();
    tom.sends(
        "PATCH",
        &format!("/api/sessions/{away}"),
        Some(json!({ "archived": true })),
    )
    .await
    .is(200);

    let found = async |query: &str| {
        let body = root.gets(&format!("/api/admin/sessions{query}")).await;
        let body = body.is(200).json();
        let ids = body["sessions"].as_array().unwrap().iter();
        let mut ids: Vec<String> = ids
            .map(|session| session["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let busy = running.session();
    let all = sorted(vec![busy.clone(), idle.clone(), away.clone()]);
    assert_eq!(found("").await, all);
    assert_eq!(found("?user=mia").await, [busy.as_str()]);
    let by_id = format!("?user={}", page_id(&tom));
    assert_eq!(
        found(&by_id).await,
        sorted(vec![idle.clone(), away.clone()])
    );
    assert_eq!(found("?agent=toy").await, [busy.as_str()]);
    assert_eq!(found("?status=running").await, [busy.as_str()]);
    assert_eq!(found("?status=archived&user=tom").await, [away.as_str()]);
    assert_eq!(found("?status=idle").await, [idle]);
    assert!(found("?status=idle&user=mia").await.is_empty());
    for bad in ["?status=asleep", "?before=x", "?limit=many"] {
        let answer = root.gets(&format!("/api/admin/sessions{bad}")).await;
        answer.refuses(422, "VALIDATION_ERROR");
    }

    let body = root.gets("/api/admin/sessions?user=mia").await.json();
    let session = &body["sessions"][0];
    assert_eq!(session["owner"]["username"], "mia");
    assert_eq!(session["owner"]["id"], page_id(&mia));
    assert_eq!(session["connections"], 2);
    assert_eq!(session["messageCount"], 1);

    let (mut seen, mut query) = (Vec::new(), "?limit=1".to_owned());
    loop {
        let body = root
            .gets(&format!("/api/admin/sessions{query}"))
            .await
            .json();
        let page = body["sessions"].as_array().unwrap();
        seen.extend(
            page.iter()
                .map(|one| one["id"].as_str().unwrap().to_owned()),
        );
        match body["next"].as_str() {
            Some(next) => query = format!("?limit=1&before={next}"),
            None => break,
        }
    }
    assert_eq!(sorted(seen), all);
}

#[tokio::test]
async fn a_session_ended_by_an_administrator_disconnects_every_member() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    gateway.adds_user("tom", "member");
    let (page, root) = (
        gateway.logged_in("mia").await,
        gateway.logged_in("root").await,
    );
    let mut mia = joins(&page, "").await;
    mia.prompts("/hang").await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let mut second = joins(&page, &format!("?session={}", mia.session())).await;
    let mut tom = joins(&gateway.logged_in("tom").await, "").await;
    let route = format!("/api/admin/sessions/{}", mia.session());
    root.sends("DELETE", &route, None).await.is(204);
    assert_eq!(mia.sees_close().await.code, 4409);
    assert_eq!(mia.ends(), ["cancelled"], "its run has an end");
    assert_eq!(second.sees_close().await.code, 4409);
    tom.sees_nothing().await;

    let own = format!("/api/sessions/{}", mia.session());
    page.gets(&own).await.refuses(404, "NOT_FOUND");
    root.sends("DELETE", &route, None)
        .await
        .refuses(404, "NOT_FOUND");
    let ended = acts(&root, "?action=session.ended").await;
    assert_eq!(ended, [format!("root session.ended {}", mia.session())]);
}

#[tokio::test]
async fn administrators_see_which_agents_are_configured_and_used() {
    let gateway = Settings::new()
        .with("AGENTS__TOY__PROTOCOL", "demo")
        .with("AGENTS__OLD__PROTOCOL", "demo")
        .with("AGENTS__OLD__ENABLED", "false")
        .start()
        .await;
    let root = gateway.logged_in("root").await;
    let mut toy = joins(&root, "?agent=toy").await;
    toy.prompts("/echo x").await;
    toy.sees_run_end().await;
    let body = root.gets("/api/admin/agents").await.is(200).json();
    let agents = body["agents"].as_array().unwrap();
    let reported: Vec<_> = agents
        .iter()
        .map(|agent| {
            (
                agent["name"].clone(),
                agent["enabled"].clone(),
                agent["sessions"].clone(),
            )
        })
        .collect();
    let expected = [("demo", true, 0), ("old", false, 0), ("toy", true, 1)];
    assert_eq!(
        reported,
        expected.map(|(name, enabled, count)| (json!(name), json!(enabled), json!(count)))
    );
    assert_eq!(agents[2]["protocol"], "demo");
    assert!(!agents[2]["capabilities"].as_array().unwrap().is_empty());
    let open = root.gets("/api/agents").await.json();
    assert!(!open.to_string().contains("old"), "{open}");
}

#[tokio::test]
async fn the_audit_log_is_filtered_and_paged() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    for _ in 0..3 {
        gateway.anonymous().logs_in("mia", "wrong").await.is(401);
    }
    let mia = gateway.logged_in("mia").await;
    mia.sends("POST", "/api/auth/logout", None).await.is(204);

    let failed = acts(&root, "?action=login.failed").await;
    assert_eq!(failed.len(), 3, "{failed:?}");
    let logins = acts(&root, "?action=login.&actor=mia").await;
    let words: Vec<_> = logins
        .iter()
        .map(|line| line.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(
        words,
        [
            "login.ended",
            "login.succeeded",
            "login.failed",
            "login.failed",
            "login.failed"
        ],
        "the newest first"
    );
    let created = acts(&root, "?action=user.created&actor=(operator)").await;
    assert_eq!(created.len(), 1, "{created:?}");
    assert!(acts(&root, "?action=login").await.is_empty());
    assert!(acts(&root, "?until=2020-01-01").await.is_empty());
    let everything = acts(&root, "?limit=1000").await;
    assert_eq!(
        acts(&root, "?since=2020-01-01&limit=1000").await,
        everything
    );
    let target = created[0].split(' ').nth(2).unwrap();
    let about = acts(&root, &format!("?target={target}&action=user.")).await;
    assert_eq!(about, created);

    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let body = root.gets(&format!("/api/admin/audit{query}")).await.json();
        assert!(body["acts"].as_array().unwrap().len() <= 2);
        seen.extend(acts(&root, &query).await);
        match body["next"].as_i64() {
            Some(next) => query = format!("?limit=2&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, everything);
    for bad in [
        "?since=yesterday",
        "?until=2026-02-30",
        "?since=2026-03-01T08:00:00",
        "?before=x",
        "?limit=-1",
    ] {
        let answer = root.gets(&format!("/api/admin/audit{bad}")).await;
        answer.refuses(422, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn a_changed_limit_is_exact_at_once() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut member = joins(&root, "").await;
    member.prompts("/echo 1").await;
    member.sees_run_end().await;
    let changed = root
        .sends(
            "PATCH",
            "/api/admin/limits",
            Some(json!({ "messagesPerMinute": 4 })),
        )
        .await
        .is(200)
        .json();
    assert_eq!(limit(&changed, "messagesPerMinute")["value"], 4);
    assert_eq!(limit(&changed, "messagesPerMinute")["configured"], 100);
    assert!(
        changed["scope"]
            .as_str()
            .unwrap()
            .contains("until it restarts")
    );
    for _ in 2..=4 {
        member.sends("CANCEL_TASK", json!({})).await;
        member.sees("ACK").await;
    }
    for _ in 0..2 {
        member.sends("CANCEL_TASK", json!({})).await;
        let refused = member.sees("ERROR_MESSAGE").await;
        assert_eq!(refused["payload"]["code"], "RATE_LIMITED", "{refused}");
        let details = &refused["payload"]["details"];
        assert_eq!(details["limit"], "messagesPerMinute");
        assert_eq!(details["max"], 4);
    }
    let back = joins(&root, &format!("?session={}", member.session())).await;
    assert_eq!(back.ack["limits"]["messagesPerMinute"], 4);

    root.sends(
        "PATCH",
        "/api/admin/limits",
        Some(json!({ "messagesPerMinute": 6 })),
    )
    .await
    .is(200);
    for _ in 5..=6 {
        member.sends("CANCEL_TASK", json!({})).await;
        member.sees("ACK").await;
    }
    member.sends("CANCEL_TASK", json!({})).await;
    member.sees("ERROR_MESSAGE").await;
    let shown = root.gets("/api/admin/limits").await.is(200).json();
    assert_eq!(limit(&shown, "messagesPerMinute")["refused"], 3);
    assert_eq!(limit(&shown, "stateRequestsPerMinute")["refused"], 0);
    let metrics = root.gets("/metrics").await.is(200).text;
    let counted = r#"switchboard_limits_refused_total{limit="messagesPerMinute"} 3"#;
    assert!(metrics.contains(counted), "{metrics}");
    let overview = root.gets("/api/admin/overview").await.is(200).json();
    assert_eq!(
        overview["limitsHit"],
        json!([{ "name": "messagesPerMinute", "refused": 3 }])
    );
}

#[tokio::test]
async fn limits_by_address_size_and_heartbeat_are_shown_and_logins_can_be_changed() {
    let mut gateway = Settings::new()
        .with("LIMITS__HEARTBEATS_PER_MINUTE", "2")
        .with("LIMITS__PROMPT_CHARS", "10")
        .start()
        .await;
    let root = gateway.logged_in("root").await;
    let mut member = joins(&root, "").await;
    member.sees_nothing().await;
    member.sees_nothing().await;
    member.sends("HEARTBEAT", json!({})).await;
    member.sees("ERROR_MESSAGE").await;
    member.prompts("/echo more than ten").await;
    member.sees("ERROR_MESSAGE").await;
    root.sends(
        "PATCH",
        "/api/admin/limits",
        Some(json!({ "loginsPerMinute": 1 })),
    )
    .await
    .is(200);
    let wrong = json!({ "username": "root", "password": PASSWORD });
    let refused = gateway
        .anonymous()
        .posts("/api/auth/login", wrong.clone())
        .await;
    refused.refuses(429, "RATE_LIMITED");
    let shown = root.gets("/api/admin/limits").await.json();
    for (name, refused) in [
        ("heartbeatsPerMinute", 1),
        ("promptChars", 1),
        ("messageBytes", 0),
        ("loginsPerMinute", 1),
    ] {
        assert_eq!(limit(&shown, name)["refused"], refused, "{name}");
    }
    gateway.restart();
    let back = gateway.logged_in("root").await;
    let shown = back.gets("/api/admin/limits").await.json();
    assert_eq!(limit(&shown, "loginsPerMinute")["value"], 100_000);
}

#[tokio::test]
async fn a_limit_out_of_range_changes_nothing() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    for bad in [
        json!({ "messagesPerMinute": 0 }),
        json!({ "messagesPerMinute": 50, "loginsPerMinute": 100_001 }),
        json!({ "messagesPerMinute": -1 }),
        json!({ "messagesPerMinute": 1.5 }),
        json!({ "messageBytes": 10 }),
        json!({}),
    ] {
        let answer = root.sends("PATCH", "/api/admin/limits", Some(bad)).await;
        answer.refuses(422, "VALIDATION_ERROR");
    }
    let shown = root.gets("/api/admin/limits").await.json();
    assert_eq!(limit(&shown, "messagesPerMinute")["value"], 100);
    assert!(acts(&root, "?action=limits.changed").await.is_empty());
}

#[tokio::test]
async fn the_overview_counts_users_sessions_runs_and_connections() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let (root, page) = (
        gateway.logged_in("root").await,
        gateway.logged_in("mia").await,
    );
    let mut mia = joins(&page, "").await;
    let _draft = joins(&page, "").await;
    mia.prompts("/hang").await;
    mia.sees("TASK_STATUS_UPDATE").await;
    let overview = root.gets("/api/admin/overview").await.is(200).json();
    for (name, expected) in [
        ("users", 2),
        ("sessions", 1),
        ("runningRuns", 1),
        ("awakeSessions", 1),
        ("connections", 2),
    ] {
        assert_eq!(overview[name], expected, "{name}: {overview}");
    }
    assert_eq!(overview["version"], env!("CARGO_PKG_VERSION"));
    assert!(overview["uptimeSeconds"].as_u64().unwrap() < 600);
    assert_eq!(overview["limitsHit"], json!([]));
}

#[tokio::test]
async fn connections_are_filtered_and_paged() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let (root, page) = (
        gateway.logged_in("root").await,
        gateway.logged_in("mia").await,
    );
    let mia = joins(&page, "").await;
    let _others = [joins(&page, "").await, joins(&root, "").await];
    let found = async |query: &str| {
        let body = root.gets(&format!("/api/admin/connections{query}")).await;
        body.is(200).json()
    };
    let count = |body: &Value| body["connections"].as_array().unwrap().len();
    assert_eq!(count(&found("").await), 3);
    assert_eq!(count(&found("?user=mia").await), 2);
    assert_eq!(count(&found(&format!("?user={}", page_id(&page))).await), 2);
    let one = found(&format!("?session={}", mia.session())).await;
    assert_eq!(one["connections"][0]["id"], mia.ack["connectionId"]);
    assert_eq!(count(&one), 1);
    let first = found("?limit=2").await;
    assert_eq!(count(&first), 2);
    let next = first["next"].as_str().unwrap();
    let last = found(&format!("?limit=2&after={next}")).await;
    assert_eq!((count(&last), last["next"].as_str()), (1, None));
    root.gets("/api/admin/connections?session=x")
        .await
        .refuses(422, "VALIDATION_ERROR");
}

#[tokio::test]
async fn every_admin_action_is_in_the_audit_log() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let new = json!({ "username": "mia", "password": PASSWORD });
    let made = root.posts("/api/admin/users", new).await.is(201).json();
    let user = made["user"]["id"].as_str().unwrap().to_owned();
    let route = format!("/api/admin/users/{user}");
    let page = gateway.logged_in("mia").await;
    let mut mia = joins(&page, "").await;
    mia.prompts("/echo x").await;
    mia.sees_run_end().await;
    let connection = mia.ack["connectionId"].as_str().unwrap().to_owned();

    let disconnect = format!("/api/admin/connections/{connection}");
    let end = format!("/api/admin/sessions/{}", mia.session());
    let invite = format!("{route}/invite");
    let notice = json!({ "message": "hello" });
    for (method, path, body, status) in [
        ("POST", "/api/admin/notices", Some(notice), 200),
        ("DELETE", &disconnect, None, 204),
        ("DELETE", &end, None, 204),
        (
            "PATCH",
            "/api/admin/limits",
            Some(json!({ "loginsPerMinute": 7, "stateRequestsPerMinute": 9 })),
            200,
        ),
        ("POST", &invite, None, 200),
        ("PATCH", &route, Some(json!({ "role": "admin" })), 200),
        ("PATCH", &route, Some(json!({ "disabled": true })), 200),
        ("PATCH", &route, Some(json!({ "disabled": false })), 200),
        ("DELETE", &route, None, 204),
    ] {
        root.sends(method, path, body).await.is(status);
    }
    let done = acts(&root, "?actor=root&limit=10").await;
    assert_eq!(
        done,
        [
            "root user.removed mia".into(),
            "root user.enabled mia".into(),
            "root user.disabled mia".into(),
            "root user.role_changed mia to admin".into(),
            "root link.issued mia".into(),
            "root limits.changed stateRequestsPerMinute=9 loginsPerMinute=7".into(),
            format!("root session.ended {}", mia.session()),
            format!("root connection.closed {connection}"),
            "root notice.sent everybody".into(),
            "root user.created mia".into(),
        ]
    );
}

#[tokio::test]
async fn an_administrator_can_test_an_agent() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let tried = |prompt: bool| json!({ "prompt": prompt });
    let answer = root.posts("/api/admin/agents/demo/test", tried(true)).await;
    let answer = answer.is(200).json();
    assert_eq!(answer["ok"], true, "{answer}");
    let lines = answer["lines"].to_string();
    assert!(lines.contains("I am the demo agent"), "{lines}");
    root.posts("/api/admin/agents/nobody/test", tried(false))
        .await
        .refuses(404, "NOT_FOUND");
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    mia.posts("/api/admin/agents/demo/test", tried(false))
        .await
        .refuses(403, "FORBIDDEN");
    let audit = root.gets("/api/admin/audit?action=agent.tested").await;
    let acts = audit.is(200).json();
    assert_eq!(acts["acts"][0]["target"], "demo", "{acts}");
    assert_eq!(acts["acts"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn the_output_of_an_agent_test_is_withheld_from_a_demoted_administrator() {
    let place = tempfile::tempdir().unwrap();
    let agent = |name: &str| {
        let dir = place.path().display();
        format!(
            "[agents.{name}]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"\"\"\
             touch {dir}/{name}-began; until [ -e {dir}/{name}-may-end ]; do sleep 0.02; done; \
             echo hush >&2; exit 3\"\"\"]\nwrite = [\"{dir}\"]\n"
        )
    };
    let names = ["kept", "demoted", "disabled", "loggedout"];
    let gateway = Settings::new()
        .with_config_file(&names.map(agent).concat())
        .start()
        .await;
    let root = gateway.logged_in("root").await;
    for name in names {
        gateway.adds_user(name, "admin");
        let admin = gateway.logged_in(name).await;
        let path = format!("/api/admin/agents/{name}/test");
        let asks = admin.posts(&path, json!({}));
        let meanwhile = async {
            while !place.path().join(format!("{name}-began")).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let me = admin.me().await.is(200).json();
            let user = format!("/api/admin/users/{}", me["user"]["id"].as_str().unwrap());
            let change = match name {
                "demoted" => root.sends("PATCH", &user, Some(json!({ "role": "member" }))),
                "disabled" => root.sends("PATCH", &user, Some(json!({ "disabled": true }))),
                "loggedout" => admin.sends("POST", "/api/auth/logout", None),
                _ => root.sends("GET", "/api/auth/me", None),
            };
            let status = change.await.status;
            assert!((200..300).contains(&status), "{name}: {status}");
            std::fs::write(place.path().join(format!("{name}-may-end")), "").unwrap();
        };
        let (answer, ()) = tokio::join!(asks, meanwhile);
        if name == "kept" {
            let reported = answer.is(200).json();
            assert_eq!(reported["ok"], false, "{reported}");
            assert!(reported.to_string().contains("hush"), "{reported}");
        } else {
            assert!(!answer.text.contains("hush"), "{name}: {}", answer.text);
            answer.refuses(401, "AUTH_FAILED");
        }
    }
}
