//! History: search, paging, export and branches.

use serde_json::{Value, json};

use crate::actors::{Gateway, HttpClient, PASSWORD, Settings, WsClient};

/// A client in a new session with these completed prompts.
async fn session_with_prompts(browser: &HttpClient, prompts: &[&str]) -> WsClient {
    let token = browser.token.as_ref().unwrap();
    let mut member = WsClient::connects(browser.address(), token, "").await;
    for prompt in prompts {
        member.prompts(prompt).await;
        member.sees_run_end().await;
    }
    member
}

/// Percent-encodes everything but letters and digits.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

async fn search(browser: &HttpClient, question: &str) -> Vec<Value> {
    let path = format!("/api/sessions?q={}", encoded(question));
    let found = browser.gets(&path).await.is(200).json();
    found["sessions"].as_array().unwrap().clone()
}

async fn finds(browser: &HttpClient, question: &str) -> Vec<String> {
    let found = search(browser, question).await;
    let id = |session: &Value| session["id"].as_str().unwrap().to_owned();
    found.iter().map(id).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// All events of a session, read page by page.
async fn events(browser: &HttpClient, session: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    loop {
        let after = all
            .last()
            .map_or(0, |event| event["offset"].as_u64().unwrap());
        let path = format!("/api/sessions/{session}/events?after={after}");
        let page = lines(&browser.gets(&path).await.is(200).text);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// Offset and content of each event, without session ids.
fn contents(events: &[Value]) -> Vec<(u64, String)> {
    let content = |event: &Value| {
        let offset = event["offset"].as_u64().unwrap();
        (offset, format!("{} {}", event["type"], event["payload"]))
    };
    events.iter().map(content).collect()
}

/// Branches a client's session.
async fn branches(member: &mut WsClient, payload: Value) -> Value {
    member.sends("BRANCH_SESSION", payload).await;
    member.sees("ACK").await["payload"].clone()
}

async fn joins(browser: &HttpClient, branch: &Value) -> WsClient {
    let session = branch["sessionId"].as_str().unwrap();
    let token = browser.token.as_ref().unwrap();
    let query = format!("?session={session}");
    let member = WsClient::connects(browser.address(), token, &query).await;
    assert_eq!(member.ack["epoch"], branch["epoch"]);
    assert_eq!(member.ack["offset"], branch["offset"]);
    member
}

#[tokio::test]
async fn a_session_is_found_by_its_title_its_prompts_and_its_answers() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let first = session_with_prompts(&root, &["/echo the Lighthouse keeper", "/stream 3"])
        .await
        .session();
    let second = session_with_prompts(&root, &["what can you do?"])
        .await
        .session();

    assert_eq!(finds(&root, "lighthouse").await, [first.as_str()]);
    assert_eq!(finds(&root, "KEEP light").await, [first.as_str()]);
    // A word of the agent's own introduction.
    assert_eq!(finds(&root, "model behind").await, [second.as_str()]);
    assert!(finds(&root, "lighthouse model").await.is_empty());
    let found = &search(&root, "keeper").await[0];
    assert!(
        found["snippet"]
            .as_str()
            .unwrap()
            .contains("Lighthouse keeper")
    );
    let shown = root.gets(&format!("/api/sessions/{first}")).await.json();
    for field in [
        "title",
        "agent",
        "status",
        "epoch",
        "offset",
        "messageCount",
        "updatedAt",
    ] {
        assert_eq!(found[field], shown[field], "{field}");
    }

    let path = format!("/api/sessions/{first}");
    let rename = |title: &str| Some(json!({ "title": title }));
    root.sends("PATCH", &path, rename("Harbour lights"))
        .await
        .is(200);
    assert_eq!(finds(&root, "harbour").await, [first.as_str()]);
    root.sends("PATCH", &path, rename("Quay")).await.is(200);
    assert!(finds(&root, "harbour").await.is_empty());
    assert_eq!(finds(&root, "quay keeper").await, [first.as_str()]);

    let archive = Some(json!({ "archived": true }));
    root.sends("PATCH", &path, archive).await.is(200);
    assert_eq!(search(&root, "quay").await[0]["status"], "archived");
    root.sends("DELETE", &path, None).await.is(204);
    assert!(finds(&root, "quay").await.is_empty());
    assert!(finds(&root, "lighthouse").await.is_empty());
    assert_eq!(finds(&root, "").await, [second], "no question, no search");
}

#[tokio::test]
async fn search_never_finds_other_users_sessions() {
    let gateway = Gateway::start().await;
    gateway.adds_user("mia", "member");
    let root = gateway.logged_in("root").await;
    let mia = gateway.logged_in("mia").await;
    let secret = session_with_prompts(&mia, &["/echo my secret is swordfish"])
        .await
        .session();
    let path = format!("/api/sessions/{secret}");
    let title = Some(json!({ "title": "Swordfish" }));
    mia.sends("PATCH", &path, title).await.is(200);
    let own = session_with_prompts(&root, &["/echo nothing of it"])
        .await
        .session();

    let odd = [
        "swordfish",
        "sword",
        "SWORDFISH*",
        "\"swordfish\"",
        "\"swordfish",
        "'swordfish'",
        "'",
        "\"",
        "*",
        "swordfish OR nothing",
        "nothing OR swordfish",
        "NOT zzz",
        "NEAR(my secret)",
        "text:swordfish",
        "owner : swordfish",
        "^swordfish",
        "secret & swordfish",
        "zzz | swordfish",
        "!zzz",
        "swordfish:*",
        "<->",
        "(",
        "\\",
        "%",
        "';--",
        "\0swordfish",
        "' or 1=1 --",
        "usr",
    ];
    for question in odd {
        let found = finds(&root, question).await;
        assert!(!found.contains(&secret), "{question}");
    }
    assert_eq!(finds(&root, "nothing").await, [own]);
    assert_eq!(finds(&mia, "swordfish").await, [secret.as_str()]);
    let garbled = root.gets("/api/sessions?q=%FF%FE").await;
    garbled.refuses(422, "VALIDATION_ERROR");
    let path = "/api/sessions?q=swordfish";
    let refused = gateway.anonymous().gets(path).await;
    refused.refuses(401, "AUTH_FAILED");
    // A session-bound token cannot search.
    let login = json!({ "username": "mia", "password": PASSWORD, "sessionId": secret });
    let bound = gateway.anonymous().posts("/api/auth/login", login).await;
    let mut program = gateway.anonymous();
    program.stores_login(bound.is(200));
    program.gets(path).await.refuses(403, "FORBIDDEN");
}

#[tokio::test]
async fn search_finds_messages_after_the_gateway_was_killed() {
    let mut gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let session = session_with_prompts(&root, &["/echo a wandering albatross"])
        .await
        .session();
    gateway.restart();
    let root = gateway.logged_in("root").await;
    assert_eq!(finds(&root, "albatross").await, [session.as_str()]);
    session_with_prompts(&root, &["/echo something else"]).await;
    assert_eq!(finds(&root, "wander alba").await, [session]);
}

#[tokio::test]
async fn search_results_are_paged() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut all = Vec::new();
    for number in 0..5 {
        let member = session_with_prompts(&root, &[&format!("/echo common {number}")]).await;
        all.push(member.session());
    }
    session_with_prompts(&root, &["/echo other"]).await;
    all.reverse();
    let (mut seen, mut next) = (Vec::new(), Some(String::new()));
    while let Some(before) = next.take() {
        let before = match before.as_str() {
            "" => String::new(),
            place => format!("&before={place}"),
        };
        let path = format!("/api/sessions?q=common&limit=2{before}");
        let page = root.gets(&path).await.is(200).json();
        let found = page["sessions"].as_array().unwrap();
        assert!(found.len() <= 2);
        seen.extend(
            found
                .iter()
                .map(|hit| hit["id"].as_str().unwrap().to_owned()),
        );
        next = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, all);
}

#[tokio::test]
async fn paging_backwards_and_forwards_return_the_same_events() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let member = session_with_prompts(&root, &["/stream 40", "/plan", "/stream 7"]).await;
    let session = member.session();
    let forwards = events(&root, &session).await;
    let page = async |query: String| {
        let path = format!("/api/sessions/{session}/events?{query}");
        lines(&root.gets(&path).await.is(200).text)
    };
    for limit in [1, 7, 1_000] {
        let (mut backwards, mut before) = (Vec::new(), 1_000_000);
        loop {
            let mut part = page(format!("before={before}&limit={limit}")).await;
            let Some(first) = part.first() else { break };
            before = first["offset"].as_u64().unwrap();
            part.extend(backwards);
            backwards = part;
        }
        assert_eq!(backwards, forwards, "{limit}");
    }
    assert_eq!(page("before=4&limit=2".into()).await, forwards[1..3]);
    for none in ["before=0", "before=1"] {
        assert!(page(none.into()).await.is_empty(), "{none}");
    }
    let events = format!("/api/sessions/{session}/events");
    for bad in ["after=1&before=3", "before=-1", "before=x"] {
        let answer = root.gets(&format!("{events}?{bad}")).await;
        answer.refuses(422, "VALIDATION_ERROR");
    }
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    let foreign = mia.gets(&format!("{events}?before=9")).await;
    foreign.refuses(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_export_is_the_whole_journal_or_a_conversation_to_read() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let member = session_with_prompts(
        &root,
        &["/stream 200", "/echo ```\n# Not a heading\n~~~", "/fail"],
    )
    .await;
    let session = member.session();
    let path = format!("/api/sessions/{session}");
    let title = Some(json!({ "title": "Odd # one" }));
    root.sends("PATCH", &path, title).await.is(200);

    let file = root
        .gets(&format!("{path}/export?format=ndjson"))
        .await
        .is(200);
    assert_eq!(file.header("content-type"), "application/x-ndjson");
    let name = "attachment; filename=\"Odd-one.ndjson\"; filename*=UTF-8''Odd-one.ndjson";
    assert_eq!(file.header("content-disposition"), name);
    let all = events(&root, &session).await;
    assert!(all.len() > 200);
    assert_eq!(lines(&file.text), all);
    assert_eq!(root.gets(&format!("{path}/export")).await.text, file.text);

    let file = root
        .gets(&format!("{path}/export?format=markdown"))
        .await
        .is(200);
    assert_eq!(file.header("content-type"), "text/markdown; charset=utf-8");
    let name = "attachment; filename=\"Odd-one.md\"; filename*=UTF-8''Odd-one.md";
    assert_eq!(file.header("content-disposition"), name);
    assert!(file.text.starts_with("# Odd \\# one\n\n"), "{}", file.text);
    let headings: Vec<&str> = file
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|heading| heading.split(" · ").next().unwrap())
        .collect();
    assert_eq!(headings[..4], ["User", "demo", "User", "demo"]);
    assert!(file.text.contains("\n> /stream 200\n"), "{}", file.text);
    let last = member.text();
    let words = last.split_whitespace().nth(199).unwrap();
    assert!(file.text.contains(words), "{words}");
    assert_eq!(file.text.matches("\n> # Not a heading\n> ~~~\n").count(), 2);
    assert!(
        file.text.contains("**Failed (TASK_FAILED): "),
        "{}",
        file.text
    );

    let bad = root.gets(&format!("{path}/export?format=pdf")).await;
    bad.refuses(422, "VALIDATION_ERROR");
    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    for format in ["ndjson", "markdown"] {
        let foreign = mia.gets(&format!("{path}/export?format={format}")).await;
        foreign.refuses(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn an_export_during_a_run_ends() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut member = session_with_prompts(&root, &[]).await;
    member.prompts("/stream 100000 2").await;
    member.sees("TASK_OUTPUT_CHUNK").await;
    let path = format!("/api/sessions/{}/export?format=markdown", member.session());
    let file = root.gets(&path).await.is(200);
    assert!(file.text.contains("> /stream 100000 2"), "{}", file.text);
    assert!(file.text.ends_with("\n\n"), "{}", file.text);
}

#[tokio::test]
async fn a_branch_copies_the_history_and_shares_no_later_event() {
    let mut gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut old = session_with_prompts(&root, &["/echo first", "/echo second"]).await;
    let path = format!("/api/sessions/{}", old.session());
    let title = Some(json!({ "title": "Origin" }));
    root.sends("PATCH", &path, title).await.is(200);
    let past = events(&root, &old.session()).await;

    let branch = branches(&mut old, json!({})).await;
    assert_eq!(branch["offset"], past.len());
    assert_ne!(branch["epoch"], old.ack["epoch"]);
    let id = branch["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(id, old.session());
    assert_eq!(contents(&events(&root, &id).await), contents(&past));
    let shown = root
        .gets(&format!("/api/sessions/{id}"))
        .await
        .is(200)
        .json();
    let expected = root.gets(&path).await.json();
    assert_eq!(shown["title"], "Origin (branch)");
    assert_eq!(shown["status"], "idle");
    for field in ["agent", "messageCount", "lastUserMessage", "offset"] {
        assert_eq!(shown[field], expected[field], "{field}");
    }

    let mut new = joins(&root, &branch).await;
    old.prompts("/echo only in the old one").await;
    old.sees_run_end().await;
    new.sees_nothing().await;
    new.prompts("/echo only in the new one").await;
    new.sees_run_end().await;
    old.sees_nothing().await;
    assert!(new.events.iter().all(|event| event["sessionId"] == *id));
    assert_eq!(finds(&root, "only old").await, [old.session()]);
    assert_eq!(finds(&root, "only new").await, [id.as_str()]);
    assert_eq!(finds(&root, "second").await.len(), 2);

    // Nor after a crash, nor when one of them is ended.
    gateway.restart();
    let root = gateway.logged_in("root").await;
    let (one, two) = (
        events(&root, &old.session()).await,
        events(&root, &id).await,
    );
    for (events, other) in [(&one, "in the new"), (&two, "in the old")] {
        assert_eq!(contents(&events[..past.len()]), contents(&past));
        assert!(
            !contents(events)
                .iter()
                .any(|(_, text)| text.contains(other))
        );
    }
    root.sends("DELETE", &path, None).await.is(204);
    assert_eq!(events(&root, &id).await, two);
}

#[tokio::test]
async fn a_branch_from_an_earlier_event_has_no_later_events() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut old = session_with_prompts(&root, &["/echo first", "/echo second"]).await;
    let all = events(&root, &old.session()).await;
    let is_end = |event: &Value| event["payload"]["status"] == "completed";
    let cut = 1 + all.iter().position(is_end).unwrap();
    let branch = branches(&mut old, json!({ "fromOffset": cut })).await;
    assert_eq!(branch["offset"], cut);
    let mut new = joins(&root, &branch).await;
    new.sends("REQUEST_STATE", json!({})).await;
    let state = new.sees("FULL_STATE").await["payload"].clone();
    let history = state["conversationHistory"].as_array().unwrap();
    assert_eq!(history.len(), 2, "{state}");
    assert_eq!(history[1]["content"], "first");
    let id = branch["sessionId"].as_str().unwrap();
    assert_eq!(contents(&events(&root, id).await), contents(&all[..cut]));
    assert_eq!(finds(&root, "second").await, [old.session()]);
    let token = root.token.as_ref().unwrap();
    let query = format!(
        "?session={id}&after=0&epoch={}",
        branch["epoch"].as_str().unwrap()
    );
    let mut replayed = WsClient::connects(gateway.address(), token, &query).await;
    assert_eq!(replayed.ack["resume"], "replayed");
    replayed.sees_run_end().await;
    assert_eq!(replayed.text(), "first");
}

#[tokio::test]
async fn a_branch_made_during_a_run_is_usable_and_the_run_continues() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut old = session_with_prompts(&root, &["/echo before"]).await;
    old.prompts("/stream 100000 5").await;
    let chunk = old.sees("TASK_OUTPUT_CHUNK").await;
    let (task, cut) = (chunk["payload"]["taskId"].clone(), &chunk["offset"]);
    for payload in [json!({}), json!({ "fromOffset": cut })] {
        let branch = branches(&mut old, payload).await;
        let id = branch["sessionId"].as_str().unwrap().to_owned();
        let all = events(&root, &id).await;
        let last = all.last().unwrap();
        assert_eq!(last["payload"]["status"], "cancelled", "{last}");
        assert_eq!(last["payload"]["taskId"], task);
        assert_eq!(last["offset"], branch["offset"]);
        let offsets: Vec<u64> = all
            .iter()
            .map(|event| event["offset"].as_u64().unwrap())
            .collect();
        assert_eq!(offsets, (1..=all.len() as u64).collect::<Vec<_>>());
        let shown = root.gets(&format!("/api/sessions/{id}")).await.json();
        assert_eq!(shown["status"], "idle");
        let mut new = joins(&root, &branch).await;
        new.prompts("/echo goes on").await;
        assert_eq!(new.sees_run_end().await["status"], "completed");
        assert_eq!(new.text(), "goes on");
    }
    let shown = root
        .gets(&format!("/api/sessions/{}", old.session()))
        .await
        .json();
    assert_eq!(shown["status"], "running");
    old.sends("CANCEL_TASK", json!({})).await;
    let ended = old.sees_run_end().await;
    assert_eq!(
        (&ended["status"], &ended["taskId"]),
        (&json!("cancelled"), &task)
    );
}

#[tokio::test]
async fn a_refused_branch_leaves_nothing_behind() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let token = root.token.as_ref().unwrap();
    let mut draft = WsClient::connects(gateway.address(), token, "").await;
    let mut member = session_with_prompts(&root, &["/echo hello"]).await;
    let refusals = [
        (&mut draft, json!({})),
        (&mut member, json!({ "fromOffset": 9_999 })),
    ];
    for (member, payload) in refusals {
        member.sends("BRANCH_SESSION", payload.clone()).await;
        let error = member.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(error["code"], "VALIDATION_ERROR", "{payload}");
        assert_eq!(error["recoverable"], true);
    }
    for bad in [json!(0), json!(-1), json!(1.5), json!("1")] {
        member
            .sends_raw("BRANCH_SESSION", json!({ "fromOffset": bad }))
            .await;
        let error = member.sees("ERROR_MESSAGE").await["payload"].clone();
        assert_eq!(error["code"], "VALIDATION_ERROR", "{bad}");
        assert_eq!(error["details"]["field"], "payload.fromOffset", "{bad}");
    }
    // A session-bound token must not create sessions.
    let login = json!({ "username": "root", "password": PASSWORD, "sessionId": member.session() });
    let bound = gateway
        .anonymous()
        .posts("/api/auth/login", login)
        .await
        .is(200);
    let bound = bound.json()["token"].as_str().unwrap().to_owned();
    let mut bound = WsClient::connects(gateway.address(), &bound, "").await;
    bound.sends("BRANCH_SESSION", json!({})).await;
    let error = bound.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(error["code"], "FORBIDDEN");
    let list = root.gets("/api/sessions").await.json();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "{list}");
}

#[tokio::test]
async fn a_branch_is_created_once_per_idempotency_key_and_belongs_to_its_creator() {
    let mut gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let mut member = session_with_prompts(&root, &["/echo hello"]).await;
    let asked = |key: &str, payload: Value| {
        json!({ "type": "BRANCH_SESSION", "payload": payload, "idempotencyKey": key, "messageId": "m1" })
            .to_string()
    };
    member.writes(&asked("k", json!({}))).await;
    let first = member.sees("ACK").await;
    assert_eq!(first["messageId"], "m1");
    assert_eq!(first["sessionId"], member.session());
    member.writes(&asked("k", json!({}))).await;
    assert_eq!(member.sees("ACK").await["payload"], first["payload"]);
    member.writes(&asked("k", json!({ "fromOffset": 1 }))).await;
    let error = member.sees("ERROR_MESSAGE").await;
    assert_eq!(error["payload"]["code"], "VALIDATION_ERROR");
    let position = member.position();
    gateway.restart();
    let root = gateway.logged_in("root").await;
    let token = root.token.as_ref().unwrap();
    let mut member = WsClient::connects(gateway.address(), token, &position).await;
    member.writes(&asked("k", json!({}))).await;
    assert_eq!(member.sees("ACK").await["payload"], first["payload"]);
    let list = root.gets("/api/sessions").await.json();
    assert_eq!(list["sessions"].as_array().unwrap().len(), 2, "{list}");

    gateway.adds_user("mia", "member");
    let mia = gateway.logged_in("mia").await;
    let branch = first["payload"]["sessionId"].as_str().unwrap();
    let foreign = mia.gets(&format!("/api/sessions/{branch}")).await;
    foreign.refuses(404, "NOT_FOUND");
    assert!(finds(&mia, "hello").await.is_empty());
}

#[tokio::test]
async fn a_journal_of_long_events_is_complete_by_every_way_of_reading() {
    let gateway = Gateway::start().await;
    let root = gateway.logged_in("root").await;
    let long = format!("/echo {}", "long ".repeat(18_000));
    let member = session_with_prompts(&root, &[long.as_str(); 8]).await;
    let path = format!("/api/sessions/{}", member.session());
    let get = async |query: &str| {
        let answer = root.gets(&format!("{path}/{query}")).await.is(200);
        assert!(answer.text.len() > 1_200_000, "{query}");
        lines(&answer.text)
    };
    let all = get("export").await;
    let offsets: Vec<u64> = all
        .iter()
        .filter_map(|event| event["offset"].as_u64())
        .collect();
    assert!(offsets.iter().copied().eq(1..=all.len() as u64));
    assert_eq!(get("events?limit=1000").await, all);
    let last = all.len() as u64;
    assert_eq!(
        get(&format!("events?before={}&limit=1000", last + 1)).await,
        all
    );
    // Starting inside, and ending before the end.
    let most = all.len() - 2;
    let part = get(&format!("events?before={last}&limit={most}")).await;
    assert_eq!(part, all[1..all.len() - 1]);
    let part = get(&format!("events?after=1&limit={most}")).await;
    assert_eq!(part, all[1..all.len() - 1]);
}

#[tokio::test]
async fn a_branch_over_the_copy_limit_is_refused_with_its_size() {
    let gateway = Settings::new()
        .with("JOURNAL__BRANCH_BYTES", "20000")
        .start()
        .await;
    let root = gateway.logged_in("root").await;
    let long = format!("/echo {}", "long ".repeat(5_000));
    let mut member = session_with_prompts(&root, &["/echo short", &long]).await;
    member.sends("BRANCH_SESSION", json!({})).await;
    let refused = member.sees("ERROR_MESSAGE").await["payload"].clone();
    assert_eq!(refused["code"], "VALIDATION_ERROR");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("at most 20000") && message.contains("journal.branch_bytes"));
    let branch = branches(&mut member, json!({ "fromOffset": 2 })).await;
    joins(&root, &branch).await;
}
