//! Message examples: one of each message, valid by its schema, accepted or sent by a gateway.

use std::collections::BTreeSet;

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::blocks;
use crate::actors::{Gateway, HttpClient, Settings, WsClient, asyncapi, next_json};
use crate::agents::FakeAgent;

/// The examples of one side: the type in the heading, and the frame.
fn examples(side: &str) -> Vec<(String, Value)> {
    let page = include_str!("../../../docs/client-protocol-examples.md");
    let part = page.split(&format!("## {side}")).nth(1).unwrap();
    let part = part.split("\n## ").next().unwrap();
    let example = |text: &str| {
        let kind = text
            .lines()
            .next()
            .unwrap()
            .trim()
            .trim_matches('`')
            .to_owned();
        let frame = blocks(text, "json").concat();
        (
            kind,
            serde_json::from_str(&frame).unwrap_or_else(|error| panic!("{error}: {text}")),
        )
    };
    part.split("\n### ").skip(1).map(example).collect()
}

fn described(side: &str) -> BTreeSet<String> {
    let document = switchboard::http::asyncapi("");
    let messages = document["components"]["messages"].as_object().unwrap();
    messages
        .keys()
        .filter_map(|name| name.strip_prefix(side).map(str::to_owned))
        .collect()
}

#[test]
fn every_message_has_an_example_that_matches_its_schema() {
    for (heading, side) in [
        ("From the client", "client."),
        ("From the gateway", "gateway."),
    ] {
        let mut shown = BTreeSet::new();
        for (kind, frame) in examples(heading) {
            assert_eq!(frame["type"], kind);
            match side {
                "client." => asyncapi::check_client_message(&frame.to_string()),
                _ => asyncapi::check_gateway_message(&frame),
            }
            assert!(shown.insert(kind));
        }
        assert_eq!(shown, described(side));
    }
}

#[tokio::test]
async fn the_gateway_accepts_every_client_example() {
    let gateway = Gateway::start().await;
    let token = gateway.logged_in("root").await.token.unwrap();
    for (kind, frame) in examples("From the client") {
        let mut member = WsClient::connects(gateway.address(), &token, "").await;
        member.writes(&frame.to_string()).await;
        let answer = loop {
            let answer = member.receives().await.unwrap();
            let is_answer = answer["messageId"] == frame["messageId"];
            if is_answer || answer["type"] == "TASK_STATUS_UPDATE" || answer["type"] == "HEARTBEAT"
            {
                break answer;
            }
        };
        // Ids and tokens in the page are invented; the form is checked.
        let code = answer["payload"]["code"].as_str().unwrap_or_default();
        assert_ne!(code, "INVALID_MESSAGE", "{kind}: {answer}");
        if code == "VALIDATION_ERROR" {
            assert!(
                ["AUTH_REFRESH", "BRANCH_SESSION", "WITHDRAW"].contains(&kind.as_str()),
                "{kind}: {answer}"
            );
        }
    }
}

/// A socket that keeps every frame unchanged.
struct Recorder(WebSocketStream<TcpStream>);

impl Recorder {
    async fn joins(browser: &HttpClient, query: &str) -> Self {
        let token = browser.token.as_deref().unwrap();
        Self::with_token(browser, token, query).await
    }

    async fn with_token(browser: &HttpClient, token: &str, query: &str) -> Self {
        let header = [("authorization", format!("Bearer {token}"))];
        let opened = WsClient::opens_socket(browser.address(), query, &header).await;
        Self(opened.unwrap())
    }

    async fn prompts(&mut self, text: &str) {
        let payload = json!({ "text": text, "mode": "act" });
        let prompt = json!({ "type": "SUBMIT_PROMPT", "payload": payload });
        let sent = self.0.send(Message::text(prompt.to_string())).await;
        sent.unwrap();
    }

    /// The next frame of that type.
    async fn catches(&mut self, kind: &str) -> Value {
        loop {
            let frame = next_json(&mut self.0).await.unwrap();
            if frame["type"] == kind {
                return frame;
            }
        }
    }
}

/// A message without what varies: ids, times and offsets.
fn lasting(value: &Value) -> Value {
    let is_id = |text: &str| {
        let rest = text.split_once('_').filter(|(kind, _)| kind.len() == 3);
        rest.is_some_and(|(_, rest)| rest.len() == 32 && u128::from_str_radix(rest, 16).is_ok())
    };
    match value {
        Value::String(text) if is_id(text) => json!(format!("{}_", &text[..3])),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => json!("a time"),
        Value::Array(values) => values.iter().map(lasting).collect(),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| match key.as_str() {
                "offset" => (key.clone(), json!(value.is_u64())),
                _ => (key.clone(), lasting(value)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        other => other.clone(),
    }
}

#[tokio::test]
async fn examples_outside_a_plain_conversation_match_what_the_gateway_sends() {
    let agents = FakeAgent::all();
    let pi = agents.iter().find(|agent| agent.name == "pi").unwrap();
    let settings = Settings::new().with_config_file(&pi.configuration(""));
    let gateway = settings.start().await;
    gateway.adds_user("ada", "member");
    let ada = gateway.logged_in("ada").await;
    let mut caught = Vec::new();

    let mut first = Recorder::joins(&ada, "").await;
    let session = first.catches("CONNECTION_ACK").await["sessionId"].clone();
    let query = format!("?session={}", session.as_str().unwrap());
    let _second = Recorder::joins(&ada, &query).await;
    caught.push(first.catches("PRESENCE").await);
    first.prompts("/title A tidy list").await;
    caught.push(first.catches("TITLE_UPDATE").await);
    first.prompts("/commands").await;
    let mut commands = first.catches("COMMANDS_UPDATE").await;
    let all = commands["payload"]["commands"].as_array_mut().unwrap();
    assert!(all.len() > 2);
    all.truncate(2);
    caught.push(commands);

    let mut agent = Recorder::joins(&ada, "?agent=pi").await;
    agent.prompts("/odd").await;
    caught.push(agent.catches("AGENT_NOTICE").await);
    caught.push(agent.catches("RAW").await);

    let short = gateway.prints(&["token", "create", "--user", "ada", "--ttl", "2s"]);
    let mut expiring = Recorder::with_token(&ada, short.trim(), "").await;
    caught.push(expiring.catches("TOKEN_EXPIRING").await);

    let shown = examples("From the gateway");
    for frame in caught {
        let (_, example) = shown
            .iter()
            .find(|(kind, _)| frame["type"] == kind.as_str())
            .unwrap();
        assert_eq!(
            lasting(example),
            lasting(&frame),
            "a gateway says: {frame:#}"
        );
    }
}
