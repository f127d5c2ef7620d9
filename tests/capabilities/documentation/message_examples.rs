//! The page of examples: one of each message, as described, understood by a gateway, or said by one.

use std::collections::BTreeSet;

use futures_util::SinkExt as _;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::blocks;
use crate::actors::{Browser, Gateway, Member, Settings, contract, next_json};
use crate::agents::Part;

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
fn there_is_an_example_of_every_message_and_it_is_as_described() {
    for (heading, side) in [
        ("From the client", "client."),
        ("From the gateway", "gateway."),
    ] {
        let mut shown = BTreeSet::new();
        for (kind, frame) in examples(heading) {
            assert_eq!(frame["type"], kind);
            match side {
                "client." => contract::of_client(&frame.to_string()),
                _ => contract::of_gateway(&frame),
            }
            assert!(shown.insert(kind));
        }
        assert_eq!(shown, described(side));
    }
}

#[tokio::test]
async fn a_gateway_understands_every_example_of_a_client() {
    let gateway = Gateway::start().await;
    let token = gateway.browser("root").await.token.unwrap();
    for (kind, frame) in examples("From the client") {
        let mut member = Member::joins(gateway.address(), &token, "").await;
        member.writes(&frame.to_string()).await;
        let answer = loop {
            let answer = member.receives().await.unwrap();
            let is_answer = answer["messageId"] == frame["messageId"];
            if is_answer || answer["type"] == "TASK_STATUS_UPDATE" || answer["type"] == "HEARTBEAT"
            {
                break answer;
            }
        };
        // Ids and tokens of the page belong to another life; its form does not.
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

/// A socket of somebody who keeps every frame as it came.
struct Recorder(WebSocketStream<TcpStream>);

impl Recorder {
    async fn joins(browser: &Browser, query: &str) -> Self {
        let token = browser.token.as_deref().unwrap();
        Self::with_token(browser, token, query).await
    }

    async fn with_token(browser: &Browser, token: &str, query: &str) -> Self {
        let header = [("authorization", format!("Bearer {token}"))];
        let opened = Member::opens(browser.address(), query, &header).await;
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

/// What is the same in every life of a message: ids, times and offsets are not.
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
async fn examples_that_no_conversation_of_one_person_has_are_what_a_gateway_says() {
    let parts = Part::all();
    let pi = parts.iter().find(|part| part.name == "pi").unwrap();
    let settings = Settings::new().configured(&pi.configuration(""));
    let gateway = settings.start().await;
    gateway.has_user("ada", "member");
    let ada = gateway.browser("ada").await;
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

    let short = gateway.says(&["token", "create", "--user", "ada", "--ttl", "2s"]);
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
