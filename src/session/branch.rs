//! A branch: a new session that begins with another one's past, and shares nothing after it.
//!
//! The events up to the cut are copied under their offsets, in one transaction; what was under way
//! there is closed, as nobody works on it in the branch. Touches `store` and `domain`.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ask::Refused;
use super::failure::out_of_reach;
use super::journal::body;
use super::scribe::Scribe;
use super::state::{Bounds, SessionState};
use super::{JournalConfig, Session, Sessions};
use crate::domain::code::Code;
use crate::domain::event::{Event, Recorded};
use crate::domain::id::{Epoch, SessionId};
use crate::domain::queue::Queued;
use crate::domain::run::RunOutcome;
use crate::limits::Turns;
use crate::store::{
    BranchError, CommandRecord, NewBranch, NewEvent, NewSession, SessionRow, StoreError, Summary,
};

/// Events that are folded at once.
const PAGE: u32 = 500;
/// How often the cut is looked for again when the journal is tidied up meanwhile.
const ATTEMPTS: usize = 3;
/// What is put behind a title, and how long the whole may be.
const SUFFIX: &str = " (branch)";
const TITLE_CHARS: usize = 200;

/// Between two parts of what follows: others write in between.
const BREATH: Duration = Duration::from_millis(2);
/// Branches that are made at the same time: each keeps storage busy.
const AT_ONCE: usize = 2;

/// What bounds the making of branches.
pub(super) struct Branching {
    pub(super) turns: Turns,
    most_bytes: u64,
}

impl Branching {
    pub(super) fn new(config: &JournalConfig) -> Self {
        Self {
            turns: Turns::new(AT_ONCE, Duration::ZERO),
            most_bytes: config.branch_bytes.get(),
        }
    }
}

/// A branch that was made, as its maker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Branched {
    /// The new session.
    #[serde(rename = "sessionId")]
    pub(crate) session: SessionId,
    /// The offset of its last event.
    pub(crate) offset: u64,
    /// The counting of its offsets.
    pub(crate) epoch: Epoch,
}

/// What has to happen so that nothing is under way any more in a session that looks like this.
pub(super) fn closing_events(state: &SessionState) -> Vec<Event> {
    let mut events = Vec::new();
    if let Some(run) = state.live_run() {
        Scribe::resumed(run, state).end(&RunOutcome::Cancelled, &mut events);
    }
    // What waits for its turn waits where it was said.
    if !state.queue.entries.is_empty() {
        events.push(Event::QueueUpdated {
            line: Vec::new(),
            modes: state.queue.modes,
            added: Vec::new(),
        });
        let ended = |queued: &Queued| Event::RunEnded {
            run: queued.run,
            outcome: RunOutcome::Cancelled,
            usage: None,
        };
        events.extend(state.queue.entries.iter().map(ended));
    }
    events
}

impl Sessions {
    /// Makes a session with the past of another one, up to an event or up to now. Whoever asks has
    /// checked that the owner wants it.
    pub(crate) async fn branch(
        &self,
        source: &Session,
        from: Option<u64>,
        once: Option<(String, [u8; 32])>,
    ) -> Result<Branched, Refused> {
        if self.parts.stopping.drain.is_cancelled() {
            let message = "The gateway is going down; come back in a moment.";
            return Err(Refused::new(Code::Busy, message));
        }
        let Some(_turn) = self.parts.branching.turns.take(source.0.owner).await else {
            let message = "Another branch is being made at the moment; try again when it is done.";
            return Err(Refused::new(Code::Busy, message));
        };
        let found = self.parts.store.session(source.id()).await;
        let row = found.map_err(|error| away(&error))?.ok_or_else(empty)?;
        for _ in 0..ATTEMPTS {
            if let Some(before) = self.branched_before(source.id(), once.as_ref()).await? {
                return Ok(before);
            }
            let state = self.state_at(source, from).await?;
            self.check_size(source.id(), state.offset).await?;
            let (new, branched) = self.draw(&row, state, once.clone());
            match self.parts.store.branch(&new).await {
                Ok(()) => {
                    self.copy_texts(branched.session).await;
                    return Ok(branched);
                }
                Err(BranchError::Changed | BranchError::Repeated) => {}
                Err(BranchError::NotFound) => {
                    let message = "There is no such session any more.";
                    return Err(Refused::new(Code::NotFound, message));
                }
                Err(BranchError::Store(error)) => return Err(away(&error)),
            }
        }
        let message = "The journal is being tidied up at the moment; try again.";
        Err(Refused::new(Code::Busy, message))
    }

    /// Lets a branch be found by its past. It is made already: whatever fails here is taken up by the
    /// keeper.
    async fn copy_texts(&self, branch: SessionId) {
        loop {
            match self.parts.store.copy_texts(branch).await {
                Ok(true) => tokio::time::sleep(BREATH).await,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, session.id = %branch, "a branch is not found by all of its past yet");
                    return;
                }
            }
        }
    }

    /// Refuses to copy too much.
    async fn check_size(&self, source: SessionId, upto: u64) -> Result<(), Refused> {
        let most = self.parts.branching.most_bytes;
        let bytes = self.parts.store.journal_bytes(source, upto).await;
        let bytes = bytes.map_err(|error| away(&error))?;
        if bytes <= most {
            return Ok(());
        }
        let message = format!(
            "There are {bytes} bytes of events up to that point, and a branch copies at most {most} \
             (journal.branch_bytes). Choose an earlier one."
        );
        Err(Refused::new(Code::ValidationError, message))
    }

    /// Has this command taken effect already?
    async fn branched_before(
        &self,
        source: SessionId,
        once: Option<&(String, [u8; 32])>,
    ) -> Result<Option<Branched>, Refused> {
        let Some((key, digest)) = once else {
            return Ok(None);
        };
        let found = self.parts.store.command(source, key).await;
        let Some(record) = found.map_err(|error| away(&error))? else {
            return Ok(None);
        };
        let outcome = serde_json::from_slice(&record.outcome).ok();
        match outcome.filter(|_| record.digest == *digest) {
            Some(branched) => Ok(Some(branched)),
            None => Err(Refused::new(
                Code::ValidationError,
                "This idempotencyKey was used for another command.",
            )),
        }
    }

    /// The session as it was after an event; after the one before it, if that one was joined with
    /// others that came later.
    async fn state_at(&self, source: &Session, from: Option<u64>) -> Result<SessionState, Refused> {
        let head = source.journal().head();
        if let Some(from) = from.filter(|from| *from > head) {
            let message = format!("There is no event {from} yet; the last one is {head}.");
            return Err(Refused::new(Code::ValidationError, message));
        }
        let now = source.state().await.ok_or_else(out_of_reach)?;
        match from {
            None if now.offset == 0 => Err(empty()),
            Some(from) if from != now.offset => {
                let folded = self.fold_upto(source, from).await;
                folded.map_err(|error| away(&error))?.ok_or_else(not_kept)
            }
            _ => Ok(now),
        }
    }

    /// `None` if what led to it is not kept any more.
    async fn fold_upto(
        &self,
        source: &Session,
        from: u64,
    ) -> Result<Option<SessionState>, StoreError> {
        let snapshot = self.parts.store.snapshot(source.id()).await?;
        let mut state: SessionState = snapshot
            .filter(|snapshot| snapshot.offset <= from)
            .and_then(|snapshot| serde_json::from_slice(&snapshot.body).ok())
            .unwrap_or_default();
        let bounds = Bounds::default();
        loop {
            let page = source.journal().kept_after(state.offset, PAGE).await?;
            let Some(first) = page.first() else { break };
            if state.offset == 0 && first.recorded.first() > 1 {
                return Ok(None);
            }
            let (before, whole) = (state.offset, page.len());
            let wanted = page
                .iter()
                .take_while(|entry| entry.recorded.offset <= from);
            let folded = wanted
                .map(|entry| state.apply(&entry.recorded, &bounds))
                .count();
            if folded < whole || state.offset == before {
                break;
            }
        }
        Ok(Some(state).filter(|state| state.offset > 0))
    }

    /// The branch as it is to be stored.
    fn draw(
        &self,
        row: &SessionRow,
        mut state: SessionState,
        once: Option<(String, [u8; 32])>,
    ) -> (NewBranch, Branched) {
        let now = self.parts.clock.wall();
        let title = row.title.as_deref().map(branch_title);
        let upto = state.offset;
        let mut closing = closing_events(&state);
        // A title that the journal knows would come back with the next event.
        let known = state.title.is_some();
        closing.extend(
            title
                .clone()
                .filter(|_| known)
                .map(|title| Event::TitleChanged { title }),
        );
        let closing = follow(&mut state, closing, now);
        let session = NewSession {
            id: SessionId::new(),
            owner: row.owner,
            agent: row.agent.clone(),
            title,
            epoch: Epoch::new(),
            created_at: now,
        };
        let branched = Branched {
            session: session.id,
            offset: state.offset,
            epoch: session.epoch,
        };
        let command = once.map(|(key, digest)| CommandRecord {
            key,
            digest,
            outcome: serde_json::to_vec(&branched).expect("ids are plain JSON"),
        });
        let new = NewBranch {
            session,
            from: row.id,
            upto,
            closing,
            summary: Summary {
                messages: state.message_count,
                last_prompt: state.last_user_message.clone(),
                title: None,
                running: false,
                waiting: 0,
                queued: 0,
            },
            snapshot: serde_json::to_vec(&state).expect("the state is plain JSON"),
            command,
        };
        (new, branched)
    }
}

/// Folds events in behind all others, and gives them back in their stored form.
fn follow(state: &mut SessionState, events: Vec<Event>, at: Timestamp) -> Vec<NewEvent> {
    let bounds = Bounds::default();
    events
        .into_iter()
        .map(|event| {
            let offset = state.offset + 1;
            let recorded = Recorded { offset, at, event };
            state.apply(&recorded, &bounds);
            let body = body(&recorded.event);
            NewEvent { at, body }
        })
        .collect()
}

fn branch_title(title: &str) -> String {
    let most = TITLE_CHARS - SUFFIX.len();
    let kept: String = title.chars().take(most).collect();
    format!("{kept}{SUFFIX}")
}

fn empty() -> Refused {
    let message = "Nothing has happened in this session yet: there is nothing to branch from.";
    Refused::new(Code::ValidationError, message)
}

fn not_kept() -> Refused {
    let message = "What led to that event is not kept any more; choose a later one.";
    Refused::new(Code::NotFound, message)
}

fn away(error: &StoreError) -> Refused {
    tracing::error!(%error, "a branch cannot be made");
    out_of_reach()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::command::{Mode, Prompt};
    use crate::domain::event::Channel;
    use crate::domain::id::{MessageId, RunId};
    use crate::domain::queue::{QueueModes, Waiting};

    fn asked(run: RunId) -> Event {
        Event::RunStarted {
            run,
            prompt: Prompt::new("why?", Mode::Act),
            message: MessageId::new(),
            correlation: None,
            by: None,
            merged: Vec::new(),
        }
    }

    fn after(events: Vec<Event>) -> SessionState {
        let mut state = SessionState::default();
        follow(&mut state, events, Timestamp::UNIX_EPOCH);
        state
    }

    #[test]
    fn what_waits_stays_where_it_was_said_and_has_its_end_here() {
        let queued = Queued {
            run: RunId::new(),
            why: Waiting::Prompt,
            prompt: Prompt::new("later", Mode::Act),
            by: None,
            correlation: None,
        };
        let mut state = after(vec![Event::QueueUpdated {
            line: vec![(&queued).into()],
            modes: QueueModes::default(),
            added: vec![queued.clone()],
        }]);
        let closing = closing_events(&state);
        assert!(matches!(
            closing.as_slice(),
            [Event::QueueUpdated { line, .. }, Event::RunEnded { run, .. }]
                if line.is_empty() && *run == queued.run
        ));
        follow(&mut state, closing, Timestamp::UNIX_EPOCH);
        assert!(state.queue.entries.is_empty() && closing_events(&state).is_empty());
    }

    #[test]
    fn what_is_under_way_is_closed_and_nothing_else() {
        let run = RunId::new();
        let mut state = after(vec![asked(run)]);
        let closing = closing_events(&state);
        assert!(
            matches!(&closing[..], [Event::RunEnded { run: ended, outcome: RunOutcome::Cancelled, .. }] if *ended == run)
        );
        follow(&mut state, closing, Timestamp::UNIX_EPOCH);
        assert_eq!(closing_events(&state), []);
        assert_eq!(closing_events(&SessionState::default()), []);
    }

    #[test]
    fn an_answer_under_way_gets_its_last_piece_first() {
        let (run, message) = (RunId::new(), MessageId::new());
        let piece = Event::MessageDelta {
            message,
            run,
            channel: Channel::Text,
            text: "half".into(),
            index: 0,
            joined: 0,
        };
        let mut state = after(vec![asked(run), piece]);
        let closing = closing_events(&state);
        assert!(matches!(
            &closing[..],
            [Event::MessageFinal { index: 1, .. }, Event::RunEnded { .. }]
        ));
        follow(&mut state, closing, Timestamp::UNIX_EPOCH);
        assert_eq!((state.offset, state.live_run()), (4, None));
        let last = state.messages.back().unwrap();
        assert_eq!((last.text.as_str(), last.complete), ("half", true));
    }

    #[test]
    fn the_title_of_a_branch_says_so_and_stays_short() {
        assert_eq!(branch_title("Parser"), "Parser (branch)");
        let long = branch_title(&"ü".repeat(200));
        assert_eq!(long.chars().count(), TITLE_CHARS);
        assert!(long.ends_with(SUFFIX));
    }
}
