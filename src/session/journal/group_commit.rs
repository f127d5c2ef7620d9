//! Group commit: one loop commits the appends of all journals of a node.
//!
//! What queues up during one commit goes into the next. No timer delays a commit.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::metrics::Metrics;
use crate::clock::Clock;
use crate::store::{Append, AppendError, Failures, Store, StoreError, StoreOperation};

/// Appends that may wait for the next commit. Full: routers wait, and with them their agents.
const COMMIT_QUEUE: usize = 4_096;
/// Bounds the time of one commit.
const EVENTS_PER_COMMIT: usize = 20_000;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// Another node has a later term, or the session has ended.
    #[error("the journal has another writer now")]
    Fenced,
    /// Storage failed; the same events can be recorded again.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
    /// The commit did not begin before its deadline; nothing was recorded.
    #[error("the deadline has passed")]
    Late,
    #[error("the gateway is stopping")]
    Stopping,
}

struct Pending {
    append: Append,
    /// After this the sender was told that the command failed.
    until: Option<Instant>,
    since: Instant,
    done: oneshot::Sender<Result<(), RecordError>>,
}

#[derive(Clone)]
pub(crate) struct Committer {
    queue: mpsc::Sender<Pending>,
    finished: CancellationToken,
}

pub(crate) struct CommitLoop {
    queue: mpsc::Receiver<Pending>,
    finished: CancellationToken,
    store: Arc<dyn Store>,
    clock: Clock,
    metrics: Arc<Metrics>,
    failures: Failures,
}

impl Committer {
    pub(in crate::session) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        (metrics, failures): (Arc<Metrics>, Failures),
    ) -> (Self, CommitLoop) {
        let (sender, receiver) = mpsc::channel(COMMIT_QUEUE);
        let finished = CancellationToken::new();
        let work = CommitLoop {
            queue: receiver,
            finished: finished.clone(),
            store,
            clock,
            metrics,
            failures,
        };
        let queue = sender;
        (Self { queue, finished }, work)
    }

    /// Lets the commit loop end once its queue is empty.
    pub(crate) fn finish(&self) {
        self.finished.cancel();
    }

    pub(in crate::session) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    pub(super) async fn commit(
        &self,
        append: Append,
        until: Option<Instant>,
    ) -> Result<(), RecordError> {
        let (done, committed) = oneshot::channel();
        let pending = Pending {
            append,
            until,
            since: Instant::now(),
            done,
        };
        self.queue
            .send(pending)
            .await
            .map_err(|_| RecordError::Stopping)?;
        committed.await.unwrap_or(Err(RecordError::Stopping))
    }
}

impl CommitLoop {
    /// Runs until `Committer::finish`.
    pub(crate) async fn run(mut self) {
        let mut waiting: Vec<Pending> = Vec::new();
        loop {
            if waiting.is_empty() {
                tokio::select! {
                    biased;
                    // Queue first: what is queued is committed.
                    pending = self.queue.recv() => match pending {
                        Some(pending) => waiting.push(pending),
                        None => return,
                    },
                    () = self.finished.cancelled() => return,
                }
            }
            let mut events: usize = waiting.iter().map(|one| one.append.events.len()).sum();
            while events < EVENTS_PER_COMMIT
                && let Ok(pending) = self.queue.try_recv()
            {
                events += pending.append.events.len();
                waiting.push(pending);
            }
            let timely = take_timely(&mut waiting);
            if !timely.is_empty()
                && let Err(away) = self.commit(timely).await
            {
                // What is queued fails as well: its senders may have given up by the next attempt, and
                // a command that was reported as failed must not be committed afterwards.
                while let Ok(pending) = self.queue.try_recv() {
                    drop(
                        pending
                            .done
                            .send(Err(RecordError::Store(Arc::clone(&away)))),
                    );
                }
            }
        }
    }

    /// Commits a batch and answers its senders; fails if storage is away.
    async fn commit(&self, batch: Vec<Pending>) -> Result<(), Arc<StoreError>> {
        let began = Instant::now();
        let oldest = batch.iter().map(|pending| pending.since).min();
        let waited = oldest.map_or_else(Default::default, |since| began - since);
        self.metrics.commit_waits.observe(waited);
        let (appends, waiting): (Vec<Append>, Vec<_>) = batch
            .into_iter()
            .map(|pending| (pending.append, pending.done))
            .unzip();
        let mut away = Ok(());
        let outcomes = match self.store.append(&appends, self.clock.wall()).await {
            Ok(outcomes) => outcomes.into_iter().map(fenced).collect::<Vec<_>>(),
            Err(StoreError::Fault(_)) if appends.len() > 1 => self.one_by_one(&appends).await,
            Err(error) => {
                let sessions = sessions_of(&appends);
                tracing::error!(%error, appends = appends.len(), session.ids = sessions, "the events of these sessions cannot be committed: storage is away");
                self.failures.count(StoreOperation::Commit);
                let error = Arc::new(error);
                let failed = |_: &Append| Err(RecordError::Store(Arc::clone(&error)));
                let outcomes = appends.iter().map(failed).collect::<Vec<_>>();
                away = Err(error);
                outcomes
            }
        };
        self.metrics.commits.observe(began.elapsed());
        let committed = |(append, outcome): (&Append, &Result<(), RecordError>)| match outcome {
            Ok(()) => append.events.len() as u64,
            Err(_) => 0,
        };
        let events = appends.iter().zip(&outcomes).map(committed).sum();
        self.metrics.events.inc_by(events);
        for (done, outcome) in waiting.into_iter().zip(outcomes) {
            drop(done.send(outcome));
        }
        away
    }

    /// Commits each append by itself: one that cannot be committed must not fail the others.
    async fn one_by_one(&self, appends: &[Append]) -> Vec<Result<(), RecordError>> {
        let mut outcomes = Vec::with_capacity(appends.len());
        for append in appends {
            let alone = self
                .store
                .append(std::slice::from_ref(append), self.clock.wall())
                .await;
            outcomes.push(match alone {
                Ok(outcome) => outcome.into_iter().next().map_or(Ok(()), fenced),
                Err(error) => {
                    self.failures.count(StoreOperation::Commit);
                    tracing::error!(%error, session.id = %append.session, "the events of this session cannot be committed");
                    Err(RecordError::Store(Arc::new(error)))
                }
            });
        }
        outcomes
    }
}

/// Takes the appends within their deadline; the others fail.
fn take_timely(waiting: &mut Vec<Pending>) -> Vec<Pending> {
    let now = Instant::now();
    let is_late = |pending: &Pending| pending.until.is_some_and(|until| until <= now);
    let (late, timely) = waiting.drain(..).partition::<Vec<_>, _>(is_late);
    for pending in late {
        drop(pending.done.send(Err(RecordError::Late)));
    }
    timely
}

/// For the log: the first sessions of a failed commit.
fn sessions_of(appends: &[Append]) -> String {
    const MOST: usize = 8;
    let ids = appends.iter().take(MOST);
    let ids: Vec<String> = ids.map(|append| append.session.to_string()).collect();
    ids.join(" ")
}

fn fenced(outcome: Result<(), AppendError>) -> Result<(), RecordError> {
    outcome.map_err(|AppendError::Fenced| RecordError::Fenced)
}
