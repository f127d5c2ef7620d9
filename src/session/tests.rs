//! Sessions on a real database, in process, with a clock that is moved by hand.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

mod branching;
mod commits;
mod dying;
mod keeping;
mod resting;

use super::state::SessionState;
use super::*;
use crate::domain::account::Role;
use crate::domain::act::{Action, By};
use crate::domain::code::Code;
use crate::domain::command::{Command, IfBusy, Mode, Prompt};
use crate::domain::event::{Event, Recorded};
use crate::domain::id::LoginId;
use crate::store::{self, AuditConfig, NewUser};

/// A node with one user.
struct House {
    sessions: Sessions,
    store: Arc<dyn Store>,
    clock: Clock,
    mia: Principal,
    stopping: Stopping,
    tracker: TaskTracker,
    _dir: tempfile::TempDir,
}

fn sessions_config() -> Config {
    Config {
        default_agent: "demo".into(),
        idle_minutes: NonZeroU32::MIN,
        retention_days: 0,
        ended_days: 0,
        question_timeout_minutes: 0,
        control_lease_secs: NonZeroU32::MIN,
    }
}

fn journal_config() -> JournalConfig {
    JournalConfig {
        // Nothing is in memory for long: what is read comes from the database.
        tail_bytes: 0,
        compact_after_minutes: 60,
        keep_days: 0,
        keep_bytes: 0,
        branch_bytes: NonZeroU64::MAX,
    }
}

impl House {
    async fn new() -> Self {
        Self::with(&journal_config()).await
    }

    async fn with(journal: &JournalConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = store::Config {
            dir: dir.path().to_owned(),
            database_url: None,
        };
        let store = store::open(&config).await.unwrap();
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let user = NewUser {
            id: UserId::new(),
            username: "mia".parse().unwrap(),
            role: Role::Member,
            password_hash: None,
        };
        let act = By::gateway(clock.wall()).did(Action::UserCreated, "mia");
        store.create_user(&user, &act).await.unwrap();
        let stopping = Stopping {
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        };
        let (sessions, commits) = Sessions::new(
            Arc::clone(&store),
            clock.clone(),
            Catalog::for_tests(&crate::runtime::Config::default()),
            &sessions_config(),
            journal,
            stopping.clone(),
            Instruments::default(),
        );
        let tracker = TaskTracker::new();
        tracker.spawn(commits.run());
        let mia = Principal {
            user: user.id,
            username: user.username,
            role: Role::Member,
            login: LoginId::new(),
            generation: 1,
            session: None,
            expires_at: Timestamp::MAX,
        };
        Self {
            sessions,
            store,
            clock,
            mia,
            stopping,
            tracker,
            _dir: dir,
        }
    }

    fn draft(&self) -> Session {
        self.sessions.draft(&self.mia, None, None).unwrap()
    }

    fn keeper(&self, change: impl FnOnce(&mut Config, &mut JournalConfig)) -> Keeper {
        let (mut sessions, mut journal) = (sessions_config(), journal_config());
        change(&mut sessions, &mut journal);
        let audit = AuditConfig { keep_days: 365 };
        self.sessions.keeper(&sessions, &journal, &audit)
    }

    fn days_pass(&self, days: i64) {
        let hours = u64::try_from(24 * days).unwrap();
        self.clock.advance(Duration::from_hours(hours));
    }

    async fn stored(&self, session: &Session) -> Vec<Recorded> {
        let mut all: Vec<Recorded> = Vec::new();
        loop {
            let after = all.last().map_or(0, |last| last.offset);
            let page = self.sessions.events(session.id(), after, 100_000).await;
            let page = page.unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page.into_iter().map(|entry| entry.recorded));
        }
    }

    /// Ends everything and waits for it.
    async fn close(self) {
        self.stopping.drain.cancel();
        self.stopping.stop.cancel();
        self.sessions.finish().await;
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// A command of nobody in particular.
fn request(command: Command) -> Request {
    let sent = Sent {
        by: By::gateway(Timestamp::UNIX_EPOCH),
        still: Arc::new(|| Ok(())),
        message_id: None,
        once: None,
        trace: None,
    };
    Request { command, sent }
}

/// Asks, and waits for the end of the run.
async fn prompts(session: &Session, text: &str) {
    let command = Command::SubmitPrompt {
        prompt: Prompt::new(text, Mode::Act),
        if_busy: IfBusy::Refuse,
    };
    session.command(request(command)).await.unwrap();
    loop {
        let state = session.state().await.unwrap();
        if state.live_run().is_none() {
            return;
        }
        session.journal().grows_beyond(state.offset).await;
    }
}
