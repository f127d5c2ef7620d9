//! Slow readers: WebSocket clients that read slowly or pause. These tests run in real time.

use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::actors::{Gateway, WsClient};

/// A client that reads the answer of `/chunks 300 200` at its own pace.
struct Reader {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Reader {
    async fn joins(gateway: &Gateway, token: &str, query: &str) -> Self {
        Self {
            stream: gateway.connects_without_reading(token, query).await,
            bytes: Vec::new(),
        }
    }

    /// Reads at most this many bytes of what is there.
    async fn takes(&mut self, most: usize) {
        let mut buffer = vec![0; most];
        let read = tokio::time::timeout(Duration::from_secs(20), self.stream.read(&mut buffer));
        let read = read.await.expect("more arrives").unwrap();
        assert!(read > 0, "cut off after {} bytes", self.bytes.len());
        self.bytes.extend_from_slice(&buffer[..read]);
    }

    fn has_seen_the_end(&self) -> bool {
        let last = &self.bytes[self.bytes.len().saturating_sub(600)..];
        String::from_utf8_lossy(last).contains("\"status\":\"completed\"")
    }

    /// Every JSON frame so far.
    fn frames(&self) -> Vec<Value> {
        let head = self.bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let mut rest = &self.bytes[head.unwrap() + 4..];
        let mut frames = Vec::new();
        while let [_, length, after @ ..] = rest
            && after.len() >= 8
        {
            let (length, after) = match length {
                126 => (
                    usize::from(u16::from_be_bytes([after[0], after[1]])),
                    &after[2..],
                ),
                127 => {
                    let length = u64::from_be_bytes(after[..8].try_into().unwrap());
                    (usize::try_from(length).unwrap(), &after[8..])
                }
                short => (usize::from(*short), after),
            };
            // The last frame may be incomplete.
            if length > after.len() {
                break;
            }
            if let Ok(frame) = serde_json::from_slice(&after[..length]) {
                frames.push(frame);
            }
            rest = &after[length..];
        }
        frames
    }

    /// The text of the last answer: a full state if one came, then the chunks after it.
    fn text(&self) -> String {
        let mut text = String::new();
        for frame in self.frames() {
            let payload = &frame["payload"];
            match frame["type"].as_str().unwrap() {
                "TASK_OUTPUT_CHUNK" => text.push_str(payload["content"].as_str().unwrap()),
                "FULL_STATE" => {
                    let messages = payload["conversationHistory"].as_array().unwrap();
                    let last = messages.last().unwrap();
                    text = String::from(last["content"].as_str().unwrap());
                }
                _ => {}
            }
        }
        text
    }
}

async fn quick_and_slow(gateway: &Gateway) -> (WsClient, Reader) {
    let token = gateway.logged_in("root").await.token.unwrap();
    let mut quick = WsClient::connects(gateway.address(), &token, "").await;
    quick.prompts("/think").await;
    quick.sees_run_end().await;
    let slow = Reader::joins(gateway, &token, &quick.position()).await;
    quick.events.clear();
    (quick, slow)
}

#[tokio::test]
async fn a_reader_at_4_kb_per_second_stays_connected_and_gets_everything() {
    let gateway = Gateway::start().await;
    let (mut quick, mut slow) = quick_and_slow(&gateway).await;
    quick.prompts("/chunks 300 200").await;
    quick.sees_run_end().await;
    quick.sees_nothing().await;
    let mut pace = tokio::time::interval(Duration::from_millis(250));
    while !slow.has_seen_the_end() {
        pace.tick().await;
        slow.takes(1024).await;
    }
    assert_eq!(slow.text(), quick.text());
}

#[tokio::test]
async fn a_reader_that_pauses_for_20_seconds_stays_connected_and_gets_everything() {
    let gateway = Gateway::start().await;
    let (mut quick, mut slow) = quick_and_slow(&gateway).await;
    // More than all buffers on the way can hold.
    quick.prompts("/chunks 300 20000").await;
    quick.sees_run_end().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    quick.sees_nothing().await;
    while !slow.has_seen_the_end() {
        slow.takes(64 * 1024).await;
    }
    // A full state keeps 512 KiB of the 6 MB answer; the chunks have all of it.
    let (seen, all) = (slow.text(), quick.text());
    assert!(
        all.ends_with(&seen[seen.len() - 20_000..]),
        "the end is there"
    );
}
