//! What is asked of the agent itself, while the answer is on its way.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::oneshot;

use super::super::ask::Refused;
use super::Router;
use crate::domain::code::Code;
use crate::domain::command::Inquiry;
use crate::runtime::{Declined, ToAgent};

/// So many may be on their way. More: the next is refused.
const MOST: usize = 64;

type Reply = oneshot::Sender<Result<Value, Refused>>;

/// Who waits for which answer.
#[derive(Default)]
pub(super) struct Inquiries {
    next: u64,
    waiting: HashMap<u64, Reply>,
}

impl Inquiries {
    /// Hands an answer to whoever waits for it.
    pub(super) fn answer(&mut self, id: u64, answer: Result<Value, Declined>) {
        if let Some(reply) = self.waiting.remove(&id) {
            let answer = answer.map_err(|declined| Refused::new(declined.code, declined.message));
            // Whoever asked may have left.
            drop(reply.send(answer));
        }
    }

    /// The agent is gone, and its answers with it.
    pub(super) fn forget(&mut self) {
        for (_, reply) in self.waiting.drain() {
            drop(reply.send(Err(gone("The agent ended before it answered; ask again."))));
        }
    }

    fn add(&mut self, reply: Reply) -> Result<u64, Reply> {
        self.waiting.retain(|_, reply| !reply.is_closed());
        if self.waiting.len() >= MOST {
            return Err(reply);
        }
        self.next += 1;
        self.waiting.insert(self.next, reply);
        Ok(self.next)
    }
}

impl Router {
    /// Asks the agent, which is started if it does not run.
    pub(super) async fn inquire(&mut self, inquiry: Inquiry, reply: Reply) {
        let id = match self.inquiries.add(reply) {
            Ok(id) => id,
            Err(reply) => {
                let busy = Refused::new(Code::Busy, "The agent is asked too much at the moment.");
                return drop(reply.send(Err(busy)));
            }
        };
        if let Err(message) = self.dispatch(ToAgent::Inquire { id, inquiry }).await
            && let Some(reply) = self.inquiries.waiting.remove(&id)
        {
            drop(reply.send(Err(gone(&message))));
        }
    }
}

fn gone(message: &str) -> Refused {
    Refused::new(Code::ConnectionLost, message)
}
