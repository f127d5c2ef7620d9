//! The introduction, with which everything begins: tried up to four times.

use std::time::Duration;

use serde_json::{Value, json};

use crate::domain::code::Code;
use crate::runtime::dialect::Out;
use crate::runtime::jsonrpc::{self, Fault};

/// How long a try may take.
const WITHIN: Duration = Duration::from_secs(10);

/// How long to wait before each further try.
const AGAIN_AFTER: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// The timer of a try.
pub(super) const LATE: u64 = 1;
/// The timer of the pause before the next.
pub(super) const AGAIN: u64 = 2;

/// How far the introduction is, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    failed: usize,
    /// The number of the try that is on its way.
    id: Option<u64>,
    /// What the agent said that it can do.
    capabilities: Value,
}

impl Greeting {
    /// Sends a try under this number.
    pub(super) fn send(&mut self, id: u64, version: &str, out: &mut Out) {
        let params = json!({
            "clientName": "switchboard",
            "clientVersion": version,
            "capabilities": {
                "streaming": true,
                "specFormats": ["openapi3", "swagger2", "graphql"],
            },
        });
        self.id = Some(id);
        out.write(jsonrpc::request(id, "initialize", params));
        out.timer(LATE, WITHIN);
    }

    /// Is this the number of the try that is on its way?
    pub(super) fn is_sent_as(&self, id: &Value) -> bool {
        self.id.is_some() && id.as_u64() == self.id
    }

    /// The agent has answered the try.
    pub(super) fn answered(&mut self, agent: &str, answer: Result<Value, Fault>, out: &mut Out) {
        out.no_timer(LATE);
        match answer {
            Ok(result) => {
                self.id = None;
                self.capabilities = result["capabilities"].clone();
                out.ready(Vec::new());
            }
            Err(fault) => self.fail(agent, &fault.message, out),
        }
    }

    /// The agent has not answered in time.
    pub(super) fn late(&mut self, agent: &str, out: &mut Out) {
        if self.id.is_some() {
            self.fail(agent, "no answer within 10 s.", out);
        }
    }

    fn fail(&mut self, agent: &str, why: &str, out: &mut Out) {
        self.id = None;
        if let Some(pause) = AGAIN_AFTER.get(self.failed) {
            self.failed += 1;
            return out.timer(AGAIN, *pause);
        }
        let message = format!("The agent `{agent}` did not begin, also when asked again: {why}");
        out.fail(Code::ConnectionLost, message);
    }

    /// Has the agent said that it cannot do this? What it does not mention it can.
    pub(super) fn excludes(&self, capability: &str) -> bool {
        self.capabilities[capability] == false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::dialect::Act;

    #[test]
    fn each_try_has_ten_seconds_and_the_pauses_grow() {
        let (mut greeting, mut out) = (Greeting::default(), Out::default());
        for id in 1..=4 {
            greeting.send(id, "0.1.0", &mut out);
            greeting.late("a", &mut out);
        }
        let times = out.take().into_iter().filter_map(|act| match act {
            Act::Timer(_, after) => after.map(|after| after.as_secs()),
            _ => None,
        });
        assert_eq!(times.collect::<Vec<_>>(), [10, 2, 10, 5, 10, 10, 10]);
    }
}
