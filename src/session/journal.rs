//! The journal: one writer, many cursors, nothing seen before it is committed.
//!
//! All journals of a node share one [`Committer`]: whatever has queued up while the last commit ran
//! goes into the next one. Nobody waits for a timer.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::searchable::searchable;
use super::tail::{Entry, Tail, Tails};
use super::watermark::Watermark;
use crate::clock::Clock;
use crate::domain::act::Act;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Epoch, SessionId};
use crate::store::{
    Append, AppendError, CommandRecord, Failures, NewEvent, NewSession, Store, StoreError,
    StoredEvent, Summary, Wanted,
};

/// Appends that may wait for the next commit. Full: routers wait, and with them their agents.
const QUEUE: usize = 4_096;
/// Events of one commit, so that none takes long.
const EVENTS_PER_COMMIT: usize = 20_000;
/// Events that a cursor takes from the store at once.
const PAGE: u32 = 500;

/// Why events were not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// Somebody else writes this journal now, or the session has ended.
    #[error("the journal belongs to somebody else now")]
    Fenced,
    /// Storage failed; nothing was recorded, and the same can be tried again.
    #[error(transparent)]
    Store(#[from] Arc<StoreError>),
    /// Storage took so long that nobody waits for it any more; nothing was recorded.
    #[error("nobody waits for this any more")]
    Late,
    /// The gateway is going down.
    #[error("the gateway is stopping")]
    Stopping,
}

struct Pending {
    append: Append,
    /// Whoever wants this has given up by then, and was told that it did not happen.
    until: Option<Instant>,
    since: Instant,
    done: oneshot::Sender<Result<(), RecordError>>,
}

/// Where all journals of a node are committed.
#[derive(Clone)]
pub(crate) struct Committer {
    queue: mpsc::Sender<Pending>,
    finished: CancellationToken,
}

/// The other end of the queue, to be run by whoever owns the tasks.
pub(crate) struct CommitLoop {
    queue: mpsc::Receiver<Pending>,
    finished: CancellationToken,
    store: Arc<dyn Store>,
    clock: Clock,
    metrics: Arc<Metrics>,
    failures: Failures,
}

impl Committer {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Clock,
        (metrics, failures): (Arc<Metrics>, Failures),
    ) -> (Self, CommitLoop) {
        let (sender, receiver) = mpsc::channel(QUEUE);
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

    /// Nobody records anything any more: the loop ends once its queue is empty.
    pub(crate) fn finish(&self) {
        self.finished.cancel();
    }

    /// How much waits for the next commit.
    pub(super) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    async fn commit(&self, append: Append, until: Option<Instant>) -> Result<(), RecordError> {
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
    /// Runs until told that nobody records anything any more.
    pub(crate) async fn run(mut self) {
        let mut waiting: Vec<Pending> = Vec::new();
        loop {
            if waiting.is_empty() {
                tokio::select! {
                    biased;
                    // What is queued is committed first.
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
            let in_time = take_in_time(&mut waiting);
            if !in_time.is_empty()
                && let Err(away) = self.commit(in_time).await
            {
                // They have waited as long as those before them, and are told at the same time: what
                // somebody was told to have failed must not be committed afterwards.
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

    /// Fails if storage is away.
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
            Ok(outcomes) => outcomes.into_iter().map(judge).collect::<Vec<_>>(),
            Err(StoreError::Fault(_)) if appends.len() > 1 => self.one_by_one(&appends).await,
            Err(error) => {
                tracing::error!(%error, appends = appends.len(), "events cannot be committed");
                self.failures.count(Wanted::Commit);
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
            // A router that is gone does not need to know.
            drop(done.send(outcome));
        }
        away
    }

    /// One of them cannot be committed; the others must not suffer from it.
    async fn one_by_one(&self, appends: &[Append]) -> Vec<Result<(), RecordError>> {
        let mut outcomes = Vec::with_capacity(appends.len());
        for append in appends {
            let alone = self
                .store
                .append(std::slice::from_ref(append), self.clock.wall())
                .await;
            outcomes.push(match alone {
                Ok(outcome) => outcome.into_iter().next().map_or(Ok(()), judge),
                Err(error) => {
                    self.failures.count(Wanted::Commit);
                    tracing::error!(%error, session.id = %append.session, "events cannot be committed");
                    Err(RecordError::Store(Arc::new(error)))
                }
            });
        }
        outcomes
    }
}

/// What is still wanted; the others are told.
fn take_in_time(waiting: &mut Vec<Pending>) -> Vec<Pending> {
    let now = Instant::now();
    let is_late = |pending: &Pending| pending.until.is_some_and(|until| until <= now);
    let (late, in_time) = waiting.drain(..).partition::<Vec<_>, _>(is_late);
    for pending in late {
        drop(pending.done.send(Err(RecordError::Late)));
    }
    in_time
}

fn judge(outcome: Result<(), AppendError>) -> Result<(), RecordError> {
    outcome.map_err(|AppendError::Fenced| RecordError::Fenced)
}

/// A journal as cursors see it. Clones share it.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    session: SessionId,
    epoch: Epoch,
    head: Watermark,
    tail: Arc<Tail>,
    store: Arc<dyn Store>,
}

/// What a cursor finds after its offset.
pub(crate) enum Found {
    /// The entries that follow, without a hole.
    Entries(Vec<Arc<Entry>>),
    /// What follows is not kept any more.
    Gone,
}

impl Journal {
    pub(crate) fn new(session: SessionId, epoch: Epoch, head: u64, store: Arc<dyn Store>) -> Self {
        Self(Arc::new(Shared {
            session,
            epoch,
            head: Watermark::new(head),
            tail: Arc::new(Tail::default()),
            store,
        }))
    }

    /// Whose journal it is.
    pub(crate) fn session(&self) -> SessionId {
        self.0.session
    }

    /// The counting of its offsets.
    pub(crate) fn epoch(&self) -> Epoch {
        self.0.epoch
    }

    /// The offset of the last committed event.
    pub(crate) fn head(&self) -> u64 {
        self.0.head.level()
    }

    /// Returns once there is something after an offset. Cancel-safe.
    pub(crate) async fn grows_beyond(&self, offset: u64) {
        self.0.head.beyond(offset).await;
    }

    /// What is stored after an offset and can be read, in order; perhaps with holes.
    pub(super) async fn kept_after(
        &self,
        offset: u64,
        most: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let store = &self.0.store;
        let stored = store.events_after(self.0.session, offset, most).await?;
        Ok(stored.iter().filter_map(read).collect())
    }

    /// The entries after an offset: from the tail if they are there, else from the store.
    pub(crate) async fn after(&self, offset: u64, most: usize) -> Result<Found, StoreError> {
        if self.head() <= offset {
            return Ok(Found::Entries(Vec::new()));
        }
        if let Some(entries) = self.0.tail.after(offset, most) {
            return Ok(Found::Entries(entries));
        }
        let limit = PAGE.min(u32::try_from(most).unwrap_or(PAGE));
        let stored = self
            .0
            .store
            .events_after(self.0.session, offset, limit)
            .await?;
        let mut entries = Vec::with_capacity(stored.len());
        let mut expected = offset + 1;
        for event in stored {
            // A piece that others were joined with stands for all their offsets.
            let Some(entry) = read(&event).filter(|entry| entry.recorded.first() == expected)
            else {
                return Ok(Found::Gone);
            };
            expected = entry.recorded.offset + 1;
            entries.push(Arc::new(entry));
        }
        Ok(if entries.is_empty() {
            Found::Gone
        } else {
            Found::Entries(entries)
        })
    }
}

/// A stored event that this program cannot read stands for a journal that is not kept.
pub(super) fn read(stored: &StoredEvent) -> Option<Entry> {
    let bytes = stored.body.len();
    let event: Event = serde_json::from_slice(&stored.body)
        .inspect_err(|error| tracing::error!(%error, session.id = %stored.session, "a stored event cannot be read"))
        .ok()?;
    let recorded = Recorded {
        offset: stored.offset,
        at: stored.at,
        event,
    };
    Some(Entry::new(stored.session, recorded, bytes))
}

/// An event in its stored form.
pub(super) fn stored(session: SessionId, recorded: &Recorded) -> StoredEvent {
    StoredEvent {
        session,
        offset: recorded.offset,
        at: recorded.at,
        body: body(&recorded.event),
    }
}

pub(super) fn body(event: &Event) -> Vec<u8> {
    serde_json::to_vec(event).expect("an event is plain JSON")
}

/// The one that adds to a journal; owned by the session's router.
pub(crate) struct Writer {
    journal: Journal,
    term: i64,
    create: Option<NewSession>,
    head: u64,
    /// The last answer was lost, and with it whether the events are there.
    unsure: bool,
    committer: Committer,
    tails: Arc<Tails>,
}

impl Writer {
    pub(crate) fn new(
        journal: Journal,
        term: i64,
        create: Option<NewSession>,
        committer: Committer,
        tails: Arc<Tails>,
    ) -> Self {
        let head = journal.head();
        Self {
            journal,
            term,
            create,
            head,
            unsure: false,
            committer,
            tails,
        }
    }

    /// Is the session in the database already?
    pub(crate) fn is_stored(&self) -> bool {
        self.create.is_none()
    }

    /// Was the answer to the last commit lost?
    pub(crate) fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Commits events, unless that cannot begin before `until`; when this returns, every cursor can see them. Fails without a trace: the same
    /// events can be recorded again.
    pub(crate) async fn record(
        &mut self,
        events: &[Event],
        at: Timestamp,
        summary: Option<Summary>,
        command: Option<CommandRecord>,
        acts: Vec<Act>,
        until: Option<Instant>,
    ) -> Result<Vec<Arc<Entry>>, RecordError> {
        let bodies: Vec<NewEvent> = events
            .iter()
            .map(|event| NewEvent {
                at,
                body: body(event),
            })
            .collect();
        let sizes: Vec<usize> = bodies.iter().map(|event| event.body.len()).collect();
        let tried = self.unsure.then(|| bodies.clone());
        let append = Append {
            session: self.journal.session(),
            term: self.term,
            create: self.create.clone(),
            after: self.head,
            events: bodies,
            summary,
            command,
            acts,
            texts: searchable(self.head, events),
        };
        match self.committer.commit(append, until).await {
            Ok(()) => {}
            // The head is not where we left it because we moved it ourselves.
            Err(RecordError::Fenced) if self.are_there(tried.as_deref()).await? => {}
            Err(error) => {
                self.unsure |= matches!(error, RecordError::Store(_));
                return Err(error);
            }
        }
        self.unsure = false;
        self.create = None;
        Ok(self.publish(events, &sizes, at))
    }

    /// Are exactly these the events after our head? Their ids make it certain that nobody else's
    /// look the same.
    async fn are_there(&self, tried: Option<&[NewEvent]>) -> Result<bool, RecordError> {
        let Some(tried) = tried.filter(|tried| !tried.is_empty()) else {
            return Ok(false);
        };
        let (store, session) = (&self.journal.0.store, self.journal.session());
        let (mut rest, mut after) = (tried, self.head);
        // Page by page, and one look behind the last of them.
        loop {
            let most = u32::try_from(rest.len()).unwrap_or(u32::MAX);
            let page = store.events_after(session, after, most.saturating_add(1));
            let page = page.await.map_err(Arc::new)?;
            let Some(last) = page.last() else {
                return Ok(rest.is_empty());
            };
            let same = |(stored, tried): (&StoredEvent, &NewEvent)| stored.body == tried.body;
            if page.len() > rest.len() || !page.iter().zip(rest).all(same) {
                return Ok(false);
            }
            (rest, after) = (&rest[page.len()..], last.offset);
        }
    }

    fn publish(&mut self, events: &[Event], sizes: &[usize], at: Timestamp) -> Vec<Arc<Entry>> {
        let now = std::time::Instant::now();
        let entries: Vec<Arc<Entry>> = (self.head + 1..)
            .zip(events.iter().zip(sizes))
            .map(|(offset, (event, bytes))| {
                let recorded = Recorded {
                    offset,
                    at,
                    event: event.clone(),
                };
                let entry = Entry::new(self.journal.session(), recorded, *bytes);
                Arc::new(entry.at(now))
            })
            .collect();
        self.tails.append(&self.journal.0.tail, &entries);
        self.head += entries.len() as u64;
        self.journal.0.head.rise_to(self.head);
        entries
    }
}
