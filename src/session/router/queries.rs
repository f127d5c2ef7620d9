//! Queries: requests to the agent itself whose answers go to one sender only.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::super::mailbox::{CommandError, Refused, StartPolicy, command_record};
use super::commit::Change;
use super::{Router, Terminated};
use crate::domain::command::AgentRequest;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::RunId;
use crate::domain::idempotency::IdempotencyKey;
use crate::runtime::{Declined, ToAgent};

/// Full: the next one is refused.
const MAX_PENDING_QUERIES: usize = 16;
/// How long an answer that its sender no longer waits for may still come and hold its slot.
const ABANDONED_QUERY_TIMEOUT: Duration = Duration::from_secs(30);

type ReplySender = oneshot::Sender<Result<Value, Refused>>;

#[derive(Default)]
pub(super) struct PendingQueries {
    last_id: u64,
    pending: HashMap<u64, (ReplySender, Instant)>,
}

impl PendingQueries {
    pub(super) fn answer(&mut self, id: u64, answer: Result<Value, Declined>) {
        if let Some((reply, _)) = self.pending.remove(&id) {
            let answer = answer.map_err(|declined| Refused::new(declined.code, declined.message));
            drop(reply.send(answer));
        }
    }

    /// The agent is gone, and its answers with it.
    pub(super) fn fail_all(&mut self) {
        for (_, (reply, _)) in self.pending.drain() {
            let message = "The agent ended before it answered; ask again.";
            drop(reply.send(Err(Refused::new(ErrorCode::ConnectionLost, message))));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.values().all(|(reply, _)| reply.is_closed())
    }

    fn add(&mut self, reply: ReplySender) -> Result<u64, ReplySender> {
        let now = Instant::now();
        self.pending.retain(|_, (reply, since)| {
            !reply.is_closed() || now - *since < ABANDONED_QUERY_TIMEOUT
        });
        if self.pending.len() >= MAX_PENDING_QUERIES {
            return Err(reply);
        }
        self.last_id += 1;
        self.pending.insert(self.last_id, (reply, now));
        Ok(self.last_id)
    }
}

impl Router {
    /// Sends a request to the agent; with an idempotency key, once.
    pub(super) async fn request_agent(
        &mut self,
        request: AgentRequest,
        start: StartPolicy,
        key: Option<IdempotencyKey>,
        reply: ReplySender,
    ) -> Result<(), Terminated> {
        match self.record_key(key).await {
            Ok(false) => {}
            Ok(true) => {
                drop(reply.send(Ok(json!({ "repeated": true }))));
                return Ok(());
            }
            Err(CommandError::Refused(refused)) => {
                drop(reply.send(Err(refused)));
                return Ok(());
            }
            Err(CommandError::Terminated) => return Err(Terminated),
        }
        let id = match self.queries.add(reply) {
            Ok(id) => id,
            Err(reply) => {
                let message = "The agent is asked too much at the moment.";
                drop(reply.send(Err(Refused::new(ErrorCode::Busy, message))));
                return Ok(());
            }
        };
        let message = ToAgent::Request { id, request };
        let dispatched = match start {
            StartPolicy::IfNeeded => self.dispatch(message).await,
            StartPolicy::Never => self.dispatch_if_running(message).await,
        };
        if let Err(error) = dispatched
            && let Some((reply, _)) = self.queries.pending.remove(&id)
        {
            drop(reply.send(Err(Refused::new(error.code(), error.message()))));
        }
        Ok(())
    }

    /// Commits the key before the request is sent; true if it was there already.
    async fn record_key(&mut self, key: Option<IdempotencyKey>) -> Result<bool, CommandError> {
        let Some(key) = key.filter(|_| self.writer.is_stored()) else {
            return Ok(false);
        };
        if self.find_record(&key).await?.is_some() {
            return Ok(true);
        }
        let command = Some(command_record(key, &None::<RunId>));
        self.record(Change::default().by(command)).await?;
        Ok(false)
    }
}
