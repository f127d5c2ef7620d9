//! What is nobody else's business is in no log, metric or trace, and in nothing that a command prints:
//! everything is done once with a canary in every secret and every content, at the most talkative
//! levels there are. And the net has no hole: where an operator has put the bird, it is found.

use std::process::Output;

use serde_json::{Value, json};

use crate::actors::{Browser, Collector, Gateway, Listener, Member, Settings, Storage};
use crate::agents::{Part, tells};
use crate::postgres::Database;
use channels::{CANARY, Channels, Secrets, canary};

mod channels;

/// Where agents work. An operator reads it in the configuration, and nowhere else.
const WORKSPACE: &str = "zaunkoenig";
/// Ends a line and begins one that looks like ours, and paints it.
const FORGERY: &str = "\r\n{\"level\":\"ERROR\",\"message\":\"forged-line\"}\n\u{1b}[31m";

async fn member(browser: &Browser, query: &str) -> Member {
    Member::joins(browser.address(), browser.token.as_deref().unwrap(), query).await
}

/// A collector, and how a gateway that tells it everything is started. Its agent has this name.
async fn talkative(agent: &str, format: &str, level: &str) -> (Collector, Settings) {
    let collector = Collector::start().await;
    let parts = Part::all();
    let mut acp = parts.into_iter().find(|part| part.name == "acp").unwrap();
    agent.clone_into(&mut acp.name);
    let secret = format!("env = {{ KEY = {:?} }}", canary("key"));
    let workspace = format!("workspace = \"{WORKSPACE}/{{session}}\"");
    let settings = Settings::untouched()
        .with("LOG__FORMAT", format)
        .with("LOG__LEVEL", level)
        .with("LIMITS__MESSAGES_PER_MINUTE", "1000")
        .configured(&acp.configuration(&format!("{secret}\n{workspace}")))
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .with_variable("OTEL_BSP_SCHEDULE_DELAY", "20");
    (collector, settings)
}

/// Everything, once, and what was said of it.
async fn everything(format: &str, level: &str) -> Channels {
    let mut secrets = Secrets::default();
    let (collector, mut settings) = talkative("acp", format, level).await;
    let header = format!("x-key={}", canary("header"));
    settings = settings
        .with("METRICS__TOKEN", &secrets.keeps(canary("scrape-token")))
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", &header);
    // A server that trusts everybody takes any password.
    let database = match std::env::var("SWITCHBOARD_TEST_DATABASE").as_deref() {
        Ok("postgres") => Some(Database::create().await),
        _ => None,
    };
    if let Some(database) = &database {
        let with_password = format!("postgres:{}@", canary("of-the-database"));
        let url = database.url.replace("postgres@", &with_password);
        assert_ne!(url, database.url);
        settings = settings.storing(Storage::Postgres(url));
    }
    let gateway = settings.start().await;
    assert_eq!(gateway.is_on_postgres(), database.is_some());
    let ada = people_come(&gateway, &mut secrets).await;
    let session = they_talk(&ada, &mut secrets).await;
    they_look(&gateway, &ada, &session).await;
    strangers_try(&gateway, &ada).await;
    let mut printed = an_operator_works(&gateway);
    let spans = ["submit_prompt", "run", "question", "tool"];
    collector.has(&spans).await;
    let said = Channels::of(&gateway, &ada, &collector).await;
    let all = said.clone().and_those_of(&printed);
    all.have_nothing_of(&secrets);
    let (last, others) = printed.split_last_mut().unwrap();
    let configured = String::from_utf8_lossy(&last.stdout);
    assert!(configured.contains(WORKSPACE), "{configured}");
    let elsewhere = said.and_those_of(others);
    assert_eq!(elsewhere.having(WORKSPACE), []);
    let log = all.text_of("log");
    assert!(!log.contains('\u{1b}'), "the log can be painted");
    assert!(log.lines().count() > 30, "{log}");
    all
}

#[tokio::test]
async fn no_secret_and_no_content_is_in_a_log_a_metric_or_a_trace() {
    let said = everything("json", "trace").await;
    for line in said.text_of("log").lines() {
        let line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let is_text = |key: &str| line[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(
            is_text("timestamp") && is_text("level") && is_text("message"),
            "{line}"
        );
        assert_ne!(line["message"], "forged-line");
        let target = line["target"].as_str().unwrap();
        let is_quiet = ["ERROR", "WARN", "INFO"].contains(&line["level"].as_str().unwrap());
        assert!(target.starts_with("switchboard") || is_quiet, "{line}");
    }
}

#[tokio::test]
async fn no_secret_and_no_content_is_in_a_log_for_people() {
    let said = everything("text", "debug").await;
    for line in said.text_of("log").lines() {
        let time = line.split_whitespace().next().unwrap_or_default();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "forged: {line}");
    }
}

#[tokio::test]
async fn what_is_put_into_any_channel_is_found_there() {
    for format in ["json", "text"] {
        // A name that the operator has chosen is told everywhere.
        let (collector, settings) = talkative(CANARY, format, "debug").await;
        let address = format!("http://{CANARY}.localhost");
        let gateway = settings.with("SERVER__PUBLIC_URL", &address).start().await;
        let mut ada = gateway.visitor();
        let link = crate::first_run::link_token(gateway.greeting());
        let setup = json!({ "token": link, "username": "ada", "password": "long enough for us" });
        let made = ada.posts("/api/setup", setup).await.is(200);
        ada.keeps(made);
        let mut root = member(&ada, &format!("?agent={CANARY}")).await;
        tells(&mut root, "/echo x").await;
        tells(&mut root, "/crash").await;
        collector.has(&["submit_prompt", "run"]).await;
        let printed = [
            gateway.runs(&["agent", "list"]),
            gateway.runs(&["user", "disable", CANARY]),
        ];
        let said = Channels::of(&gateway, &ada, &collector).await;
        let said = said.and_those_of(&printed);
        let found: Vec<&str> = said.having(CANARY).iter().map(|(name, _)| *name).collect();
        assert_eq!(found, said.names(), "{}", said.text_of("log"));
        // Also what is written in capitals, and what is a part of something else.
        assert_eq!(said.having(&CANARY.to_uppercase()[2..]).len(), found.len());
        let caught = std::panic::catch_unwind(|| said.have_nothing_of(&Secrets::default()));
        assert!(caught.is_err());
    }
}

/// Setting up, inviting, logging in well and badly, refreshing, tickets and tokens.
async fn people_come(gateway: &Gateway, secrets: &mut Secrets) -> Browser {
    let password = secrets.keeps(canary("password"));
    let link = secrets.keeps(crate::first_run::link_token(gateway.greeting()));
    let mut ada = gateway.visitor();
    let setup = json!({ "token": link, "username": "ada", "password": password });
    let made = ada.posts("/api/setup", setup).await.is(200);
    ada.keeps(made);
    secrets.keeps_those_of(&ada);
    ada.logs_in("ada", &canary("wrong")).await.is(401);
    ada.logs_in(&canary("typed-into-the-wrong-field"), "x")
        .await
        .is(401);
    ada.logs_in(&format!("ada{FORGERY}"), FORGERY).await;
    ada.logs_in("ada", &password).await.is(200);
    secrets.keeps_those_of(&ada);
    let mut thief = ada.clone();
    ada.refreshes().await.is(200);
    secrets.keeps_those_of(&ada);
    thief.refreshes().await.is(401);
    ada.logs_in("ada", &password).await.is(200);
    secrets.keeps_those_of(&ada);

    let invited = ada
        .posts("/api/admin/users", json!({ "username": "mia" }))
        .await
        .is(201)
        .json();
    let link = secrets.keeps(crate::first_run::link_token(
        &invited.to_string().replace('"', " "),
    ));
    let mut mia = gateway.visitor();
    let accept = json!({ "token": link, "password": canary("of-mia") });
    let accepted = mia.posts("/api/invites/accept", accept).await.is(200);
    mia.keeps(accepted);
    secrets.keeps_those_of(&mia);
    let change = json!({ "currentPassword": canary("of-mia"), "newPassword": canary("of-mia-2") });
    mia.posts("/api/auth/password", change).await;
    let ticket = ada.sends("POST", "/api/auth/ticket", None).await.json();
    let ticket = secrets.keeps(ticket["ticket"].as_str().unwrap());
    let query = format!("?ticket={ticket}");
    Member::try_join(ada.address(), &query, &[])
        .await
        .ok()
        .unwrap();
    secrets.keeps(gateway.says(&["token", "create", "--user", "mia"]).trim());
    ada
}

/// Prompts, answers, tools, questions, files, through every door, and an agent that crashes.
async fn they_talk(ada: &Browser, secrets: &mut Secrets) -> String {
    let mut root = member(ada, "").await;
    root.prompts(&format!("/echo {}", canary("prompt"))).await;
    root.sees_run_end().await;
    assert!(root.text().contains(CANARY));
    let question = |frame: &Value| frame["payload"]["questionId"].clone();
    root.prompts(&format!("/tool {}", canary("tool"))).await;
    let id = question(&root.sees("QUESTION").await);
    let allow = json!({ "questionId": id, "optionId": "allow", "reason": canary("reason") });
    root.sends("ANSWER", allow).await;
    root.sees_run_end().await;
    for (prompt, answer) in [("/prompt secret", "secret-answer"), ("/prompt", "answer")] {
        root.prompts(prompt).await;
        let id = question(&root.sees("QUESTION").await);
        let answer = json!({ "questionId": id, "value": canary(answer) });
        root.sends("ANSWER", answer).await;
        root.sees_run_end().await;
    }
    let session = root.session();
    let path = format!("/api/sessions/{session}");
    let upload = format!("{path}/attachments?name={}", canary("file.txt"));
    let made = ada
        .posts(&upload, json!({ "content": canary("content") }))
        .await
        .is(201)
        .json();
    let with_file = json!({
        "text": "/echo file", "mode": "act",
        "attachments": [{ "attachmentId": made["id"] }],
        "context": { "selection": canary("context") },
    });
    let place =
        json!({ "cwd": format!("/srv/{}", canary("path")), "active_file": canary("open-file") });
    root.sends("UPDATE_CONTEXT", place).await;
    root.sends("SUBMIT_PROMPT", with_file).await;
    root.sees_run_end().await;
    let title = json!({ "title": canary("title") });
    ada.sends("PATCH", &path, Some(title)).await.is(200);
    root.prompts(&format!("/fail {}", canary("failing"))).await;
    root.sees_run_end().await;
    root.prompts(&format!("/crash {}", canary("crashing")))
        .await;
    root.sees_run_end().await;
    let notice = json!({ "message": canary("notice") });
    ada.posts("/api/admin/notices", notice).await.is(200);
    root.sees("NOTICE").await;

    let mut agent = member(ada, "?agent=acp").await;
    tells(&mut agent, &format!("/echo {}", canary("to-the-agent"))).await;
    tells(&mut agent, &format!("/stderr {}", canary("last-words"))).await;
    tells(&mut agent, &format!("/garbage {}", canary("garbage"))).await;
    tells(&mut agent, &format!("/odd {}", canary("odd"))).await;
    tells(&mut agent, &format!("/crash {}", canary("dying"))).await;

    let mut listener =
        Listener::follows(ada.address(), ada.token.as_deref().unwrap(), &session, None).await;
    let text = format!("/echo {}", canary("over-http"));
    let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } });
    ada.posts(&format!("{path}/commands"), prompt).await.is(200);
    listener.sees_run_end().await;
    secrets.keeps(canary("over-http"));
    session
}

/// Searches, exports, history, and what administrators do.
async fn they_look(gateway: &Gateway, ada: &Browser, session: &str) {
    let path = format!("/api/sessions/{session}");
    let found = ada
        .gets(&format!("/api/sessions?q={}", canary("prompt")))
        .await
        .is(200);
    assert!(found.text.contains(session), "{}", found.text);
    for rest in [
        "/export?format=markdown",
        "/export?format=json",
        "/events",
        "",
    ] {
        ada.gets(&format!("{path}{rest}")).await;
    }
    for route in [
        "agents",
        "limits",
        "audit",
        "connections",
        "overview",
        "sessions",
        "users",
    ] {
        ada.gets(&format!("/api/admin/{route}")).await;
    }
    let viewer = json!({ "role": "viewer" });
    ada.sends("PUT", &format!("{path}/grants/mia"), Some(viewer))
        .await
        .is(200);
    let mut mia = gateway.visitor();
    mia.logs_in("mia", &canary("of-mia-2")).await;
    mia.gets(&path).await;
}

/// Control characters, lines that look like ours, and what is no message at all.
async fn strangers_try(gateway: &Gateway, ada: &Browser) {
    let mut root = member(ada, "").await;
    for raw in [
        &format!("{CANARY}{FORGERY}"),
        &format!("{{\"type\":\"{CANARY}\",\"payload\":{{}}}}"),
        &json!({ "type": "SUBMIT_PROMPT", "payload": { "text": 7, "mode": canary("mode") } })
            .to_string(),
        &json!({ "type": "SUBMIT_PROMPT", "payload": { "text": format!("{CANARY}{FORGERY}"), "mode": "act" } }).to_string(),
        &json!({ "type": "HEARTBEAT", "messageId": format!("{CANARY}{FORGERY}"), "payload": {} })
            .to_string(),
    ] {
        root.writes_raw(raw).await;
    }
    // Judged in order: whatever came of it, all of it was read before this.
    let last = r#"{"type":"HEARTBEAT","messageId":"last","payload":{}}"#;
    root.writes_raw(last).await;
    while root.receives().await.unwrap()["messageId"] != "last" {}
    let mut root = member(ada, "").await;
    // What would colour a terminal is refused in a prompt.
    let forgery = FORGERY.replace('\u{1b}', "");
    root.prompts(&format!("/echo {CANARY}{forgery}")).await;
    root.sees_run_end().await;
    let mut visitor = gateway.visitor();
    visitor.headers.push(("user-agent", canary("user-agent")));
    visitor.headers.push(("x-request-id", canary("request-id")));
    visitor.headers.push(("traceparent", canary("traceparent")));
    visitor.token = Some(canary("token"));
    visitor.me().await.is(401);
    visitor.gets(&format!("/api/{CANARY}")).await.is(404);
    visitor
        .gets(&format!("/ws?ticket={CANARY}&session={CANARY}"))
        .await;
    let mut wire = gateway.wire().await;
    let host = gateway.address();
    wire.writes(&format!(
        "{} /%0d%0a{CANARY}%1b[31m HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "KANARIENVOGEL"
    ))
    .await;
    let mut wire = gateway.wire().await;
    wire.writes(&format!("GET /{CANARY}\u{1} HTTP/1.1\r\n{CANARY}\r\n\r\n"))
        .await;
    visitor.gets("/healthz").await.is(200);
}

/// Commands of an operator, and what they print. The last one prints the configuration.
fn an_operator_works(gateway: &Gateway) -> Vec<Output> {
    let dir = tempfile::tempdir().unwrap();
    let backup = dir.path().join("copy.db");
    let commands = [
        &["backup", backup.to_str().unwrap()][..],
        &["user", "list"],
        &["user", "disable", "mia"],
        &["user", "disable", "nobody"],
        &["key", "list"],
        &["agent", "list"],
        &["agent", "test", "acp"],
        &["doctor"],
        &["config", "print"],
    ];
    let run = commands.iter().map(|arguments| gateway.runs(arguments));
    run.collect()
}
