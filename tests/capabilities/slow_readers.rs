//! Readers that take their time. Time is what these are about, so they take as long as they say.

use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::actors::{Gateway, Member};

/// The answer of `/chunks 300 200` as somebody sees it who reads at their own pace, in whichever
/// frames it comes.
struct Reader {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Reader {
    async fn joins(gateway: &Gateway, token: &str, query: &str) -> Self {
        Self {
            stream: gateway.stops_reading(token, query).await,
            bytes: Vec::new(),
        }
    }

    /// Takes what is there, at most so many bytes.
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
            // The last one may not have come whole.
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

    /// The text of the last answer: its pieces, after a state if one came in between.
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

async fn quick_and_slow(gateway: &Gateway) -> (Member, Reader) {
    let token = gateway.browser("root").await.token.unwrap();
    let mut quick = Member::joins(gateway.address(), &token, "").await;
    quick.prompts("/think").await;
    quick.sees_run_end().await;
    let slow = Reader::joins(gateway, &token, &quick.position()).await;
    quick.events.clear();
    (quick, slow)
}

#[tokio::test]
async fn a_reader_of_4_kb_per_second_is_not_cut_off_and_sees_everything() {
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
async fn a_reader_that_stops_for_20_seconds_is_not_cut_off_and_sees_everything() {
    let gateway = Gateway::start().await;
    let (mut quick, mut slow) = quick_and_slow(&gateway).await;
    // More than all buffers on the way hold.
    quick.prompts("/chunks 300 20000").await;
    quick.sees_run_end().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    quick.sees_nothing().await;
    while !slow.has_seen_the_end() {
        slow.takes(64 * 1024).await;
    }
    // The state in between keeps 512 KiB of an answer of 6 MB; the pieces have all of it.
    let (seen, all) = (slow.text(), quick.text());
    assert!(
        all.ends_with(&seen[seen.len() - 20_000..]),
        "the end is there"
    );
}
