//! Session handle: sends a message to the session's router and waits for the result.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::Session;
use super::journal::{Journal, Writer};
use super::live_sessions::LiveGuard;
use super::mailbox::{
    MAILBOX_CAPACITY, Mailbox, Refused, Reply, Request, SessionMessage, StartPolicy,
};
use super::router::{AgentInfo, Router};
use super::state::SessionState;
use crate::domain::command::AgentRequest;
use crate::domain::error_code::ErrorCode;
use crate::domain::id::SessionId;
use crate::domain::idempotency::IdempotencyKey;

/// After this long without an answer of the router, storage counts as unavailable.
const ROUTER_TIMEOUT: Duration = Duration::from_millis(2_500);
/// For a request to the agent, which may have to be started first.
const AGENT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A command whose effect has not begun by then does not begin any more. Below `ROUTER_TIMEOUT`, so
/// that no command takes effect after its sender was told that it failed.
const COMMAND_BEGIN_TIMEOUT: Duration = Duration::from_secs(1);

enum MailboxError {
    Closed,
    Timeout,
}

impl MailboxError {
    fn refusal(self, timeout: ErrorCode, message: &str) -> Refused {
        match self {
            Self::Closed => Refused::new(ErrorCode::Busy, "The session is closing; try again."),
            Self::Timeout => Refused::new(timeout, message),
        }
    }
}

impl Session {
    pub(crate) fn id(&self) -> SessionId {
        self.0.id
    }

    pub(crate) fn agent(&self) -> &str {
        &self.0.agent
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Cancelled when this handle is dead: the session has ended, or must be joined again.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.0.closed
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.ended.load(Ordering::Acquire)
    }

    pub(crate) async fn submit(&self, request: Request) -> Result<Reply, Refused> {
        let until = tokio::time::Instant::now() + COMMAND_BEGIN_TIMEOUT;
        let effect = self.send(ROUTER_TIMEOUT, |reply| {
            SessionMessage::Command(request, until, reply)
        });
        effect.await.unwrap_or_else(|error| {
            Err(error.refusal(
                ErrorCode::StorageUnavailable,
                "The session does not answer at the moment, perhaps because the database does not; try again.",
            ))
        })
    }

    /// The state as of the last committed event, with the settings that the operator configured where
    /// no others are known; `None` if the session is closing.
    pub(crate) async fn state(&self) -> Option<SessionState> {
        let mut state = self
            .send(ROUTER_TIMEOUT, SessionMessage::State)
            .await
            .ok()?;
        let configured = self.0.parts.catalog.configured_settings(self.agent());
        state.settings.fill(&configured);
        if !self.0.parts.catalog.permits_auto_approve(self.agent()) {
            state.settings.chosen.auto_approve = None;
        }
        Some(state)
    }

    /// Sends a request to the agent; only the sender gets the answer.
    pub(crate) async fn request_agent(
        &self,
        request: AgentRequest,
        start: StartPolicy,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<Value, Refused> {
        let answer = self.send(AGENT_REQUEST_TIMEOUT, |reply| {
            SessionMessage::AgentRequest(request, start, idempotency_key, reply)
        });
        answer.await.unwrap_or_else(|error| {
            Err(error.refusal(
                ErrorCode::ConnectionLost,
                "The agent did not answer in time; try again.",
            ))
        })
    }

    /// Lets a router with work ask whether the senders may still send.
    pub(super) fn senders_changed(&self) {
        let Some(mailbox) = self.0.mailbox.get() else {
            return;
        };
        let sent = mailbox.try_send(Box::new(SessionMessage::SendersChanged));
        // A router that is gone has no work. One that is busy must not hold up the others.
        if let Err(TrySendError::Full(message)) = sent {
            let mailbox = mailbox.clone();
            let sending = async move { drop(mailbox.send(message).await) };
            self.0.parts.tracker.spawn(sending);
        }
    }

    /// Ends the run, so that its end is recorded before the session ends.
    pub(super) async fn end_run(&self) {
        // A router that is gone has no run.
        self.send(ROUTER_TIMEOUT, SessionMessage::EndRun).await.ok();
    }

    async fn send<T>(
        &self,
        timeout: Duration,
        message: impl FnOnce(oneshot::Sender<T>) -> SessionMessage,
    ) -> Result<T, MailboxError> {
        let (reply, answer) = oneshot::channel();
        let exchange = async {
            self.mailbox().send(Box::new(message(reply))).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(answer) => answer.ok_or(MailboxError::Closed),
            Err(_) => Err(MailboxError::Timeout),
        }
    }

    /// The router's mailbox. Starts the router of a draft with its first message.
    fn mailbox(&self) -> &Mailbox {
        self.0.mailbox.get_or_init(|| {
            let (mailbox, receiver) = mpsc::channel(MAILBOX_CAPACITY);
            // A new row begins with term 0.
            self.spawn(self.router(0, receiver));
            mailbox
        })
    }

    pub(super) fn router(&self, term: i64, mailbox: mpsc::Receiver<Box<SessionMessage>>) -> Router {
        let parts = &self.0.parts;
        let writer = Writer::new(
            self.journal().clone(),
            term,
            self.0.draft.clone(),
            (parts.committer.clone(), Arc::clone(&parts.tails)),
            parts.quotas.journal_usage(self.0.owner),
        );
        let agent = AgentInfo::new(self.0.agent.clone(), self.0.owner, term);
        let journal = self.journal().clone();
        Router::new(agent, journal, writer, Arc::clone(parts), mailbox)
    }

    pub(super) fn spawn(&self, router: Router) {
        let parts = &self.0.parts;
        let closed = self.0.closed.clone();
        let guard = LiveGuard {
            live: parts.live.clone(),
            id: self.id(),
            session: Arc::downgrade(&self.0),
        };
        let span = tracing::info_span!(
            parent: None,
            "session",
            session.id = %self.id(),
            agent = self.agent(),
            user.id = %self.0.owner,
        );
        let task = async move {
            // Held outside of the router: a panic must not leave a dead handle behind either.
            let _guard = guard;
            router.run(closed).await;
        };
        parts.tracker.spawn(task.instrument(span));
    }
}
