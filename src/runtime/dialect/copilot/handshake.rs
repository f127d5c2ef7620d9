//! Handshake: `initialize`, attempted up to four times.

use std::time::Duration;

use serde_json::{Value, json};

use crate::domain::error_code::ErrorCode;
use crate::runtime::dialect::Actions;
use crate::runtime::jsonrpc::{self, RpcError};

const TIMEOUT: Duration = Duration::from_secs(10);

const RETRY_DELAYS: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

pub(super) const TIMEOUT_TIMER: u64 = 1;
pub(super) const RETRY_TIMER: u64 = 2;

#[derive(Debug, Default)]
pub(super) struct Handshake {
    failed_attempts: usize,
    /// Of the attempt under way.
    request_id: Option<u64>,
    capabilities: Value,
}

impl Handshake {
    pub(super) fn send(&mut self, id: u64, version: &str, out: &mut Actions) {
        let params = json!({
            "clientName": "switchboard",
            "clientVersion": version,
            "capabilities": {
                "streaming": true,
                "specFormats": ["openapi3", "swagger2", "graphql"],
            },
        });
        self.request_id = Some(id);
        out.write(jsonrpc::request(id, "initialize", params));
        out.set_timer(TIMEOUT_TIMER, TIMEOUT);
    }

    pub(super) fn is_pending(&self, id: &Value) -> bool {
        self.request_id.is_some() && id.as_u64() == self.request_id
    }

    pub(super) fn handle_response(
        &mut self,
        agent: &str,
        answer: Result<Value, RpcError>,
        out: &mut Actions,
    ) {
        out.clear_timer(TIMEOUT_TIMER);
        match answer {
            Ok(result) => {
                self.request_id = None;
                self.capabilities = result["capabilities"].clone();
                out.ready(Vec::new());
            }
            Err(error) => self.fail(agent, &error.message, out),
        }
    }

    pub(super) fn timed_out(&mut self, agent: &str, out: &mut Actions) {
        if self.request_id.is_some() {
            self.fail(agent, "no answer within 10 s.", out);
        }
    }

    fn fail(&mut self, agent: &str, why: &str, out: &mut Actions) {
        self.request_id = None;
        if let Some(delay) = RETRY_DELAYS.get(self.failed_attempts) {
            self.failed_attempts += 1;
            return out.set_timer(RETRY_TIMER, *delay);
        }
        let message = format!("The agent `{agent}` did not begin, also when asked again: {why}");
        out.fail(ErrorCode::ConnectionLost, message);
    }

    /// Whether the agent denied a capability; it has those it does not mention.
    pub(super) fn lacks(&self, capability: &str) -> bool {
        self.capabilities[capability] == false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::dialect::Action;

    #[test]
    fn each_attempt_has_ten_seconds_and_the_delays_grow() {
        let (mut handshake, mut out) = (Handshake::default(), Actions::default());
        for id in 1..=4 {
            handshake.send(id, "0.1.0", &mut out);
            handshake.timed_out("a", &mut out);
        }
        let times = out.take().into_iter().filter_map(|act| match act {
            Action::SetTimer(_, after) => after.map(|after| after.as_secs()),
            _ => None,
        });
        assert_eq!(times.collect::<Vec<_>>(), [10, 2, 10, 5, 10, 10, 10]);
    }
}
