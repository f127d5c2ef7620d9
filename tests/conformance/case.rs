//! One case: its number, what is sent, and what has to come back.

use std::net::SocketAddr;

use crate::gateway::Gateway;
use crate::raw::{CLOSE, FIN, PING, PONG, Raw, close_code, frame};

/// Said at the end of a case that went well.
const NORMAL: u16 = 1000;

enum Step {
    /// In one write.
    Send(Vec<u8>),
    /// In writes of so many bytes.
    Chop(Vec<u8>, usize),
    Hear(u8, Vec<u8>),
}

/// How a case has to end.
enum End {
    /// We say goodbye, and are answered in kind.
    WeLeave,
    /// The gateway closes with one of these codes, or answers our close so.
    Closed(Vec<Option<u16>>),
}

/// What is sent, and what has to come back.
pub(crate) struct Case {
    number: String,
    steps: Vec<Step>,
    end: End,
}

impl Case {
    pub(crate) fn new(number: impl Into<String>) -> Self {
        Self {
            number: number.into(),
            steps: Vec::new(),
            end: End::WeLeave,
        }
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends a frame with any first byte.
    pub(crate) fn sends(self, first: u8, payload: &[u8]) -> Self {
        self.step(Step::Send(frame(first, payload)))
    }

    /// Sends frames in one write.
    pub(crate) fn sends_at_once(self, frames: &[(u8, &[u8])]) -> Self {
        self.step(Step::Send(joined(frames)))
    }

    /// Sends frames in writes of so many bytes.
    pub(crate) fn chops(self, size: usize, frames: &[(u8, &[u8])]) -> Self {
        self.step(Step::Chop(joined(frames), size))
    }

    /// Sends a message in fragments of so many bytes.
    pub(crate) fn fragments(self, opcode: u8, payload: &[u8], size: usize) -> Self {
        let pieces = payload.chunks(size);
        let last = pieces.len() - 1;
        let bytes = pieces.enumerate().flat_map(|(place, piece)| {
            let opcode = if place == 0 { opcode } else { 0 };
            let fin = if place == last { FIN } else { 0 };
            frame(fin | opcode, piece)
        });
        let bytes = bytes.collect();
        self.step(Step::Send(bytes))
    }

    /// The next frame that comes is this one.
    pub(crate) fn hears(self, opcode: u8, payload: &[u8]) -> Self {
        self.step(Step::Hear(opcode, payload.to_vec()))
    }

    /// Everything sent so far was accepted: a ping behind it is answered.
    pub(crate) fn stays_open(self) -> Self {
        self.sends(FIN | PING, b"there?").hears(PONG, b"there?")
    }

    /// The gateway closes with one of these codes and hangs up.
    pub(crate) fn closes(mut self, codes: &[u16]) -> Self {
        self.end = End::Closed(codes.iter().copied().map(Some).collect());
        self
    }

    /// The gateway closes without a code and hangs up.
    pub(crate) fn closes_without_code(mut self) -> Self {
        self.end = End::Closed(vec![None]);
        self
    }

    async fn run(self, address: SocketAddr) -> Result<(), String> {
        let mut raw = Raw::open(address, "/echo", "").await;
        for step in self.steps {
            match step {
                Step::Send(bytes) => raw.bytes(&bytes).await,
                Step::Chop(bytes, size) => {
                    for chop in bytes.chunks(size) {
                        raw.bytes(chop).await;
                    }
                }
                Step::Hear(opcode, payload) => {
                    let expected = Some((opcode, payload));
                    let heard = raw.frame().await;
                    if heard != expected {
                        return Err(format!(
                            "{}, not {}",
                            told(heard.as_ref()),
                            told(expected.as_ref())
                        ));
                    }
                }
            }
        }
        let codes = match self.end {
            End::WeLeave => {
                raw.send(FIN | CLOSE, &NORMAL.to_be_bytes()).await;
                vec![Some(NORMAL)]
            }
            End::Closed(codes) => codes,
        };
        match raw.frame().await {
            Some((CLOSE, payload)) if codes.contains(&close_code(&payload)) => {}
            other => {
                return Err(format!(
                    "{}, not a close with {codes:?}",
                    told(other.as_ref())
                ));
            }
        }
        match raw.frame().await {
            None => Ok(()),
            more => Err(format!("{} after the close", told(more.as_ref()))),
        }
    }
}

fn joined(frames: &[(u8, &[u8])]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|(first, payload)| frame(*first, payload))
        .collect()
}

fn told(heard: Option<&(u8, Vec<u8>)>) -> String {
    match heard {
        None => "the end".to_owned(),
        Some((opcode, payload)) => {
            let beginning = &payload[..payload.len().min(40)];
            format!(
                "opcode {opcode} with {} bytes ({})",
                payload.len(),
                beginning.escape_ascii()
            )
        }
    }
}

/// Runs a chapter of so many cases, each on a socket of its own, and names those that failed.
pub(crate) async fn pass(count: usize, cases: Vec<Case>) {
    assert_eq!(cases.len(), count, "a case is missing");
    let gateway = Gateway::start();
    let mut failed = Vec::new();
    for case in cases {
        let number = case.number.clone();
        if let Err(what) = Box::pin(case.run(gateway.address)).await {
            failed.push(format!("{number}: {what}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {count} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
