//! What is asked of the agent itself, while the answer is on its way.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::ask::{Refused, Wake, recorded};
use super::super::failure::Failure;
use super::records::Change;
use super::{Over, Router};
use crate::domain::code::Code;
use crate::domain::command::Inquiry;
use crate::runtime::{Declined, ToAgent};

/// So many may be on their way. More: the next is refused.
const MOST: usize = 16;
/// An answer that nobody waits for any more may still come; after this long it does not.
const FORGOTTEN: Duration = Duration::from_secs(30);

type Reply = oneshot::Sender<Result<Value, Refused>>;

/// Who waits for which answer.
#[derive(Default)]
pub(super) struct Inquiries {
    next: u64,
    waiting: HashMap<u64, (Reply, Instant)>,
}

impl Inquiries {
    /// Hands an answer to whoever waits for it.
    pub(super) fn answer(&mut self, id: u64, answer: Result<Value, Declined>) {
        if let Some((reply, _)) = self.waiting.remove(&id) {
            let answer = answer.map_err(|declined| Refused::new(declined.code, declined.message));
            // Whoever asked may have left.
            drop(reply.send(answer));
        }
    }

    /// The agent is gone, and its answers with it.
    pub(super) fn forget(&mut self) {
        for (_, (reply, _)) in self.waiting.drain() {
            drop(reply.send(Err(gone("The agent ended before it answered; ask again."))));
        }
    }

    /// Does nobody wait any more?
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.values().all(|(reply, _)| reply.is_closed())
    }

    fn add(&mut self, reply: Reply) -> Result<u64, Reply> {
        let now = Instant::now();
        self.waiting
            .retain(|_, (reply, since)| !reply.is_closed() || now - *since < FORGOTTEN);
        if self.waiting.len() >= MOST {
            return Err(reply);
        }
        self.next += 1;
        self.waiting.insert(self.next, (reply, now));
        Ok(self.next)
    }
}

impl Router {
    /// Asks the agent, which may be started if it does not run. Under a key, once.
    pub(super) async fn inquire(
        &mut self,
        inquiry: Inquiry,
        wake: Wake,
        once: Option<(String, [u8; 32])>,
        reply: Reply,
    ) -> Result<(), Over> {
        match self.note(once).await {
            Ok(false) => {}
            Ok(true) => {
                drop(reply.send(Ok(json!({ "repeated": true }))));
                return Ok(());
            }
            Err(Failure::Refused(refused)) => {
                drop(reply.send(Err(refused)));
                return Ok(());
            }
            Err(Failure::Over) => return Err(Over),
        }
        let id = match self.inquiries.add(reply) {
            Ok(id) => id,
            Err(reply) => {
                let busy = Refused::new(Code::Busy, "The agent is asked too much at the moment.");
                drop(reply.send(Err(busy)));
                return Ok(());
            }
        };
        let asked = ToAgent::Inquire { id, inquiry };
        let asked = match wake {
            Wake::IfNeeded => self.dispatch(asked).await,
            Wake::Never => self.dispatch_if_running(asked).await,
        };
        if let Err(failed) = asked
            && let Some((reply, _)) = self.inquiries.waiting.remove(&id)
        {
            drop(reply.send(Err(Refused::new(failed.code(), failed.message()))));
        }
        Ok(())
    }

    /// Notes the key before anything is done; true if it was known.
    async fn note(&mut self, once: Option<(String, [u8; 32])>) -> Result<bool, Failure> {
        let Some(once) = once.filter(|_| self.writer.is_stored()) else {
            return Ok(false);
        };
        if self.recorded_before(&once).await?.is_some() {
            return Ok(true);
        }
        let command = Some(recorded(once, None));
        self.record(Change::default().by(command)).await?;
        Ok(false)
    }
}

fn gone(message: &str) -> Refused {
    Refused::new(Code::ConnectionLost, message)
}
