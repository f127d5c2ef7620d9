//! Redaction: no secret and no content is in a log, metric, trace or command output. Everything is done
//! once with a canary in every secret and content, at the most verbose levels. A canary put in on
//! purpose is found, so the search has no gap.

use std::process::Output;

use serde_json::{Value, json};

use crate::actors::{Collector, Gateway, HttpClient, Settings, SseClient, Storage, WsClient};
use crate::agents::{FakeAgent, runs_prompt};
use crate::postgres::Database;
use outputs::{CANARY, Outputs, Secrets, canary};

mod outputs;

/// The agents' workspace. It may appear in the printed configuration and nowhere else.
const WORKSPACE: &str = "zaunkoenig";
/// Log injection: a line break, a forged log line, and a colour escape.
const FORGERY: &str = "\r\n{\"level\":\"ERROR\",\"message\":\"forged-line\"}\n\u{1b}[31m";

async fn member(browser: &HttpClient, query: &str) -> WsClient {
    WsClient::connects(browser.address(), browser.token.as_deref().unwrap(), query).await
}

/// A collector, and settings of a gateway that logs and exports everything. Its agent has this name.
async fn verbose_gateway(agent: &str, format: &str, level: &str) -> (Collector, Settings) {
    let collector = Collector::start().await;
    let agents = FakeAgent::all();
    let mut acp = agents
        .into_iter()
        .find(|agent| agent.name == "acp")
        .unwrap();
    agent.clone_into(&mut acp.name);
    let secret = format!("env = {{ KEY = {:?} }}", canary("key"));
    let workspace = format!("workspace = \"{WORKSPACE}/{{session}}\"");
    let settings = Settings::without_admin()
        .with("LOG__FORMAT", format)
        .with("LOG__LEVEL", level)
        .with("LIMITS__MESSAGES_PER_MINUTE", "1000")
        .with_config_file(&acp.configuration(&format!("{secret}\n{workspace}")))
        .with_variable("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
        .with_variable("OTEL_BSP_SCHEDULE_DELAY", "20");
    (collector, settings)
}

/// Uses every feature once; returns all outputs.
async fn outputs_of_everything(format: &str, level: &str) -> Outputs {
    let mut secrets = Secrets::default();
    let (collector, mut settings) = verbose_gateway("acp", format, level).await;
    let header = format!("x-key={}", canary("header"));
    settings = settings
        .with("METRICS__TOKEN", &secrets.adds(canary("scrape-token")))
        .with_variable("OTEL_EXPORTER_OTLP_HEADERS", &header);
    // Postgres with `trust` accepts any password.
    let database = match std::env::var("SWITCHBOARD_TEST_DATABASE").as_deref() {
        Ok("postgres") => Some(Database::create().await),
        _ => None,
    };
    if let Some(database) = &database {
        let with_password = format!("postgres:{}@", canary("of-the-database"));
        let url = database.url.replace("postgres@", &with_password);
        assert_ne!(url, database.url);
        settings = settings.with_storage(Storage::Postgres(url));
    }
    let gateway = settings.start().await;
    assert_eq!(gateway.is_on_postgres(), database.is_some());
    let ada = sets_up_users(&gateway, &mut secrets).await;
    let session = runs_conversations(&ada, &mut secrets).await;
    reads_and_administers(&gateway, &ada, &session).await;
    sends_bad_input(&gateway, &ada).await;
    let mut printed = runs_commands(&gateway);
    let spans = ["submit_prompt", "run", "question", "tool"];
    collector.receives_spans(&spans).await;
    let output_text = Outputs::of(&gateway, &ada, &collector).await;
    let all = output_text.clone().with_commands(&printed);
    all.contain_none_of(&secrets);
    let (last, others) = printed.split_last_mut().unwrap();
    let configured = String::from_utf8_lossy(&last.stdout);
    assert!(configured.contains(WORKSPACE), "{configured}");
    let elsewhere = output_text.with_commands(others);
    assert_eq!(elsewhere.containing(WORKSPACE), []);
    let log = all.text_of("log");
    assert!(!log.contains('\u{1b}'), "the log can be painted");
    assert!(log.lines().count() > 30, "{log}");
    all
}

#[tokio::test]
async fn no_secret_and_no_content_is_in_a_log_metric_or_trace() {
    let output_text = outputs_of_everything("json", "trace").await;
    for line in output_text.text_of("log").lines() {
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
async fn no_secret_and_no_content_is_in_a_plain_text_log() {
    let output_text = outputs_of_everything("text", "debug").await;
    for line in output_text.text_of("log").lines() {
        let time = line.split_whitespace().next().unwrap_or_default();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "forged: {line}");
    }
}

#[tokio::test]
async fn a_canary_in_any_output_is_detected() {
    for format in ["json", "text"] {
        // A name chosen by the operator appears everywhere.
        let (collector, settings) = verbose_gateway(CANARY, format, "debug").await;
        let address = format!("http://{CANARY}.localhost");
        let gateway = settings.with("SERVER__PUBLIC_URL", &address).start().await;
        let mut ada = gateway.anonymous();
        let link = crate::first_run::link_token(gateway.startup_output());
        let setup = json!({ "token": link, "username": "ada", "password": "long enough for us" });
        let made = ada.posts("/api/setup", setup).await.is(200);
        ada.stores_login(made);
        let mut root = member(&ada, &format!("?agent={CANARY}")).await;
        runs_prompt(&mut root, "/echo x").await;
        runs_prompt(&mut root, "/crash").await;
        collector.receives_spans(&["submit_prompt", "run"]).await;
        let printed = [
            gateway.runs(&["agent", "list"]),
            gateway.runs(&["user", "disable", CANARY]),
        ];
        let output_text = Outputs::of(&gateway, &ada, &collector).await;
        let output_text = output_text.with_commands(&printed);
        let found: Vec<&str> = output_text
            .containing(CANARY)
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(found, output_text.names(), "{}", output_text.text_of("log"));
        // Also in capitals, and as a part of another word.
        assert_eq!(
            output_text.containing(&CANARY.to_uppercase()[2..]).len(),
            found.len()
        );
        let caught = std::panic::catch_unwind(|| output_text.contain_none_of(&Secrets::default()));
        assert!(caught.is_err());
    }
}

/// Setup, invites, good and bad logins, refreshes, tickets and tokens.
async fn sets_up_users(gateway: &Gateway, secrets: &mut Secrets) -> HttpClient {
    let password = secrets.adds(canary("password"));
    let link = secrets.adds(crate::first_run::link_token(gateway.startup_output()));
    let mut ada = gateway.anonymous();
    let setup = json!({ "token": link, "username": "ada", "password": password });
    let made = ada.posts("/api/setup", setup).await.is(200);
    ada.stores_login(made);
    secrets.adds_tokens_of(&ada);
    ada.logs_in("ada", &canary("wrong")).await.is(401);
    ada.logs_in(&canary("typed-into-the-wrong-field"), "x")
        .await
        .is(401);
    ada.logs_in(&format!("ada{FORGERY}"), FORGERY).await;
    ada.logs_in("ada", &password).await.is(200);
    secrets.adds_tokens_of(&ada);
    let mut thief = ada.clone();
    ada.refreshes().await.is(200);
    secrets.adds_tokens_of(&ada);
    thief.refreshes().await.is(401);
    ada.logs_in("ada", &password).await.is(200);
    secrets.adds_tokens_of(&ada);

    let invited = ada
        .posts("/api/admin/users", json!({ "username": "mia" }))
        .await
        .is(201)
        .json();
    let link = secrets.adds(crate::first_run::link_token(
        &invited.to_string().replace('"', " "),
    ));
    let mut mia = gateway.anonymous();
    let accept = json!({ "token": link, "password": canary("of-mia") });
    let accepted = mia.posts("/api/invites/accept", accept).await.is(200);
    mia.stores_login(accepted);
    secrets.adds_tokens_of(&mia);
    let change = json!({ "currentPassword": canary("of-mia"), "newPassword": canary("of-mia-2") });
    mia.posts("/api/auth/password", change).await;
    let ticket = ada.sends("POST", "/api/auth/ticket", None).await.json();
    let ticket = secrets.adds(ticket["ticket"].as_str().unwrap());
    let query = format!("?ticket={ticket}");
    WsClient::try_connect(ada.address(), &query, &[])
        .await
        .ok()
        .unwrap();
    secrets.adds(gateway.prints(&["token", "create", "--user", "mia"]).trim());
    ada
}

/// Prompts, answers, tools, questions and files over every transport, and an agent that crashes.
async fn runs_conversations(ada: &HttpClient, secrets: &mut Secrets) -> String {
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
    runs_prompt(&mut agent, &format!("/echo {}", canary("to-the-agent"))).await;
    runs_prompt(&mut agent, &format!("/stderr {}", canary("last-words"))).await;
    runs_prompt(&mut agent, &format!("/garbage {}", canary("garbage"))).await;
    runs_prompt(&mut agent, &format!("/odd {}", canary("odd"))).await;
    runs_prompt(&mut agent, &format!("/crash {}", canary("dying"))).await;

    let mut listener =
        SseClient::follows(ada.address(), ada.token.as_deref().unwrap(), &session, None).await;
    let text = format!("/echo {}", canary("over-http"));
    let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": { "text": text, "mode": "act" } });
    ada.posts(&format!("{path}/commands"), prompt).await.is(200);
    listener.sees_run_end().await;
    secrets.adds(canary("over-http"));
    session
}

/// Search, export, history and administration.
async fn reads_and_administers(gateway: &Gateway, ada: &HttpClient, session: &str) {
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
    let mut mia = gateway.anonymous();
    mia.logs_in("mia", &canary("of-mia-2")).await;
    mia.gets(&path).await;
}

/// Control characters, forged log lines, and malformed messages.
async fn sends_bad_input(gateway: &Gateway, ada: &HttpClient) {
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
    // Messages are handled in order: everything before this was read.
    let last = r#"{"type":"HEARTBEAT","messageId":"last","payload":{}}"#;
    root.writes_raw(last).await;
    while root.receives().await.unwrap()["messageId"] != "last" {}
    let mut root = member(ada, "").await;
    // Terminal escapes are refused in a prompt.
    let forgery = FORGERY.replace('\u{1b}', "");
    root.prompts(&format!("/echo {CANARY}{forgery}")).await;
    root.sees_run_end().await;
    let mut visitor = gateway.anonymous();
    visitor.headers.push(("user-agent", canary("user-agent")));
    visitor.headers.push(("x-request-id", canary("request-id")));
    visitor.headers.push(("traceparent", canary("traceparent")));
    visitor.token = Some(canary("token"));
    visitor.me().await.is(401);
    visitor.gets(&format!("/api/{CANARY}")).await.is(404);
    visitor
        .gets(&format!("/ws?ticket={CANARY}&session={CANARY}"))
        .await;
    let mut tcp = gateway.raw_tcp().await;
    let host = gateway.address();
    tcp.writes(&format!(
        "{} /%0d%0a{CANARY}%1b[31m HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "KANARIENVOGEL"
    ))
    .await;
    let mut tcp = gateway.raw_tcp().await;
    tcp.writes(&format!("GET /{CANARY}\u{1} HTTP/1.1\r\n{CANARY}\r\n\r\n"))
        .await;
    visitor.gets("/healthz").await.is(200);
}

/// An operator's commands and their output. The last one prints the configuration.
fn runs_commands(gateway: &Gateway) -> Vec<Output> {
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
