//! Reconnecting: resume after a lost connection, a killed gateway, a slow reader.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::actors::{Gateway, WsClient, count_from_env};

async fn token(gateway: &Gateway) -> String {
    gateway.logged_in("root").await.token.unwrap()
}

#[tokio::test]
async fn a_resume_replays_exactly_what_was_missed() {
    let gateway = Gateway::start().await;
    let token = token(&gateway).await;
    let mut first = WsClient::connects(gateway.address(), &token, "").await;
    first.prompts("/stream 100").await;
    first.sees_run_end().await;
    let head = *first.offsets().last().unwrap();
    for after in [0, 1, 50, head] {
        let mut back =
            WsClient::connects(gateway.address(), &token, &first.position_after(after)).await;
        assert_eq!(back.ack["resume"], "replayed");
        while back.offsets().last().copied().unwrap_or(after) < head {
            back.receives().await.unwrap();
        }
        back.sees_nothing().await;
        let expected: Vec<u64> = (after + 1..=head).collect();
        assert_eq!(back.offsets(), expected);
    }
}

#[tokio::test]
async fn an_unknown_position_gets_the_full_state() {
    let gateway = Gateway::start().await;
    let token = token(&gateway).await;
    let mut first = WsClient::connects(gateway.address(), &token, "").await;
    first.prompts("/echo hello").await;
    first.sees_run_end().await;
    let session = first.session();
    for query in [
        format!("?session={session}&after=1&epoch=epo_0199c0ffee0070008000000000000000"),
        format!("?session={session}&after=1&epoch=nonsense"),
        first.position_after(9_999),
    ] {
        let mut back = WsClient::connects(gateway.address(), &token, &query).await;
        assert_eq!(back.ack["resume"], "snapshot", "{query}");
        let state = back.receives().await.unwrap();
        assert_eq!(state["type"], "FULL_STATE");
        assert_eq!(
            state["payload"]["conversationHistory"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
        back.sees_nothing().await;
    }
}

/// Kills, restarts and resumes while an answer streams: every received event is stored byte for
/// byte, and every run has ended. `SWITCHBOARD_TEST_KILLS` sets the number of rounds.
#[tokio::test]
async fn a_killed_gateway_loses_no_event_that_a_client_saw() {
    let mut gateway = Gateway::start().await;
    let token = token(&gateway).await;
    let mut member = WsClient::connects(gateway.address(), &token, "").await;
    let mut seen = Vec::new();
    for round in 0..count_from_env("SWITCHBOARD_TEST_KILLS", 5) {
        let before = member.events.len();
        member.prompts("/stream 100000 1").await;
        while member.events.len() < before + 20 + 40 * (round % 5) {
            member.receives().await.unwrap();
        }
        gateway.signal("-KILL");
        member.sees_close().await;
        seen.append(&mut member.events);
        gateway.restart();

        let mut all =
            WsClient::connects(gateway.address(), &token, &member.position_after(0)).await;
        assert_eq!(all.ack["resume"], "replayed");
        assert_eq!(all.ack["epoch"], member.ack["epoch"]);
        for _ in 0..=round {
            all.sees_run_end().await;
        }
        let offsets = all.offsets();
        let complete = offsets.iter().copied().eq(1..=offsets.len() as u64);
        assert!(complete, "no hole and nothing twice");
        assert!(
            all.ends().iter().all(|status| status == "error"),
            "every run ended visibly"
        );
        let again = member_text(&all.events, seen_to(&seen));
        assert_eq!(
            again,
            member_text(&seen, u64::MAX),
            "what was seen is there"
        );
        let starts = |events: &[serde_json::Value]| {
            events
                .iter()
                .filter(|event| event["payload"]["status"] == "starting")
                .count()
        };
        assert_eq!(
            starts(&all.events),
            round + 1,
            "no prompt was executed twice"
        );
        seen.clear();
        seen.append(&mut all.events);
        member = all;
    }
}

#[tokio::test]
async fn a_command_repeated_with_one_idempotency_key_takes_effect_once() {
    let mut gateway = Gateway::start().await;
    let token = token(&gateway).await;
    let mut first = WsClient::connects(gateway.address(), &token, "").await;
    first.prompts("/echo begin").await;
    first.sees_run_end().await;
    let command = |text: &str| {
        json!({
            "type": "SUBMIT_PROMPT", "idempotencyKey": "key-1", "messageId": "m",
            "payload": { "text": text, "mode": "act" },
        })
        .to_string()
    };
    let mut members = Vec::new();
    for _ in 0..5 {
        let query = format!("?session={}", first.session());
        members.push(WsClient::connects(gateway.address(), &token, &query).await);
    }
    for member in &mut members {
        member.writes(&command("/echo once")).await;
    }
    let mut repeated = 0;
    for member in &mut members {
        let mut asked = false;
        loop {
            let frame = member.receives().await.unwrap();
            match frame["type"].as_str().unwrap() {
                "ACK" => repeated += 1,
                "HEARTBEAT" => break,
                _ => {}
            }
            if !asked && member.ends().len() == 1 {
                asked = true;
                member.sends("HEARTBEAT", json!({})).await;
            }
        }
        let starts = member
            .events
            .iter()
            .filter(|event| event["payload"]["status"] == "starting");
        assert_eq!(starts.count(), 1);
    }
    assert_eq!(repeated, 4, "one took effect, the others heard of it");
    first.sees_run_end().await;
    first.writes(&command("/echo another")).await;
    assert_eq!(
        first.sees("ERROR_MESSAGE").await["payload"]["code"],
        "VALIDATION_ERROR"
    );

    gateway.signal("-KILL");
    gateway.restart();
    let query = format!("?session={}", first.session());
    let mut back = WsClient::connects(gateway.address(), &token, &query).await;
    back.writes(&command("/echo once")).await;
    let shown = back.sees("ACK").await;
    assert_eq!(shown["payload"]["repeated"], true, "{shown}");
    back.sees_nothing().await;
}

/// Reads a little at a time, or nothing for a while; is never disconnected, and delays no other client.
#[tokio::test]
async fn a_slow_reader_stays_connected_and_ends_with_the_same_journal() {
    let gateway = Gateway::start().await;
    let token = token(&gateway).await;
    let mut quick = WsClient::connects(gateway.address(), &token, "").await;
    quick.prompts("/echo begin").await;
    quick.sees_run_end().await;

    let mut slow = gateway
        .connects_without_reading(&token, &quick.position())
        .await;

    quick.prompts("/chunks 2000 2000").await;
    quick.sees_run_end().await;
    let full = quick.text();
    assert!(full.len() >= 4_000_000, "{}", full.len());
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let ended = |bytes: &[u8]| {
        let last = &bytes[bytes.len().saturating_sub(2000)..];
        String::from_utf8_lossy(last).contains("\"completed\"")
    };
    while !ended(&bytes) {
        let read = tokio::time::timeout(Duration::from_secs(20), slow.read(&mut buffer)).await;
        let read = read.expect("more arrives").unwrap();
        assert!(read > 0, "cut off after {} bytes", bytes.len());
        bytes.extend_from_slice(&buffer[..read]);
    }
    // Whether as chunks, joined or in a full state: the end of the answer is there once.
    let last_chunk = &full[full.len() - 2000..full.len() - 1900];
    let received = String::from_utf8_lossy(&bytes);
    assert_eq!(
        received.matches(last_chunk).count(),
        1,
        "the answer arrived to its end"
    );
    quick.sees_nothing().await;
}

fn seen_to(events: &[serde_json::Value]) -> u64 {
    events.last().unwrap()["offset"].as_u64().unwrap()
}

/// The text of all chunks up to an offset. A joined chunk beyond it is cut: `/stream` sends one word
/// per event.
fn member_text(events: &[serde_json::Value], upto: u64) -> String {
    let mut text = String::new();
    for event in events
        .iter()
        .filter(|event| event["type"] == "TASK_OUTPUT_CHUNK")
    {
        let last = event["offset"].as_u64().unwrap();
        let first = event["payload"]["fromOffset"].as_u64().unwrap_or(last);
        let words = event["payload"]["content"]
            .as_str()
            .unwrap()
            .split_inclusive(' ');
        for (_, word) in (first..)
            .zip(words)
            .take_while(|(offset, _)| *offset <= upto)
        {
            text.push_str(word);
        }
    }
    text
}
