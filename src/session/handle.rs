//! What connections and requests do with a live session: ask its router.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::ask::{Ask, Effect, Refused, Request, Wake};
use super::journal::{Journal, Writer};
use super::live::Present;
use super::router::{Counterpart, Router};
use super::state::SessionState;
use super::{ASKS, Asks, PATIENCE, Session};
use crate::domain::code::Code;
use crate::domain::command::Inquiry;
use crate::domain::id::SessionId;

/// How long an agent may take to answer a question about itself; it may have to be started first.
const INQUIRY: Duration = Duration::from_secs(30);

/// A command whose effect has not begun by then does not begin any more: its sender would be told
/// that it failed before it is done.
const BEGIN_WITHIN: Duration = Duration::from_secs(1);

/// Why a router did not answer.
enum Silence {
    /// It is gone, or going.
    Closing,
    /// Not within the time it had.
    Slow,
}

impl Silence {
    /// What whoever asked is told; `slow` if there was no answer in time.
    fn refusal(self, slow: Code, message: &str) -> Refused {
        match self {
            Self::Closing => Refused::new(Code::Busy, "The session is closing; try again."),
            Self::Slow => Refused::new(slow, message),
        }
    }
}

impl Session {
    pub(crate) fn id(&self) -> SessionId {
        self.0.id
    }

    /// Which agent it talks to.
    pub(crate) fn agent(&self) -> &str {
        &self.0.agent
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Cancelled when this handle leads nowhere any more: the session has ended for good, or must
    /// be joined anew.
    pub(crate) fn over(&self) -> &CancellationToken {
        &self.0.over
    }

    /// Has it ended for good?
    pub(crate) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    /// Has a command carried out, or hears why not.
    pub(crate) async fn command(&self, request: Request) -> Result<Effect, Refused> {
        let until = tokio::time::Instant::now() + BEGIN_WITHIN;
        let asked = self.ask(PATIENCE, |reply| Ask::Command(request, until, reply));
        asked.await.unwrap_or_else(|silence| {
            Err(silence.refusal(
                Code::StorageUnavailable,
                "The session does not answer at the moment, perhaps because the database does not; try again.",
            ))
        })
    }

    /// The state as of the last committed event; `None` if the session is closing.
    pub(crate) async fn state(&self) -> Option<SessionState> {
        self.ask(PATIENCE, Ask::State).await.ok()
    }

    /// Asks the agent itself for something; its answer is for the asker only.
    pub(crate) async fn inquire(
        &self,
        inquiry: Inquiry,
        wake: Wake,
        once: Option<(String, [u8; 32])>,
    ) -> Result<Value, Refused> {
        let asked = self.ask(INQUIRY, |reply| Ask::Inquire(inquiry, wake, once, reply));
        asked.await.unwrap_or_else(|silence| {
            Err(silence.refusal(
                Code::ConnectionLost,
                "The agent did not answer in time; try again.",
            ))
        })
    }

    /// Ends the run, so that it has an end before its session has.
    pub(super) async fn end_run(&self) {
        // A router that is gone has no run.
        self.ask(PATIENCE, Ask::EndRun).await.ok();
    }

    /// Asks the router, and waits so long for its answer.
    async fn ask<T>(
        &self,
        patience: Duration,
        ask: impl FnOnce(oneshot::Sender<T>) -> Ask,
    ) -> Result<T, Silence> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.asks().send(Box::new(ask(reply))).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(patience, asked).await {
            Ok(answer) => answer.ok_or(Silence::Closing),
            Err(_) => Err(Silence::Slow),
        }
    }

    /// The way to the router, which is started now if this is a draft and the first question.
    pub(super) fn asks(&self) -> &Asks {
        self.0.asks.get_or_init(|| {
            let (asks, receiver) = mpsc::channel(ASKS);
            // A new row begins with term 0.
            self.spawn(self.router(0, receiver));
            asks
        })
    }

    pub(super) fn router(&self, term: i64, asks: mpsc::Receiver<Box<Ask>>) -> Router {
        let parts = &self.0.parts;
        let writer = Writer::new(
            self.journal().clone(),
            term,
            self.0.draft.clone(),
            parts.committer.clone(),
            Arc::clone(&parts.tails),
        );
        let (agent, journal) = (self.0.agent.clone(), self.journal().clone());
        let counterpart = Counterpart::new(agent, self.0.owner, term);
        Router::new(
            self.id(),
            counterpart,
            journal,
            writer,
            Arc::clone(parts),
            asks,
        )
    }

    pub(super) fn spawn(&self, router: Router) {
        let parts = &self.0.parts;
        let over = self.0.over.clone();
        let present = Present {
            live: parts.live.clone(),
            id: self.id(),
            of: Arc::downgrade(&self.0),
        };
        parts.tracker.spawn(async move {
            // Held outside of the router: also a panic must not leave a dead handle behind.
            let _present = present;
            router.run(over).await;
        });
    }
}
